//! A value where it lies: compared and measured without a copy.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::value::Value;

/// A [`Value`] whose text or bytes belong to someone else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ValueRef<'a> {
    String(&'a str),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    Binary(&'a [u8]),
}

impl ValueRef<'_> {
    /// The same as [`Value::size`].
    pub(crate) fn size(self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Integer(_) | Self::Double(_) => 8,
            Self::Boolean(_) => 1,
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// A copy of its own.
    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::String(text) => Value::String(text.into()),
            Self::Integer(number) => Value::Integer(number),
            Self::Double(number) => Value::Double(number),
            Self::Boolean(truth) => Value::Boolean(truth),
            Self::Binary(bytes) => Value::Binary(Bytes::copy_from_slice(bytes)),
        }
    }

    /// How it compares with a value of the same type; `None` for values of different types.
    pub(crate) fn compare(self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Self::String(left), Value::String(right)) => Some(left.cmp(right.as_str())),
            (Self::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
            (Self::Double(left), Value::Double(right)) => left.partial_cmp(right),
            (Self::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
            (Self::Binary(left), Value::Binary(right)) => Some(left.cmp(right)),
            (
                Self::String(_) | Self::Integer(_) | Self::Double(_) | Self::Boolean(_) | Self::Binary(_),
                _,
            ) => None,
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::String(text),
            Value::Integer(number) => Self::Integer(*number),
            Value::Double(number) => Self::Double(*number),
            Value::Boolean(truth) => Self::Boolean(*truth),
            Value::Binary(bytes) => Self::Binary(bytes),
        }
    }
}
