//! gRPC-Web, binary and as text, for unary calls and server streams: what browsers can speak.
//!
//! The translation is tonic-web's. Around it stands what it leaves to others: the request's headers of HTTP/1.1 go no
//! further, and a text that isn't base64 is the client's mistake.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http::header::{self, HeaderValue};
use http_body::Frame;
use souk_chassis::connection_headers::leave_connection;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::server::Stack;
use souk_chassis::status::StatusBuilder;
use tonic::Status;
use tonic::body::Body;
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::util::MapRequest;
use tower::{Layer as _, ServiceExt as _};

type Translated = GrpcWebService<MapRequest<Stack, fn(Request<Body>) -> Request<Body>>>;

/// Calls by gRPC-Web.
#[derive(Clone)]
pub(crate) struct GrpcWeb {
    service: Translated,
}

impl GrpcWeb {
    pub(crate) fn new(stack: Stack) -> Self {
        let read: fn(Request<Body>) -> Request<Body> =
            |request| request.map(|body| Body::new(ReadBody(body)));
        Self {
            service: GrpcWebLayer::new().layer(stack.map_request(read)),
        }
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
        Box::pin(self.service.clone().oneshot(request))
    }
}

/// A request as it was translated. Its size isn't that of what was sent, and its errors are the client's.
struct ReadBody(Body);

impl http_body::Body for ReadBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                let message = "the request isn't gRPC-Web: send whole frames, as base64 where the content type says text";
                StatusBuilder::invalid_argument("GRPC_WEB_MALFORMED", message)
                    .source(error)
                    .build()
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
