//! Variants: single values within messages, as a filter's right side or a term of a query. They are encoded as the values of cells in
//! plainbuffer.

use bytes::{Bytes, BytesMut};

use crate::reader::{Reader, ReaderError};
use crate::value::Value;

/// A variant can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no variant")]
pub struct MalformedVariant;

impl From<ReaderError> for MalformedVariant {
    fn from(_: ReaderError) -> Self {
        Self
    }
}

/// Decodes a value.
///
/// # Errors
/// [`MalformedVariant`] when the bytes are anything else than one value.
pub fn decode(bytes: Bytes) -> Result<Value, MalformedVariant> {
    let mut reader = Reader::new(bytes);
    let value = Value::read(&mut reader)?;
    match reader.is_empty() {
        true => Ok(value),
        false => Err(MalformedVariant),
    }
}

/// Encodes a value.
#[must_use]
pub fn encode(value: &Value) -> Bytes {
    // At most a type tag, a length, and the value.
    let mut out = BytesMut::with_capacity(1 + size_of::<u32>() + value.size());
    value.write(&mut out);
    out.freeze()
}
