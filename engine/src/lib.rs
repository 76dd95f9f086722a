//! Tables with search: those of `souk-storage`, each with indexes of `souk-index` that follow it.
//!
//! Tables are data. A [`TableDefinition`] says what one is: its schema, how the values of its columns are read, what is
//! searched and where each field comes from, who owns a row. Everything here works on definitions: reads and conditional
//! writes, ranges and lists, searches that wait for a write, exports of one snapshot, watches of every change
//! ([`TableHandle`]). Tables are created, changed and dropped while the engine runs, or declared by a [`Resource`], which is a
//! thin layer between a domain type and rows ([`Collection`]). The engine is **not** a query engine (that is `souk-index`),
//! keeps no state of its own beside store and indexes, and knows neither a domain nor gRPC: what its types are on the wire is
//! said by `souk-api`.
//!
//! # Layout
//! Each module uses those above it only, and some of its own line.
//!
//! | module | what it does |
//! |---|---|
//! | [`call`], `deadline` | on whose behalf and until when a call works, and its waiting |
//! | `protobuf`, [`columns`], [`attributes`], [`key`] | how a row holds what it is made of |
//! | [`error`] | what can go wrong |
//! | [`trace`], [`observer`] | what an engine reports as it happens |
//! | `etag`, `token`, `turns` | what clients come back with; row locks, in FIFO order |
//! | [`definition`] | what a table is |
//! | `value_tree`, `document` | what cells hold, by their types; rows as documents |
//! | [`resource`], `stored` | what a service says about its records; records as rows |
//! | `leases`, [`slices`], [`read_ahead`], [`transactions`], `places` | what is kept between calls, for exports, watches and transactions; how many calls take long |
//! | `design`, `index_change`, `kept_changes` | what an index is made for, and its changes |
//! | `owners`, `handovers`, `scope`, `index_state`, `open_index`, [`views`], `open_table` | what searches keep for their pages; open tables, whose indexes share their searches, and are waited for; which rows a call meets: all, or its caller's own |
//! | `health`, `search_pool`, `log_tail`, `keeper` | where searches run; indexes are built, follow the change log, which is read once for all, and are replaced |
//! | `catalog` | the definitions of tables that are created at run time |
//! | `inner`, [`figures`] | what an engine's clones share; what there is to measure of it |
//! | [`table`], [`mod@export`], [`watch`] | the calls on one table: reads, writes, lists, searches, transactions; streams of a snapshot, and of changes |
//! | [`collection`] | the same as resources |
//! | [`engine`](mod@engine), [`index_admin`], [`index_creation`], `table_admin` | opens a database with its tables, tells its health, closes it; indexes as their users see and change them; indexes, and tables, created, changed and dropped |
//!
//! # A table
//! ```no_run
//! use souk_engine::index::{Analyzer, Field, Query, SearchRequest};
//! use souk_engine::storage::{KeyKind, PrimaryKey, TableSchema};
//! use souk_engine::{Engine, EngineConfig, Search, Source, TableDefinition, TableWrite, Tables, ValueType};
//!
//! # async fn example() -> souk_engine::Result<()> {
//! let engine = Engine::open(EngineConfig::new("data"), Tables::new()).await?;
//! let notes = TableDefinition::new(TableSchema::new("notes").key("id", KeyKind::String))
//!     .column("data", ValueType::Json)
//!     .field(Field::text("text", Analyzer::MaxWord))
//!     .field_from(Field::keyword("city"), Source::column("data").at(["address", "city"]));
//! let notes = engine.create_table(notes).await?;
//! let columns = vec![
//!     ("text".into(), "hello".into()),
//!     ("data".into(), r#"{"address": {"city": "Oulu"}}"#.into()),
//! ];
//! let written = notes.write(vec![TableWrite::put(PrimaryKey::string("n1")?, columns)], None).await?;
//! let city = Query::Term { field: "city".to_owned(), value: "Oulu".into(), weight: 1.0 };
//! let mut search = Search::new(SearchRequest::new(city));
//! search.min_sequence = written.sequence.unsigned_abs();
//! assert_eq!(notes.search(search).await?.hits.len(), 1);
//! # Ok(()) }
//! ```
//!
//! # A resource
//! ```no_run
//! use souk_engine::index::Field;
//! use souk_engine::{ColumnReader, Columns, CorruptRow, Engine, EngineConfig, Resource, TableDefinition, Tables};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Note { id: String, text: String }
//!
//! impl Resource for Note {
//!     type Record = Self;
//!     const TABLE: &'static str = "notes";
//!     const NAME: &'static str = "note";
//!     const ID_FIELD: &'static str = "note_id";
//!     fn definition() -> TableDefinition {
//!         TableDefinition::hashed(Self::TABLE).field(Field::keyword("text"))
//!     }
//!     fn id(record: &Self) -> &str { &record.id }
//!     fn to_columns(record: &Self) -> Columns { Columns::new().string("text", &record.text) }
//!     fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
//!         Ok(Self { id: id.to_owned(), text: columns.string("text")? })
//!     }
//! }
//!
//! # async fn example() -> souk_engine::Result<()> {
//! let engine = Engine::open(EngineConfig::new("data"), Tables::new().table::<Note>()).await?;
//! let notes = engine.collection::<Note>()?;
//! let note = Note { id: "n1".to_owned(), text: "hello".to_owned() };
//! let written = notes.create(note, None, false).await?;
//! assert_eq!(notes.get("n1", 0).await?.value, written.value);
//! # Ok(()) }
//! ```

pub mod attributes;
pub mod call;
pub mod collection;
pub mod columns;
pub mod consumer_groups;
pub mod definition;
pub mod engine;
pub mod error;
pub mod export;
pub mod figures;
pub mod index_admin;
pub mod index_creation;
pub mod key;
pub mod observer;
pub mod read_ahead;
pub mod resource;
pub mod slices;
pub mod table;
pub mod trace;
pub mod transactions;
pub mod views;
pub mod watch;

mod call_slots;
mod catalog;
mod deadline;
mod design;
mod document;
mod etag;
mod handovers;
mod health;
mod hex;
mod index_change;
mod index_state;
mod inner;
mod keeper;
mod kept_changes;
mod leases;
mod log_tail;
mod open_index;
mod open_table;
mod owners;
mod partitions;
mod protobuf;
mod scope;
mod search_pool;
mod stored;
mod table_admin;
mod token;
mod turns;
mod undisturbed;
mod value_tree;

pub use attributes::Attributes;
pub use call::{Call, Owner, Principal};
pub use catalog::MAX_CREATED_TABLES;
pub use collection::{ChangeKind, Collection, Creation, ResourceChange, SearchHit};
pub use columns::{ColumnReader, Columns, CorruptRow};
pub use definition::{
    ColumnDefinition, DateFormat, MAX_DATE_FORMATS, Member, NoDateFormat, OwnerDefinition, Reading,
    SearchIndexDefinition, Source, TableDefinition, TimeUnit, ValueType,
};
pub use engine::{Engine, EngineConfig, Health, Tables, VerifyOptions};
pub use error::{EngineError, LimitOf, Result};
pub use export::{ExportBlock, ExportStart};
pub use index_change::{ChangeProblem, IndexChange};
pub use read_ahead::WatchEvent;
pub use resource::{Found, RequestId, Resource, Stored, Written};
/// The searchable types that resources are declared with.
pub use souk_index as index;
/// The table types that resources are declared with.
pub use souk_storage as storage;
pub use table::{
    Attempt, IndexAnswer, IndexView, ListPage, ListQuery, MAX_PAGE_BYTES, READ_WAIT_MAX, RowHit, RowsPage,
    Search, SearchProfile, SearchResults, TableHandle, TableWrite,
};
pub use table_admin::TablesPage;
pub use transactions::ReadView;
