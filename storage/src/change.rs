//! A change: what one batch did, as the log keeps it.

pub(crate) mod codec;

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::error::Result;
use crate::id::TableId;
use crate::row::{EACH_BYTES, Row, key_in_message};
use crate::value::PrimaryKey;

/// What one batch did, in the order of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the log: gap-free, from 1.
    pub sequence: u64,
    /// When it was prepared by the server's clock, nanoseconds since the Unix epoch.
    pub time: i64,
    /// W3C `traceparent` of the writer.
    pub trace: Option<String>,
    /// What happened to each row.
    pub rows: Vec<RowChange>,
}

/// A change as the log has it. For readers that share what they read, and want the rows of one table each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub(crate) sequence: u64,
    pub(crate) bytes: Bytes,
}

impl LogEntry {
    /// The change's place in the log.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes that the log keeps of it.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The tables that it changes rows of: no row is decoded.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`].
    pub fn tables(&self) -> Result<BTreeSet<TableId>> {
        codec::tables(self.sequence, &self.bytes)
    }

    /// The change with the rows of one table only: the others aren't decoded.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`].
    pub fn change_of(&self, table: TableId) -> Result<Change> {
        codec::decode_where(self.sequence, &self.bytes, &|of, _, _| of == table)
    }
}

/// What happened to one row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange {
    /// The row's table.
    pub table: TableId,
    /// The row.
    pub key: PrimaryKey,
    /// What was done.
    pub kind: ChangeKind,
    /// The row after the change, with all its kept versions, expired or not; `None` for a delete.
    pub row: Option<Row>,
    /// Of a delete: the columns that its writer wanted told ([`crate::RowWrite::parting`]), as they were last. `None` when
    /// it wanted none, or the row was there no more for readers.
    pub parting: Option<Row>,
}

impl RowChange {
    /// About the bytes that it takes in a message, as [`Row::message_bytes`] counts them; of a delete those of its key.
    pub fn message_bytes(&self) -> usize {
        let row = self.row.as_ref();
        EACH_BYTES + row.map_or_else(|| key_in_message(&self.key), Row::message_bytes)
    }
}

/// What was done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It was replaced or created as a whole.
    Put,
    /// Some of its columns were changed, or it was created by an update.
    Update,
    /// It was deleted.
    Delete,
}
