//! Values of cells and of primary keys, and their encoding: a type tag, then the value, little-endian, or a length and bytes.

use bytes::{BufMut as _, Bytes, BytesMut};
use smol_str::SmolStr;

use crate::crc8::Crc8;
use crate::reader::{Reader, ReaderError};

/// Text of a name or value. Up to 23 bytes need no allocation, and a clone shares what longer ones have.
pub type Text = SmolStr;

/// Type tags: the first byte of an encoded value.
pub(crate) mod kind {
    pub(crate) const INTEGER: u8 = 0x0;
    pub(crate) const DOUBLE: u8 = 0x1;
    pub(crate) const BOOLEAN: u8 = 0x2;
    pub(crate) const STRING: u8 = 0x3;
    pub(crate) const BLOB: u8 = 0x7;
    pub(crate) const INF_MIN: u8 = 0x9;
    pub(crate) const INF_MAX: u8 = 0xa;
    pub(crate) const AUTO_INCREMENT: u8 = 0xb;
}

/// The value of an attribute cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A signed 64-bit number.
    Integer(i64),
    /// A 64-bit float; a write with NaN or an infinity is refused by [`crate::RowChange`].
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// UTF-8 text.
    String(Text),
    /// Bytes.
    Binary(Bytes),
}

/// The value of a primary key column, or what requests have instead of one: an end of a range, or a value that the server assigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyElement {
    /// A signed 64-bit number.
    Integer(i64),
    /// UTF-8 text.
    String(Text),
    /// Bytes.
    Binary(Bytes),
    /// INF_MIN, below all values: an end of a range.
    Minimum,
    /// INF_MAX, above all values: an end of a range.
    Maximum,
    /// Auto-increment: a written row's value is assigned by the server.
    AutoIncrement,
}

/// A column of a primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name.
    pub name: Text,
    /// Its value.
    pub value: KeyElement,
}

impl KeyColumn {
    /// A column with its value.
    pub fn new(name: impl Into<Text>, value: impl Into<KeyElement>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

impl Value {
    /// The type, as error texts name it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "INTEGER",
            Self::Double(_) => "DOUBLE",
            Self::Boolean(_) => "BOOLEAN",
            Self::String(_) => "STRING",
            Self::Binary(_) => "BINARY",
        }
    }

    /// Size in bytes, as Tablestore counts it: the length of a STRING or BINARY, 8 for a number, 1 for a BOOLEAN.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Integer(_) | Self::Double(_) => 8,
            Self::Boolean(_) => 1,
            Self::String(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Decodes a type tag and its value.
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, ReaderError> {
        Ok(match reader.byte()? {
            kind::INTEGER => Self::Integer(reader.i64()?),
            kind::DOUBLE => Self::Double(f64::from_bits(reader.i64()?.cast_unsigned())),
            kind::BOOLEAN => match reader.byte()? {
                0 => Self::Boolean(false),
                1 => Self::Boolean(true),
                _ => return Err(ReaderError::Boolean),
            },
            kind::STRING => Self::String(reader.text()?),
            kind::BLOB => Self::Binary(reader.binary()?),
            other => return Err(ReaderError::Type(other)),
        })
    }

    /// Encodes the type tag and the value.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Integer(number) => write_integer(out, *number),
            Self::Double(number) => {
                out.put_u8(kind::DOUBLE);
                out.put_f64_le(*number);
            }
            Self::Boolean(truth) => out.put_slice(&[kind::BOOLEAN, u8::from(*truth)]),
            Self::String(text) => write_bytes(out, kind::STRING, text.as_bytes()),
            Self::Binary(bytes) => write_bytes(out, kind::BLOB, bytes),
        }
    }

    /// Updates the checksum of a cell with the encoded type tag and value.
    pub(crate) fn checksum(&self, crc: &mut Crc8) {
        match self {
            Self::Integer(number) => checksum_integer(crc, *number),
            Self::Double(number) => {
                crc.byte(kind::DOUBLE);
                crc.bytes(&number.to_le_bytes());
            }
            Self::Boolean(truth) => crc.bytes(&[kind::BOOLEAN, u8::from(*truth)]),
            Self::String(text) => checksum_bytes(crc, kind::STRING, text.as_bytes()),
            Self::Binary(bytes) => checksum_bytes(crc, kind::BLOB, bytes),
        }
    }
}

impl KeyElement {
    /// Size in bytes, as Tablestore counts it: the length of a STRING or BINARY, 8 for a number, 0 for what isn't a value.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Integer(_) => 8,
            Self::String(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
            Self::Minimum | Self::Maximum | Self::AutoIncrement => 0,
        }
    }

    /// Decodes a type tag and its value.
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, ReaderError> {
        Ok(match reader.byte()? {
            kind::INTEGER => Self::Integer(reader.i64()?),
            kind::STRING => Self::String(reader.text()?),
            kind::BLOB => Self::Binary(reader.binary()?),
            kind::INF_MIN => Self::Minimum,
            kind::INF_MAX => Self::Maximum,
            kind::AUTO_INCREMENT => Self::AutoIncrement,
            other => return Err(ReaderError::Type(other)),
        })
    }

    /// Encodes the type tag and the value.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Integer(number) => write_integer(out, *number),
            Self::String(text) => write_bytes(out, kind::STRING, text.as_bytes()),
            Self::Binary(bytes) => write_bytes(out, kind::BLOB, bytes),
            Self::Minimum => out.put_u8(kind::INF_MIN),
            Self::Maximum => out.put_u8(kind::INF_MAX),
            Self::AutoIncrement => out.put_u8(kind::AUTO_INCREMENT),
        }
    }

    /// Updates the checksum of a cell with the encoded type tag and value.
    pub(crate) fn checksum(&self, crc: &mut Crc8) {
        match self {
            Self::Integer(number) => checksum_integer(crc, *number),
            Self::String(text) => checksum_bytes(crc, kind::STRING, text.as_bytes()),
            Self::Binary(bytes) => checksum_bytes(crc, kind::BLOB, bytes),
            Self::Minimum => crc.byte(kind::INF_MIN),
            Self::Maximum => crc.byte(kind::INF_MAX),
            Self::AutoIncrement => crc.byte(kind::AUTO_INCREMENT),
        }
    }
}

fn write_integer(out: &mut BytesMut, number: i64) {
    out.put_u8(kind::INTEGER);
    out.put_i64_le(number);
}

fn write_bytes(out: &mut BytesMut, kind: u8, bytes: &[u8]) {
    out.put_u8(kind);
    out.put_u32_le(length(bytes.len()));
    out.put_slice(bytes);
}

fn checksum_integer(crc: &mut Crc8, number: i64) {
    crc.byte(kind::INTEGER);
    crc.bytes(&number.to_le_bytes());
}

fn checksum_bytes(crc: &mut Crc8, kind: u8, bytes: &[u8]) {
    crc.byte(kind);
    crc.bytes(&length(bytes.len()).to_le_bytes());
    crc.bytes(bytes);
}

/// A length as the wire has it. It saturates at 4 GiB, far above any row.
pub(crate) fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<i64> for KeyElement {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for KeyElement {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}
