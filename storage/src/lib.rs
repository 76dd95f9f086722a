//! Wide-column tables that never lose an acknowledged write: rows with versioned cells, conditions, atomic batches,
//! synchronous secondary indexes, and a gap-free log of every change.

pub mod batch;
pub mod catalog;
pub mod change;
pub mod clock;
mod codec;
pub mod consumer;
pub mod database;
pub mod error;
mod expiry;
pub mod filter;
mod key;
pub mod kv;
pub mod limits;
mod maintenance;
pub mod options;
pub mod read;
mod replay;
pub mod row;
pub mod schema;
mod secondary;
pub mod value;
mod write;

pub use batch::{
    ColumnChange, Committed, Condition, Durability, Existence, RequestRecord, RowOperation, RowWrite,
    WriteBatch,
};
pub use catalog::{Table, TableId};
pub use change::{Change, ChangeKind, RowChange};
pub use clock::{Clock, ManualClock, SystemClock};
pub use consumer::Consumer;
pub use database::{Database, Health};
pub use error::{ConditionFailure, Error, ErrorKind, Result};
pub use filter::{Comparison, Filter};
pub use options::{DatabaseOptions, Recovery};
pub use read::{
    ColumnSelection, Direction, IndexEntry, IndexPage, IndexPosition, KeyBound, RangePage, RangeRequest,
    Snapshot,
};
pub use row::{Cell, Row};
pub use schema::{KeyKind, SecondaryIndexSchema, TableSchema};
pub use value::{KeyValue, PrimaryKey, Value};
