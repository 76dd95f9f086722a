//! A body whose bytes are one message in another form than gRPC's: read, checked and framed when it is polled and not before.
//!
//! So the layers of the stack come first: who may not call, or has to wait, costs no reading. What is wrong with the
//! request is the error of the body, which the stack answers with.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version};
use http_body::Frame;
use souk_chassis::connection_headers::leave_connection;
use souk_chassis::layers::messages::{Encoding, framed};
use souk_chassis::status::StatusBuilder;
use tonic::Status;
use tonic::body::Body;

/// Makes the bytes of a body an encoded message.
pub(crate) trait Read: Send + Unpin + 'static {
    /// The message that `body` is.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(&self, body: &[u8]) -> Result<Vec<u8>, Status>;
}

/// See the [module](self).
struct OneMessage<R> {
    /// `None` once it was answered.
    reading: Option<(Body, R)>,
    read: BytesMut,
    bytes_max: usize,
}

impl<R> OneMessage<R> {
    /// The message that `reader` makes of `body`, which has at most `bytes_max` bytes.
    fn new(body: Body, reader: R, bytes_max: usize) -> Self {
        Self {
            reading: Some((body, reader)),
            read: BytesMut::new(),
            bytes_max,
        }
    }
}

impl<R: Read> http_body::Body for OneMessage<R> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            let Some((body, reader)) = &mut this.reading else {
                return Poll::Ready(None);
            };
            let end = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    if data.len() > this.bytes_max.saturating_sub(this.read.len()) {
                        Err(too_large(this.bytes_max))
                    } else {
                        this.read.extend_from_slice(&data);
                        continue;
                    }
                }
                Some(Err(status)) => Err(status),
                None => reader.read(&this.read),
            };
            this.reading = None;
            return Poll::Ready(Some(end.map(|message| Frame::data(framed(&message)))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.reading.is_none()
    }
}

/// Headers of a request that are about its form, or about a browser, and not for the service.
const OF_THE_FORM: [HeaderName; 14] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::EXPECT,
    header::ORIGIN,
    HeaderName::from_static("connect-accept-encoding"),
    HeaderName::from_static("connect-content-encoding"),
    HeaderName::from_static("connect-protocol-version"),
    HeaderName::from_static("connect-timeout-ms"),
    HeaderName::from_static("grpc-accept-encoding"),
    HeaderName::from_static("grpc-encoding"),
    HeaderName::from_static("last-event-id"),
];

/// `request` as a call by gRPC of `path`, with the message that `reader` makes of its body of at most `bytes_max` bytes.
/// Headers that aren't about its form go on, as metadata.
///
/// # Errors
/// When `path` is none.
pub(crate) fn grpc_request(
    path: &str,
    request: Request<Body>,
    reader: impl Read,
    bytes_max: usize,
) -> Result<Request<Body>, Status> {
    let path = PathAndQuery::try_from(path).map_err(|error| {
        StatusBuilder::internal("the call has no path in gRPC")
            .source(error)
            .build()
    })?;
    let (mut parts, body) = request.into_parts();
    leave_connection(&mut parts.headers, parts.version);
    for name in &OF_THE_FORM {
        parts.headers.remove(name);
    }
    parts
        .headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    parts
        .headers
        .insert(header::TE, HeaderValue::from_static("trailers"));
    parts.method = Method::POST;
    parts.uri = Uri::from(path);
    parts.version = Version::HTTP_2;
    let body = OneMessage::new(body, reader, bytes_max);
    Ok(Request::from_parts(parts, Body::new(body)))
}

/// What `body` was before it was compressed.
///
/// # Errors
/// INVALID_ARGUMENT when it isn't of that encoding, RESOURCE_EXHAUSTED when it has more than `bytes_max` bytes.
pub(crate) fn unpack(encoding: Encoding, body: &[u8], bytes_max: usize) -> Result<Bytes, Status> {
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
