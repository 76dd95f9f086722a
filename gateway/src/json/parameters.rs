//! Variables of the path and parameters of the query as fields of a request, by the JSON mapping of protocol buffers.

use percent_encoding::percent_decode_str;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _, Value};
use serde_json::Value as Json;
use souk_chassis::status::StatusBuilder;
use tonic::Status;

use super::route::{BodyUse, Route, field_path};

pub(crate) const PARAMETERS_MAX: usize = 1024;

/// Deepest field that a parameter may name.
pub(crate) const PARAMETER_DEPTH_MAX: usize = 16;

/// Whether the JSON of a message is one string.
pub(crate) fn is_text(message: &MessageDescriptor) -> bool {
    matches!(
        message.full_name(),
        "google.protobuf.Timestamp" | "google.protobuf.Duration" | "google.protobuf.FieldMask"
    )
}

/// Sets the fields of `message` by the parameters of the query, then by the variables of the path, which win.
pub(crate) fn set_all(
    message: &mut DynamicMessage,
    route: &Route,
    variables: &[(String, String)],
    query: &str,
) -> Result<(), Status> {
    let mut given: Vec<(String, Vec<String>)> = Vec::new();
    for (count, part) in query.split('&').filter(|part| !part.is_empty()).enumerate() {
        if count >= PARAMETERS_MAX {
            let message = format!("the query has more than {PARAMETERS_MAX} parameters; send them in a body");
            let refusal = StatusBuilder::invalid_argument("TOO_MANY_PARAMETERS", message);
            return Err(refusal.metadata("limit", PARAMETERS_MAX).build());
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        match given.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => given.push((name, vec![value])),
        }
    }
    for (name, values) in &given {
        let fields = parameter(route, name)?;
        set(message, name, &fields, values)?;
    }
    for (name, value) in variables {
        let fields = field_path(&message.descriptor(), name).unwrap_or_default();
        set(message, name, &fields, std::slice::from_ref(value))?;
    }
    Ok(())
}

fn parameter(route: &Route, name: &str) -> Result<Vec<FieldDescriptor>, Status> {
    let unknown = |words: &str| {
        StatusBuilder::invalid_argument("PARAMETER_UNKNOWN", format!("parameter {name:?} {words}"))
            .metadata("parameter", name)
            .field_violation(name, words)
            .build()
    };
    if route.body == BodyUse::Whole {
        return Err(unknown("can't be: all fields of this call stand in the body"));
    }
    if name.split('.').count() > PARAMETER_DEPTH_MAX {
        return Err(unknown("is nested too deep for a parameter; send it in a body"));
    }
    let fields =
        field_path(&route.method.input(), name).ok_or_else(|| unknown("is no field of the request"))?;
    if let BodyUse::Field(body) = &route.body
        && fields.first() == Some(body)
    {
        return Err(unknown("belongs into the body"));
    }
    Ok(fields)
}

fn set(
    message: &mut DynamicMessage,
    name: &str,
    fields: &[FieldDescriptor],
    texts: &[String],
) -> Result<(), Status> {
    let Some((leaf, parents)) = fields.split_last() else {
        return Ok(());
    };
    let malformed = |words: &str| {
        StatusBuilder::invalid_argument("PARAMETER_MALFORMED", format!("parameter {name:?}: {words}"))
            .metadata("parameter", name)
            .field_violation(name, words)
            .build()
    };
    if leaf.is_map() {
        return Err(malformed("a map can't be a parameter; send it in a body"));
    }
    if let Kind::Message(kind) = leaf.kind()
        && !is_text(&kind)
    {
        let words = "is a message; name its fields, as in `center.latitude`";
        return Err(malformed(words));
    }
    let mut values = texts.iter().map(|text| json(leaf, text));
    let value = if leaf.is_list() {
        Json::Array(values.collect())
    } else if texts.len() > 1 {
        return Err(malformed("can be given once"));
    } else {
        values.next().unwrap_or(Json::Null)
    };
    let mut parent = message;
    for field in parents {
        match parent.get_field_mut(field) {
            Value::Message(next) => parent = next,
            _ => return Err(malformed("is no field of the request")),
        }
    }
    // The mapping knows messages: one with this field alone.
    let alone = Json::Object([(leaf.json_name().to_owned(), value)].into_iter().collect());
    let mut alone = DynamicMessage::deserialize(parent.descriptor(), alone)
        .map_err(|error| malformed(&error.to_string()))?;
    if let Some(value) = alone.take_field(leaf) {
        parent.set_field(leaf, value);
    }
    Ok(())
}

/// The JSON of a parameter: text, but where the mapping takes none.
fn json(field: &FieldDescriptor, text: &str) -> Json {
    let plain = || Json::String(text.to_owned());
    match field.kind() {
        Kind::Bool => text.parse().map_or_else(|_| plain(), Json::Bool),
        Kind::Enum(_) => text.parse::<i32>().map_or_else(|_| plain(), Json::from),
        // In a query masks are written as in the proto, `order_time`; JSON wants `orderTime`.
        Kind::Message(kind) if kind.full_name() == "google.protobuf.FieldMask" => {
            Json::String(camel_case(text))
        }
        _ => plain(),
    }
}

fn camel_case(text: &str) -> String {
    let mut parts = text.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut name, part| {
        let mut letters = part.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name + letters.as_str()
    })
}

/// A part of a query without its encoding.
fn decoded(text: &str) -> Result<String, Status> {
    let spaced = text.replace('+', " ");
    let plain = percent_decode_str(&spaced).decode_utf8();
    plain.map(|plain| plain.into_owned()).map_err(|_| {
        let message = "the query isn't UTF-8 with percent encoding";
        StatusBuilder::invalid_argument("QUERY_MALFORMED", message).build()
    })
}
