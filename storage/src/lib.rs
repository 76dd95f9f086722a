//! Wide-column tables that never lose an acknowledged write: rows with versioned cells, conditions, atomic batches,
//! synchronous secondary indexes, and a gap-free log of every change.
//!
//! A [`Database`] is one directory. A [`WriteBatch`] happens as a whole or not at all, gets one sequence, and leaves
//! one [`Change`] in the log; by default it is on the disk when it is acknowledged. A [`Snapshot`] is one cut across
//! rows, secondary indexes and log, and blocks no write. Time to live, versions and conditions are those of
//! Tablestore's wide-column model.
//!
//! ```
//! use std::time::Duration;
//!
//! use souk_storage::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let database = Database::in_memory(DatabaseOptions::default()).await?;
//! let shops = TableSchema::new("shops")
//!     .key("city", KeyKind::String)
//!     .auto_increment_key("number")
//!     .max_versions(3)
//!     .time_to_live(Duration::from_secs(30 * 86_400))
//!     .transactions()
//!     .index(SecondaryIndexSchema::new("by_rating", ["rating"]).include(["name"]));
//! let shops = database.ensure_table(shops).await?;
//!
//! // An appended row is numbered by the store.
//! let columns = vec![("name".into(), "Spices".into()), ("rating".into(), 48.into())];
//! let append = RowOperation::Append { key: vec!["Helsinki".into()], columns };
//! let append = RowWrite::new(&shops, append, Condition::none()).returning(ReturnRow::Key);
//! let appended = database.write(WriteBatch::new().row(append)).await?;
//! let key = appended.rows[0].key.clone().expect("the key that was asked for");
//!
//! // A put replaces the whole row, here only if nobody has written it since.
//! let columns = vec![("name".into(), "Herbs".into()), ("rating".into(), 48.into())];
//! let put = RowOperation::Put { key: key.clone(), columns };
//! let unchanged = Condition { existence: Existence::MustExist, ..Condition::revision(appended.sequence) };
//! database.write(WriteBatch::of(&shops, put, unchanged)).await?;
//!
//! // An increment, with its sum.
//! let changes = vec![ColumnChange::Increment { column: "visits".to_owned(), by: 2 }];
//! let update = RowOperation::Update { key: key.clone(), changes };
//! let update = RowWrite::new(&shops, update, Condition::must_exist())
//!     .returning(ReturnRow::AfterModify(vec!["visits".to_owned()]));
//! let updated = database.write(WriteBatch::new().row(update.clone())).await?;
//! let sum = updated.rows[0].row.as_ref().and_then(|row| row.get("visits")?.as_integer());
//! assert_eq!(sum, Some(2));
//!
//! // A transaction holds one partition and sees its own writes; others see them after the commit.
//! let mut transaction = database.begin(&shops, "Helsinki".into()).await?;
//! transaction.write(vec![update]).await?;
//! let row = transaction.get(&key).await?.expect("the row");
//! assert_eq!(row.get("visits"), Some(&4.into()));
//! let committed = transaction.commit().await?;
//!
//! // A range of a secondary index, best first.
//! let (from, to) = (IndexBound::Before(vec![40.into()]), IndexBound::Max);
//! let best = IndexRequest::between("by_rating", from, to, Direction::Backward).limit(10);
//! let page = database.snapshot().await?.index(&shops, &best).await?;
//! assert_eq!(page.entries[0].included, [("name".to_owned(), "Herbs".into())]);
//!
//! // A feed: the rows as they are, then every change of them, from where it was acknowledged.
//! let feed = database.create_feed("copy", FeedOptions::new(FeedSource::BaseAndChanges)).await?;
//! let batch = feed.read(100).await?;
//! assert_eq!(batch.records[0].sequence, committed.sequence);
//! feed.acknowledge(&batch.token).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it is not
//!
//! It has no query language, no joins and no full-text search: what is searched is derived from the change log
//! elsewhere. It doesn't replicate; one process owns a directory. A [`Transaction`] holds the rows of one partition
//! key; across partitions and tables, what belongs together is one [`WriteBatch`], and what was read before is
//! guarded by a [`Condition`].
//!
//! # Layout
//!
//! | module | what it is about |
//! |---|---|
//! | [`backup`], [`mod@restore`] | copies of a database taken while it works, and databases made of them |
//! | [`batch`], `plan`, `write` | what a writer asks for; what a commit becomes of it; the way of a batch to its commit |
//! | [`catalog`], [`schema`] | the tables, and what a table is declared as |
//! | [`change`] | what one batch did, as the log keeps it |
//! | [`mod@check`], [`contents`] | whether a database is whole; what each table holds |
//! | [`clock`] | time as a parameter |
//! | `codec`, `key` | the bytes of values; THE table of stored keys |
//! | [`consumer`] | who reads the log, and what of it is kept for them |
//! | [`database`], `open` | the handle and what its clones share; opening |
//! | [`error`] | what can go wrong, with a code and advice |
//! | `expiry`, `replay`, `secondary` | time to live; requests that are repeated; entries of secondary indexes |
//! | [`feed`], `feeds` | rows and then every change of them, delivered to a reader that acknowledges; where each feed stands |
//! | [`filter`], `id`, [`row`], [`value`] | conditions on columns; numbers of tables and transactions; rows; values and keys |
//! | [`jobs`], `job_runner`, [`tables`] | tables that change, and what is left to do in the background when they have |
//! | [`limits`], [`options`] | every limit; what a database is opened with |
//! | `maintenance` | trimming the log, freeing expired cells, syncing in the background |
//! | [`metering`] | what a read or write costs, in capacity units |
//! | [`read`], `row_cache` | snapshots: rows, ranges, secondary indexes, changes; whole rows that were read lately |
//! | `partitions`, `row_locks`, [`transaction`] | locks on partitions and rows; transactions that hold a partition |
//! | `undisturbed` | changes of the catalog that run to their end without their callers |
//! | `walk` | walking over a part of a space |

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
mod feeds;
pub mod filter;
mod id;
mod job_runner;
pub mod jobs;
mod key;
pub mod limits;
mod maintenance;
pub mod metering;
mod open;
pub mod options;
mod partitions;
mod plan;
pub mod read;
mod replay;
pub mod restore;
pub mod row;
mod row_cache;
mod row_locks;
pub mod schema;
mod secondary;
pub mod tables;
pub mod transaction;
mod undisturbed;
pub mod value;
mod walk;
mod write;

pub use backup::{Backup, BackupFolder, BackupKind, BackupPolicy};
pub use batch::{
    CellPut, ColumnChange, Committed, Condition, Existence, RequestRecord, ReturnRow, RowOperation, RowWrite,
    WriteBatch, WrittenRow,
};
pub use catalog::{SecondaryIndexState, Table};
pub use change::{Change, ChangeKind, LogEntry, RowChange};
pub use check::{CheckReport, Problem, ProblemKind, check};
pub use clock::{Clock, ManualClock, SystemClock};
pub use consumer::Consumer;
pub use contents::Contents;
pub use database::Database;
pub use error::{ConditionFailure, Error, ErrorKind, Result};
pub use feed::{
    Acknowledgement, Feed, FeedBatch, FeedDescription, FeedOptions, FeedPhase, FeedRecord, FeedShard,
    FeedSource, FeedStart, FeedToken, RecordKind,
};
pub use filter::{Cast, Comparison, Filter, ValueRule};
pub use id::{TableId, TransactionId};
pub use jobs::{Job, JobKind};
pub use metering::CapacityUnits;
pub use options::DatabaseOptions;
pub use read::{
    ColumnPage, IndexBound, IndexEntry, IndexPage, IndexPosition, IndexRequest, KeyBound, LogStatistics,
    RangePage, RangeRequest, Read, ReadOptions, Snapshot, Split, Splits, TableKeys, TableLogStatistics,
    TimeRange, VersionSelection,
};
pub use restore::{Restored, restore};
pub use row::{Cell, ColumnName, ColumnSelection, Columns, EACH_BYTES, Row};
pub use schema::{IndexScope, KeyKind, SecondaryIndexSchema, TableSchema};
/// What this interface takes and gives of the key-value store below.
pub use souk_kv::{
    CommitGroup, DeviceSpace, Direction, Durability, FjallOptions, FreeSpace, Health, Observer, Recovery,
    Space, Statistics,
};
pub use tables::{Backfill, TableUpdate};
pub use transaction::{CommitOptions, Transaction};
pub use value::{KeyValue, PrimaryKey, Text, Value};
