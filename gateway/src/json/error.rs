//! Errors as JSON: `google.rpc.Status` with its details.

use http::header::{ALLOW, HeaderValue};
use http::{Response, StatusCode};
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::json;
use tonic::Status;
use tonic::body::Body;

use crate::answer::failure;

/// `status` as JSON. Details of types that `pool` doesn't know are left out.
pub(crate) fn json(pool: &DescriptorPool, status: &Status) -> Vec<u8> {
    let full = pool
        .get_message_by_name("google.rpc.Status")
        .filter(|_| !status.details().is_empty())
        .and_then(|kind| DynamicMessage::decode(kind, status.details()).ok())
        .and_then(|message| serde_json::to_vec(&message).ok());
    full.unwrap_or_else(|| {
        json!({"code": i32::from(status.code()), "message": status.message()})
            .to_string()
            .into_bytes()
    })
}

/// The answer to a call that failed with `status`.
pub(crate) fn response(pool: &DescriptorPool, status: &Status) -> Response<Body> {
    failure(status, json(pool, status))
}

/// `response` with the methods that its path has.
pub(crate) fn allowing(mut response: Response<Body>, methods: &str) -> Response<Body> {
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    if let Ok(value) = HeaderValue::from_str(methods) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
