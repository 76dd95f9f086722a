//! Typed collections with search: tables of `souk-storage`, each with an index of `souk-index` that follows it.
//!
//! A service declares what a row and a document of its records are ([`Resource`]); the engine does the rest: reads and
//! conditional writes, lists, searches that wait for a write, exports of one snapshot, watches of every change. It is
//! **not** a query engine (that is `souk-index`), keeps no state of its own beside store and indexes, and knows neither a
//! domain nor gRPC: what its types are on the wire is said by `souk-api`.
//!
//! # Layout
//! Each module uses those above it only, and some of its own line.
//!
//! | module | what it does |
//! |---|---|
//! | [`call`], `deadline` | on whose behalf and until when a call works, and its waiting |
//! | `protobuf`, [`columns`], [`attributes`], [`key`] | how a row holds what a resource is made of |
//! | [`error`] | what can go wrong |
//! | `trace`, [`observer`] | what is told of an engine as it happens |
//! | `etag`, `token`, `turns` | what clients come back with; order among writers of one row |
//! | [`resource`], `stored`, `declaration` | what a service says about its records; they as rows and documents; the tables |
//! | `leases`, [`views`], [`slices`], [`read_ahead`], [`watch_places`] | what is kept between calls, for searches, exports and watches |
//! | `design`, `index_change`, `kept_changes` | what an index is made for, and its changes |
//! | `handovers`, `scope` | which rows a call meets: all, or its caller's own |
//! | `index_state`, `health`, `table` | open tables, whose indexes are waited for |
//! | `search_pool`, `log_tail`, `keeper` | where searches run; indexes are built, follow the change log, which is read once for all, and are replaced |
//! | `inner`, [`figures`] | what an engine's clones share; what there is to measure of it |
//! | [`collection`], [`mod@export`], [`watch`] | the calls on one table: reads, writes, lists, searches; streams of a snapshot, and of changes |
//! | [`engine`](mod@engine), [`index_admin`] | opens a database with its tables, tells its health, closes it; indexes as their users see and change them |
//!
//! # Example
//! ```no_run
//! use souk_engine::index::{Field, Object, Query, SearchRequest};
//! use souk_engine::{ColumnReader, Columns, CorruptRow, Engine, EngineConfig, Resource, Search, Tables};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Note { id: String, text: String }
//!
//! impl Resource for Note {
//!     const TABLE: &'static str = "notes";
//!     const NAME: &'static str = "note";
//!     const ID_FIELD: &'static str = "note_id";
//!     fn id(&self) -> &str { &self.id }
//!     fn fields() -> Vec<Field> { vec![Field::keyword("text")] }
//!     fn to_columns(&self) -> Columns { Columns::new().string("text", &self.text) }
//!     fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
//!         Ok(Self { id: id.to_owned(), text: columns.string("text")? })
//!     }
//!     fn to_document(&self, document: &mut Object) { document.push("text", self.text.as_str()); }
//! }
//!
//! # async fn example() -> souk_engine::Result<()> {
//! let engine = Engine::open(EngineConfig::new("data"), Tables::new().table::<Note>()).await?;
//! let notes = engine.collection::<Note>()?;
//! let note = Note { id: "n1".to_owned(), text: "hello".to_owned() };
//! let written = notes.create(note, None, false).await?;
//! let mut search = Search::new(SearchRequest::new(Query::MatchAll));
//! search.min_sequence = written.sequence.unsigned_abs();
//! assert_eq!(notes.search(search).await?.hits.len(), 1);
//! # Ok(()) }
//! ```

pub mod attributes;
pub mod call;
pub mod collection;
pub mod columns;
pub mod engine;
pub mod error;
pub mod export;
pub mod figures;
pub mod index_admin;
pub mod key;
pub mod observer;
pub mod read_ahead;
pub mod resource;
pub mod slices;
pub mod views;
pub mod watch;
pub mod watch_places;

mod deadline;
mod declaration;
mod design;
mod etag;
mod handovers;
mod health;
mod index_change;
mod index_state;
mod inner;
mod keeper;
mod kept_changes;
mod leases;
mod log_tail;
mod protobuf;
mod scope;
mod search_pool;
mod stored;
mod table;
mod token;
mod trace;
mod turns;

pub use attributes::Attributes;
pub use call::{Call, Owner, Principal};
pub use collection::{
    Attempt, Collection, Creation, IndexAnswer, ListPage, ListQuery, Search, SearchHit, SearchProfile,
    SearchResults,
};
pub use columns::{ColumnReader, Columns, CorruptRow};
pub use engine::{Engine, EngineConfig, Health, Tables, VerifyOptions};
pub use error::{EngineError, LimitOf, Result};
pub use export::{ExportBlock, ExportStart};
pub use index_change::{ChangeProblem, IndexChange};
pub use resource::{Found, RequestId, Resource, Stored, Written};
/// The searchable types that resources are declared with.
pub use souk_index as index;
/// The table types that resources are declared with.
pub use souk_storage as storage;
pub use watch::{ChangeKind, ResourceChange, WatchEvent};
