//! Names the place in JSON that keeps it from being a message. For messages with values that are written plainly: the reader of protobuf's
//! mapping stops at the first of these, whatever is wrong, and says that it expected a map.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::natural;

/// Most fields that the words of a mistake list.
const FIELDS_TOLD_MAX: usize = 12;

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Mistake {
    /// The path of the field, as `.columns["size"]`; empty is the message itself.
    path: String,
    words: String,
    /// Whether it is of a message that may be written plainly.
    pub(super) is_natural: bool,
}

impl Mistake {
    fn new(words: String) -> Self {
        Self {
            path: String::new(),
            words,
            is_natural: false,
        }
    }

    /// The same, as seen from what has it in this place.
    fn within(mut self, place: &str) -> Self {
        self.path.insert_str(0, place);
        self
    }

    /// The path of the field.
    pub(super) fn field(&self) -> &str {
        self.path.strip_prefix('.').unwrap_or(&self.path)
    }

    /// What is wrong, with the place.
    pub(super) fn told(&self) -> String {
        match self.field() {
            "" => self.words.clone(),
            field => format!("{field}: {}", self.words),
        }
    }
}

/// Finds the first mistake in what is to be a message of `kind`.
pub(super) fn find(kind: &MessageDescriptor, json: &[u8]) -> Option<Mistake> {
    let value = serde_json::from_slice(&natural::whole_zeros(json)).ok()?;
    in_message(kind, &value)
}

fn in_message(kind: &MessageDescriptor, value: &Value) -> Option<Mistake> {
    let is_natural = natural::is_natural(kind);
    let Value::Object(object) = value else {
        return match is_natural {
            true => natural::field(kind, value).is_none().then(|| Mistake {
                is_natural: true,
                ..Mistake::new(no_value(value))
            }),
            false => {
                let words = format!("{} isn't an object, as {} is", word(value), kind.full_name());
                Some(Mistake::new(words))
            }
        };
    };
    let in_a_field = object
        .iter()
        .find_map(|(name, value)| match natural::named(kind, name) {
            Some(field) => {
                let mistake = in_field(kind, &field, name, value)?;
                Some(mistake.within(&format!(".{name}")))
            }
            None => Some(Mistake::new(unknown(kind, name))),
        });
    // The fields together: more than one of a value, for example.
    in_a_field.or_else(|| is_natural.then(|| refusal(kind, value.clone())).flatten())
}

/// Of the field of this name in a message of `kind`.
fn in_field(kind: &MessageDescriptor, field: &FieldDescriptor, name: &str, value: &Value) -> Option<Mistake> {
    let Some(of) = message_of(field) else {
        // What protobuf maps to something else than an object, by its own reader.
        let alone = Map::from_iter([(name.to_owned(), value.clone())]);
        return refusal(kind, Value::Object(alone));
    };
    match value {
        // As if it weren't there.
        Value::Null => None,
        Value::Array(items) if field.is_list() => items.iter().enumerate().find_map(|(nth, item)| {
            let mistake = in_message(&of, item)?;
            Some(mistake.within(&format!("[{nth}]")))
        }),
        Value::Object(entries) if field.is_map() => entries.iter().find_map(|(key, value)| {
            let mistake = in_message(&of, value)?;
            Some(mistake.within(&format!("[{key:?}]")))
        }),
        value if field.is_list() => Some(Mistake::new(format!("{} isn't a list", word(value)))),
        value if field.is_map() => Some(Mistake::new(format!("{} isn't an object", word(value)))),
        value => in_message(&of, value),
    }
}
/// The messages that a field has, if they are written as objects or plainly.
fn message_of(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let kind = match field.kind() {
        Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
        kind => kind,
    };
    let Kind::Message(kind) = kind else { return None };
    (!kind.full_name().starts_with("google.protobuf.")).then_some(kind)
}

/// What the reader of protobuf's mapping says of `value`.
fn refusal(kind: &MessageDescriptor, value: Value) -> Option<Mistake> {
    let read = DynamicMessage::deserialize(kind.clone(), value);
    read.err()
        .map(|error| Mistake::new(super::request::quoted(&error.to_string())))
}

fn unknown(kind: &MessageDescriptor, name: &str) -> String {
    let fields: Vec<_> = kind.fields().map(|field| format!("{:?}", field.name())).collect();
    match fields.len() {
        0..=FIELDS_TOLD_MAX => format!(
            "there is no field {name:?}; {} has {}",
            kind.full_name(),
            fields.join(", ")
        ),
        _ => format!("there is no field {name:?} in {}", kind.full_name()),
    }
}

/// Why what isn't an object isn't a value either.
fn no_value(value: &Value) -> String {
    let advice = match value {
        Value::Null => "leave out what has no value",
        Value::Number(_) => {
            "a whole one has 64 bits; write a larger one as {\"double_value\":1e20} or as a text"
        }
        _ => {
            "write a text, a number, true or false, JSON as a text, or another type as {\"bytes_value\":\"AA==\"}"
        }
    };
    format!("{} isn't a value; {advice}", word(value))
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "this number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
