//! The bytes of values: an order-preserving form for keys, a compact form for what stands in values.

mod borrowed;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;

use crate::value::{KeyValue, Value};

/// Bytes that aren't what this module writes; says what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Reads from the front of a slice; every read is checked.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that aren't read yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed("nothing more"))
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed("more bytes"))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed("a byte"))?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed("a number"))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A LEB128 number.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        if let Some((&small @ 0..0x80, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(u64::from(small));
        }
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(Malformed("a number below 2^64"));
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("the end of a number"))
    }

    /// A length or count; no more than there are bytes left, so that it can size an allocation.
    #[inline]
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.varint()?).map_err(|_| Malformed("a length"))?;
        if count > self.rest.len() {
            Err(Malformed("more bytes"))
        } else {
            Ok(count)
        }
    }

    #[inline]
    pub(crate) fn zigzag(&mut self) -> Result<i64, Malformed> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count()?;
        self.take(count)
    }

    #[inline]
    pub(crate) fn str(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("UTF-8"))
    }

    /// A value written by [`put_value`].
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Value, Malformed> {
        match self.u8()? {
            STRING => Ok(Value::String(self.str()?.into())),
            INTEGER => Ok(Value::Integer(self.zigzag()?)),
            DOUBLE => Ok(Value::Double(f64::from_bits(self.u64()?))),
            FALSE => Ok(Value::Boolean(false)),
            TRUE => Ok(Value::Boolean(true)),
            BINARY => Ok(Value::Binary(Bytes::copy_from_slice(self.bytes()?))),
            _ => Err(Malformed("a value")),
        }
    }

    /// Steps over a value written by [`put_value`].
    pub(crate) fn skip_value(&mut self) -> Result<(), Malformed> {
        match self.u8()? {
            STRING | BINARY => self.bytes().map(drop),
            INTEGER => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            FALSE | TRUE => Ok(()),
            _ => Err(Malformed("a value")),
        }
    }

    /// A value written by [`put_ordered`].
    #[inline]
    pub(crate) fn ordered(&mut self) -> Result<Value, Malformed> {
        match self.u8()? {
            ORDERED_STRING => match std::str::from_utf8(&self.escaped()?) {
                Ok(text) => Ok(Value::String(text.into())),
                Err(_) => Err(Malformed("UTF-8")),
            },
            ORDERED_INTEGER => Ok(Value::Integer((self.u64()? ^ SIGN).cast_signed())),
            ORDERED_BINARY => Ok(Value::Binary(Bytes::from(self.escaped()?.into_owned()))),
            ORDERED_DOUBLE => {
                let bits = self.u64()?;
                Ok(Value::Double(f64::from_bits(if bits & SIGN == 0 {
                    !bits
                } else {
                    bits ^ SIGN
                })))
            }
            ORDERED_BOOLEAN => match self.u8()? {
                0 => Ok(Value::Boolean(false)),
                1 => Ok(Value::Boolean(true)),
                _ => Err(Malformed("a boolean")),
            },
            _ => Err(Malformed("a key value")),
        }
    }

    /// A key value written by [`put_ordered_key`].
    #[inline]
    pub(crate) fn ordered_key(&mut self) -> Result<KeyValue, Malformed> {
        match self.ordered()? {
            Value::String(text) => Ok(KeyValue::String(text)),
            Value::Integer(number) => Ok(KeyValue::Integer(number)),
            Value::Binary(bytes) => Ok(KeyValue::Binary(bytes)),
            Value::Double(_) | Value::Boolean(_) => Err(Malformed("a value of a primary key")),
        }
    }

    /// Nearly all have no zero inside, and lie there as they are.
    fn escaped(&mut self) -> Result<Cow<'a, [u8]>, Malformed> {
        let mut bytes = Vec::new();
        loop {
            // Reading it byte by byte would take longer than all the rest.
            let zero = memchr::memchr(0, self.rest).ok_or(Malformed("the end of a key value"))?;
            let piece = self.take(zero)?;
            let end = match self.array()? {
                END => true,
                ESCAPED_ZERO => false,
                _ => return Err(Malformed("an escaped zero")),
            };
            if end && bytes.is_empty() {
                return Ok(Cow::Borrowed(piece));
            }
            bytes.extend_from_slice(piece);
            if end {
                return Ok(Cow::Owned(bytes));
            }
            bytes.push(0);
        }
    }
}

const STRING: u8 = 1;
const INTEGER: u8 = 2;
const DOUBLE: u8 = 3;
const FALSE: u8 = 4;
const TRUE: u8 = 5;
const BINARY: u8 = 6;

/// A LEB128 number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// A signed number, small when near zero.
pub(crate) fn put_zigzag(out: &mut Vec<u8>, number: i64) {
    put_varint(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Bytes after their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A value in the compact form.
pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => {
            out.push(STRING);
            put_bytes(out, text.as_bytes());
        }
        Value::Integer(number) => {
            out.push(INTEGER);
            put_zigzag(out, *number);
        }
        Value::Double(number) => {
            out.push(DOUBLE);
            out.extend_from_slice(&number.to_bits().to_be_bytes());
        }
        Value::Boolean(truth) => out.push(if *truth { TRUE } else { FALSE }),
        Value::Binary(bytes) => {
            out.push(BINARY);
            put_bytes(out, bytes);
        }
    }
}

// Tags of the order-preserving form, in the order of `KeyValue`'s variants. All lie below 0xFF, which therefore ends
// the range of keys that begin with a prefix.
const ORDERED_STRING: u8 = 0x10;
const ORDERED_INTEGER: u8 = 0x20;
const ORDERED_BINARY: u8 = 0x30;
const ORDERED_DOUBLE: u8 = 0x40;
const ORDERED_BOOLEAN: u8 = 0x50;

const SIGN: u64 = 1 << 63;
/// Ends a string; below every escaped zero, so that a prefix sorts before what it begins.
const END: [u8; 2] = [0, 1];
const ESCAPED_ZERO: [u8; 2] = [0, 0xff];

/// A value in the order-preserving form: tag, then bytes that compare like the value and end by themselves. -0.0 is
/// written as 0.0.
pub(crate) fn put_ordered(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => put_escaped(out, ORDERED_STRING, text.as_bytes()),
        Value::Integer(number) => put_sign_flipped(out, *number),
        Value::Binary(bytes) => put_escaped(out, ORDERED_BINARY, bytes),
        Value::Double(number) => {
            let bits = (*number + 0.0).to_bits();
            out.push(ORDERED_DOUBLE);
            let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Value::Boolean(truth) => out.extend_from_slice(&[ORDERED_BOOLEAN, u8::from(*truth)]),
    }
}

/// A key value in the order-preserving form.
pub(crate) fn put_ordered_key(out: &mut Vec<u8>, value: &KeyValue) {
    match value {
        KeyValue::String(text) => put_escaped(out, ORDERED_STRING, text.as_bytes()),
        KeyValue::Integer(number) => put_sign_flipped(out, *number),
        KeyValue::Binary(bytes) => put_escaped(out, ORDERED_BINARY, bytes),
    }
}

/// Bytes that [`put_ordered_key`] writes, but for escapes.
pub(crate) fn ordered_key_bytes(value: &KeyValue) -> usize {
    let end = match value {
        KeyValue::Integer(_) => 0,
        KeyValue::String(_) | KeyValue::Binary(_) => END.len(),
    };
    1 + value.size() + end
}

fn put_sign_flipped(out: &mut Vec<u8>, number: i64) {
    out.push(ORDERED_INTEGER);
    out.extend_from_slice(&(number.cast_unsigned() ^ SIGN).to_be_bytes());
}

fn put_escaped(out: &mut Vec<u8>, tag: u8, mut bytes: &[u8]) {
    out.reserve(bytes.len() + 3);
    out.push(tag);
    while let Some(zero) = bytes.iter().position(|byte| *byte == 0) {
        let (before, after) = bytes.split_at(zero);
        out.extend_from_slice(before);
        out.extend_from_slice(&ESCAPED_ZERO);
        bytes = after.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(bytes);
    out.extend_from_slice(&END);
}
