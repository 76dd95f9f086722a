//! The search index of Souk: documents of typed fields under unique keys, found by query trees, in any order, by pages.
//!
//! An [`Index`] is a folder. Its one [`IndexWriter`] applies [`Operation`]s and commits them together with the sequence of
//! the change log that they reach; a [`Searcher`] is a view of one commit. Queries are Tablestore's: terms, ranges,
//! patterns, full text in Chinese and English, nested objects, areas on the globe, and combinations. Sorts are by fields,
//! distance, score or key, always down to the key, so pages neither repeat nor skip documents.
//!
//! It is *not* a store: it keeps keys and inverted indexes and columns of the fields. The rows live in the table that it is
//! built from, and from which a lost or damaged index is rebuilt. It is not asynchronous: every call blocks, and a search
//! keeps a core busy. It is not distributed, and knows nothing of permissions or of the wire.
//!
//! ```
//! use souk_index::{
//!     Analyzer, Cancellation, Document, Field, Index, IndexOptions, Object, Operation, Query, Schema, SearchRequest, Sort,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = Schema::new(vec![Field::text("name", Analyzer::single_word()), Field::long("cents")])?;
//! let index = Index::create_in_ram(schema, IndexOptions::default())?;
//! let mut writer = index.writer()?;
//! let fields = Object::new().with("name", "手冲咖啡 pour over").with("cents", 2_800);
//! writer.apply(vec![Operation::Upsert(Document { key: b"sku-1".to_vec(), fields })])?;
//! writer.commit(1)?;
//!
//! let dearest_first = Sort::field("cents", true);
//! let request = SearchRequest::new(Query::match_text("name", "咖啡")).sorted(vec![dearest_first]);
//! let found = index.searcher().search(&request, &Cancellation::none())?;
//! assert_eq!((found.hits[0].key.as_slice(), found.sequence), (&b"sku-1"[..], 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules, by layers
//! A module uses those of its own layer and of the layers above it; no two layers need each other.
//!
//! | layer | modules |
//! |---|---|
//! | errors and bounds | [`error`] what can go wrong; [`limits`] every bound; [`cancel`], `allowance`, `execution`, `held` when a search stops, and its memory |
//! | values | [`geo`] points, areas and their cells; [`schema`], [`document`] fields and what is in them; [`request`], [`result`] what is asked and answered; [`misfit`] rejected values; `attribute` values that no schema knows |
//! | texts | [`analyze`] how texts become tokens; `edit_distance`, `phrase` how words and phrases match; `bm25`, `score` how they score |
//! | on disk | `layout` how documents lie in the search library; `checksum`, `directory`, `commit_payload` what a commit is, and when it is durable; `merge`, `merge_log`, `priority` which segments are merged, at lower priority than searches |
//! | what searches share | `columns`, `statistics`, `bounds`, `points` what is known of segments; `bits` sets of documents, `doc_walk` and `doc_blocks` walks over them; `run`, `pace`, `unexplained` the context of one search, and what the library asks of it; `join` documents of which a nested object matches; `cell_walk` the cells that an area touches |
//! | planning | `profile` what clauses cost; `plan` from the query tree to the search library |
//! | collecting | `sort` the order of hits; `count` how many match; `collapse` one hit a value; `inner_hits` the objects that matched; `page` page tokens; `aggregate` aggregations: figures (metrics) and groups (buckets); [`highlight`] which words made a text match |
//! | the index | [`index`] opens it; [`writer`] applies changes, commits them, makes them durable; [`search`] runs searches on one commit; `testing` what only tests need |

pub mod analyze;
pub mod cancel;
pub mod document;
pub mod error;
pub mod geo;
pub mod highlight;
pub mod index;
pub mod limits;
pub mod misfit;
pub mod request;
pub mod result;
pub mod schema;
pub mod search;
pub mod writer;

mod aggregate;
mod allowance;
mod attribute;
mod bits;
mod bm25;
mod bounds;
mod cell_walk;
mod checksum;
mod collapse;
mod columns;
mod commit_payload;
mod count;
mod directory;
mod doc_blocks;
mod doc_walk;
mod edit_distance;
mod execution;
mod held_bytes;
mod inner_hits;
mod join;
mod layout;
mod merge;
mod merge_log;
mod pace;
mod page;
mod phrase;
mod plan;
mod points;
mod priority;
mod profile;
mod run;
mod score;
mod sort;
mod statistics;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod unexplained;

pub use cancel::Cancellation;
pub use document::{Document, FieldValue, Object, Operation};
pub use error::{Error, Reason, Violation, Violations};
pub use geo::GeoPoint;
pub use highlight::{Encoder, Fragment, FragmentOrder, Highlight, Highlighter};
pub use index::{
    Completeness, Index, IndexMemory, IndexOptions, IndexSize, Kept, LastCommit, Opening, StopOpening,
};
pub use merge::MergeRoom;
pub use merge_log::MergeFigures;
pub use misfit::{Misfit, MisfitCount, MisfitReason, MisfitReport};
pub use page::token_design;
pub use request::{
    Aggregation, ArrayMode, CalendarUnit, CombineMode, CompositeSource, Decay, DecayOrigin, DecayShape,
    DistanceMode, Function, FunctionScore, FunctionScoreMode, Fuzziness, GroupOrder, GroupOrderBy, InnerHits,
    MetricKind, Minimum, Missing, Modifier, NestedSort, Operator, Query, QueryValue, ScoreFunction,
    ScoreMode, SearchRequest, Sort, SourceKind, TimeZone, TotalRequest, ValueRange, query,
};
pub use result::{
    AggregationResult, Datum, Group, Hit, InnerHit, InnerHitList, Profile, ProfileNode, ProfiledSegment,
    Relation, SearchResult, SegmentAccess, SortValue, TopHit, Total,
};
pub use schema::{Analyzer, Field, FieldKind, ResolvedField, Schema};
pub use search::Searcher;
pub use writer::IndexWriter;
