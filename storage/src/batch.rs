//! What a writer asks for: rows, their conditions, and what belongs to the whole batch.

pub(crate) mod written;

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_kv::Durability;

pub use self::written::{Committed, WrittenRow};
use crate::catalog::Table;
use crate::filter::Filter;
use crate::row::ColumnName;
use crate::value::{KeyValue, PrimaryKey, Value};

/// What is done to one row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowOperation {
    /// Replaces the whole row.
    Put {
        /// The row.
        key: PrimaryKey,
        /// Its columns, each once; the version is the server's time.
        columns: Vec<(ColumnName, Value)>,
    },
    /// Replaces the whole row by cells whose versions the writer may give.
    PutCells {
        /// The row.
        key: PrimaryKey,
        /// Its cells; a column may have several, each of a version of its own.
        cells: Vec<CellPut>,
    },
    /// Creates a row of a table with an auto-increment key column, under a number that no row of its partition key
    /// has had: larger than all before it, not always the next one. Takes no [`Condition`]. Ask for
    /// [`ReturnRow::Key`] to learn the number.
    Append {
        /// The other key columns, in the order of the table's key.
        key: Vec<KeyValue>,
        /// Its columns, each once; the version is the server's time.
        columns: Vec<(ColumnName, Value)>,
    },
    /// Changes some columns; creates the row unless all changes are deletes. Refused by a table with
    /// [`crate::TableSchema::allow_update`] off.
    Update {
        /// The row.
        key: PrimaryKey,
        /// The changes, in order; at most one for a column, except for different versions of it.
        changes: Vec<ColumnChange>,
    },
    /// Deletes the row; does nothing when there is none.
    Delete {
        /// The row.
        key: PrimaryKey,
    },
}

impl RowOperation {
    /// The row it is about; an appended one gets its key when it is written.
    pub fn key(&self) -> Option<&PrimaryKey> {
        match self {
            Self::Put { key, .. }
            | Self::PutCells { key, .. }
            | Self::Update { key, .. }
            | Self::Delete { key } => Some(key),
            Self::Append { .. } => None,
        }
    }

    /// Value of the first key column; an append without any has none.
    pub fn partition(&self) -> Option<&KeyValue> {
        match self {
            Self::Append { key, .. } => key.first(),
            other => other.key().and_then(|key| key.values().first()),
        }
    }
}

/// A cell that is put.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPut {
    /// The column.
    pub column: String,
    /// Its value.
    pub value: Value,
    /// Milliseconds since the Unix epoch, within the table's `max_version_offset` of the clock; `None`: the server's
    /// time.
    pub version: Option<i64>,
}

/// What an update does to one column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnChange {
    /// Writes a version.
    Put {
        /// The column.
        column: String,
        /// Its value.
        value: Value,
        /// Milliseconds since the Unix epoch, within the table's `max_version_offset` of the clock. `None`: the
        /// server's time, but never below the newest version there, so that a clock that steps back can't
        /// hide a write.
        version: Option<i64>,
    },
    /// Deletes one version.
    DeleteVersion {
        /// The column.
        column: String,
        /// Exactly this version.
        version: i64,
    },
    /// Deletes all versions.
    DeleteAll {
        /// The column.
        column: String,
    },
    /// Adds to the newest INTEGER of the column; an absent column counts as 0. Another type or an overflow is
    /// [`crate::Error::Invalid`], and nothing is written.
    Increment {
        /// The column.
        column: String,
        /// What to add; may be negative.
        by: i64,
    },
}

/// What must hold about the row's existence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existence {
    /// Nothing.
    #[default]
    Ignore,
    /// It exists.
    MustExist,
    /// It doesn't exist (or all of it has expired).
    MustNotExist,
}

/// What must hold for a write to happen; all parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Condition {
    /// About the row as a whole.
    pub existence: Existence,
    /// The row exists with exactly this revision.
    pub revision: Option<u64>,
    /// About its columns; a row that doesn't exist has none.
    pub columns: Option<Filter>,
}

impl Condition {
    /// Whether patterns look at the row, so that it takes a while to decide.
    pub(crate) fn matches_text(&self) -> bool {
        self.columns.as_ref().is_some_and(|filter| filter.rules() > 0)
    }

    /// No condition.
    pub fn none() -> Self {
        Self::default()
    }

    /// The row must exist.
    pub fn must_exist() -> Self {
        Self {
            existence: Existence::MustExist,
            ..Self::default()
        }
    }

    /// The row must not exist.
    pub fn must_not_exist() -> Self {
        Self {
            existence: Existence::MustNotExist,
            ..Self::default()
        }
    }

    /// The row must be at this revision.
    pub fn revision(revision: u64) -> Self {
        Self {
            revision: Some(revision),
            ..Self::default()
        }
    }
}

/// What a write gives back of its row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReturnRow {
    /// Nothing.
    #[default]
    None,
    /// Its primary key: how an appended row tells its number.
    Key,
    /// Its primary key and these columns as they are after the write: how an increment tells its sum. Columns that
    /// the row doesn't have are left out.
    AfterModify(Vec<String>),
    /// Its primary key and all of the row after the write: what a repeated request is answered from.
    All,
}

/// One row of a batch.
#[derive(Debug, Clone)]
pub struct RowWrite {
    /// Handle of the table, from the same database.
    pub table: Table,
    /// What to do.
    pub operation: RowOperation,
    /// On what condition.
    pub condition: Condition,
    /// What to give back.
    pub returning: ReturnRow,
    /// Columns that the log tells of the row when this deletes it, as they were last; those it doesn't have are left out.
    pub parting: BTreeSet<String>,
    /// The revision of a row that the writer may not meet, 0 when there is none to hide; `None` when the writer meets all rows.
    /// To conditions and costs a hidden row is missing, and a delete of it does nothing; any other write over it fails with
    /// [`ConditionFailure::AlreadyExists`](crate::error::ConditionFailure::AlreadyExists). With `Some`, also with 0, deleting an expired row
    /// does nothing either.
    pub hidden: Option<u64>,
}

impl RowWrite {
    /// A write that gives back nothing.
    pub fn new(table: &Table, operation: RowOperation, condition: Condition) -> Self {
        Self {
            table: table.clone(),
            operation,
            condition,
            returning: ReturnRow::None,
            parting: BTreeSet::new(),
            hidden: None,
        }
    }

    /// Has the log tell these columns of the row if this deletes it ([`crate::RowChange::parting`]): whose it was, say.
    #[must_use]
    pub fn parting<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.parting = columns.into_iter().map(str::to_owned).collect();
        self
    }

    /// Says what to give back.
    #[must_use]
    pub fn returning(mut self, returning: ReturnRow) -> Self {
        self.returning = returning;
        self
    }
}

/// What makes a batch safe to repeat: kept with the batch, atomically, for
/// [`crate::DatabaseOptions::request_retention`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// The request's id: a UUID.
    pub id: [u8; 16],
    /// Hash of what the request asks for: the same id with another fingerprint is refused.
    pub fingerprint: u64,
    /// What to give back when the request is repeated, besides what its writes give back of their rows; at most
    /// [`crate::limits::MAX_REPLY_BYTES`].
    pub reply: Bytes,
}

/// Row writes that happen together or not at all: one sequence, one change in the log.
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    /// The rows, each at most once; at most [`crate::limits::MAX_BATCH_ROWS`] and
    /// [`crate::limits::MAX_BATCH_BYTES`].
    pub writes: Vec<RowWrite>,
    /// Makes the batch safe to repeat.
    pub request: Option<RequestRecord>,
    /// W3C `traceparent` of the caller, kept with the change.
    pub trace: Option<String>,
    /// How safe the batch is when it is acknowledged.
    pub durability: Durability,
    /// Whether the rows given back are to fit into a message: [`crate::limits::MAX_SHOWN_BYTES`] instead of
    /// [`crate::limits::MAX_RETURNED_BYTES`].
    pub shown: bool,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// A batch of one write.
    pub fn of(table: &Table, operation: RowOperation, condition: Condition) -> Self {
        Self::new().write(table, operation, condition)
    }

    /// Adds a write.
    #[must_use]
    pub fn write(self, table: &Table, operation: RowOperation, condition: Condition) -> Self {
        self.row(RowWrite::new(table, operation, condition))
    }

    /// Adds a write.
    #[must_use]
    pub fn row(mut self, write: RowWrite) -> Self {
        self.writes.push(write);
        self
    }

    /// Makes the batch safe to repeat.
    #[must_use]
    pub fn request(mut self, request: RequestRecord) -> Self {
        self.request = Some(request);
        self
    }

    /// Names the trace this batch belongs to.
    #[must_use]
    pub fn trace(mut self, traceparent: impl Into<String>) -> Self {
        self.trace = Some(traceparent.into());
        self
    }

    /// Says how safe the batch must be when it is acknowledged.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}
