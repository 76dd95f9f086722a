//! Messages and enums as JSON Schema.

use std::collections::BTreeMap;

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::comments::Comments;

/// Messages that have a JSON of their own.
fn well_known(message: &MessageDescriptor) -> Option<Value> {
    Some(match message.full_name() {
        "google.protobuf.Timestamp" => json!({"type": "string", "format": "date-time"}),
        "google.protobuf.Duration" => json!({"type": "string", "pattern": r"^-?\d+(\.\d+)?s$"}),
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

/// Is the JSON of `message` one text?
pub(super) fn is_text(message: &MessageDescriptor) -> bool {
    well_known(message).is_some_and(|schema| schema.get("type") == Some(&json!("string")))
}

/// The schemas that a document refers to, each once.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    comments: &'a Comments,
    /// By full name.
    done: BTreeMap<String, Value>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(comments: &'a Comments) -> Self {
        Self {
            comments,
            done: BTreeMap::new(),
        }
    }

    /// All of them.
    pub(super) fn finish(self) -> Map<String, Value> {
        self.done.into_iter().collect()
    }

    /// A reference to the schema of `message`, or the schema itself where it is one of the well-known.
    pub(super) fn message(&mut self, message: &MessageDescriptor) -> Value {
        if let Some(schema) = well_known(message) {
            return schema;
        }
        let name = message.full_name();
        if !self.done.contains_key(name) {
            // In its place before its fields are looked at: they may refer to it.
            self.done.insert(name.to_owned(), Value::Null);
            let schema = self.object(message);
            self.done.insert(name.to_owned(), schema);
        }
        reference(name)
    }

    fn object(&mut self, message: &MessageDescriptor) -> Value {
        let properties: Map<String, Value> = message
            .fields()
            .map(|field| (field.json_name().to_owned(), self.field(&field)))
            .collect();
        let mut about = self
            .comments
            .of(&message.parent_file(), message.path())
            .to_owned();
        for choice in message.oneofs().filter(|choice| !choice.is_synthetic()) {
            let names: Vec<String> = choice
                .fields()
                .map(|field| field.json_name().to_owned())
                .collect();
            about = format!("{about}\nAt most one of: {}.", names.join(", "));
        }
        json!({
            "type": "object",
            "description": about.trim(),
            "properties": properties,
            "additionalProperties": false,
        })
    }

    /// The schema of a field, with its description.
    pub(super) fn field(&mut self, field: &FieldDescriptor) -> Value {
        let mut schema = if field.is_map() {
            let value = match field.kind() {
                Kind::Message(entry) => self.single(&entry.map_entry_value_field()),
                _ => json!({}),
            };
            json!({"type": "object", "additionalProperties": value})
        } else if field.is_list() {
            json!({"type": "array", "items": self.single(field)})
        } else {
            self.single(field)
        };
        let about = self.comments.of(&field.parent_file(), field.path());
        if let Value::Object(schema) = &mut schema
            && !about.is_empty()
        {
            schema.insert("description".to_owned(), json!(about));
        }
        schema
    }

    /// The schema of one value of a field.
    fn single(&mut self, field: &FieldDescriptor) -> Value {
        match field.kind() {
            Kind::Double | Kind::Float => json!({"type": "number", "format": "double"}),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!({"type": "integer", "format": "int32"}),
            Kind::Uint32 | Kind::Fixed32 => json!({"type": "integer", "format": "uint32", "minimum": 0}),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!({"type": "string", "format": "int64"}),
            Kind::Uint64 | Kind::Fixed64 => json!({"type": "string", "format": "uint64"}),
            Kind::Bool => json!({"type": "boolean"}),
            Kind::String => json!({"type": "string"}),
            Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Kind::Message(message) => self.message(&message),
            Kind::Enum(kind) => self.names(&kind),
        }
    }

    fn names(&mut self, kind: &EnumDescriptor) -> Value {
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

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
