//! Values written plainly: `5` for `{"int_value": "5"}`, of messages that say so by the option `souk.rule.v1.natural`.
//!
//! Only what can't be read as it is is looked at: whoever writes messages as protobuf's JSON has them pays nothing.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

/// The option of a message of one value that may be written without saying of which type it is.
const NATURAL: &str = "souk.rule.v1.natural";

/// Reads a message in which values are written plainly; `None` when that doesn't make it one.
pub(super) fn read(kind: &MessageDescriptor, json: &[u8]) -> Option<DynamicMessage> {
    let mut value: Value = serde_json::from_slice(json).ok()?;
    let mut changed = false;
    tag(kind, &mut value, &mut changed);
    let read = || DynamicMessage::deserialize(kind.clone(), value).ok();
    changed.then(read).flatten()
}

/// Says of each plain value in what is to be a message of `kind` which field it is.
fn tag(kind: &MessageDescriptor, value: &mut Value, changed: &mut bool) {
    if let Value::Object(object) = value {
        for (name, value) in object {
            let field = kind.get_field_by_json_name(name);
            if let Some(field) = field.or_else(|| kind.get_field_by_name(name)) {
                tag_field(&field, value, changed);
            }
        }
    } else if let Some(field) = plain(kind, value) {
        let tagged = Map::from_iter([(field.name().to_owned(), value.take())]);
        *value = Value::Object(tagged);
        *changed = true;
    }
}

fn tag_field(field: &FieldDescriptor, value: &mut Value, changed: &mut bool) {
    let Kind::Message(kind) = field.kind() else {
        return;
    };
    match value {
        Value::Array(items) if field.is_list() => items.iter_mut().for_each(|item| tag(&kind, item, changed)),
        Value::Object(entries) if field.is_map() => {
            if let Kind::Message(kind) = kind.map_entry_value_field().kind() {
                entries.values_mut().for_each(|value| tag(&kind, value, changed));
            }
        }
        value => tag(&kind, value, changed),
    }
}

/// The field that a plain value is of a message.
fn plain(kind: &MessageDescriptor, value: &Value) -> Option<FieldDescriptor> {
    let wanted = match value {
        Value::String(_) => Kind::String,
        Value::Bool(_) => Kind::Bool,
        Value::Number(number) if number.is_i64() => Kind::Int64,
        Value::Number(_) => Kind::Double,
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let option = kind.parent_pool().get_extension_by_name(NATURAL)?;
    let options = kind.options();
    let is_natural = options.has_extension(&option) && options.get_extension(&option).as_bool() == Some(true);
    let mut fields = kind.fields();
    is_natural
        .then(|| fields.find(|field| field.kind() == wanted))
        .flatten()
}
