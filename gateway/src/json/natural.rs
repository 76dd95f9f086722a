//! Values written plainly: `5` for `{"int_value": "5"}`, of messages that say so by the option `souk.rule.v1.natural`.
//!
//! Only what can't be read as it is is looked at: whoever writes messages as protobuf's JSON has them pays nothing.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};
use souk_chassis::layers::messages::{DECODED_BYTES_MAX, decoded_too_large};
use tonic::Status;

use super::decoded::OBJECT;

/// The option of a message of one value that may be written without saying of which type it is.
const NATURAL: &str = "souk.rule.v1.natural";

/// Above the 64-bit integers; no larger number has a fraction.
const WHOLE_END: f64 = 9_223_372_036_854_775_808.0;

/// Most bytes that plain values take once they are messages, beside what the body was charged with as it stood.
const TAGGED_BYTES_MAX: usize = 2 * DECODED_BYTES_MAX;

/// Reads a message in which values are written plainly; `None` when that doesn't make it one.
///
/// # Errors
/// RESOURCE_EXHAUSTED, DECODED_TOO_LARGE.
pub(super) fn read(kind: &MessageDescriptor, json: &[u8]) -> Result<Option<DynamicMessage>, Status> {
    let Ok(mut value) = serde_json::from_slice(&whole_zeros(json)) else {
        return Ok(None);
    };
    let mut tagged = Tagged::default();
    tagged.message(kind, &mut value)?;
    let read = || DynamicMessage::deserialize(kind.clone(), value).ok();
    Ok((tagged.bytes > 0).then(read).flatten())
}

/// The same JSON with `0` for `-0`, which has no fraction, and is read as a floating point number.
fn whole_zeros(json: &[u8]) -> Vec<u8> {
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

/// What plain values take once it is said which field each is: a message of its own.
#[derive(Debug, Default)]
struct Tagged {
    bytes: usize,
}

impl Tagged {
    /// Says of each plain value in what is to be a message of `kind` which field it is.
    fn message(&mut self, kind: &MessageDescriptor, value: &mut Value) -> Result<(), Status> {
        if let Value::Object(object) = value {
            for (name, value) in object {
                let field = kind.get_field_by_json_name(name);
                if let Some(field) = field.or_else(|| kind.get_field_by_name(name)) {
                    self.field(&field, value)?;
                }
            }
        } else if let Some(field) = plain(kind, value) {
            self.bytes += OBJECT;
            if self.bytes > TAGGED_BYTES_MAX {
                return Err(decoded_too_large(TAGGED_BYTES_MAX));
            }
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

/// The field that a plain value is of a message.
fn plain(kind: &MessageDescriptor, value: &Value) -> Option<FieldDescriptor> {
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
    let option = kind.parent_pool().get_extension_by_name(NATURAL)?;
    let options = kind.options();
    let is_natural = options.has_extension(&option) && options.get_extension(&option).as_bool() == Some(true);
    let mut fields = kind.fields();
    is_natural
        .then(|| fields.find(|field| field.kind() == wanted))
        .flatten()
}
