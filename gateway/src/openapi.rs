//! The OpenAPI 3.1 document of the calls by HTTP and JSON, made of the descriptors; their comments are its descriptions.
//!
//! - `schema`: messages and enums as JSON Schema, by the JSON mapping of protocol buffers.
//! - `rules`, `text`: what fields take, by the rules beside them; the patterns of texts.

use std::collections::BTreeMap;

use http::Method;
use prost_reflect::{
    DescriptorPool, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, ServiceDescriptor,
};
use serde_json::{Value, json};

use crate::json::{BodyUse, Route, is_text, template};

mod rules;
mod schema;
mod text;

use schema::{MessageDirection, Schemas, without_nulls};

/// The message that errors are.
const ERROR: &str = "google.rpc.Status";

/// What the document says about all calls.
const ABOUT: &str = "Searchable data for a marketplace: orders, shops on the map, media. Each call is the gRPC call of \
    the same name; requests and answers are in the JSON mapping of protocol buffers: fields in camelCase or as in the \
    .proto files, 64-bit integers as strings, enums by name. A time limit is given by the header `grpc-timeout`, as in \
    `500m`; streams answer with server-sent events and go on after `Last-Event-ID`.";

/// Comments by file and by place in it, as `SourceCodeInfo` numbers places.
#[derive(Debug)]
struct Comments(BTreeMap<String, BTreeMap<Vec<i32>, String>>);

impl Comments {
    /// All comments that stand in front of something.
    fn read(pool: &DescriptorPool) -> Self {
        let file = |file: FileDescriptor| {
            let places = file.file_descriptor_proto().source_code_info.iter();
            let places = places.flat_map(|info| &info.location).filter_map(|place| {
                let lines = place.leading_comments.as_deref()?.lines().map(str::trim);
                let text = lines.collect::<Vec<_>>().join("\n");
                Some((place.path.clone(), text.trim().to_owned()))
            });
            (file.name().to_owned(), places.collect())
        };
        Self(pool.files().map(file).collect())
    }

    /// The comment on what is at `path` of `file`; empty without one.
    fn of(&self, file: &FileDescriptor, path: &[i32]) -> &str {
        let comment = self.0.get(file.name()).and_then(|places| places.get(path));
        comment.map_or("", String::as_str)
    }
}

pub(crate) fn document(pool: &DescriptorPool, routes: &[Route]) -> Value {
    let comments = Comments::read(pool);
    let mut schemas = Schemas::new(&comments);
    let mut paths = json!({});
    let mut services: Vec<ServiceDescriptor> = Vec::new();
    let mut ways: BTreeMap<&str, usize> = BTreeMap::new();
    for route in routes {
        let service = route.method.parent_service();
        if !services.contains(service) {
            services.push(service.clone());
        }
        let before = ways.entry(route.method.full_name()).or_default();
        let mut id = format!("{}_{}", service.name(), route.method.name());
        // Further ways to call the same RPC have names of their own.
        if *before > 0 {
            id = format!("{id}_{before}");
        }
        *before += 1;
        let verb = route.http.as_str().to_ascii_lowercase();
        paths[route.template.open_api()][verb] = operation(route, &id, &comments, &mut schemas);
    }
    let error = match pool.get_message_by_name(ERROR) {
        Some(message) => schemas.message(&message, MessageDirection::Response),
        None => json!({"type": "object"}),
    };
    let tags: Vec<Value> = services
        .iter()
        .map(|service| {
            let about = comments.of(&service.parent_file(), service.path());
            json!({"name": service.full_name(), "description": about})
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Souk", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.done,
            "responses": {
                "Error": {
                    "description": "The call failed: its code, what was wrong, and details (google.rpc.Status).",
                    "content": {"application/json": {"schema": error}},
                },
            },
        },
    })
}

fn operation(route: &Route, id: &str, comments: &Comments, schemas: &mut Schemas<'_>) -> Value {
    let method = &route.method;
    let about = comments.of(&method.parent_file(), method.path());
    let lines = about.lines().collect::<Vec<_>>().join(" ");
    let summary = lines.split_inclusive(". ").next().unwrap_or_default().trim_end();
    let parameters = parameters(route, schemas);
    let body = match &route.body {
        BodyUse::None => None,
        BodyUse::Whole => Some(schemas.message(&method.input(), MessageDirection::Request)),
        BodyUse::Field(field) if route.http == Method::PATCH => Some(schemas.update(field)),
        BodyUse::Field(field) => Some(schemas.field(field, MessageDirection::Request)),
    };
    let body =
        body.map(|schema| json!({"required": true, "content": {"application/json": {"schema": schema}}}));
    let output = schemas.message(&method.output(), MessageDirection::Response);
    let content = if route.streams() {
        json!({"text/event-stream": {"schema": {
            "type": "object",
            "description": "One of the events: its `data` is a message; the last is an `end` or an `error`.",
            "properties": {
                "id": {"type": "string", "description": "What `Last-Event-ID` goes on after."},
                "event": {"type": "string", "enum": ["message", "end", "error"]},
                "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": output},
            },
            "required": ["data"],
        }}})
    } else {
        json!({"application/json": {"schema": output}})
    };
    let answered = comments.of(&method.output().parent_file(), method.output().path());
    without_nulls(json!({
        "operationId": id,
        "tags": [method.parent_service().full_name()],
        "summary": summary,
        "description": about,
        "parameters": (!parameters.is_empty()).then_some(parameters),
        "requestBody": body,
        "responses": {
            "200": {"description": answered, "content": content},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }))
}

/// The fields of the path, and those of the query but for messages that hold messages: their fields can be named, too,
/// but there is no end to them.
fn parameters(route: &Route, schemas: &mut Schemas<'_>) -> Vec<Value> {
    let input = route.method.input();
    let in_path: Vec<&str> = route.template.fields().collect();
    let mut parameters = Vec::new();
    for name in &in_path {
        if let Some(leaf) = crate::json::field_path(&input, name).and_then(|fields| fields.last().cloned()) {
            parameters.push(parameter(template::plain(name), "path", true, &leaf, schemas));
        }
    }
    if route.body == BodyUse::Whole {
        return parameters;
    }
    for field in input.fields() {
        let is_body = matches!(&route.body, BodyUse::Field(body) if *body == field);
        if is_body || in_path.contains(&field.name()) {
            continue;
        }
        let required = rules::rule(&field).required;
        match nested(&field) {
            None if is_single(&field) => {
                let mut parameter = parameter(field.name(), "query", required, &field, schemas);
                if let BodyUse::Field(changed) = &route.body
                    && let Some(names) = schema::mask(&field, changed)
                    && let Some(schema) = parameter.get_mut("schema")
                {
                    *schema = names;
                }
                parameters.push(parameter);
            }
            None => {}
            Some(message) => {
                for inner in message.fields().filter(is_single) {
                    let name = format!("{}.{}", field.name(), inner.name());
                    parameters.push(parameter(&name, "query", required, &inner, schemas));
                }
            }
        }
    }
    parameters
}

/// The message of a field of which all fields are values.
fn nested(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    match field.kind() {
        Kind::Message(message) if !field.is_list() && !field.is_map() && !is_text(&message) => {
            let of_values = message.fields().all(|inner| is_single(&inner));
            of_values.then_some(message)
        }
        _ => None,
    }
}

/// Can it be one parameter?
fn is_single(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(message) => is_text(&message),
        _ => !field.is_map(),
    }
}

fn parameter(
    name: &str,
    place: &str,
    required: bool,
    field: &FieldDescriptor,
    schemas: &mut Schemas<'_>,
) -> Value {
    let mut schema = schemas.field(field, MessageDirection::Request);
    let members = schema.as_object_mut();
    let about = members.and_then(|members| members.remove("description"));
    json!({
        "name": name,
        "in": place,
        "required": required,
        "description": about.unwrap_or_default(),
        "schema": schema,
    })
}

#[cfg(test)]
mod tests;
