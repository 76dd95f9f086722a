//! A row: its key, its revision, and its columns with their versions.

pub(crate) mod borrowed;
pub(crate) mod codec;
mod columns;
mod selection;

use std::sync::Arc;

pub use self::columns::{ColumnName, Columns};
pub use self::selection::ColumnSelection;
use crate::error::Error;
use crate::limits;
use crate::value::{PrimaryKey, Value};

/// About what a value, or what holds some, takes in a message beside its bytes and its name's: types, lengths, its version.
pub const EACH_BYTES: usize = 16;
const _: () = assert!(
    limits::MAX_BATCH_BYTES
        + limits::MAX_BATCH_ROWS * (limits::MAX_COLUMNS_PER_WRITE + limits::MAX_KEY_COLUMNS) * EACH_BYTES
        <= limits::MAX_RETURNED_BYTES,
    "whatever a batch puts can be given back"
);

/// About what a key takes in a message.
pub(crate) fn key_in_message(key: &PrimaryKey) -> usize {
    key.size() + key.values().len() * EACH_BYTES
}

/// About what so many cells of a column, whose values have so many bytes together, take in a message.
pub(crate) fn cells_in_message(column: &str, cells: usize, values: usize) -> usize {
    cells * (column.len() + EACH_BYTES) + values
}

/// One version of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What was written.
    pub value: Value,
    /// Its version: milliseconds since the Unix epoch, the server's time unless the writer gave one.
    pub version: i64,
}

/// A row as it is visible: no expired cells, at most the table's `max_versions` of each column. A clone shares its columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its primary key.
    pub key: PrimaryKey,
    /// Sequence of the change that last wrote it.
    pub revision: u64,
    /// When it was last written by the server's clock, nanoseconds since the Unix epoch.
    pub written: i64,
    columns: Arc<Columns>,
}

impl Row {
    /// A row of these columns.
    pub fn new(key: PrimaryKey, revision: u64, written: i64, columns: Columns) -> Self {
        Self::sharing(key, revision, written, Arc::new(columns))
    }

    /// A row of columns that others have, too.
    pub(crate) fn sharing(key: PrimaryKey, revision: u64, written: i64, columns: Arc<Columns>) -> Self {
        Self {
            key,
            revision,
            written,
            columns,
        }
    }

    /// Its columns, to be shared.
    pub(crate) fn shared_columns(&self) -> Arc<Columns> {
        Arc::clone(&self.columns)
    }

    /// The newest value of a column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.columns.get(column).first().map(|cell| &cell.value)
    }

    /// All versions of a column, the newest first; empty when the row doesn't have it.
    pub fn cells(&self, column: &str) -> &[Cell] {
        self.columns.get(column)
    }

    /// All columns in the order of their names, each with its versions, the newest first.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// About the bytes that it takes in a message in which each cell has its column's name.
    pub fn message_bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(name, cells)| {
            let values = cells.iter().map(|cell| cell.value.size()).sum();
            cells_in_message(name, cells.len(), values)
        });
        key_in_message(&self.key) + columns.sum::<usize>()
    }

    /// Its bytes as they are stored under its key.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The row of a key from the bytes that [`Row::encode`] gave.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they aren't of a row.
    pub fn decode(key: PrimaryKey, bytes: &[u8]) -> Result<Self, Error> {
        codec::decode(key, bytes)
    }

    /// Mutable columns for the write path, which keeps cells in order and columns non-empty.
    pub(crate) fn columns_mut(&mut self) -> &mut Columns {
        Arc::make_mut(&mut self.columns)
    }
}
