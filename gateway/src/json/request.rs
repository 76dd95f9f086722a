//! The request of a call: JSON read, checked and made a message.

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use prost::Message as _;
use prost_reflect::{DynamicMessage, Value};
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tonic::{Code, Status};

use super::route::{BodyUse, Route};
use super::{decoded, natural, parameters};
use crate::one_message;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// With a content type of JSON.
    Json(Option<Encoding>),
    /// Without any: then there must be no body.
    Untyped,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Form(Sent);

impl Form {
    /// Reads the headers.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for other bodies than JSON, plain or with gzip or zstd.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Status> {
        let Some(content_type) = headers.get(CONTENT_TYPE) else {
            return Ok(Self(Sent::Untyped));
        };
        if !is_json(content_type) {
            let given = String::from_utf8_lossy(content_type.as_bytes()).into_owned();
            let message = format!("a body of type {given:?} can't be read; send application/json");
            return Err(
                StatusBuilder::invalid_argument("CONTENT_TYPE_UNSUPPORTED", message)
                    .metadata("content_type", given)
                    .build(),
            );
        }
        let name = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let encoding = Encoding::named(Code::InvalidArgument, "a body", name)?;
        Ok(Self(Sent::Json(encoding)))
    }
}

/// `application/json`, with or without parameters.
pub(crate) fn is_json(content_type: &HeaderValue) -> bool {
    let name = content_type
        .as_bytes()
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Where a call goes and what its address says.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) route: Arc<Route>,
    /// Of the path, by field.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) form: Form,
    /// Most bytes of the body, before and after it is unpacked.
    pub(crate) bytes_max: usize,
}

impl Call {
    /// The message that `body` and the address are.
    pub(super) fn message(&self, body: &[u8]) -> Result<DynamicMessage, Status> {
        let input = self.route.method.input();
        let unpacked;
        let json = match self.form.0 {
            _ if body.is_empty() => body,
            Sent::Untyped => {
                let message = "the body has no content type; send it as application/json";
                return Err(StatusBuilder::invalid_argument("CONTENT_TYPE_UNSUPPORTED", message).build());
            }
            Sent::Json(None) => body,
            Sent::Json(Some(encoding)) => {
                unpacked = encoding.unpack(body, self.bytes_max, decoded::check)?;
                unpacked.as_ref()
            }
        };
        let mut message = match (&self.route.body, json.is_empty()) {
            (_, true) => DynamicMessage::new(input),
            (BodyUse::Whole, false) => parse(input, json)?,
            (BodyUse::Field(field), false) => {
                let mut message = DynamicMessage::new(input);
                if let prost_reflect::Kind::Message(kind) = field.kind() {
                    message.set_field(field, Value::Message(parse(kind, json)?));
                }
                message
            }
            (BodyUse::None, false) => {
                let words = "this call has no body; send its fields as parameters of the query";
                return Err(StatusBuilder::invalid_argument("BODY_UNEXPECTED", words).build());
            }
        };
        parameters::set_all(&mut message, &self.route, &self.variables, &self.query)?;
        Ok(message)
    }
}

impl one_message::Read for Call {
    fn is_compressed(&self) -> bool {
        matches!(self.form.0, Sent::Json(Some(_)))
    }

    fn read(&self, body: &[u8]) -> Result<Vec<u8>, Status> {
        Ok(self.message(body)?.encode_to_vec())
    }
}

/// Reads a message, if it doesn't take too much memory; fields that it doesn't have are errors. serde_json ends at 128 levels.
pub(crate) fn parse(kind: prost_reflect::MessageDescriptor, json: &[u8]) -> Result<DynamicMessage, Status> {
    decoded::check(json)?;
    let mut reader = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(kind.clone(), &mut reader);
    let message = message.and_then(|message| reader.end().map(|()| message));
    let natural = match &message {
        Ok(_) => None,
        Err(_) => natural::read(&kind, json)?,
    };
    message.or_else(|error| natural.ok_or(error)).map_err(|error| {
        let words = format!(
            "the body isn't what the call takes: {}",
            quoted(&error.to_string())
        );
        let too_deep = error.to_string().contains("recursion limit exceeded");
        let reason = if too_deep {
            "MESSAGE_TOO_DEEP"
        } else {
            "JSON_MALFORMED"
        };
        StatusBuilder::invalid_argument(reason, words)
            .metadata("line", error.line())
            .metadata("column", error.column())
            .build()
    })
}

/// The words of an error of prost-reflect, with the name that it doesn't know quoted as `{:?}` writes it: what callers send is told apart
/// by that.
fn quoted(words: &str) -> String {
    let unknown = words
        .strip_prefix("unrecognized ")
        .and_then(|rest| rest.split_once('\''))
        .and_then(|(what, rest)| Some((what, rest.rsplit_once('\'')?)));
    match unknown {
        Some((what, (name, place))) => format!("unrecognized {what}{name:?}{place}"),
        None => words.to_owned(),
    }
}
