//! As much of protobuf's encoding as stored columns are made of: numbers, doubles, bytes, and messages in each other. What a
//! message's fields are is said where it is written and read.

/// How a value is encoded.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// A message on its way to a column.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// The encoded message.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    /// A number, a flag or a value of an enumeration; negative ones are in two's complement.
    #[must_use]
    pub(crate) fn number(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(value.cast_unsigned());
        self
    }

    /// [`Self::number`], left out where it is 0, as an absent one is.
    #[must_use]
    pub(crate) fn number_unless_zero(self, field: u64, value: i64) -> Self {
        match value {
            0 => self,
            value => self.number(field, value),
        }
    }

    #[must_use]
    pub(crate) fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Text, bytes, or a message.
    #[must_use]
    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    /// [`Self::bytes`], left out where there are none.
    #[must_use]
    pub(crate) fn bytes_unless_empty(self, field: u64, value: &[u8]) -> Self {
        match value {
            [] => self,
            value => self.bytes(field, value),
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// One value of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Number(i64),
    Double(f64),
    Bytes(&'a [u8]),
    /// Of a kind that no column has.
    Other,
}

impl<'a> Value<'a> {
    pub(crate) fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The values of a message in their order, each with the number of its field.
///
/// # Errors
/// When the bytes aren't a message.
pub(crate) fn values(mut bytes: &[u8]) -> Result<Vec<(u64, Value<'_>)>, Malformed> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            VARINT => Value::Number(varint(&mut bytes)?.cast_signed()),
            FIXED64 => {
                let (value, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
                bytes = rest;
                Value::Double(f64::from_le_bytes(*value))
            }
            BYTES => {
                let len = usize::try_from(varint(&mut bytes)?).map_err(|_| Malformed)?;
                let (value, rest) = bytes.split_at_checked(len).ok_or(Malformed)?;
                bytes = rest;
                Value::Bytes(value)
            }
            FIXED32 => {
                bytes = bytes.split_first_chunk::<4>().ok_or(Malformed)?.1;
                Value::Other
            }
            _ => return Err(Malformed),
        };
        values.push((tag >> 3, value));
    }
    Ok(values)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Malformed)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// Bytes that aren't an encoded message, or not one of the expected shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no encoded message of its kind")]
pub(crate) struct Malformed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_cut_ones_are_refused() {
        let inner = Writer::default().bytes(1, "奶茶".as_bytes()).finish();
        let message = Writer::default()
            .number(1, i64::MIN)
            .number_unless_zero(2, 0)
            .number(3, 300)
            .double(16, -0.5)
            .bytes_unless_empty(5, b"")
            .bytes(2_048, &inner)
            .finish();
        let read = values(&message).expect("a message");
        let expected = [
            (1, Value::Number(i64::MIN)),
            (3, Value::Number(300)),
            (16, Value::Double(-0.5)),
            (2_048, Value::Bytes(&inner)),
        ];
        assert_eq!(read, expected);
        assert_eq!(values(&inner).expect("a message")[0].1.text(), Some("奶茶"));
        let whole = [11, 14, 24, message.len()];
        for end in (1..message.len()).filter(|end| !whole.contains(end)) {
            assert_eq!(values(&message[..end]), Err(Malformed), "cut at {end}");
        }
    }
}
