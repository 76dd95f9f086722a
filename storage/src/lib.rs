//! Wide-column tables that never lose an acknowledged write: rows with versioned cells, conditions, atomic batches,
//! synchronous secondary indexes, and a gap-free log of every change.
//!
//! A [`Database`] is one directory. A [`WriteBatch`] happens as a whole or not at all, gets one sequence, and leaves
//! one [`Change`] in the log; by default it is on the disk when it is acknowledged. A [`Snapshot`] is one cut across
//! rows, secondary indexes and log, and blocks no write. Time to live, versions and conditions are those of
//! Tablestore's wide-column model.
//!
//! ```
//! use souk_storage::{
//!     Condition, Database, DatabaseOptions, Error, KeyKind, PrimaryKey, RowOperation, TableSchema, WriteBatch,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let database = Database::in_memory(DatabaseOptions::default()).await?;
//! let shops = TableSchema::new("shops").key("id", KeyKind::String);
//! let shops = database.ensure_table(shops).await?;
//!
//! let key = PrimaryKey::string("s-1")?;
//! let put = RowOperation::Put {
//!     key: key.clone(),
//!     columns: vec![("name".to_owned(), "Spices".into())],
//! };
//! let batch = WriteBatch::of(&shops, put, Condition::must_not_exist());
//! let written = database.write(batch).await?;
//!
//! let row = database.snapshot().await?.get(&shops, &key).await?;
//! let name = row.as_ref().and_then(|row| row.get("name")?.as_str());
//! assert_eq!(name, Some("Spices"));
//! assert_eq!(database.changes(0, 10).await?[0].sequence, written.sequence);
//! # Ok(())
//! # }
//! ```
//!
//! # What it is not
//!
//! It has no query language, no joins and no full-text search: what is searched is derived from the change log
//! elsewhere. It doesn't replicate; one process owns a directory. It has no transaction across partition keys: what
//! belongs together there is one batch, and what was read before is guarded by a [`Condition`].
//!
//! # Layout
//!
//! | module | what it is about |
//! |---|---|
//! | [`database`] | the handle: opening, writing, closing |
//! | [`tables`], [`jobs`] | tables that change, and what is left to do in the background when they have |
//! | [`batch`], `write` | what a writer asks for, and the way of a batch to its commit |
//! | [`transaction`] | transactions that hold a partition |
//! | [`read`] | snapshots: rows, ranges, secondary indexes, changes |
//! | [`change`] | what one batch did, as the log keeps it |
//! | [`consumer`] | who reads the log, and what of it is kept for them |
//! | [`feed`] | rows and then every change of them, delivered to someone who says what he has |
//! | [`catalog`], [`schema`] | the tables, and what a table is declared as |
//! | [`value`], [`row`], [`filter`] | values, keys, rows, and conditions on columns |
//! | `secondary`, `expiry`, `replay` | entries of secondary indexes; time to live; requests that are repeated |
//! | [`backup`], [`mod@restore`] | copies of a database taken while it works, and databases made of them |
//! | [`mod@check`], [`contents`] | whether a database is whole; what each table holds |
//! | `walk` | walking over a part of a space |
//! | `maintenance` | trimming the log, freeing expired cells, syncing in the background |
//! | [`metering`] | what a read or write costs, in capacity units |
//! | `key`, `codec` | THE table of stored keys, and the bytes of values |
//! | [`kv`] | the seam to a key-value engine, with two below it: on the disk and in memory |
//! | [`options`], [`limits`], [`clock`], [`free_space`] | what a database is opened with, every limit; time and free space as parameters |
//! | [`statistics`] | what a store holds and does: memory, journals, tables, disk |
//! | [`error`] | what can go wrong, with a code and advice |

pub mod backup;
pub mod batch;
pub mod catalog;
pub mod change;
pub mod check;
pub mod clock;
mod codec;
pub mod consumer;
pub mod contents;
pub mod database;
pub mod error;
mod expiry;
pub mod feed;
pub mod filter;
pub mod free_space;
pub mod jobs;
mod key;
pub mod kv;
pub mod limits;
mod maintenance;
pub mod metering;
pub mod options;
pub mod read;
mod replay;
pub mod restore;
pub mod row;
pub mod schema;
mod secondary;
pub mod statistics;
pub mod tables;
pub mod transaction;
pub mod value;
mod walk;
mod write;

pub use backup::{Backup, BackupFolder, BackupKind, BackupPolicy};
pub use batch::{
    CellPut, ColumnChange, Committed, Condition, Durability, Existence, RequestRecord, ReturnRow,
    RowOperation, RowWrite, WriteBatch, WrittenRow,
};
pub use catalog::{IndexState, Table, TableId};
pub use change::{Change, ChangeKind, RowChange};
pub use check::{CheckReport, Problem, ProblemKind, check};
pub use clock::{Clock, ManualClock, SystemClock};
pub use consumer::Consumer;
pub use contents::Contents;
pub use database::{Database, Health};
pub use error::{ConditionFailure, Error, ErrorKind, Result};
pub use feed::{
    Feed, FeedBatch, FeedDescription, FeedOptions, FeedPhase, FeedRecord, FeedSource, FeedStart, FeedToken,
    RecordKind,
};
pub use filter::{Cast, Comparison, Filter, ValueRule};
pub use free_space::{DeviceSpace, FreeSpace};
pub use jobs::{Job, JobKind};
pub use metering::CapacityUnits;
pub use options::{DatabaseOptions, Recovery};
pub use read::{
    ColumnPage, ColumnSelection, Direction, IndexBound, IndexEntry, IndexPage, IndexPosition, IndexRequest,
    KeyBound, LogStatistics, RangePage, RangeRequest, Read, ReadOptions, Snapshot, Split, Splits, TableKeys,
    TableLogStatistics, TimeRange, VersionSelection,
};
pub use restore::{Restored, restore};
pub use row::{Cell, Columns, Row};
pub use schema::{IndexScope, KeyKind, SecondaryIndexSchema, TableSchema};
pub use statistics::Statistics;
pub use tables::{Backfill, TableUpdate};
pub use transaction::{CommitOptions, Transaction, TransactionId};
pub use value::{KeyValue, PrimaryKey, Value};
