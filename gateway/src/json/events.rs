//! Server streams as server-sent events: `data` is a message as JSON, `id` says where a client goes on.
//!
//! The stream ends with an event `end`, or `error` with a `google.rpc.Status`: a browser's `EventSource` would call again
//! at once, and should be closed at either. When the connection broke, it calls again with the `id` of the last event,
//! which becomes the field of the request by which the RPC goes on.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use souk_chassis::status::status_in;
use tonic::Status;
use tonic::body::Body;

use super::route::Route;
use super::{decode, write as to_json};
use crate::answer::{Messages, error, metadata};

/// Silence after which a comment is sent, so that neither client nor proxies give the stream up; and the comment.
const HEARTBEAT: (Duration, &[u8]) = (Duration::from_secs(15), b":\n\n");

/// Header with the `id` of the last event that a client saw.
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

/// By what streams go on: a field of their messages, and the field of the request that takes its value.
const RESUMES: [(&str, &str); 2] = [("resume_token", "resume_token"), ("sequence", "after_sequence")];

/// The fields by which the stream of `route` goes on, of the answer and of the request.
fn resumes(route: &Route) -> Option<(&'static str, &'static str)> {
    let (output, input) = (route.method.output(), route.method.input());
    RESUMES
        .into_iter()
        .find(|(from, to)| output.get_field_by_name(from).is_some() && input.get_field_by_name(to).is_some())
}

/// The variable that a client which comes back sets.
pub(crate) fn resumed(route: &Route, headers: &HeaderMap) -> Option<(String, String)> {
    let id = headers
        .get(LAST_EVENT_ID)?
        .to_str()
        .ok()
        .filter(|id| !id.is_empty())?;
    let (_, to) = resumes(route).filter(|_| route.streams())?;
    Some((to.to_owned(), id.to_owned()))
}

pub(crate) fn stream(
    response: Response<Body>,
    route: &Route,
    pool: DescriptorPool,
    bytes_max: usize,
) -> Response<Body> {
    let (parts, body) = response.into_parts();
    if let Some(status) = status_in(&parts.headers) {
        let mut response = error::response(&pool, &status);
        response.headers_mut().extend(metadata(&parts.headers));
        return response;
    }
    let (kind, id) = (route.method.output(), resumes(route).map(|(from, _)| from));
    let write = move |message: &[u8]| write(kind.clone(), id, message);
    let end = move |status: Option<&Status>, _: &HeaderMap| match status {
        Some(status) => event(Some("error"), None, &error::json(&pool, status)),
        None => event(Some("end"), None, b"{}"),
    };
    let messages = Messages::new(&parts.headers, body, bytes_max);
    let mut response = Response::new(messages.rewritten(write, end, Some(HEARTBEAT)));
    *response.headers_mut() = metadata(&parts.headers);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A message as an event, whose `id` is in the field `id` of it.
fn write(kind: MessageDescriptor, id: Option<&str>, message: &[u8]) -> Result<Bytes, Status> {
    let message = decode(kind, message)?;
    let id = id.and_then(|field| read_id(&message, field));
    Ok(event(None, id.as_deref(), &to_json(&message)?))
}

fn read_id(message: &DynamicMessage, field: &str) -> Option<String> {
    let value = message.get_field_by_name(field)?;
    let text = value.as_str().map(str::to_owned);
    text.or_else(|| value.as_i64().map(|number| number.to_string()))
        .filter(|id| !id.is_empty() && !id.contains(['\n', '\r', '\0']))
}

/// An event; `json` has no line breaks.
fn event(name: Option<&str>, id: Option<&str>, json: &[u8]) -> Bytes {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let parts = [name.as_bytes(), id.as_bytes(), b"data: ", json, b"\n\n"];
    parts.concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_with_an_empty_one_behind() {
        assert_eq!(event(None, Some("7"), b"{}"), "id: 7\ndata: {}\n\n");
        assert_eq!(event(Some("end"), None, b"{}"), "event: end\ndata: {}\n\n");
    }
}
