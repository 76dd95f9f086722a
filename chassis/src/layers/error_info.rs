//! Adds an `ErrorInfo` to the errors of tonic's routing, framing and decoding, which have only codes and texts; handlers build theirs with
//! [`crate::status`]. A message that can't be decoded is the client's mistake: tonic's INTERNAL becomes INVALID_ARGUMENT.

use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use http::{HeaderMap, Request, Uri};
use tonic::body::Body;
use tonic::{Code, Status};

use super::body::{Follow, followed, poll_open};
use super::{AnswerBody, Answering, Around, Inner, PollFrame, refuse};
use crate::methods::Methods;
use crate::status::{GRPC_STATUS, StatusBuilder, code_in, code_name, message_in};

/// How tonic 0.14 words what the client did wrong, under the code INTERNAL. A test holds them to it.
const CLIENT_MISTAKES: [&str; 4] = [
    "failed to decode Protobuf message",
    "Missing request message",
    "Unexpected EOF decoding stream",
    "protocol error: received message with",
];

/// How prost ends its words about a message that is nested too deep. A test holds it to it.
const TOO_DEEP: &str = "recursion limit reached";
/// Levels of nesting that prost decodes.
const MESSAGE_DEPTH_MAX: u32 = 100;

/// Completes errors. See the [module](self). The methods are what UNIMPLEMENTED tells the client about.
#[derive(Clone, Debug)]
pub struct ErrorInfoLayer(pub Methods);

impl ErrorInfoLayer {
    /// The complete form of the error in `headers`, if it is one and incomplete.
    fn complete(&self, headers: &HeaderMap, path: &str) -> Option<Status> {
        let incomplete =
            |code: &Code| *code != Code::Ok && !headers.contains_key(Status::GRPC_STATUS_DETAILS);
        let code = code_in(headers).filter(incomplete)?;
        let message = message_in(headers);
        let status = match code {
            Code::Unimplemented if self.0.known(path).is_none() => unknown_method(&self.0, path),
            Code::Internal if message.ends_with(TOO_DEEP) => too_deep(&message),
            Code::Internal if CLIENT_MISTAKES.iter().any(|words| message.starts_with(words)) => {
                StatusBuilder::invalid_argument("MESSAGE_MALFORMED", message)
            }
            code => StatusBuilder::new(code, code_name(code), message),
        };
        Some(status.build())
    }
}

/// The refusal of a message that is nested deeper than the decoder goes. The decoder lists every level, the innermost
/// first; the client is told the way to where the nesting begins.
fn too_deep(message: &str) -> StatusBuilder {
    let mut path: Vec<&str> = Vec::new();
    let levels = message.rsplit(": ").filter_map(|level| level.split_once('.'));
    // A field of a `oneof` is told as the `oneof`, whose name no client knows.
    for (_, field) in levels.filter(|(_, field)| *field != "kind") {
        if path.contains(&field) {
            break;
        }
        path.push(field);
    }
    let path = path.join(".");
    let words =
        format!("is nested deeper than the {MESSAGE_DEPTH_MAX} levels that a message may have; nest less");
    StatusBuilder::invalid_argument("MESSAGE_TOO_DEEP", format!("{path} {words}"))
        .metadata("limit", MESSAGE_DEPTH_MAX)
        .metadata("field", &path)
        .field_violation(&path, words)
}

/// UNIMPLEMENTED for `path`, with what exists: the methods of the service if it is one, otherwise the services.
pub fn unknown_method(methods: &Methods, path: &str) -> StatusBuilder {
    let asked = path.trim_start_matches('/');
    let prefix = asked.split_once('/').map_or(asked, |(service, _)| service);
    let of_service: Vec<&str> = methods
        .names()
        .filter_map(|name| name.split_once('/'))
        .filter(|(service, _)| *service == prefix)
        .map(|(_, method)| method)
        .collect();
    if of_service.is_empty() {
        let services = methods.services().into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("no service {prefix:?} here; there are: {services}");
        StatusBuilder::unimplemented("SERVICE_UNKNOWN", message)
            .metadata("service", prefix)
            .metadata("services", services)
    } else {
        let known = of_service.join(", ");
        let message = format!("no method {asked:?}; {prefix} has: {known}");
        StatusBuilder::unimplemented("METHOD_UNKNOWN", message)
            .metadata("method", asked)
            .metadata("methods", known)
    }
}

impl Around for ErrorInfoLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        let layer = self;
        let uri = request.uri().clone();
        inner.call(request).map(|mut response| {
            let ended = response.headers().contains_key(GRPC_STATUS);
            if ended && let Some(status) = layer.complete(response.headers(), uri.path()) {
                match status.add_header(response.headers_mut()) {
                    Ok(()) => {
                        response.extensions_mut().insert(status);
                    }
                    Err(status) => response = refuse(status),
                }
            }
            followed(response, (!ended).then(|| Complete(layer.clone(), uri)))
        })
    }
}

/// Completes an error in the trailers of the answer to a call of this URI.
struct Complete(ErrorInfoLayer, Uri);

impl Follow for Complete {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        let frame = ready!(poll_open(body, cx));
        Poll::Ready(frame.map(|frame| {
            let mut frame = frame?;
            if let Some(headers) = frame.trailers_mut()
                && let Some(status) = self.0.complete(headers, self.1.path())
            {
                status.add_header(headers)?;
            }
            Ok(frame)
        }))
    }
}

#[cfg(test)]
mod tests;
