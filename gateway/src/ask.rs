//! Calls of a service that every backend serves: asks one backend after the other, without decoding.
//!
//! A backend that doesn't hold what a call names says so by the error that the contract names ([`Sharing::elsewhere`]), and has done nothing,
//! so that writes, too, reach the one that holds it alone. A backend that doesn't answer itself (unreachable, overloaded, of a version
//! without the service) is skipped, and asked again, with the retries of safe calls, if no other holds it; then its error is the answer.
//! Lists are joined: the encodings of repeated fields, concatenated, encode the whole. If one backend fails, its error is the answer.

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body_util::StreamBody;
use souk_chassis::layers::messages::framed;
use souk_chassis::status::{StatusBuilder, code_in, is_refusal, reason, status_in, trailers};
use tonic::body::Body;
use tonic::{Code, Status};

use crate::answer::{Unary, too_large, whole};
use crate::contract::Sharing;
use crate::one_message::gathered;
use crate::retry::Retry;

const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Most bytes of a request, which is kept to be sent to several. A change of an index has some kilobytes.
const REQUEST_BYTES_MAX: usize = 256 << 10;

/// The backends of a service, in the order in which they are asked.
pub(crate) struct Ask {
    pub(crate) sharing: Sharing,
    /// Most bytes of an answer that is put together.
    pub(crate) bytes_max: usize,
    pub(crate) backends: Vec<Retry>,
}

impl Ask {
    pub(crate) async fn call(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let message = match gathered(body, REQUEST_BYTES_MAX).await {
            Ok(message) => message,
            Err(status) => return status.into_http(),
        };
        let request = || Request::from_parts(head.clone(), whole(message.clone()));
        let path = head.uri.path();
        let answered = match self.sharing.joined.contains(path) {
            true => self.joined(request).await,
            false => self.held(path, request).await,
        };
        answered.unwrap_or_else(Status::into_http)
    }

    /// The answer of the one that holds what is asked for.
    async fn held(&self, path: &str, request: impl Fn() -> Request<Body>) -> Result<Response<Body>, Status> {
        let mut answer = Err(unserved());
        let mut silent = Vec::new();
        for backend in &self.backends {
            let response = backend.once(request()).await;
            if self.is_elsewhere(&response) {
                answer = Ok(response);
            } else if is_silent(&response) {
                silent.push((backend, response));
            } else {
                return Ok(response);
            }
        }
        // What doesn't know the service won't the next time, so who may is asked first.
        silent.sort_by_key(|(_, response)| code_in(response.headers()) == Some(Code::Unimplemented));
        for (backend, refusal) in silent {
            let response = match backend.repeats(path) {
                true => backend.call(request()).await,
                false => refusal,
            };
            if !self.is_elsewhere(&response) {
                return Ok(response);
            }
            answer = Ok(response);
        }
        answer
    }

    fn is_elsewhere(&self, response: &Response<Body>) -> bool {
        status_in(response.headers()).is_some_and(|status| {
            let is_known = |reason: String| self.sharing.elsewhere.contains(&reason);
            status.code() == Code::NotFound && reason(&status).is_some_and(is_known)
        })
    }

    /// The answers of all, behind each other.
    async fn joined(&self, request: impl Fn() -> Request<Body>) -> Result<Response<Body>, Status> {
        let mut joined = Vec::new();
        for backend in &self.backends {
            let mut request = request();
            // Compressed ones can't be put together.
            request.headers_mut().remove(GRPC_ACCEPT_ENCODING);
            let answer = Unary::read(backend.call(request).await, self.bytes_max).await;
            let message: Bytes = answer.message?;
            if message.len() > self.bytes_max.saturating_sub(joined.len()) {
                return Err(too_large(self.bytes_max));
            }
            joined.extend_from_slice(&message);
        }
        let frames = [
            Ok(http_body::Frame::data(framed(0, &joined))),
            trailers(Status::ok("")),
        ];
        let mut response = Response::new(Body::new(StreamBody::new(stream::iter(frames))));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        Ok(response)
    }
}

/// Has a backend not said whether it holds what is asked for?
fn is_silent(response: &Response<Body>) -> bool {
    use Code::{Cancelled, DeadlineExceeded, ResourceExhausted, Unavailable, Unimplemented};
    match code_in(response.headers()) {
        Some(Unavailable) => is_refusal(response.headers()),
        // UNIMPLEMENTED is of an earlier version, which doesn't know the service.
        Some(DeadlineExceeded | ResourceExhausted | Cancelled | Unimplemented) => true,
        _ => false,
    }
}

/// Nobody serves a service.
pub(crate) fn unserved() -> Status {
    StatusBuilder::unimplemented("SERVICE_UNKNOWN", "the gateway has no backend for this service").build()
}
