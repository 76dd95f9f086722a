//! Writes rows without a message of them.

use bytes::Bytes;
use prost::encoding::{
    self, WireType, double, encode_key, encode_varint, encoded_len_varint, int64, message,
};
use prost_types::Timestamp;

use super::{CELLS, COLUMNS, KEY, REVISION, Row};
use crate::r#type::v1::{Value, value::Kind};

// The fields of an entry of the map, and of a cell, which has a version besides.
const NAME: u32 = 1;
const VALUE: u32 = 2;
const VERSION: u32 = 3;

/// A value that lies somewhere else.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// Text.
    String(&'a str),
    /// A whole number.
    Int(i64),
    /// A floating point number.
    Double(f64),
    /// True or false.
    Bool(bool),
    /// Bytes.
    Bytes(&'a Bytes),
    /// An instant.
    Time(Timestamp),
}

impl ValueRef<'_> {
    /// Bytes of the message [`Value`] with it.
    fn encoded_len(&self) -> usize {
        match self {
            Self::String(text) => delimited_len(text.len()),
            Self::Int(number) => int64::encoded_len(2, number),
            Self::Double(number) => double::encoded_len(3, number),
            Self::Bool(truth) => encoding::bool::encoded_len(4, truth),
            Self::Bytes(bytes) => delimited_len(bytes.len()),
            Self::Time(time) => message::encoded_len(6, time),
        }
    }

    /// Encodes that message.
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::String(text) => put_delimited(1, text.as_bytes(), out),
            Self::Int(number) => int64::encode(2, number, out),
            Self::Double(number) => double::encode(3, number, out),
            Self::Bool(truth) => encoding::bool::encode(4, truth, out),
            Self::Bytes(bytes) => put_delimited(5, bytes, out),
            Self::Time(time) => message::encode(6, time, out),
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        let kind = match value {
            ValueRef::String(text) => Kind::StringValue(text.to_owned()),
            ValueRef::Int(number) => Kind::IntValue(number),
            ValueRef::Double(number) => Kind::DoubleValue(number),
            ValueRef::Bool(truth) => Kind::BoolValue(truth),
            ValueRef::Bytes(bytes) => Kind::BytesValue(bytes.clone()),
            ValueRef::Time(time) => Kind::TimeValue(time),
        };
        Self { kind: Some(kind) }
    }
}

/// Encodes a [`Row`] value by value. It keeps no order of its own: the bytes are those of the message where the key comes first, then columns
/// by their names, then cells. No name of a column is empty, and none is written twice as a column.
#[derive(Debug)]
pub struct RowWriter(Vec<u8>);

impl RowWriter {
    /// Of a row of about so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// The value of the next key column.
    pub fn key(&mut self, value: ValueRef<'_>) {
        put_head(KEY, value.encoded_len(), &mut self.0);
        value.encode(&mut self.0);
    }

    /// A column with its newest value.
    pub fn column(&mut self, name: &str, value: ValueRef<'_>) {
        self.named(COLUMNS, name, value, None);
    }

    /// One version of a column.
    pub fn cell(&mut self, column: &str, value: ValueRef<'_>, version: i64) {
        self.named(CELLS, column, value, Some(version));
    }

    fn named(&mut self, field: u32, name: &str, value: ValueRef<'_>, version: Option<i64>) {
        let out = &mut self.0;
        let value_len = value.encoded_len();
        let version_len = version.map_or(0, |version| int64::encoded_len(VERSION, &version));
        let len = delimited_len(name.len()) + delimited_len(value_len) + version_len;
        put_head(field, len, out);
        put_delimited(NAME, name.as_bytes(), out);
        put_head(VALUE, value_len, out);
        value.encode(out);
        if let Some(version) = version {
            int64::encode(VERSION, &version, out);
        }
    }

    /// The row, with the sequence of its last write.
    #[must_use]
    pub fn finish(mut self, revision: i64) -> Row {
        if revision != 0 {
            int64::encode(REVISION, &revision, &mut self.0);
        }
        Row {
            encoded: self.0.into(),
            ..Row::default()
        }
    }
}

/// Bytes of a field with so many, whose number is below 16.
fn delimited_len(bytes: usize) -> usize {
    1 + encoded_len_varint(bytes as u64) + bytes
}

/// Begins a field with so many bytes.
fn put_head(field: u32, bytes: usize, out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(bytes as u64, out);
}

fn put_delimited(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_head(field, bytes.len(), out);
    out.extend_from_slice(bytes);
}
