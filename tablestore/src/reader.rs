//! Reads little-endian numbers, and texts and binaries behind their lengths, from the front of a buffer.

use bytes::{Buf as _, Bytes};
use smol_str::SmolStr;

/// Why bytes can't be read as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderError {
    /// The bytes end before the value does.
    Truncated,
    /// A text or binary of this length is longer than what is left.
    Length(u32),
    /// A text isn't UTF-8.
    Utf8,
    /// No type has this number, or none that may stand here.
    Type(u8),
    /// A boolean is neither 0 nor 1.
    Boolean,
}

pub(crate) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether all that is left is zeros.
    pub(crate) fn is_zero(&self) -> bool {
        self.rest.iter().all(|byte| *byte == 0)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ReaderError> {
        self.rest.try_get_u8().map_err(|_| ReaderError::Truncated)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReaderError> {
        self.rest.try_get_u32_le().map_err(|_| ReaderError::Truncated)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, ReaderError> {
        self.rest.try_get_i64_le().map_err(|_| ReaderError::Truncated)
    }

    /// A length and as many bytes, which share the buffer's memory.
    pub(crate) fn binary(&mut self) -> Result<Bytes, ReaderError> {
        let length = self.u32()?;
        match usize::try_from(length) {
            Ok(bytes) if bytes <= self.rest.len() => Ok(self.rest.split_to(bytes)),
            _ => Err(ReaderError::Length(length)),
        }
    }

    /// A length and as many bytes of UTF-8.
    pub(crate) fn text(&mut self) -> Result<SmolStr, ReaderError> {
        let bytes = self.binary()?;
        std::str::from_utf8(&bytes)
            .map(SmolStr::from)
            .map_err(|_| ReaderError::Utf8)
    }
}
