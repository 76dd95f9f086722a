//! Plainbuffer: rows as tagged bytes with checksums.
//!
//! A header, then rows; a row is its key's cells, its attributes' cells, a marker if it is a deletion, sequence info in change
//! records, and a checksum. [`decode_row`] and [`decode_rows`] read any of it; what of that makes sense in which request is said
//! by [`crate::RowChange`] and [`crate::KeyUse`].

mod decode;
mod encode;

use crate::error::Reason;
use crate::reader::ReaderError;
use crate::value::{KeyColumn, Text, Value};

pub use self::decode::{decode_row, decode_rows};
pub use self::encode::{PlainBufferEncoder, RowEncoder, encode};

/// The first four bytes, little-endian.
const HEADER: u32 = 0x75;

/// The bytes that say what comes next.
mod tag {
    pub(super) const ROW_KEY: u8 = 0x01;
    pub(super) const ROW_DATA: u8 = 0x02;
    pub(super) const CELL: u8 = 0x03;
    pub(super) const CELL_NAME: u8 = 0x04;
    pub(super) const CELL_VALUE: u8 = 0x05;
    pub(super) const CELL_OPERATION: u8 = 0x06;
    pub(super) const CELL_TIMESTAMP: u8 = 0x07;
    pub(super) const DELETE_MARKER: u8 = 0x08;
    pub(super) const ROW_CHECKSUM: u8 = 0x09;
    pub(super) const CELL_CHECKSUM: u8 = 0x0a;
    pub(super) const EXTENSION: u8 = 0x0b;
    pub(super) const SEQUENCE: u8 = 0x0c;
    pub(super) const SEQUENCE_EPOCH: u8 = 0x0d;
    pub(super) const SEQUENCE_TIMESTAMP: u8 = 0x0e;
    pub(super) const SEQUENCE_ROW_INDEX: u8 = 0x0f;
}

/// A row as it stands in a buffer: stored, to be written, or of a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainRow {
    /// The primary key, in the order of the table's.
    pub key: Vec<KeyColumn>,
    /// Its attribute cells; a column may have several versions.
    pub cells: Vec<PlainCell>,
    /// Whether this is the deletion of a row.
    pub delete_marker: bool,
    /// Where in the change log it is; only change records have it.
    pub sequence: Option<SequenceInfo>,
}

/// An attribute cell as it stands in a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainCell {
    /// The column.
    pub name: Text,
    /// The value; a deletion of versions has none.
    pub value: Option<Value>,
    /// What an update does to the column; `None` puts the value.
    pub operation: Option<CellOperation>,
    /// The version, milliseconds since the Unix epoch.
    pub timestamp: Option<i64>,
}

impl PlainCell {
    /// A cell with a value alone.
    pub fn new(name: impl Into<Text>, value: impl Into<Value>) -> Self {
        Self {
            name: name.into(),
            value: Some(value.into()),
            operation: None,
            timestamp: None,
        }
    }
}

/// What an update does to a column other than to put a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellOperation {
    /// Deletes all versions.
    DeleteAllVersions,
    /// Deletes the version of the timestamp.
    DeleteOneVersion,
    /// Adds the value.
    Increment,
}

impl CellOperation {
    fn number(self) -> u8 {
        match self {
            Self::DeleteAllVersions => 1,
            Self::DeleteOneVersion => 3,
            Self::Increment => 4,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::DeleteAllVersions),
            3 => Some(Self::DeleteOneVersion),
            4 => Some(Self::Increment),
            _ => None,
        }
    }
}

/// Where in the change log a record is; compared field by field in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SequenceInfo {
    /// How often the log was restarted.
    pub epoch: u32,
    /// Time of the write, microseconds since the Unix epoch.
    pub timestamp: i64,
    /// Position among the rows of that write.
    pub row_index: u32,
}

/// Why bytes can't be decoded as rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlainBufferError {
    /// The bytes don't begin with the header, but with this number.
    #[error("the header is {0:#x}")]
    Header(u32),
    /// The bytes end within a row.
    #[error("the bytes end within a row")]
    Truncated,
    /// A tag other than the one that has to follow.
    #[error("tag {found:#04x} where {expected:#04x} has to be")]
    Tag {
        /// The one that is here.
        found: u8,
        /// The one that has to be.
        expected: u8,
    },
    /// A name or value is longer than what is left.
    #[error("a length of {0} bytes, which aren't there")]
    Length(u32),
    /// A name isn't UTF-8.
    #[error("a name that isn't UTF-8")]
    NameEncoding,
    /// A value isn't UTF-8.
    #[error("the value of {0:?} isn't UTF-8")]
    ValueEncoding(Text),
    /// A key column's value is of a type that keys don't have.
    #[error("key column {0:?} is of a type that keys don't have")]
    KeyType(Text),
    /// An attribute's value is of a type that attributes don't have.
    #[error("column {0:?} is of a type that attributes don't have")]
    ValueType(Text),
    /// A boolean is neither 0 nor 1.
    #[error("the boolean of {0:?} is neither 0 nor 1")]
    Boolean(Text),
    /// A value ends before the length in its cell.
    #[error("there is more in the cell of {0:?} than its value")]
    ValueLength(Text),
    /// A key column has no value.
    #[error("key column {0:?} has no value")]
    NoKeyValue(Text),
    /// A key column has an operation.
    #[error("key column {0:?} has an operation")]
    KeyOperation(Text),
    /// A key column has a timestamp.
    #[error("key column {0:?} has a timestamp")]
    KeyTimestamp(Text),
    /// The tag of the attributes is there, but no cell follows it.
    #[error("no cells where cells have to be")]
    NoCells,
    /// No operation has this number.
    #[error("no operation has the number {0}")]
    Operation(u8),
    /// A timestamp is negative.
    #[error("the timestamp of {0:?} is negative")]
    Timestamp(Text),
    /// A cell has no checksum.
    #[error("the cell of {0:?} has no checksum")]
    NoCellChecksum(Text),
    /// A row has no checksum.
    #[error("the row has no checksum")]
    NoRowChecksum,
    /// A checksum doesn't match its bytes.
    #[error("checksum {found} where {expected} has to be")]
    Checksum {
        /// The one that is here.
        found: u8,
        /// The one that has to be.
        expected: u8,
    },
    /// More cells than [`crate::limits::MAX_ROW_CELLS`].
    #[error("more than {} cells", crate::limits::MAX_ROW_CELLS)]
    TooManyCells,
    /// More rows than [`crate::limits::MAX_ROWS`], or than one where one is wanted.
    #[error("more than {0} rows")]
    TooManyRows(usize),
    /// No row at all.
    #[error("no row")]
    NoRow,
}

impl PlainBufferError {
    /// The error of a damaged value in the column `name`; `wrong_type` makes that of a type which can't be there.
    fn from_damage(damage: ReaderError, name: &Text, wrong_type: fn(Text) -> Self) -> Self {
        match damage {
            ReaderError::Truncated => Self::Truncated,
            ReaderError::Length(length) => Self::Length(length),
            ReaderError::Utf8 => Self::ValueEncoding(name.clone()),
            ReaderError::Boolean => Self::Boolean(name.clone()),
            ReaderError::Type(_) => wrong_type(name.clone()),
        }
    }
}

impl From<PlainBufferError> for Reason {
    fn from(error: PlainBufferError) -> Self {
        match error {
            PlainBufferError::Header(actual) => Self::BrokenHeader {
                actual,
                expected: HEADER,
            },
            PlainBufferError::Truncated => Self::InvalidDataFormat,
            PlainBufferError::Tag { found, expected } => Self::BrokenTag {
                actual: found,
                expected,
            },
            PlainBufferError::Length(size) => Self::BrokenLength { size },
            PlainBufferError::NameEncoding => Self::InvalidColumnName {
                name: "not UTF-8".into(),
            },
            PlainBufferError::ValueEncoding(name) => Self::NotUtf8 { name },
            PlainBufferError::KeyType(name) => Self::UnknownKeyType { name },
            PlainBufferError::ValueType(_) => Self::UnknownVariantType,
            PlainBufferError::Boolean(_) => Self::InvalidBoolean { length: 1 },
            PlainBufferError::ValueLength(_) => Self::BrokenCellRest,
            PlainBufferError::NoKeyValue(name) => Self::NoKeyValue { name },
            PlainBufferError::KeyOperation(name) => Self::KeyOperation { name },
            PlainBufferError::KeyTimestamp(name) => Self::KeyTimestamp { name },
            PlainBufferError::NoCells => Self::BrokenCells,
            PlainBufferError::Operation(operation) => Self::InvalidCellOperation { operation },
            PlainBufferError::Timestamp(_) => Self::TimestampOutOfRange,
            PlainBufferError::NoCellChecksum(name) => Self::NoCellChecksum { name },
            PlainBufferError::NoRowChecksum => Self::NoRowChecksum,
            PlainBufferError::Checksum { found, expected } => Self::BrokenChecksum { found, expected },
            PlainBufferError::TooManyCells => Self::TooManyRequestColumns {
                limit: crate::limits::MAX_ROW_CELLS,
                count: crate::limits::MAX_ROW_CELLS + 1,
            },
            PlainBufferError::TooManyRows(limit) => Self::TooManyRows { limit },
            PlainBufferError::NoRow => Self::KeyMissing,
        }
    }
}
