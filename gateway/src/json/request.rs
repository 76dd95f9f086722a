//! The request of a call: JSON read, checked and written as a message, when the body is polled and not before.
//!
//! So the layers of the stack come first: who may not call, or has to wait, costs no reading. What is wrong with the
//! request is the error of the body, which the stack answers with.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use prost::Message as _;
use prost_reflect::{DynamicMessage, Value};
use souk_chassis::layers::messages::{Encoding, framed};
use souk_chassis::status::StatusBuilder;
use tonic::Status;
use tonic::body::Body;

use super::parameters;
use super::route::{BodyUse, Route};

/// How the body was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// With a content type of JSON.
    Json(Option<Encoding>),
    /// Without any: then there must be no body.
    Untyped,
}

/// What a request says about its body.
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
            let message = format!("a body of type `{given}` can't be read; send application/json");
            return Err(
                StatusBuilder::invalid_argument("CONTENT_TYPE_UNSUPPORTED", message)
                    .metadata("content_type", given)
                    .build(),
            );
        }
        let Some(name) = headers.get(CONTENT_ENCODING).filter(|name| *name != "identity") else {
            return Ok(Self(Sent::Json(None)));
        };
        let encoding = name.to_str().ok().and_then(Encoding::from_name);
        encoding
            .map(|encoding| Self(Sent::Json(Some(encoding))))
            .ok_or_else(|| {
                let given = String::from_utf8_lossy(name.as_bytes()).into_owned();
                let message =
                    format!("a body encoded as `{given}` can't be read; use identity, gzip or zstd");
                StatusBuilder::invalid_argument("ENCODING_UNSUPPORTED", message)
                    .metadata("encoding", given)
                    .build()
            })
    }
}

/// `application/json`, with or without parameters.
fn is_json(content_type: &HeaderValue) -> bool {
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
                unpacked = unpack(encoding, body, self.bytes_max)?;
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

fn unpack(encoding: Encoding, body: &[u8], bytes_max: usize) -> Result<Bytes, Status> {
    let unpacked = encoding.unpack(body, bytes_max).map_err(|error| {
        let name = encoding.name();
        let message = format!("the body is not {name}: send it plain or compress it again");
        StatusBuilder::invalid_argument("ENCODING_MALFORMED", message)
            .source(error)
            .build()
    })?;
    unpacked.ok_or_else(|| too_large(bytes_max))
}

fn too_large(bytes_max: usize) -> Status {
    let message = format!("the body has more than {bytes_max} bytes; send less at a time");
    StatusBuilder::resource_exhausted("MESSAGE_TOO_LARGE", message)
        .metadata("limit_bytes", bytes_max)
        .build()
}

/// Reads a message; fields that it doesn't have are errors. serde_json ends at 128 levels.
fn parse(kind: prost_reflect::MessageDescriptor, json: &[u8]) -> Result<DynamicMessage, Status> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(kind, &mut reader);
    let message = message.and_then(|message| reader.end().map(|()| message));
    message.map_err(|error| {
        let words = format!("the body isn't what the call takes: {error}");
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

/// A body of JSON as a body with one message.
pub(crate) struct JsonBody {
    /// `None` once it was answered.
    reading: Option<(Body, Call)>,
    read: BytesMut,
}

impl JsonBody {
    pub(crate) fn new(body: Body, call: Call) -> Self {
        Self {
            reading: Some((body, call)),
            read: BytesMut::new(),
        }
    }
}

impl http_body::Body for JsonBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            let Some((body, call)) = &mut this.reading else {
                return Poll::Ready(None);
            };
            let end = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    if data.len() > call.bytes_max.saturating_sub(this.read.len()) {
                        Err(too_large(call.bytes_max))
                    } else {
                        this.read.extend_from_slice(&data);
                        continue;
                    }
                }
                Some(Err(status)) => Err(status),
                None => call.message(&this.read),
            };
            this.reading = None;
            return Poll::Ready(Some(
                end.map(|message| Frame::data(framed(&message.encode_to_vec()))),
            ));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.reading.is_none()
    }
}
