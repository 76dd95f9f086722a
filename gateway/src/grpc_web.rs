//! gRPC-Web for browsers, binary and as text, for unary calls and server streams. The translation is tonic-web's; here hop-by-hop headers
//! are removed, and malformed base64 becomes the client's error.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use parking_lot::Mutex;
use souk_chassis::connection_headers::leave_connection;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::server::Stack;
use souk_chassis::status::StatusBuilder;
use tonic::Status;
use tonic::body::Body;
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::util::MapRequest;
use tower::{Layer as _, ServiceExt as _};

/// The content types of gRPC-Web.
const CONTENT_TYPES: [&[u8]; 4] = [
    b"application/grpc-web",
    b"application/grpc-web+proto",
    b"application/grpc-web-text",
    b"application/grpc-web-text+proto",
];

/// The code of the answer to what is no call though it says gRPC-Web: the translation would give it past all layers.
pub(crate) fn refusal(request: &Request<Body>) -> Option<StatusCode> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let is_known = content_type.is_some_and(|value| CONTENT_TYPES.contains(&value.as_bytes()));
    match (is_known, request.method() == Method::POST) {
        (true, true) => None,
        (true, false) => Some(StatusCode::METHOD_NOT_ALLOWED),
        (false, _) => Some(StatusCode::BAD_REQUEST),
    }
}

type Translated = GrpcWebService<MapRequest<Stack, fn(Request<Body>) -> Request<Body>>>;

#[derive(Clone)]
pub(crate) struct GrpcWeb(Translated);

impl GrpcWeb {
    pub(crate) fn new(stack: Stack) -> Self {
        Self(GrpcWebLayer::new().layer(stack.map_request(read as fn(_) -> _)))
    }

    /// Answers a request whose content type is one of gRPC-Web's.
    pub(crate) fn call(&self, mut request: Request<Body>) -> ResponseFuture {
        let version = request.version();
        let headers = request.headers_mut();
        leave_connection(headers, version);
        let named = |value: &HeaderValue| value.as_bytes().starts_with(b"application/grpc-web");
        // Answered in the form of the question, where no other is asked for.
        if !headers.get(header::ACCEPT).is_some_and(named)
            && let Some(own) = headers.get(header::CONTENT_TYPE).cloned()
        {
            headers.insert(header::ACCEPT, own);
        }
        let sent = Sent::default();
        request.extensions_mut().insert(sent.clone());
        let broke = move |error: Status| {
            *sent.0.lock() = Some(error.clone());
            error
        };
        let request = request.map(|body| Body::new(body.map_err(broke)));
        Box::pin(self.0.clone().oneshot(request))
    }
}

/// How what was sent broke off. The translation makes words of its own of that. Clones are the same one.
#[derive(Clone, Debug, Default)]
struct Sent(Arc<Mutex<Option<Status>>>);

/// A request as it was translated. Its size isn't that of what was sent, and errors are the client's where what was sent has none.
fn read(mut request: Request<Body>) -> Request<Body> {
    let sent: Sent = request.extensions_mut().remove().unwrap_or_default();
    let malformed = move |error: Status| {
        sent.0.lock().take().unwrap_or_else(|| {
            let message =
                "the request isn't gRPC-Web: send whole frames, as base64 where the content type says text";
            let refusal = StatusBuilder::invalid_argument("GRPC_WEB_MALFORMED", message);
            refusal.source(error).build()
        })
    };
    request.map(|body| Body::new(StreamBody::new(BodyStream::new(body.map_err(malformed)))))
}
