//! What a feed is, and how far it got.

use std::time::Duration;

use bytes::Bytes;

use crate::feeds::shard::FeedShard;
use crate::id::TableId;
use crate::key;
use crate::value::PrimaryKey;

/// What a feed delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivers {
    Base,
    Changes,
    BaseAndChanges,
}

/// What a feed was created as; never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedDefinition {
    /// When it was created, nanoseconds since the Unix epoch. Tells it from others that had its name.
    pub(crate) created: i64,
    pub(crate) delivers: Delivers,
    /// Its tables in order; empty: all.
    pub(crate) tables: Vec<TableId>,
    pub(crate) hold: Duration,
    /// Which part of the rows it delivers; `None`: all.
    pub(crate) shard: Option<FeedShard>,
}

impl FeedDefinition {
    /// Whether it delivers rows of a table.
    pub(crate) fn has(&self, table: TableId) -> bool {
        self.tables.is_empty() || self.tables.binary_search(&table).is_ok()
    }

    /// Whether it delivers a row, given by its encoded primary key.
    pub(crate) fn has_row(&self, table: TableId, primary_key: &[u8]) -> bool {
        self.has(table) && self.shard.is_none_or(|shard| shard.has_encoded(primary_key))
    }

    /// Whether it delivers every row.
    pub(crate) fn has_all(&self) -> bool {
        self.tables.is_empty() && self.shard.is_none()
    }
}

/// How far a feed got: the rows before the cursor have been delivered as of the position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) stage: Stage,
    /// A sequence.
    pub(crate) position: u64,
    /// Rows of the change behind it that have been looked at, too: of one that is larger than an answer.
    pub(crate) rows: usize,
}

/// What a feed is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The rows behind the cursor are still to be delivered.
    Base { cursor: BaseCursor },
    /// All rows have been delivered, or none are to be.
    Changes,
    /// Everything has been delivered.
    Finished,
    /// The log lost changes that were delivered.
    Lost,
}

/// How far a scan of the base rows got, in the order of their keys: before the rows of a table, or before a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BaseCursor(Bytes);

impl BaseCursor {
    /// Before all rows.
    pub(crate) fn start() -> Self {
        Self::table(TableId(0))
    }

    /// Before the rows of a table.
    pub(crate) fn table(table: TableId) -> Self {
        Self(key::before_rows(table))
    }

    /// Before a row.
    pub(crate) fn row(table: TableId, key: &PrimaryKey) -> Self {
        Self(key::row(table, key))
    }

    /// The cursor of these bytes, if they are of one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let whole = bytes.len() == size_of::<TableId>() || key::primary_key_of_row(bytes).is_ok();
        whole.then(|| Self(Bytes::copy_from_slice(bytes)))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its table, and the key of the row behind it unless it is before the whole table.
    pub(crate) fn place(&self) -> (TableId, Option<PrimaryKey>) {
        let table = key::table_prefix(&self.0).unwrap_or(TableId(0));
        (table, key::primary_key_of_row(&self.0).ok())
    }

    /// Whether a row, given by its encoded key, is before the cursor.
    pub(crate) fn is_above(&self, table: TableId, key: &[u8]) -> bool {
        let (own, rest) = self.0.split_at_checked(size_of::<TableId>()).unwrap_or_default();
        (&table.0.to_be_bytes()[..], key) < (own, rest)
    }
}

impl Checkpoint {
    /// The last change of which something has been looked at.
    pub(crate) fn reached(&self) -> u64 {
        self.position.saturating_add(u64::from(self.rows > 0))
    }

    /// Whether it is as far as another or further.
    pub(crate) fn reaches(&self, other: &Self) -> bool {
        let further = match (&self.stage, &other.stage) {
            (Stage::Base { cursor }, Stage::Base { cursor: before }) => cursor >= before,
            (Stage::Changes | Stage::Finished, Stage::Base { .. } | Stage::Changes | Stage::Finished) => true,
            (Stage::Base { .. }, Stage::Changes | Stage::Finished | Stage::Lost)
            | (Stage::Changes | Stage::Finished, Stage::Lost)
            | (Stage::Lost, _) => false,
        };
        further && (self.position, self.rows) >= (other.position, other.rows)
    }
}
