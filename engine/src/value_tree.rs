//! What a cell holds, by its [`ValueType`]: text, numbers, lists and objects, whatever they are encoded as.

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

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ValueTree {
    Text(Text),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    /// Also what isn't encoded as its column says: it fits no field, so that it is counted.
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
    /// The value of a cell; of a column that isn't declared, as the cell says. A point has two cells.
    pub(crate) fn of_cell(value: &Value, declared: Option<&ValueType>) -> Self {
        match (value, declared) {
            (Value::String(text), Some(ValueType::Json)) => of_json_text(text),
            (Value::String(text), _) => Self::Text(text.clone()),
            (Value::Integer(nanos), Some(ValueType::Time)) => Self::Time(*nanos),
            (Value::Integer(nanos), Some(ValueType::Duration)) => Self::Duration(*nanos),
            (Value::Integer(number), _) => Self::Integer(*number),
            (Value::Double(number), _) => Self::Double(*number),
            (Value::Boolean(truth), _) => Self::Boolean(*truth),
            (Value::Binary(bytes), Some(structured)) => {
                let read = columns::message_in(bytes).ok_or(Malformed);
                let read = read.and_then(|message| of_column_message(&message, structured));
                read.unwrap_or_else(|Malformed| Self::Bytes(bytes.clone()))
            }
            (Value::Binary(bytes), None) => Self::Bytes(bytes.clone()),
        }
    }

    /// The value of a key column.
    pub(crate) fn of_key(value: &KeyValue) -> Self {
        match value {
            KeyValue::String(text) => Self::Text(text.clone()),
            KeyValue::Integer(number) => Self::Integer(*number),
            KeyValue::Binary(bytes) => Self::Bytes(bytes.clone()),
        }
    }

    fn of_json(json: Json) -> Option<Self> {
        Some(match json {
            // There is no null: what is absent is absent.
            Json::Null => return None,
            Json::Bool(truth) => Self::Boolean(truth),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Self::Integer(number),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text.into()),
            Json::Array(elements) => Self::List(elements.into_iter().filter_map(Self::of_json).collect()),
            Json::Object(members) => {
                let member = |(name, json): (String, Json)| Some((name.into(), Self::of_json(json)?));
                Self::Object(members.into_iter().filter_map(member).collect())
            }
        })
    }

    /// The value of an attribute.
    fn of_attribute(value: QueryValue) -> Self {
        match value {
            QueryValue::String(text) => Self::Text(text.into()),
            QueryValue::Integer(number) => Self::Integer(number),
            QueryValue::Double(number) => Self::Double(number),
            QueryValue::Boolean(truth) => Self::Boolean(truth),
            QueryValue::Bytes(bytes) => Self::Bytes(bytes.into()),
            QueryValue::Time(nanos) => Self::Time(nanos),
        }
    }

    /// As a search has it, whatever the type of its field. The values of a list have no place in another.
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

/// JSON of a column. Text that isn't JSON is no text of the column's: it fits no field.
fn of_json_text(text: &Text) -> ValueTree {
    match serde_json::from_str(text) {
        Ok(json) => ValueTree::of_json(json).unwrap_or_else(|| ValueTree::List(Vec::new())),
        Err(_) => ValueTree::Bytes(Bytes::copy_from_slice(text.as_bytes())),
    }
}

/// The message in a column of a structured type.
fn of_column_message(message: &Bytes, declared: &ValueType) -> Result<ValueTree, Malformed> {
    match declared {
        ValueType::Attributes => {
            let attributes = Attributes::decode(message)?.into_entries().into_iter();
            let attributes = attributes.map(|(name, value)| (name.into(), ValueTree::of_attribute(value)));
            Ok(ValueTree::Object(attributes.collect()))
        }
        ValueType::List(element) => {
            let values = protobuf::values(message)?.into_iter();
            let elements = values.filter(|(number, _)| *number == ELEMENTS);
            let elements = elements.map(|(_, value)| of_message_value(value, element));
            Ok(ValueTree::List(elements.collect::<Result<_, _>>()?))
        }
        ValueType::Message(members) => of_message(message, members),
        _ => Err(Malformed),
    }
}

fn of_message(message: &[u8], members: &[Member]) -> Result<ValueTree, Malformed> {
    let mut object: Vec<(Text, ValueTree)> = Vec::with_capacity(members.len());
    for (number, value) in protobuf::values(message)? {
        let Some(member) = members.iter().find(|member| u64::from(member.number) == number) else {
            continue;
        };
        let known = object.iter_mut().find(|(name, _)| *name == member.name);
        let value = match &member.value {
            ValueType::List(element) => {
                let value = of_message_value(value, element)?;
                if let Some((_, ValueTree::List(elements))) = known {
                    elements.push(value);
                    continue;
                }
                ValueTree::List(vec![value])
            }
            single => of_message_value(value, single)?,
        };
        match known {
            // The last one counts.
            Some((_, known)) => *known = value,
            None => object.push((member.name.as_str().into(), value)),
        }
    }
    Ok(ValueTree::Object(object))
}

fn of_message_value(value: protobuf::Value<'_>, declared: &ValueType) -> Result<ValueTree, Malformed> {
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
        (ValueType::Message(members), message) => of_message(message.bytes().ok_or(Malformed)?, members)?,
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
        let read = ValueTree::of_cell(&cell, Some(&ValueType::Json));
        let list = ValueTree::List(vec![ValueTree::Integer(1), ValueTree::Double(2.5), text("x")]);
        let inner = ValueTree::Object(vec![("d".into(), ValueTree::Boolean(true))]);
        assert_eq!(
            read,
            ValueTree::Object(vec![("a".into(), list), ("c".into(), inner)])
        );
        let broken = ValueTree::of_cell(&Value::from("{"), Some(&ValueType::Json));
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
            ValueTree::of_cell(&cell, Some(&declared)),
            ValueTree::List(vec![one, two])
        );
        let wrong = only_cell(Columns::new().message("tags", b"\x0a\x05abc"));
        let read = ValueTree::of_cell(&wrong, Some(&declared));
        assert!(matches!(read, ValueTree::Bytes(_)), "{read:?}");
        let strings = only_cell(Columns::new().strings("tags", &["a".to_owned(), "b".to_owned()]));
        let read = ValueTree::of_cell(&strings, Some(&ValueType::strings()));
        assert_eq!(read, ValueTree::List(vec![text("a"), text("b")]));
    }
}
