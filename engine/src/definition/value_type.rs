//! What a column holds: the one description of values, by which rows become documents.

use serde::{Deserialize, Serialize};

/// How the values of a column are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDefinition {
    /// The column. Of a [point](ValueType::Point), the name that its two columns begin with.
    pub name: String,
    /// What its values are.
    pub value: ValueType,
}

/// What a value is, and how its cell holds that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueType {
    /// UTF-8 text, in a STRING.
    String,
    /// A signed 64-bit number, in an INTEGER.
    Integer,
    /// A 64-bit float, in a DOUBLE.
    Double,
    /// True or false, in a BOOLEAN.
    Boolean,
    /// Bytes, in a BINARY.
    Binary,
    /// A time, in an INTEGER: nanoseconds since the Unix epoch.
    Time,
    /// A length of time, in an INTEGER: nanoseconds. A DOUBLE field has its seconds.
    Duration,
    /// A point on the globe, in two columns: see [`crate::Columns::point`].
    Point,
    /// JSON, in a STRING.
    Json,
    /// Names with values of any type, in a BINARY: see [`crate::Attributes`].
    Attributes,
    /// Several values, in a BINARY: a message with each of them as its field 1; see [`crate::Columns::strings`].
    List(Box<ValueType>),
    /// An object, in a BINARY: an encoded protobuf message, see [`crate::Columns::message`].
    Message(Vec<Member>),
}

impl ValueType {
    /// Several objects with these members.
    #[must_use]
    pub fn objects(members: impl IntoIterator<Item = Member>) -> Self {
        Self::List(Box::new(Self::Message(members.into_iter().collect())))
    }

    /// Several strings.
    #[must_use]
    pub fn strings() -> Self {
        Self::List(Box::new(Self::String))
    }
}

/// One member of a [`ValueType::Message`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The number of its field in the message.
    pub number: u32,
    /// What its values are.
    pub value: ValueType,
}

impl Member {
    /// A member of a message.
    #[must_use]
    pub fn new(number: u32, name: impl Into<String>, value: ValueType) -> Self {
        let name = name.into();
        Self { name, number, value }
    }
}
