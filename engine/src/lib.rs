//! Typed collections with search: tables of `souk-storage`, each with an index of `souk-index` that follows it.
//!
//! A service declares what a row and a document of its records are ([`Resource`]); the engine does the rest: reads and
//! conditional writes, lists, searches that wait for a write, exports of one snapshot, watches of every change. It is
//! **not** a query engine (that is `souk-index`), keeps no state of its own beside store and indexes, and knows no domain.
//!
//! # Layout
//! | module | what it does |
//! |---|---|
//! | [`resource`], [`columns`], [`key`] | what a service says about its records |
//! | [`engine`](mod@engine) | opens a database with its tables, tells its health, closes it |
//! | [`collection`] | the calls on one table: reads, writes, lists, searches |
//! | [`mod@export`], [`watch`] | streams of a snapshot, and of changes |
//! | [`wire`] | what every service needs between messages and its domain |
//! | [`hosting`] | a service as a part of a process |
//! | [`metrics`] | what is measured |
//! | [`error`] | what can go wrong; `status` alone says what a client is told |
//! | `keeper`, `design`, `index_state` | indexes are built from their tables, follow the log, are replaced, and are waited for |
//! | `index_admin` | indexes as their users see and change them |
//! | `log_tail` | the end of the change log, read once for all indexes |
//! | `scope` | which rows a call meets: all, or its caller's own |
//! | `search_wire`, `search_pool` | messages to searches and back; where searches run |
//! | `leases`, `views` | what is kept between calls; views that the pages of a search share |
//! | `stored`, `table`, `turns` | records as rows and documents; open tables; order among writers of one row |
//!
//! # Example
//! ```no_run
//! use souk_engine::index::{Field, Object};
//! use souk_engine::{ColumnReader, Columns, CorruptRow, Engine, EngineConfig, Resource, Tables};
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
//! let search = souk_proto::search::v1::Search { min_sequence: written.sequence, ..Default::default() };
//! assert_eq!(notes.search(Some(search), "search").await?.hits.len(), 1);
//! # Ok(()) }
//! ```

pub mod collection;
pub mod columns;
pub mod engine;
pub mod error;
pub mod export;
pub mod hosting;
pub mod key;
pub mod metrics;
pub mod resource;
pub mod search;
#[cfg(feature = "testing")]
pub mod testing;
pub mod views;
pub mod watch;
pub mod wire;

mod deadline;
mod design;
mod etag;
mod handovers;
mod health;
mod index_admin;
mod index_state;
mod keeper;
mod leases;
mod log_tail;
mod scope;
mod search_pool;
mod search_wire;
mod status;
mod stored;
mod table;
mod token;
mod turns;

pub use collection::{Attempt, Collection, Creation, ListPage, ListRequest};
pub use columns::{ColumnReader, Columns, CorruptRow};
pub use engine::{Engine, EngineConfig, Health, Tables, VerifyOptions};
pub use error::{EngineError, LimitOf, Result};
pub use export::{ExportBlock, ExportRequest};
pub use resource::{Found, Resource, Stored, Written};
pub use search::{
    ClusterPage, ClusterRequest, ClusterSize, FoundCluster, FoundHit, NearPage, NearbyRequest, SearchPage,
    SuggestFields, SuggestOrder, SuggestPage, SuggestRequest, Suggestion,
};
/// The searchable types that resources are declared with.
pub use souk_index as index;
/// The table types that resources are declared with.
pub use souk_storage as storage;
pub use watch::{ResourceChange, WatchEvent};
pub use wire::RequestId;
