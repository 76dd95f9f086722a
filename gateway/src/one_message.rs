//! A body whose bytes are one message in another form than gRPC's: read, checked and framed when it is polled and not before.
//!
//! So the layers of the stack come first: who may not call, or has to wait, costs no reading. What is wrong with the
//! request is the error of the body, which the stack answers with.

use std::error::Error;
use std::io;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version};
use http_body::Frame;
use souk_chassis::connection_headers::leave_connection;
use souk_chassis::layers::messages::{Encoding, UnpackError, framed};
use souk_chassis::status::StatusBuilder;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;

/// Most bytes of a body, or of a message of an answer, that are read and written on the thread of its connection, which others wait for
/// meanwhile.
const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// Larger ones are read and written one for each core at a time: the others wait, with their bytes alone. On threads of their own: each
/// thread keeps some of the memory that it frees, and among the many that wait for disks each would soon have had a large body.
static LARGE: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism();
    Builder::new_current_thread()
        .thread_name("souk-body")
        .max_blocking_threads(cores.map_or(1, NonZero::get))
        .build()
});

/// Makes the bytes of a body an encoded message.
pub(crate) trait Read: Send + Unpin + 'static {
    /// May the message be larger than the body?
    fn is_compressed(&self) -> bool;

    /// The message that `body` is.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(&self, body: &[u8]) -> Result<Vec<u8>, Status>;
}

/// See the [module](self).
struct OneMessage<R> {
    step: Step<R>,
    bytes_max: usize,
}

/// How far it is.
enum Step<R> {
    /// Bytes arrive.
    Arriving(Body, BytesMut, R),
    /// It is read on a thread of its own.
    Reading(Pin<Box<dyn Future<Output = Result<Vec<u8>, Status>> + Send>>),
    /// It was answered.
    Over,
}

/// Does the work that so many bytes make: that of many when it is its turn.
pub(crate) async fn in_turn<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    if bytes <= AT_ONCE_BYTES_MAX {
        return work();
    }
    aside(work).await
}

/// Does the work that a large body makes, when it is its turn.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let undone = |error: Box<dyn Error + Send + Sync>| {
        StatusBuilder::internal("a large body couldn't be read or written")
            .source(error)
            .build()
    };
    let threads = LARGE.as_ref().map_err(|error| undone(error.to_string().into()))?;
    // Nobody waits for a body any more whose caller has left.
    let done = AbortOnDropHandle::new(threads.spawn_blocking(work));
    done.await.unwrap_or_else(|error| Err(undone(error.into())))
}

impl<R> OneMessage<R> {
    /// The message that `reader` makes of `body`, which has at most `bytes_max` bytes.
    fn new(body: Body, reader: R, bytes_max: usize) -> Self {
        Self {
            step: Step::Arriving(body, BytesMut::new(), reader),
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
        let message = loop {
            match &mut this.step {
                Step::Arriving(body, read, _) => match ready!(Pin::new(body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        let data = frame.into_data().unwrap_or_default();
                        if data.len() > this.bytes_max.saturating_sub(read.len()) {
                            break Err(too_large(this.bytes_max));
                        }
                        read.extend_from_slice(&data);
                    }
                    Some(Err(status)) => break Err(status),
                    None => {
                        let Step::Arriving(_, read, reader) = std::mem::replace(&mut this.step, Step::Over)
                        else {
                            return Poll::Ready(None);
                        };
                        if read.len() <= AT_ONCE_BYTES_MAX && !reader.is_compressed() {
                            break reader.read(&read);
                        }
                        this.step = Step::Reading(Box::pin(aside(move || reader.read(&read))));
                    }
                },
                Step::Reading(reading) => break ready!(reading.as_mut().poll(cx)),
                Step::Over => return Poll::Ready(None),
            }
        };
        this.step = Step::Over;
        Poll::Ready(Some(message.map(|message| Frame::data(framed(&message)))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.step, Step::Over)
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

/// What `body` was before it was compressed. `check` sees its prefixes, as [`Encoding::unpack`] says.
///
/// # Errors
/// INVALID_ARGUMENT when it isn't of that encoding, RESOURCE_EXHAUSTED when it has more than `bytes_max` bytes, and those of `check`.
pub(crate) fn unpack(
    encoding: Encoding,
    body: &[u8],
    bytes_max: usize,
    check: impl FnMut(&[u8]) -> Result<(), Status>,
) -> Result<Bytes, Status> {
    encoding
        .unpack(body, bytes_max, check)
        .map_err(|error| match error {
            UnpackError::Refused(status) => status,
            UnpackError::TooLarge => too_large(bytes_max),
            UnpackError::Malformed(error) => {
                let name = encoding.name();
                let message = format!("the body is not {name}: send it plain or compress it again");
                StatusBuilder::invalid_argument("ENCODING_MALFORMED", message)
                    .source(error)
                    .build()
            }
        })
}

fn too_large(bytes_max: usize) -> Status {
    let message = format!("the body has more than {bytes_max} bytes; send less at a time");
    StatusBuilder::resource_exhausted("MESSAGE_TOO_LARGE", message)
        .metadata("limit_bytes", bytes_max)
        .build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use futures_util::future::join_all;
    use parking_lot::Mutex;

    use super::*;

    /// The threads that work on 500 bodies of so many bytes.
    async fn threads_of(bytes: usize) -> BTreeSet<String> {
        let threads: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let works = (0..500).map(|_| {
            let threads = Arc::clone(&threads);
            in_turn(bytes, move || {
                threads
                    .lock()
                    .insert(format!("{:?}", std::thread::current().id()));
                Ok(())
            })
        });
        for work in join_all(works).await {
            work.expect("it is done");
        }
        let threads = threads.lock();
        threads.clone()
    }

    #[tokio::test]
    async fn large_bodies_are_for_few_threads_and_none_of_a_connection() {
        let own = format!("{:?}", std::thread::current().id());
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let large = threads_of(AT_ONCE_BYTES_MAX + 1).await;
        assert!(large.len() <= cores && !large.contains(&own));
        assert_eq!(threads_of(AT_ONCE_BYTES_MAX).await, BTreeSet::from([own]));
    }
}
