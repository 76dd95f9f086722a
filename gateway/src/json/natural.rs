//! Values written plainly: `5` for `{"int_value": "5"}`, of messages with the option `souk.rule.v1.natural`. Tried only for JSON that
//! isn't in protobuf's mapping.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};
use tonic::Status;

use super::decoded::{self, OBJECT};
use crate::contract::option;

/// The option of a message of one value that may be written without saying of which type it is.
const NATURAL: &str = "souk.rule.v1.natural";

/// Above the 64-bit integers; no larger number has a fraction.
const WHOLE_END: f64 = 9_223_372_036_854_775_808.0;

/// What JSON is in which values may be written plainly.
pub(super) enum PlainJson {
    Message(DynamicMessage),
    /// No message; of plain values, if there are any, protobuf's reader takes the others for that.
    Mistaken(Option<serde_json::Error>),
    /// Not even JSON.
    NoJson(serde_json::Error),
}

/// Reads a message in which values are written plainly. Refuses (DECODED_TOO_LARGE) what takes too much memory.
pub(super) fn read(kind: &MessageDescriptor, json: &[u8]) -> Result<PlainJson, Status> {
    let mut value = match serde_json::from_slice(&whole_zeros(json)) {
        Ok(value) => value,
        Err(error) => return Ok(PlainJson::NoJson(error)),
    };
    let mut tags = Tags {
        // As a tree, and as a message.
        bytes: 2 * decoded::bytes(json),
        any: false,
    };
    tags.message(kind, &mut value)?;
    if !tags.any {
        return Ok(PlainJson::Mistaken(None));
    }
    Ok(match DynamicMessage::deserialize(kind.clone(), value) {
        Ok(message) => PlainJson::Message(message),
        Err(error) => PlainJson::Mistaken(Some(error)),
    })
}

/// Whether a message of `kind` may be written plainly.
pub(super) fn is_natural(kind: &MessageDescriptor) -> bool {
    option(&kind.options(), NATURAL).is_some_and(|natural| natural.as_bool() == Some(true))
}

/// The field of this name, in JSON or in the contract.
pub(super) fn named(kind: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let field = kind.get_field_by_json_name(name);
    field.or_else(|| kind.get_field_by_name(name))
}

/// The field of a message that a value is of which is written plainly.
pub(super) fn field(kind: &MessageDescriptor, value: &Value) -> Option<FieldDescriptor> {
    let wanted = match value {
        Value::String(_) => Kind::String,
        Value::Bool(_) => Kind::Bool,
        Value::Number(number) if number.is_i64() => Kind::Int64,
        // What has no fraction is meant as a whole number, and this is none of 64 bits.
        Value::Number(number) if number.as_f64().is_some_and(|number| number.abs() >= WHOLE_END) => {
            return None;
        }
        Value::Number(_) => Kind::Double,
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    kind.fields().find(|field| field.kind() == wanted)
}

/// The same JSON with `0` for `-0`, which has no fraction, and is read as a floating point number.
pub(super) fn whole_zeros(json: &[u8]) -> Vec<u8> {
    let mut whole = json.to_vec();
    let (mut is_text, mut is_escaped, mut before) = (false, false, b' ');
    for (place, byte) in json.iter().enumerate() {
        match (is_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_text = !is_text,
            (false, b'-') if !matches!(before, b'e' | b'E') => {
                let behind = json.get(place + 1..).unwrap_or_default();
                let is_zero = matches!(
                    behind,
                    [b'0'] | [b'0', b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n', ..]
                );
                if let (true, Some(sign)) = (is_zero, whole.get_mut(place)) {
                    *sign = b' ';
                }
            }
            _ => {}
        }
        before = *byte;
    }
    whole
}

/// Says of plain values which field each is.
struct Tags {
    /// What all of it takes, with a message of its own for each value.
    bytes: usize,
    /// Was there one?
    any: bool,
}

impl Tags {
    /// Says of each plain value in what is to be a message of `kind` which field it is.
    fn message(&mut self, kind: &MessageDescriptor, value: &mut Value) -> Result<(), Status> {
        if let Value::Object(object) = value {
            for (name, value) in object {
                if let Some(field) = named(kind, name) {
                    self.field(&field, value)?;
                }
            }
        } else if let Some(field) = field(kind, value).filter(|_| is_natural(kind)) {
            self.any = true;
            self.bytes += OBJECT;
            decoded::check_bytes(self.bytes)?;
            let tagged = Map::from_iter([(field.name().to_owned(), value.take())]);
            *value = Value::Object(tagged);
        }
        Ok(())
    }

    fn field(&mut self, field: &FieldDescriptor, value: &mut Value) -> Result<(), Status> {
        let Kind::Message(kind) = field.kind() else {
            return Ok(());
        };
        match value {
            Value::Array(items) if field.is_list() => {
                items.iter_mut().try_for_each(|item| self.message(&kind, item))
            }
            Value::Object(entries) if field.is_map() => match kind.map_entry_value_field().kind() {
                Kind::Message(kind) => entries
                    .values_mut()
                    .try_for_each(|value| self.message(&kind, value)),
                _ => Ok(()),
            },
            value => self.message(&kind, value),
        }
    }
}
