//! Messages and enums as JSON Schema.

use std::collections::BTreeMap;

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::Comments;
use super::rules::{self, Rule};
use super::text;

/// `object` without the members that are null.
pub(super) fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// Where a message is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageDirection {
    /// In a request: the rules of its fields apply.
    Request,
    /// In a response, whose fields may break rules that are newer than their rows.
    Response,
}

/// The schemas of well-known types with a JSON mapping of their own; only those that contracts use.
fn well_known(message: &MessageDescriptor) -> Option<Value> {
    Some(match message.full_name() {
        "google.protobuf.Timestamp" => json!({"type": "string", "format": "date-time"}),
        "google.protobuf.Duration" => json!({"type": "string", "pattern": text::DURATION}),
        "google.protobuf.FieldMask" => {
            json!({"type": "string", "description": "Names of fields, with commas between them."})
        }
        "google.protobuf.Any" => json!({
            "type": "object",
            "properties": {"@type": {"type": "string"}},
            "required": ["@type"],
            "additionalProperties": true,
        }),
        _ => return None,
    })
}

/// Collects the schemas that a document refers to.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    comments: &'a Comments,
    /// Schemas by their names.
    pub(super) done: BTreeMap<String, Value>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(comments: &'a Comments) -> Self {
        let done = BTreeMap::new();
        Self { comments, done }
    }

    /// A reference to the schema of `message`, or the schema itself of a well-known type. Messages with rules have two schemas: that of
    /// requests ends in `.Sent`.
    pub(super) fn message(&mut self, message: &MessageDescriptor, direction: MessageDirection) -> Value {
        if let Some(schema) = well_known(message) {
            return schema;
        }
        let (name, direction) = if direction == MessageDirection::Request && rules::constrain(message) {
            (format!("{}.Sent", message.full_name()), MessageDirection::Request)
        } else {
            (message.full_name().to_owned(), MessageDirection::Response)
        };
        if !self.done.contains_key(&name) {
            // Before its fields, which may refer to it.
            self.done.insert(name.clone(), Value::Null);
            let schema = self.object(message, direction);
            self.done.insert(name.clone(), schema);
        }
        reference(&name)
    }

    /// The schema of the message in `field` in an update: no member of it is required.
    pub(super) fn update(&mut self, field: &FieldDescriptor) -> Value {
        let Kind::Message(message) = field.kind() else {
            return self.field(field, MessageDirection::Request);
        };
        let mut schema = self.object(&message, MessageDirection::Request);
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("required");
        }
        schema
    }

    fn object(&mut self, message: &MessageDescriptor, direction: MessageDirection) -> Value {
        let properties: Map<String, Value> = message
            .fields()
            .map(|field| (field.json_name().to_owned(), self.field(&field, direction)))
            .collect();
        let about = self.comments.of(&message.parent_file(), message.path());
        let mut about = about.to_owned();
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        for choice in message.oneofs().filter(|choice| !choice.is_synthetic()) {
            let names = choice.fields().map(|field| field.json_name().to_owned());
            let names: Vec<String> = names.collect();
            about = format!("{about}\nAt most one of: {}.", names.join(", "));
            let required = direction == MessageDirection::Request && rules::one_required(&choice);
            if names.len() == message.fields().len() {
                schema["maxProperties"] = json!(1);
                if required {
                    schema["minProperties"] = json!(1);
                }
            } else if required {
                schema["oneOf"] = names.iter().map(|name| json!({"required": [name]})).collect();
            }
        }
        let required: Vec<String> = message
            .fields()
            .filter(|field| direction == MessageDirection::Request && rules::rule(field).required)
            .map(|field| field.json_name().to_owned())
            .collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema["description"] = json!(about.trim());
        schema
    }

    /// The schema of a field, with its description.
    pub(super) fn field(&mut self, field: &FieldDescriptor, direction: MessageDirection) -> Value {
        let rule = match direction {
            MessageDirection::Request => rules::rule(field),
            MessageDirection::Response => Rule::default(),
        };
        let mut schema = if field.is_map() {
            let value = match field.kind() {
                Kind::Message(entry) => {
                    self.single(&entry.map_entry_value_field(), &Rule::default(), direction)
                }
                _ => json!({}),
            };
            let name = |most| json!({"minLength": 1, "maxLength": most, "pattern": text::PRINTABLE});
            without_nulls(json!({
                "type": "object",
                "additionalProperties": value,
                "maxProperties": rule.items_max,
                "propertyNames": rule.name_chars_max.map(name),
            }))
        } else if field.is_list() {
            let element = Rule {
                required: false,
                ..rule.clone()
            };
            without_nulls(json!({
                "type": "array",
                "items": self.single(field, &element, direction),
                "minItems": rule.required.then_some(1),
                "maxItems": rule.items_max,
                "uniqueItems": rule.unique.then_some(true),
            }))
        } else {
            self.single(field, &rule, direction)
        };
        if rule.output_only {
            schema["readOnly"] = json!(true);
        }
        let about = self.comments.of(&field.parent_file(), field.path());
        if !about.is_empty() {
            schema["description"] = json!(about);
        }
        schema
    }

    fn single(&mut self, field: &FieldDescriptor, rule: &Rule, direction: MessageDirection) -> Value {
        let mut schema = without_nulls(match field.kind() {
            Kind::Double | Kind::Float => json!({
                "type": "number",
                "format": "double",
                "minimum": rule.minimum.map(shown),
                "exclusiveMinimum": rule.above.map(shown),
                "maximum": rule.maximum.map(shown),
                "exclusiveMaximum": rule.below.map(shown),
            }),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!({
                "type": "integer",
                "format": "int32",
                "minimum": shown(rule.minimum.unwrap_or(i32::MIN.into())),
                "maximum": shown(rule.maximum.unwrap_or(i32::MAX.into())),
            }),
            Kind::Uint32 | Kind::Fixed32 => {
                json!({"type": "integer", "format": "uint32", "minimum": 0, "maximum": u32::MAX})
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                let pattern = text::integer(rule.minimum, i64::MAX.unsigned_abs());
                json!({"type": "string", "format": "int64", "pattern": pattern})
            }
            Kind::Uint64 | Kind::Fixed64 => {
                let pattern = text::integer(Some(0.0), u64::MAX);
                json!({"type": "string", "format": "uint64", "pattern": pattern})
            }
            Kind::Bool => json!({"type": "boolean"}),
            Kind::String => string(rule),
            Kind::Bytes => json!({"type": "string", "contentEncoding": "base64", "pattern": text::BASE64}),
            Kind::Message(message) => self.message(&message, direction),
            Kind::Enum(kind) => self.enumeration(&kind),
        });
        if let (true, Kind::Enum(kind)) = (rule.required, field.kind()) {
            schema["not"] = json!({"const": kind.default_value().name()});
        }
        schema
    }

    fn enumeration(&mut self, kind: &EnumDescriptor) -> Value {
        let name = kind.full_name();
        if !self.done.contains_key(name) {
            let file = kind.parent_file();
            let mut about = self.comments.of(&file, kind.path()).to_owned();
            for value in kind.values() {
                let words = self.comments.of(&file, value.path()).replace('\n', " ");
                about = format!("{about}\n- {}: {words}", value.name());
            }
            let names: Vec<String> = kind.values().map(|value| value.name().to_owned()).collect();
            let schema = json!({"type": "string", "enum": names, "description": about.trim()});
            self.done.insert(name.to_owned(), schema);
        }
        reference(name)
    }
}

fn string(rule: &Rule) -> Value {
    let printable = rule.printable.then_some(text::PRINTABLE);
    json!({
        "type": "string",
        "minLength": rule.chars_min.max(rule.required.then_some(1)),
        "maxLength": rule.chars_max,
        "pattern": rule.pattern.as_deref().or(printable),
    })
}

/// A number, without a fraction if it is whole and exact as an integer of a double.
fn shown(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => json!(number as i64),
        false => json!(number),
    }
}

/// The schema of a mask that names what changes of the message in `changed`, if `field` is one.
pub(super) fn mask(field: &FieldDescriptor, changed: &FieldDescriptor) -> Option<Value> {
    match (field.kind(), changed.kind()) {
        (Kind::Message(mask), Kind::Message(message)) if mask.full_name() == "google.protobuf.FieldMask" => {
            let names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
            Some(json!({"type": "string", "pattern": text::names(&names)}))
        }
        _ => None,
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
