//! Responses of Connect's protocol: messages, streams in envelopes, and errors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, Response};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Map, Value, json};
use souk_chassis::layers::messages::framed;
use souk_chassis::status::{code_name, status_in};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::pb;

use super::request::{Asked, Codec, Shape};
use crate::answer::error::failure;
use crate::answer::{Messages, Unary, metadata};
use crate::json::as_json;

/// The flag of the envelope that ends a stream.
const END: u8 = 2;

/// What type URLs of details begin with; Connect writes the type without it.
const TYPE_PREFIX: &str = "type.googleapis.com/";

/// Connect's name of an error's code.
fn name(code: Code) -> String {
    match code {
        // An error can't be OK.
        Code::Ok => name(Code::Unknown),
        Code::Cancelled => "canceled".to_owned(),
        code => code_name(code).to_ascii_lowercase(),
    }
}

/// An error as JSON, with its details; those whose types `pool` knows are also decoded, for people.
pub(super) fn error_json(pool: &DescriptorPool, status: &Status) -> Value {
    let details = pb::Status::decode(status.details()).unwrap_or_default().details;
    let details: Vec<Value> = details
        .iter()
        .map(|detail| {
            let url = &detail.type_url;
            let kind = url.strip_prefix(TYPE_PREFIX).unwrap_or(url);
            let debug = pool
                .get_message_by_name(kind)
                .and_then(|kind| DynamicMessage::decode(kind, detail.value.as_slice()).ok())
                .and_then(|message| serde_json::to_value(&message).ok());
            let mut detail = json!({"type": kind, "value": STANDARD_NO_PAD.encode(&detail.value)});
            if let Some(debug) = debug {
                detail["debug"] = debug;
            }
            detail
        })
        .collect();
    json!({"code": name(status.code()), "message": status.message(), "details": details})
}

/// The response to a call that failed before it had one.
pub(super) fn error(pool: &DescriptorPool, shape: Shape, status: &Status) -> Response<Body> {
    if shape.streams {
        let end = end_envelope(pool, Some(status), &HeaderMap::new());
        return stream_response(shape, HeaderMap::new(), crate::answer::whole(end));
    }
    failure(status, error_json(pool, status).to_string().into_bytes())
}

/// The response to a unary call: its message, or its error as JSON; trailers become headers that begin with `trailer-`.
pub(super) async fn unary(
    response: Response<Body>,
    asked: &Asked,
    kind: MessageDescriptor,
    pool: &DescriptorPool,
    bytes_max: usize,
    ends: Instant,
) -> Response<Body> {
    let mut answer = Unary::read(response, bytes_max).await;
    for (name, value) in &answer.trailers {
        if let Ok(name) = HeaderName::try_from(format!("trailer-{name}")) {
            answer.metadata.append(name, value.clone());
        }
    }
    let shape = asked.shape;
    let write = move |message: &[u8]| encode(shape.codec, &kind, message);
    let refuse = |status: &Status| error(pool, shape, status);
    answer
        .rewritten(shape.content_type(), asked.accepts, ends, write, refuse)
        .await
}

fn encode(codec: Codec, kind: &MessageDescriptor, message: &[u8]) -> Result<Vec<u8>, Status> {
    match codec {
        Codec::Proto => Ok(message.to_vec()),
        Codec::Json => Ok(as_json(kind.clone(), message)?.1),
    }
}

/// The response to a server stream: each message in an envelope, then the end with its error, if it failed, and its trailers.
pub(super) fn stream(
    response: Response<Body>,
    shape: Shape,
    kind: MessageDescriptor,
    pool: DescriptorPool,
    bytes_max: usize,
) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let headers = metadata(&parts.headers);
    let body = match status_in(&parts.headers) {
        Some(status) => crate::answer::whole(end_envelope(&pool, Some(&status), &HeaderMap::new())),
        None => {
            let write = move |message: &[u8]| Ok(framed(0, &encode(shape.codec, &kind, message)?));
            let end =
                move |status: Option<&Status>, trailers: &HeaderMap| end_envelope(&pool, status, trailers);
            Messages::new(&parts.headers, body, bytes_max).rewritten(write, end, None)
        }
    };
    stream_response(shape, headers, body)
}

/// The 200 of a stream; its errors are in the last envelope.
fn stream_response(shape: Shape, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response.headers_mut().insert(CONTENT_TYPE, shape.content_type());
    response
}

/// The `EndStreamResponse`, in the envelope that ends a stream: its error, if it failed, and its trailers.
fn end_envelope(pool: &DescriptorPool, status: Option<&Status>, trailers: &HeaderMap) -> Bytes {
    let mut end = Map::new();
    if let Some(status) = status {
        end.insert("error".to_owned(), error_json(pool, status));
    }
    let mut metadata: Map<String, Value> = Map::new();
    for name in trailers.keys() {
        let values = trailers.get_all(name).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        metadata.insert(name.as_str().to_owned(), values.into());
    }
    if !metadata.is_empty() {
        end.insert("metadata".to_owned(), metadata.into());
    }
    framed(END, Value::from(end).to_string().as_bytes())
}
