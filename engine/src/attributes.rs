//! Attributes: named values that a resource has in addition to its declared fields, kept in one column as a protobuf message.

use std::collections::BTreeMap;

use souk_index::QueryValue;

use crate::columns::{ColumnReader, Columns, CorruptRow};
use crate::protobuf::{self, Malformed, Value, Writer};

/// Numbers of the fields of the message in the column: `map<string, Value> entries`, whose entries have a key and a value.
const ENTRIES: u64 = 1;
const KEY: u64 = 1;
const VALUE: u64 = 2;
/// Numbers of the kinds of a `souk.type.v1.Value`.
const STRING: u64 = 1;
const INTEGER: u64 = 2;
const DOUBLE: u64 = 3;
const BOOLEAN: u64 = 4;
const BYTES: u64 = 5;
const TIME: u64 = 6;
/// Numbers of the fields of a `google.protobuf.Timestamp`.
const SECONDS: u64 = 1;
const NANOS: u64 = 2;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The attributes of a resource, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    entries: BTreeMap<String, QueryValue>,
}

impl FromIterator<(String, QueryValue)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, QueryValue)>>(entries: I) -> Self {
        Self {
            entries: entries.into_iter().collect(),
        }
    }
}

impl Attributes {
    /// The attributes by name.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<String, QueryValue> {
        &self.entries
    }

    /// The attributes by name, taken out.
    #[must_use]
    pub fn into_entries(self) -> BTreeMap<String, QueryValue> {
        self.entries
    }

    /// Adds the attributes to the columns of a row, as an encoded message in column `name`.
    #[must_use]
    pub fn to_column(&self, columns: Columns, name: &str) -> Columns {
        let message = self.entries.iter().fold(Writer::default(), |message, entry| {
            let (key, value) = entry;
            let entry = Writer::default()
                .bytes_unless_empty(KEY, key.as_bytes())
                .bytes(VALUE, &encoded(value));
            message.bytes(ENTRIES, &entry.finish())
        });
        columns.message(name, &message.finish())
    }

    /// Reads the attributes from column `name`.
    ///
    /// # Errors
    /// When the column doesn't hold attributes.
    pub fn from_column(columns: &ColumnReader<'_>, name: &str) -> Result<Self, CorruptRow> {
        let message = columns.message(name)?;
        Self::decode(&message).map_err(|error| CorruptRow::new(name, error.to_string()))
    }

    /// The attributes of an encoded message.
    pub(crate) fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let entries = protobuf::values(message)?.into_iter();
        let entries = entries.filter_map(|(_, entry)| entry_of(entry).transpose());
        entries.collect()
    }
}

fn encoded(value: &QueryValue) -> Vec<u8> {
    let message = Writer::default();
    match value {
        QueryValue::String(text) => message.bytes(STRING, text.as_bytes()),
        QueryValue::Integer(number) => message.number(INTEGER, *number),
        QueryValue::Double(number) => message.double(DOUBLE, *number),
        QueryValue::Boolean(flag) => message.number(BOOLEAN, i64::from(*flag)),
        QueryValue::Bytes(bytes) => message.bytes(BYTES, bytes),
        QueryValue::Time(nanos) => {
            let time = Writer::default()
                .number_unless_zero(SECONDS, nanos.div_euclid(NANOS_PER_SECOND))
                .number_unless_zero(NANOS, nanos.rem_euclid(NANOS_PER_SECOND));
            message.bytes(TIME, &time.finish())
        }
    }
    .finish()
}

/// A name and its value; `None` where the value has no kind, which nobody writes.
fn entry_of(entry: Value<'_>) -> Result<Option<(String, QueryValue)>, Malformed> {
    let (mut key, mut value) = ("", None);
    for (field, part) in protobuf::values(entry.bytes().ok_or(Malformed)?)? {
        match field {
            KEY => key = part.text().ok_or(Malformed)?,
            VALUE => value = value_of(part.bytes().ok_or(Malformed)?)?,
            _ => {}
        }
    }
    Ok(value.map(|value| (key.to_owned(), value)))
}

fn value_of(message: &[u8]) -> Result<Option<QueryValue>, Malformed> {
    let mut value = None;
    for part in protobuf::values(message)? {
        value = Some(match part {
            (STRING, text) => QueryValue::String(text.text().ok_or(Malformed)?.to_owned()),
            (INTEGER, Value::Number(number)) => QueryValue::Integer(number),
            (DOUBLE, Value::Double(number)) => QueryValue::Double(number),
            (BOOLEAN, Value::Number(flag)) => QueryValue::Boolean(flag != 0),
            (BYTES, Value::Bytes(bytes)) => QueryValue::Bytes(bytes.to_vec()),
            (TIME, Value::Bytes(time)) => QueryValue::Time(time_of(time)?),
            _ => return Err(Malformed),
        });
    }
    Ok(value)
}

/// Nanoseconds since the Unix epoch. Summed in 128 bits: of the earliest times the whole seconds alone are below the range of an `i64`.
fn time_of(message: &[u8]) -> Result<i64, Malformed> {
    let mut nanos = 0i128;
    for part in protobuf::values(message)? {
        match part {
            (SECONDS, Value::Number(seconds)) => nanos += i128::from(seconds) * i128::from(NANOS_PER_SECOND),
            (NANOS, Value::Number(rest)) => nanos += i128::from(rest),
            _ => return Err(Malformed),
        }
    }
    i64::try_from(nanos).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes() -> Attributes {
        let kinds = [
            ("a", QueryValue::String("red".to_owned())),
            ("b", QueryValue::Integer(-7)),
            ("c", QueryValue::Double(7.5)),
            ("d", QueryValue::Boolean(false)),
            ("e", QueryValue::Bytes(vec![1])),
            ("f", QueryValue::Time(1_000_000_005)),
            ("g", QueryValue::Time(i64::MIN)),
            ("h", QueryValue::String(String::new())),
        ];
        kinds
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    #[test]
    fn attributes_survive_their_column() {
        for attributes in [attributes(), Attributes::default()] {
            let columns = attributes.to_column(Columns::new(), "attributes");
            assert_eq!(
                Attributes::from_column(&ColumnReader::of_columns(&columns), "attributes"),
                Ok(attributes)
            );
        }
        // Field 1 claims 5 bytes, and has 3.
        let damaged = Columns::new().message("attributes", b"\x0a\x05abc");
        assert!(Attributes::from_column(&ColumnReader::of_columns(&damaged), "attributes").is_err());
    }
}
