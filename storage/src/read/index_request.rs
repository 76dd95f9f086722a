//! What is asked of a secondary index, and what it answers.

use bytes::Bytes;
use souk_kv::Direction;

use crate::filter::Filter;
#[cfg(doc)]
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};
use crate::metering::CapacityUnits;
use crate::row::{ColumnSelection, cells_in_message, key_in_message};
use crate::value::{PrimaryKey, Value};

/// A cut between the entries of an index: values of its columns and, behind them, of the table's key columns. Fewer
/// values stand for all entries that begin with them. Values of different types are ordered by type: STRING,
/// INTEGER, BINARY, DOUBLE, BOOLEAN.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum IndexBound {
    /// Before all entries.
    #[default]
    Min,
    /// After all entries.
    Max,
    /// Just before the entries with these values.
    Before(Vec<Value>),
    /// Just after the entries with these values.
    After(Vec<Value>),
}

/// A range of a secondary index. One whose start lies behind its end holds no entry.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRequest {
    /// Name of the index.
    pub index: String,
    /// Where reading begins: the lower cut going forward, the upper cut going backward.
    pub start: IndexBound,
    /// Where reading ends: the upper cut going forward, the lower cut going backward.
    pub end: IndexBound,
    /// Which way.
    pub direction: Direction,
    /// Goes on after this entry, whether it still exists or not.
    pub after: Option<IndexPosition>,
    /// Most entries read, passed by the filter or not; 0 and anything above [`MAX_SCANNED_ROWS`] mean that.
    pub limit: usize,
    /// Bytes read after which the page ends, and before it has returned more in a message; a larger entry comes alone. 0 and anything
    /// above [`MAX_SCANNED_BYTES`] mean that, and 0 that what is returned doesn't count.
    pub bytes: usize,
    /// Which included columns. The values of the index and the key are always there, named or not; a column that
    /// isn't in the index is refused.
    pub columns: ColumnSelection,
    /// Which entries; sees the columns of the index and the selected included ones.
    pub filter: Option<Filter>,
}

impl IndexRequest {
    /// The whole index in this direction.
    pub fn all(index: impl Into<String>, direction: Direction) -> Self {
        Self::between(index, IndexBound::Min, IndexBound::Max, direction)
    }

    /// The entries whose first values are these.
    pub fn prefix(index: impl Into<String>, prefix: Vec<Value>, direction: Direction) -> Self {
        let (low, high) = (IndexBound::Before(prefix.clone()), IndexBound::After(prefix));
        Self::between(index, low, high, direction)
    }

    /// The entries between two cuts.
    pub fn between(
        index: impl Into<String>,
        low: IndexBound,
        high: IndexBound,
        direction: Direction,
    ) -> Self {
        let (start, end) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        Self {
            index: index.into(),
            start,
            end,
            direction,
            after: None,
            limit: 0,
            bytes: 0,
            columns: ColumnSelection::All,
            filter: None,
        }
    }

    /// Reads at most this many entries.
    #[must_use]
    pub fn limit(mut self, entries: usize) -> Self {
        self.limit = entries;
        self
    }

    /// Returns only these included columns.
    #[must_use]
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.columns = ColumnSelection::named(columns);
        self
    }

    /// Returns only entries that pass.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Goes on where a page stopped.
    #[must_use]
    pub fn resume(mut self, next: IndexPosition) -> Self {
        self.after = Some(next);
        self
    }
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
    /// The selected included columns that the row has, in the order of the index's schema.
    pub included: Vec<(String, Value)>,
    /// Where the entry is: reading after it goes on behind it.
    pub position: IndexPosition,
}

impl IndexEntry {
    /// About the bytes that it takes in a message.
    pub(crate) fn message_bytes(&self) -> usize {
        let values = self
            .values
            .iter()
            .map(|value| cells_in_message("", 1, value.size()));
        let included = self.included.iter();
        let included = included.map(|(name, value)| cells_in_message(name, 1, value.size()));
        key_in_message(&self.key) + values.chain(included).sum::<usize>()
    }
}

/// A page of a secondary index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexPage {
    /// The entries, in the order of the direction. May be empty although there is more.
    pub entries: Vec<IndexEntry>,
    /// Position to read after, see [`IndexRequest::resume`]; `None` at the end of the range.
    pub next: Option<IndexPosition>,
    /// What it cost: all entries read together, passed by the filter or not.
    pub consumed: CapacityUnits,
}
