//! Variants: single values within messages, as a filter's right side or a term of a query.

use bytes::{Bytes, BytesMut};

use crate::reader::{Damage, Reader};
use crate::value::{KeyElement, Value};

/// A variant can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no variant")]
pub struct MalformedVariant;

impl From<Damage> for MalformedVariant {
    fn from(_: Damage) -> Self {
        Self
    }
}

/// Reads a value.
///
/// # Errors
/// [`MalformedVariant`] when the bytes are anything else than one value.
pub fn decode(bytes: Bytes) -> Result<Value, MalformedVariant> {
    whole(bytes, Value::read)
}

/// Reads a value of a primary key, or what stands for the least and the greatest: an end of a range of partitions.
///
/// # Errors
/// [`MalformedVariant`] when the bytes are anything else than one.
pub fn decode_key(bytes: Bytes) -> Result<KeyElement, MalformedVariant> {
    whole(bytes, KeyElement::read)
}

fn whole<T>(
    bytes: Bytes,
    read: impl FnOnce(&mut Reader) -> Result<T, Damage>,
) -> Result<T, MalformedVariant> {
    let mut reader = Reader::new(bytes);
    let value = read(&mut reader)?;
    if reader.is_empty() {
        Ok(value)
    } else {
        Err(MalformedVariant)
    }
}

/// Writes a value.
#[must_use]
pub fn encode(value: &Value) -> Bytes {
    let mut out = BytesMut::with_capacity(value.size() + 5);
    value.write(&mut out);
    out.freeze()
}

/// Writes a value of a primary key.
#[must_use]
pub fn encode_key(value: &KeyElement) -> Bytes {
    let mut out = BytesMut::with_capacity(value.size() + 5);
    value.write(&mut out);
    out.freeze()
}
