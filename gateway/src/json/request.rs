//! The request of a call: JSON read, checked and made a message.

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use prost_reflect::{DynamicMessage, Value};
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tonic::{Code, Status};

use super::natural::PlainJson;
use super::route::{BodyUse, Route};
use super::{decoded, mistake, natural, parameters};
use crate::answer::JSON;

/// The reason of the refusal of JSON that isn't a message.
const MALFORMED: &str = "JSON_MALFORMED";

/// What a body is, by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    Json(Option<Encoding>),
    /// It has none: then there must be no body.
    Untyped,
}

impl BodyForm {
    /// Reads the headers; refuses other bodies than JSON, plain or with gzip or zstd.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Status> {
        let Some(content_type) = headers.get(CONTENT_TYPE) else {
            return Ok(Self::Untyped);
        };
        if !media_type(content_type).eq_ignore_ascii_case(JSON.as_bytes()) {
            let given = String::from_utf8_lossy(content_type.as_bytes()).into_owned();
            let message = format!("a body of type {given:?} can't be read; send application/json");
            let refusal = StatusBuilder::invalid_argument("CONTENT_TYPE_UNSUPPORTED", message);
            return Err(refusal.metadata("content_type", given).build());
        }
        let name = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        Encoding::named(Code::InvalidArgument, "a body", name).map(Self::Json)
    }

    /// How much work a body of this form is, as [`in_turn`](crate::one_message::in_turn) counts it.
    pub(crate) fn work(self, body: &[u8]) -> usize {
        match self {
            // Nobody knows how large it is.
            Self::Json(Some(_)) => usize::MAX,
            Self::Json(None) | Self::Untyped => decoded::work(body),
        }
    }
}

/// The name in a content type, without its parameters.
pub(crate) fn media_type(content_type: &HeaderValue) -> &[u8] {
    let name = content_type.as_bytes().split(|byte| *byte == b';').next();
    name.unwrap_or_default().trim_ascii()
}

/// Where a call goes and what its address says.
#[derive(Clone, Debug)]
pub(crate) struct JsonCall {
    pub(crate) route: Arc<Route>,
    /// Of the path, by field.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) form: BodyForm,
    /// Most bytes of the body, before and after it is unpacked.
    pub(crate) bytes_max: usize,
}

impl JsonCall {
    /// The message that `body` and the address are.
    pub(super) fn message(&self, body: &[u8]) -> Result<DynamicMessage, Status> {
        let input = self.route.method.input();
        let unpacked;
        let json = match self.form {
            _ if body.is_empty() => body,
            BodyForm::Untyped => {
                let message = "the body has no content type; send it as application/json";
                return Err(StatusBuilder::invalid_argument("CONTENT_TYPE_UNSUPPORTED", message).build());
            }
            BodyForm::Json(None) => body,
            BodyForm::Json(Some(encoding)) => {
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

/// Reads a message, if it doesn't take too much memory; fields that it doesn't have are errors. Values may be written plainly. serde_json
/// ends at 128 levels.
///
/// # Errors
/// INVALID_ARGUMENT (JSON_MALFORMED, MESSAGE_TOO_DEEP) with line and column, or with the path of the field where values are written plainly;
/// RESOURCE_EXHAUSTED of what takes too much memory or time.
pub fn parse(kind: prost_reflect::MessageDescriptor, json: &[u8]) -> Result<DynamicMessage, Status> {
    decoded::check(json)?;
    let mut reader = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(kind.clone(), &mut reader);
    let message = message.and_then(|message| reader.end().map(|()| message));
    let error = match message {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let plain = match natural::read(&kind, json)? {
        PlainJson::Message(message) => return Ok(message),
        PlainJson::NoJson(error) => return Err(malformed(&kind, &error)),
        PlainJson::Mistaken(plain) => plain,
    };
    let mistake = mistake::find(&kind, json).filter(|mistake| plain.is_some() || mistake.is_natural);
    Err(match mistake {
        Some(mistake) => {
            let words = format!("the JSON isn't a {}: {}", kind.full_name(), mistake.told());
            StatusBuilder::invalid_argument(MALFORMED, words)
                .metadata("field", mistake.field())
                .build()
        }
        None => malformed(&kind, &plain.unwrap_or(error)),
    })
}

/// The refusal of what a reader of JSON says is none, or no message of `kind`.
fn malformed(kind: &prost_reflect::MessageDescriptor, error: &serde_json::Error) -> Status {
    let told = error.to_string();
    let words = format!("the JSON isn't a {}: {}", kind.full_name(), quoted(&told));
    let reason = match told.contains("recursion limit exceeded") {
        true => "MESSAGE_TOO_DEEP",
        false => MALFORMED,
    };
    let refusal = StatusBuilder::invalid_argument(reason, words);
    // What was read as a tree first has no place.
    match error.line() {
        0 => refusal.build(),
        line => refusal
            .metadata("line", line)
            .metadata("column", error.column())
            .build(),
    }
}

/// The words of an error of prost-reflect, with the name that it doesn't know quoted as `{:?}` writes it: what callers send is told apart
/// by that.
pub(super) fn quoted(words: &str) -> String {
    let unknown = words
        .strip_prefix("unrecognized ")
        .and_then(|rest| rest.split_once('\''))
        .and_then(|(what, rest)| Some((what, rest.rsplit_once('\'')?)));
    match unknown {
        Some((what, (name, place))) => format!("unrecognized {what}{name:?}{place}"),
        None => words.to_owned(),
    }
}
