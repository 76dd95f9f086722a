//! Value trees: what a cell holds, decoded by its [`ValueType`], whatever its encoding.

use bytes::Bytes;
use serde_json::Value as Json;
use souk_index::{FieldValue, GeoPoint, Object, QueryValue};
use souk_storage::{KeyValue, Text, Value};

use crate::attributes::Attributes;
use crate::columns;
use crate::definition::{Member, ValueType};
use crate::protobuf::{self, Malformed};

/// Field of the message of a list that holds its elements.
const ELEMENTS: u64 = 1;

/// A value, a list of values, or an object of named values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ValueTree {
    Text(Text),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    /// Also a cell that isn't encoded as its column declares: it fits no field, and is counted as a rejected value.
    Bytes(Bytes),
    /// Nanoseconds since the Unix epoch.
    Time(i64),
    /// Nanoseconds.
    Duration(i64),
    Point(GeoPoint),
    List(Vec<Self>),
    Object(Vec<(Text, Self)>),
}

impl ValueTree {
    /// Decodes a cell by the type of its column; by the cell alone where the column isn't declared. Points are made elsewhere, of
    /// two cells.
    pub(crate) fn from_cell(value: &Value, declared: Option<&ValueType>) -> Self {
        match (value, declared) {
            (Value::String(text), Some(ValueType::Json)) => from_json_text(text),
            (Value::String(text), _) => Self::Text(text.clone()),
            (Value::Integer(nanos), Some(ValueType::Time)) => Self::Time(*nanos),
            (Value::Integer(nanos), Some(ValueType::Duration)) => Self::Duration(*nanos),
            (Value::Integer(number), _) => Self::Integer(*number),
            (Value::Double(number), _) => Self::Double(*number),
            (Value::Boolean(truth), _) => Self::Boolean(*truth),
            (Value::Binary(bytes), Some(structured)) => {
                let read = columns::message_in(bytes).ok_or(Malformed);
                let read = read.and_then(|message| from_column_message(&message, structured));
                read.unwrap_or_else(|Malformed| Self::Bytes(bytes.clone()))
            }
            (Value::Binary(bytes), None) => Self::Bytes(bytes.clone()),
        }
    }

    /// The value of a key column.
    pub(crate) fn from_key(value: &KeyValue) -> Self {
        match value {
            KeyValue::String(text) => Self::Text(text.clone()),
            KeyValue::Integer(number) => Self::Integer(*number),
            KeyValue::Binary(bytes) => Self::Bytes(bytes.clone()),
        }
    }

    fn from_json(json: Json) -> Option<Self> {
        Some(match json {
            // A null is as absent as a member that isn't there.
            Json::Null => return None,
            Json::Bool(truth) => Self::Boolean(truth),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Self::Integer(number),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text.into()),
            Json::Array(elements) => Self::List(elements.into_iter().filter_map(Self::from_json).collect()),
            Json::Object(members) => {
                let member = |(name, json): (String, Json)| Some((name.into(), Self::from_json(json)?));
                Self::Object(members.into_iter().filter_map(member).collect())
            }
        })
    }

    /// The value of an attribute.
    fn from_attribute(value: QueryValue) -> Self {
        match value {
            QueryValue::String(text) => Self::Text(text.into()),
            QueryValue::Integer(number) => Self::Integer(number),
            QueryValue::Double(number) => Self::Double(number),
            QueryValue::Boolean(truth) => Self::Boolean(truth),
            QueryValue::Bytes(bytes) => Self::Bytes(bytes.into()),
            QueryValue::Time(nanos) => Self::Time(nanos),
        }
    }

    /// The value for a field of any type. A list or an object in place of a single value becomes an empty object, which only
    /// fits a field of objects: it is a rejected value of any other.
    pub(crate) fn to_field_value(&self) -> FieldValue {
        match self {
            Self::Text(text) => FieldValue::String(text.clone()),
            Self::Integer(number) => FieldValue::Long(*number),
            Self::Double(number) => FieldValue::Double(*number),
            Self::Boolean(truth) => FieldValue::Boolean(*truth),
            Self::Bytes(bytes) => FieldValue::Bytes(bytes.to_vec()),
            Self::Time(nanos) => FieldValue::Date(*nanos),
            Self::Duration(nanos) => FieldValue::Long(*nanos),
            Self::Point(point) => FieldValue::GeoPoint(*point),
            Self::List(_) | Self::Object(_) => FieldValue::Objects(vec![Object::new()]),
        }
    }
}

/// Parses the JSON of a column. Text that isn't JSON becomes bytes, which fit no field: it isn't searched as text.
fn from_json_text(text: &Text) -> ValueTree {
    match serde_json::from_str(text) {
        Ok(json) => ValueTree::from_json(json).unwrap_or_else(|| ValueTree::List(Vec::new())),
        Err(_) => ValueTree::Bytes(Bytes::copy_from_slice(text.as_bytes())),
    }
}

/// Decodes the message in a column of a structured type.
fn from_column_message(message: &Bytes, declared: &ValueType) -> Result<ValueTree, Malformed> {
    match declared {
        ValueType::Attributes => {
            let attributes = Attributes::decode(message)?.into_entries().into_iter();
            let attributes = attributes.map(|(name, value)| (name.into(), ValueTree::from_attribute(value)));
            Ok(ValueTree::Object(attributes.collect()))
        }
        ValueType::List(element) => {
            let values = protobuf::values(message)?.into_iter();
            let elements = values.filter(|(number, _)| *number == ELEMENTS);
            let elements = elements.map(|(_, value)| from_message_value(value, element));
            Ok(ValueTree::List(elements.collect::<Result<_, _>>()?))
        }
        ValueType::Message(members) => from_message(message, members),
        _ => Err(Malformed),
    }
}

fn from_message(message: &[u8], members: &[Member]) -> Result<ValueTree, Malformed> {
    let mut object: Vec<(Text, ValueTree)> = Vec::with_capacity(members.len());
    for (number, value) in protobuf::values(message)? {
        let Some(member) = members.iter().find(|member| u64::from(member.number) == number) else {
            continue;
        };
        let known = object.iter_mut().find(|(name, _)| *name == member.name);
        let value = match &member.value {
            ValueType::List(element) => {
                let value = from_message_value(value, element)?;
                if let Some((_, ValueTree::List(elements))) = known {
                    elements.push(value);
                    continue;
                }
                ValueTree::List(vec![value])
            }
            single => from_message_value(value, single)?,
        };
        match known {
            // The last one wins, as in protobuf.
            Some((_, known)) => *known = value,
            None => object.push((member.name.as_str().into(), value)),
        }
    }
    Ok(ValueTree::Object(object))
}

fn from_message_value(value: protobuf::Value<'_>, declared: &ValueType) -> Result<ValueTree, Malformed> {
    Ok(match (declared, value) {
        (ValueType::String, text) => ValueTree::Text(text.text().ok_or(Malformed)?.into()),
        (ValueType::Integer, protobuf::Value::Number(number)) => ValueTree::Integer(number),
        (ValueType::Time, protobuf::Value::Number(nanos)) => ValueTree::Time(nanos),
        (ValueType::Duration, protobuf::Value::Number(nanos)) => ValueTree::Duration(nanos),
        (ValueType::Boolean, protobuf::Value::Number(truth)) => ValueTree::Boolean(truth != 0),
        (ValueType::Double, protobuf::Value::Double(number)) => ValueTree::Double(number),
        (ValueType::Binary, bytes) => {
            ValueTree::Bytes(Bytes::copy_from_slice(bytes.bytes().ok_or(Malformed)?))
        }
        (ValueType::Message(members), message) => from_message(message.bytes().ok_or(Malformed)?, members)?,
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;
    use crate::protobuf::Writer;

    fn only_cell(columns: Columns) -> Value {
        let [(_, value)] = columns.into_cells().try_into().expect("one cell");
        value
    }

    fn text(text: &str) -> ValueTree {
        ValueTree::Text(text.into())
    }

    #[test]
    fn json_is_a_tree_without_nulls() {
        let cell = Value::from(r#"{"a": [1, null, 2.5, "x"], "b": null, "c": {"d": true}}"#);
        let read = ValueTree::from_cell(&cell, Some(&ValueType::Json));
        let list = ValueTree::List(vec![ValueTree::Integer(1), ValueTree::Double(2.5), text("x")]);
        let inner = ValueTree::Object(vec![("d".into(), ValueTree::Boolean(true))]);
        assert_eq!(
            read,
            ValueTree::Object(vec![("a".into(), list), ("c".into(), inner)])
        );
        let broken = ValueTree::from_cell(&Value::from("{"), Some(&ValueType::Json));
        assert_eq!(broken, ValueTree::Bytes(Bytes::from_static(b"{")));
    }

    #[test]
    fn messages_are_read_by_their_members() {
        let members = vec![
            Member::new(1, "tag", ValueType::String),
            Member::new(2, "score", ValueType::Double),
            Member::new(4, "places", ValueType::List(Box::new(ValueType::Integer))),
        ];
        let one = Writer::default()
            .bytes(1, b"tea")
            .double(2, 0.5)
            .number(3, 7)
            .number(4, 1)
            .number(4, -1)
            .finish();
        let two = Writer::default().bytes(1, b"milk").finish();
        let list = Writer::default().bytes(1, &one).bytes(1, &two).finish();
        let cell = only_cell(Columns::new().message("tags", &list));
        let declared = ValueType::objects(members);
        let places = ValueTree::List(vec![ValueTree::Integer(1), ValueTree::Integer(-1)]);
        let one = ValueTree::Object(vec![
            ("tag".into(), text("tea")),
            ("score".into(), ValueTree::Double(0.5)),
            ("places".into(), places),
        ]);
        let two = ValueTree::Object(vec![("tag".into(), text("milk"))]);
        assert_eq!(
            ValueTree::from_cell(&cell, Some(&declared)),
            ValueTree::List(vec![one, two])
        );
        let wrong = only_cell(Columns::new().message("tags", b"\x0a\x05abc"));
        let read = ValueTree::from_cell(&wrong, Some(&declared));
        assert!(matches!(read, ValueTree::Bytes(_)), "{read:?}");
        let strings = only_cell(Columns::new().strings("tags", &["a".to_owned(), "b".to_owned()]));
        let read = ValueTree::from_cell(&strings, Some(&ValueType::strings()));
        assert_eq!(read, ValueTree::List(vec![text("a"), text("b")]));
    }
}
