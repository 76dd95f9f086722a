//! Values of cells and of primary keys.

mod borrowed;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use smol_str::SmolStr;

pub(crate) use self::borrowed::ValueRef;

use crate::error::Error;
use crate::limits;

/// Text of a value or a key. Up to 23 bytes need no allocation, and a clone shares what longer ones have.
pub type Text = SmolStr;

/// What a cell holds. There is no null: an absent column is absent.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// UTF-8 text.
    String(Text),
    /// A signed 64-bit number.
    Integer(i64),
    /// A finite 64-bit float; a write with NaN or an infinity is refused.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// Bytes.
    Binary(Bytes),
}

impl Value {
    /// The text of a STRING.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The number of an INTEGER.
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The number of a DOUBLE.
    pub fn as_double(&self) -> Option<f64> {
        if let Self::Double(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The truth of a BOOLEAN.
    pub fn as_boolean(&self) -> Option<bool> {
        if let Self::Boolean(truth) = self {
            Some(*truth)
        } else {
            None
        }
    }

    /// The bytes of a BINARY.
    pub fn as_binary(&self) -> Option<&Bytes> {
        if let Self::Binary(bytes) = self {
            Some(bytes)
        } else {
            None
        }
    }

    /// Name of the type, as Tablestore writes it.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::String(_) => "STRING",
            Self::Integer(_) => "INTEGER",
            Self::Double(_) => "DOUBLE",
            Self::Boolean(_) => "BOOLEAN",
            Self::Binary(_) => "BINARY",
        }
    }

    /// Bytes that count against the limits of a write.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Integer(_) | Self::Double(_) => 8,
            Self::Boolean(_) => 1,
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

impl From<KeyValue> for Value {
    fn from(value: KeyValue) -> Self {
        match value {
            KeyValue::String(text) => Self::String(text),
            KeyValue::Integer(number) => Self::Integer(number),
            KeyValue::Binary(bytes) => Self::Binary(bytes),
        }
    }
}

/// What a primary key column holds. Ordered as it is stored: by value, strings and binaries bytewise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyValue {
    /// UTF-8 text, at most [`limits::MAX_KEY_VALUE_BYTES`].
    String(Text),
    /// A signed 64-bit number.
    Integer(i64),
    /// Bytes, at most [`limits::MAX_KEY_VALUE_BYTES`].
    Binary(Bytes),
}

impl KeyValue {
    /// The text of a STRING.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The number of an INTEGER.
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// Bytes that count against the limits of a write.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Integer(_) => 8,
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

impl From<&str> for KeyValue {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for KeyValue {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<i64> for KeyValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<Bytes> for KeyValue {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

/// The values of a key. Two, as keys of ids have, lie in it.
pub(crate) type KeyValues = SmallVec<[KeyValue; 2]>;

/// One to four key values; the first is the partition key. Whether it fits a table's key columns is checked
/// where it meets the table. `Ord` is the order of rows in a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrimaryKey(KeyValues);

impl PrimaryKey {
    /// A key of these values.
    ///
    /// # Errors
    /// [`Error::Invalid`] for none, [`Error::LimitExceeded`] for more than [`limits::MAX_KEY_COLUMNS`] or for a
    /// value longer than [`limits::MAX_KEY_VALUE_BYTES`].
    pub fn new(values: impl IntoIterator<Item = KeyValue>) -> Result<Self, Error> {
        Self::checked(values.into_iter().collect())
    }

    /// A key of these values, checked.
    #[inline]
    pub(crate) fn checked(values: KeyValues) -> Result<Self, Error> {
        if values.is_empty() {
            return Err(Error::invalid("primary key", "has no columns"));
        }
        limits::check("MAX_KEY_COLUMNS", limits::MAX_KEY_COLUMNS, values.len())?;
        for value in &values {
            if let KeyValue::String(_) | KeyValue::Binary(_) = value {
                limits::check("MAX_KEY_VALUE_BYTES", limits::MAX_KEY_VALUE_BYTES, value.size())?;
            }
        }
        Ok(Self(values))
    }

    /// A key of one STRING column.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] when it is longer than [`limits::MAX_KEY_VALUE_BYTES`].
    pub fn string(text: impl Into<Text>) -> Result<Self, Error> {
        let text = text.into();
        limits::check("MAX_KEY_VALUE_BYTES", limits::MAX_KEY_VALUE_BYTES, text.len())?;
        Ok(Self(smallvec![KeyValue::String(text)]))
    }

    /// A key of one INTEGER column.
    pub fn integer(number: i64) -> Self {
        Self(smallvec![KeyValue::Integer(number)])
    }

    /// The values, partition key first.
    pub fn values(&self) -> &[KeyValue] {
        &self.0
    }

    /// The values, partition key first.
    pub fn into_values(self) -> Vec<KeyValue> {
        self.0.into_vec()
    }

    /// Bytes that count against the limits of a write.
    pub(crate) fn size(&self) -> usize {
        self.0.iter().map(KeyValue::size).sum()
    }
}
