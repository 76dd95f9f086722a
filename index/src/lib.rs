//! The search index of Souk: documents of typed fields under unique keys, found by query trees, in any order, by pages.
//!
//! An [`Index`] is a folder. Its one [`IndexWriter`] applies [`Operation`]s and commits them together with the sequence of
//! the change log that they reach; a [`Searcher`] is a view of one commit. Queries are Tablestore's: terms, ranges,
//! patterns, full text in Chinese and English, nested objects, areas on the globe, and combinations. Sorts are by fields,
//! distance, score or key, always down to the key, so pages neither repeat nor skip documents.
//!
//! It is *not* a store: it keeps keys and what it takes to find them, and the rows behind the keys live in the table that
//! it is built from, from which a lost or damaged index is built again. It is not asynchronous: every call blocks, and
//! searches keep a core busy. It is not distributed, and knows nothing of permissions or of the wire.
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
//! let request = SearchRequest::new(Query::match_text("name", "咖啡")).sorted(vec![Sort::field("cents", true)]);
//! let found = index.searcher().search(&request, &Cancellation::none())?;
//! assert_eq!((found.hits[0].key.as_slice(), found.sequence), (&b"sku-1"[..], 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//! | module | what it does |
//! |---|---|
//! | [`schema`] | fields, their types, and the fingerprint of it all |
//! | [`document`] | documents, and the operations on them |
//! | [`index`] | opens an index and hands out its writer and its searchers |
//! | [`writer`] | applies changes, commits them, makes them durable |
//! | [`misfit`] | counts the values that don't fit their field |
//! | [`query`] | the query tree |
//! | [`request`] | a whole search, and what it finds |
//! | [`search`] | runs a search on one commit |
//! | [`sort`] | the order of hits |
//! | [`aggregate`] | figures and groups over all matches |
//! | [`inner_hits`] | which objects of a hit matched |
//! | [`contents`] | everything that is held of each document |
//! | [`page`] | page tokens |
//! | [`profile`] | how a search was planned, and what it cost |
//! | [`cancel`] | when a search has to stop |
//! | [`analyze`] | how texts become tokens |
//! | [`highlight`] | which words of a text made it match, in fragments |
//! | [`geo`] | points, areas and the cells that cover them |
//! | [`limits`] | every bound, in one place |
//! | [`error`] | what can go wrong |
//! | `layout` | how documents lie in the search library |
//! | `plan` | from the query tree to the search library |
//! | `points`, `cell_walk` | the points of documents, and the cells of the grid that an area touches |
//! | `join`, `bits` | documents of which a nested object matches |
//! | `attribute` | values under names that no schema knows |
//! | `columns`, `held` | what searches keep of the columns of segments, and how many bytes that are |
//! | `bm25`, `statistics` | scores of texts, and what they depend on besides the document |
//! | `score` | scores in single precision |
//! | `bounds` | how high the documents of a word can score |
//! | `allowance` | the memory that one search may hold |
//! | `run`, `pace` | what the parts of one search share, and how they look whether it has to stop |
//! | `phrase` | where a phrase occurs in a text |
//! | `checksum` | whether files hold what was written into them |
//! | `directory` | commits that are visible at once and durable at checkpoints |
//! | `collapse` | of the matches with the same value of a field, the best |
//! | `count` | how many documents match, as far as that is asked |
//! | `edit_distance` | how many edits make one word of another |
//! | `cursor` | what a commit says of itself |
//! | `merge`, `merge_log` | which segments are merged, and when; how many merges there were |
//! | `priority` | merges leave the cores to searches |

pub mod aggregate;
pub mod analyze;
pub mod cancel;
pub mod contents;
pub mod document;
pub mod error;
pub mod geo;
pub mod highlight;
pub mod index;
pub mod inner_hits;
pub mod limits;
pub mod misfit;
pub mod page;
pub mod profile;
pub mod query;
pub mod request;
pub mod schema;
pub mod search;
pub mod sort;
pub mod writer;

mod allowance;
mod attribute;
mod bits;
mod bm25;
mod bounds;
mod cell_walk;
mod checksum;
mod collapse;
mod columns;
mod count;
mod cursor;
mod directory;
mod edit_distance;
mod held;
mod join;
mod layout;
mod merge;
mod merge_log;
mod pace;
mod phrase;
mod plan;
mod points;
mod priority;
mod run;
mod score;
mod statistics;

pub use aggregate::{
    Aggregation, AggregationResult, CalendarUnit, CompositeSource, Datum, Figure, Group, GroupOrder,
    GroupOrderBy, SourceKind, TimeZone, TopHit, ValueRange,
};
pub use cancel::Cancellation;
pub use document::{Document, FieldValue, Object, Operation};
pub use error::{Error, Reason, Violation, Violations};
pub use geo::GeoPoint;
pub use highlight::{Encoder, Fragment, FragmentOrder, Highlight, Highlighter};
pub use index::{
    Completeness, Index, IndexMemory, IndexOptions, IndexSize, Kept, MergeRoom, Opening, StopOpening,
};
pub use inner_hits::{InnerHit, InnerHitList, InnerHits};
pub use merge_log::MergeFigures;
pub use misfit::{Misfit, MisfitCount, MisfitReason, MisfitReport};
pub use profile::{Access, Profile, ProfileNode, ProfiledSegment};
pub use query::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Fuzziness, Modifier, Operator, Query, QueryValue, ScoreFunction, ScoreMode,
};
pub use request::{
    ArrayMode, Hit, Missing, NestedSort, Relation, SearchRequest, SearchResult, Sort, Total, TotalRequest,
};
pub use schema::{Analyzer, Field, FieldKind, ResolvedField, Schema};
pub use search::Searcher;
pub use sort::SortValue;
pub use writer::IndexWriter;
