//! Reads of one snapshot: rows, ranges, secondary indexes, changes.

mod index;
pub(crate) mod log;
mod range;
mod rows;

use std::sync::Arc;

use bytes::Bytes;

use crate::catalog::Table;
use crate::change::Change;
use crate::database::Shared;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::filter::Filter;
pub use crate::kv::Direction;
use crate::kv::KvSnapshot;
pub use crate::read::log::statistics::{LogStatistics, TableLogStatistics};
use crate::row::Row;
use crate::value::{PrimaryKey, Value};

/// Which columns a read gives back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnSelection {
    /// All of them.
    #[default]
    All,
    /// These; a row that has none of them is not returned. Applied before the filter, which sees only these.
    Named(Vec<String>),
}

/// A cut between the keys of a table. The key may be a prefix of the table's key columns and then stands for all
/// keys that begin with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyBound {
    /// Before all keys.
    #[default]
    Min,
    /// After all keys.
    Max,
    /// Just before this key.
    Before(PrimaryKey),
    /// Just after this key.
    After(PrimaryKey),
}

/// A range of rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RangeRequest {
    /// Where reading begins: the lower cut going forward, the upper cut going backward.
    pub start: KeyBound,
    /// Where reading ends: the upper cut going forward, the lower cut going backward.
    pub end: KeyBound,
    /// Which way.
    pub direction: Direction,
    /// Most rows returned; 0 and anything above [`crate::limits::MAX_SCANNED_ROWS`] mean that.
    pub limit: usize,
    /// Bytes read after which the page ends; 0 and anything above [`crate::limits::MAX_SCANNED_BYTES`] mean that.
    pub bytes: usize,
    /// Which columns.
    pub columns: ColumnSelection,
    /// Which rows.
    pub filter: Option<Filter>,
}

impl RangeRequest {
    /// The whole table in this direction.
    pub fn all(direction: Direction) -> Self {
        let (start, end) = match direction {
            Direction::Forward => (KeyBound::Min, KeyBound::Max),
            Direction::Backward => (KeyBound::Max, KeyBound::Min),
        };
        Self {
            start,
            end,
            direction,
            ..Self::default()
        }
    }

    /// The rows whose key begins with these columns.
    pub fn prefix(prefix: PrimaryKey, direction: Direction) -> Self {
        let (low, high) = (KeyBound::Before(prefix.clone()), KeyBound::After(prefix));
        match direction {
            Direction::Forward => Self {
                start: low,
                end: high,
                direction,
                ..Self::default()
            },
            Direction::Backward => Self {
                start: high,
                end: low,
                direction,
                ..Self::default()
            },
        }
    }

    /// Returns at most this many rows.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Goes on where a page stopped.
    #[must_use]
    pub fn resume(mut self, next: PrimaryKey) -> Self {
        self.start = match self.direction {
            Direction::Forward => KeyBound::Before(next),
            Direction::Backward => KeyBound::After(next),
        };
        self
    }
}

/// A page of a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RangePage {
    /// The rows, in the order of the direction. May be empty although there is more.
    pub rows: Vec<Row>,
    /// Where to go on, see [`RangeRequest::resume`]; `None` at the end of the range. The row itself isn't read yet.
    pub next: Option<PrimaryKey>,
}

/// A place in a secondary index; survives being sent away as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPosition(pub(crate) Bytes);

impl IndexPosition {
    /// Its bytes, for a page token.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A position from its bytes; whether it fits the index is checked when it is used.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }
}

/// One entry of a secondary index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexEntry {
    /// Values of the index's columns.
    pub values: Vec<Value>,
    /// Primary key of the row.
    pub key: PrimaryKey,
    /// The included columns that the row has, in the order of the index's schema.
    pub included: Vec<(String, Value)>,
    /// Where the entry is: reading after it goes on behind it.
    pub position: IndexPosition,
}

/// A page of a secondary index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexPage {
    /// The entries, in the order of the direction. May be empty although there is more.
    pub entries: Vec<IndexEntry>,
    /// Position to read after; `None` at the end of the range.
    pub next: Option<IndexPosition>,
}

/// One cut across rows, indexes and change log. It never changes and blocks no write; drop it when done, for it
/// keeps old data on the disk.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) kv: Arc<dyn KvSnapshot>,
    /// Generation of the catalog it includes.
    pub(crate) generation: u64,
    pub(crate) shared: Arc<Shared>,
}

impl Snapshot {
    /// Exactly the last sequence this snapshot includes.
    pub fn sequence(&self) -> u64 {
        self.kv.sequence()
    }

    /// A row with all its visible columns.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the key isn't of the table, [`Error::TableNotFound`], [`Error::Corrupt`].
    pub async fn get(&self, table: &Table, key: &PrimaryKey) -> Result<Option<Row>> {
        self.get_selected(table, key, &ColumnSelection::All, None).await
    }

    /// A row with the selected columns, if it passes the filter.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::LimitExceeded`] for the filter or selection.
    pub async fn get_selected(
        &self,
        table: &Table,
        key: &PrimaryKey,
        columns: &ColumnSelection,
        filter: Option<&Filter>,
    ) -> Result<Option<Row>> {
        rows::get(self, table, key, columns, filter).await
    }

    /// Several rows, in the order of the keys, at most [`crate::limits::MAX_MULTI_GET_ROWS`].
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::LimitExceeded`] for too many keys.
    pub async fn multi_get(&self, table: &Table, keys: &[PrimaryKey]) -> Result<Vec<Option<Row>>> {
        rows::multi_get(self, table, keys).await
    }

    /// A page of the rows in a range. Reading stops after [`crate::limits::MAX_SCANNED_ROWS`] rows or
    /// [`crate::limits::MAX_SCANNED_BYTES`], passed by the filter or not.
    ///
    /// # Errors
    /// As [`Snapshot::get_selected`].
    pub async fn range(&self, table: &Table, request: &RangeRequest) -> Result<RangePage> {
        range::page(self, table, request).await
    }

    /// A page of the entries of a secondary index whose first columns equal `prefix` (which may be empty), after a
    /// position. `limit`: 0 and anything above [`crate::limits::MAX_SCANNED_ROWS`] mean that.
    ///
    /// # Errors
    /// [`Error::IndexNotFound`], [`Error::IndexNotReady`], [`Error::IndexFailed`], [`Error::Invalid`] for a prefix or position that isn't of the index,
    /// [`Error::TableNotFound`], [`Error::Corrupt`].
    pub async fn index_range(
        &self,
        table: &Table,
        index: &str,
        prefix: &[Value],
        after: Option<&IndexPosition>,
        direction: Direction,
        limit: usize,
    ) -> Result<IndexPage> {
        index::page(self, table, index, prefix, after, direction, limit).await
    }

    /// Changes after `after` (exclusive), in order, up to this snapshot's sequence. At most `limit`,
    /// [`crate::limits::MAX_CHANGES_PER_READ`] and [`crate::limits::MAX_CHANGES_BYTES`], but at least one if there
    /// is one: empty means that the end is reached.
    ///
    /// # Errors
    /// [`Error::ChangesTrimmed`] when some of them are no longer kept, [`Error::Corrupt`].
    pub async fn changes(&self, after: u64, limit: usize) -> Result<Vec<Change>> {
        log::changes(&*self.kv, after, limit).await
    }

    /// Where the changes since a time begin: reading after this sequence gives every change of that time (nanoseconds
    /// since the Unix epoch) or later, and none that is earlier before it. Found by a binary search; where the clock
    /// was set back, it is one of the places at which the clock passed the time.
    ///
    /// # Errors
    /// [`Error::TimeTrimmed`] when changes of that time may be gone, [`Error::Corrupt`].
    pub async fn sequence_at(&self, time: i64) -> Result<u64> {
        log::time::sequence_at(&*self.kv, time).await
    }

    /// The first changes since a time; go on with [`Snapshot::changes`] after the last of them.
    ///
    /// # Errors
    /// As [`Snapshot::sequence_at`] and [`Snapshot::changes`].
    pub async fn changes_since(&self, time: i64, limit: usize) -> Result<Vec<Change>> {
        self.changes(self.sequence_at(time).await?, limit).await
    }

    /// What the log holds, all together and of each table. Reads the whole log, a page at a time.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub async fn log_statistics(&self) -> Result<LogStatistics> {
        log::statistics::statistics(&*self.kv).await
    }

    /// The oldest sequence the log still has; one past [`Snapshot::sequence`] when it is empty.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub async fn oldest_change(&self) -> Result<u64> {
        Ok(log::trimmed(&*self.kv).await?.saturating_add(1))
    }
}
