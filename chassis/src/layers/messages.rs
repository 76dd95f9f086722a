//! Message limits and compression, once for every route.
//!
//! tonic has both as settings of each generated server, which every service would have to repeat. This layer works on the frames of the
//! wire, so that the generated code sees only uncompressed messages within the limits:
//!
//! - a request message beyond the limit is refused by its length, before its bytes are read, and again while it is decompressed;
//! - one that would take too much memory once it is decoded is refused before;
//! - if the RPC takes one message, the first byte of another is refused;
//! - requests may be compressed with gzip or zstd, responses are if the client accepts it and the message is large enough.
//!
//! A gateway checks lengths and number of messages, and leaves compression and content alone.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use http::header::{HeaderName, HeaderValue};
use http::{Request, Response};
use pin_project_lite::pin_project;
use tonic::body::Body;
use tonic::{Code, Status};

use super::body::FollowedBody;
use super::{AnswerBody, Answering, Around, Inner, refuse};
use crate::methods::Methods;
use crate::status::GRPC_STATUS;

mod complaint;
mod decode;
mod decoded;
mod encode;
mod encoding;
mod frame;
mod layouts;

pub use decoded::{DECODED_BYTES_MAX, too_large as decoded_too_large};
pub use encode::COMPRESS_BYTES_MIN;
pub use encoding::Encoding;
pub use frame::{framed, take_plain};
pub use layouts::Layouts;

use complaint::Complaint;
use decode::{MessageCheck, unpacked};
use decoded::{DecodedLimit, MessageLimits};
use encode::packed;
use frame::FrameScanner;

/// Header that names the encoding of the messages that follow.
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Header that names the encodings the sender can read.
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

const ACCEPTED: HeaderValue = HeaderValue::from_static("identity,gzip,zstd");

/// Limits and unpacks messages. See the [module](self).
#[derive(Clone, Debug)]
pub struct MessagesLayer {
    bytes_max: usize,
    /// Says which RPCs take more than one message.
    methods: Methods,
    /// `None` where messages aren't looked into.
    layouts: Option<Arc<Layouts>>,
}

impl MessagesLayer {
    /// Request messages of at most `bytes_max` bytes. For a server they take [`DECODED_BYTES_MAX`] by these layouts at most, and are
    /// compressed both ways; for a gateway, without layouts, they are otherwise untouched.
    pub fn new(bytes_max: usize, methods: Methods, layouts: Option<Arc<Layouts>>) -> Self {
        Self {
            bytes_max,
            methods,
            layouts,
        }
    }

    /// The request as the routes see it, its body checked and decompressed, and the complaint that this body may raise.
    fn request(&self, request: Request<Body>) -> Result<(Request<Body>, Complaint), Status> {
        let (mut parts, body) = request.into_parts();
        let complaint = Complaint::default();
        let (encoding, decoded) = match &self.layouts {
            None => (None, None),
            Some(layouts) => {
                let name = parts.headers.remove(GRPC_ENCODING);
                let name = name.as_ref().map(HeaderValue::as_bytes);
                (
                    Encoding::named(Code::Unimplemented, "a message", name)?,
                    DecodedLimit::of(layouts, parts.uri.path()),
                )
            }
        };
        let limits = MessageLimits {
            bytes_max: self.bytes_max,
            is_stream: self.methods.of(parts.uri.path()).takes_stream,
            decoded,
        };
        let body = match encoding {
            None => {
                let check = MessageCheck {
                    scanner: FrameScanner::default(),
                    limits,
                    complaint: complaint.clone(),
                };
                Body::new(FollowedBody::new(body, Some(check)))
            }
            Some(encoding) => unpacked(body, encoding, limits, complaint.clone()),
        };
        Ok((Request::from_parts(parts, body), complaint))
    }
}

fn compress(response: Response<Body>, encoding: Encoding) -> Response<Body> {
    let headers = response.headers();
    if headers.contains_key(GRPC_STATUS) || headers.contains_key(GRPC_ENCODING) {
        return response;
    }
    let mut response = response.map(|body| packed(body, encoding));
    let name = HeaderValue::from_static(encoding.name());
    response.headers_mut().insert(GRPC_ENCODING, name);
    response
}

impl Around for MessagesLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        let unpacks = self.layouts.is_some();
        let accepted = unpacks.then(|| Encoding::accepted(request.headers(), &GRPC_ACCEPT_ENCODING));
        let (request, complaint) = match self.request(request) {
            Ok(checked) => checked,
            Err(status) => {
                let mut response = refuse(status);
                // The protocol wants the client to learn here what it may use.
                response.headers_mut().insert(GRPC_ACCEPT_ENCODING, ACCEPTED);
                return Either::Right(ready(response));
            }
        };
        let call = inner.call(request);
        Either::Left(CallOrComplaint { call, complaint }.map(move |response| {
            let response = response.map(Body::new);
            match accepted.flatten() {
                Some(encoding) => compress(response, encoding),
                None => response,
            }
        }))
    }
}

pin_project! {
    /// A call that ends early, in the complaint that the body of its request raises.
    struct CallOrComplaint<F> {
        #[pin]
        call: F,
        complaint: Complaint,
    }
}

impl<B: AnswerBody + Default, F: Future<Output = Response<B>>> Future for CallOrComplaint<F> {
    type Output = Response<B>;

    /// Whatever the reader of the body makes of its error (a proxy resets its stream), the complaint is the answer.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<B>> {
        let this = self.project();
        if let Some(complaint) = this.complaint.listen(cx.waker()) {
            return Poll::Ready(refuse(complaint));
        }
        let answered = this.call.poll(cx);
        // Both may have come of one poll.
        match this.complaint.said() {
            Some(complaint) => Poll::Ready(refuse(complaint)),
            None => answered,
        }
    }
}

#[cfg(test)]
mod tests;
