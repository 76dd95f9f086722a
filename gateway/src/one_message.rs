//! Makes a gRPC request of one whose body is a message in another form. The body is read, checked and framed lazily, when the stack polls it:
//! calls that its layers refuse cost no parsing. Its error is what is wrong with the message, which the stack answers with.

use std::error::Error;
use std::io;
use std::num::NonZero;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use souk_chassis::connection_headers::leave_connection;
use souk_chassis::layers::messages::framed;
use souk_chassis::status::StatusBuilder;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;

/// Most bytes of a body, or of a message of an answer, that are read and written on the thread of its connection, which others wait for
/// meanwhile.
pub(crate) const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// Larger ones are parsed and written one for each core at a time; the others wait, and are dropped when their callers leave. On separate
/// threads: each thread keeps some of the memory that it frees, and all of the many that wait for disks would soon have had a large body.
static LARGE: LazyLock<io::Result<Large>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = Builder::new_current_thread()
        .thread_name("souk-body")
        .max_blocking_threads(cores)
        .build()?;
    Ok(Large {
        threads,
        turns: Arc::new(Semaphore::new(cores)),
    })
});

struct Large {
    threads: Runtime,
    turns: Arc<Semaphore>,
}

/// Runs `work` on so many `bytes`: on this thread up to [`AT_ONCE_BYTES_MAX`], else on one for large bodies, in its turn.
pub(crate) async fn in_turn<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    if bytes <= AT_ONCE_BYTES_MAX {
        return work();
    }
    let failed = |error: Box<dyn Error + Send + Sync>| {
        StatusBuilder::internal_from("a large body couldn't be read or written", error)
    };
    let large = LARGE.as_ref().map_err(|error| failed(error.to_string().into()))?;
    let turn = Arc::clone(&large.turns).acquire_owned().await;
    let turn = turn.map_err(|closed| failed(closed.into()))?;
    let work = move || {
        let done = work();
        drop(turn);
        done
    };
    // Nobody waits for a body any more whose caller has left.
    let done = AbortOnDropHandle::new(large.threads.spawn_blocking(work));
    done.await.unwrap_or_else(|error| Err(failed(error.into())))
}

/// All of a body. Frames are copied: each of a byte alone would hold the buffer that it was read into.
pub(crate) async fn gathered(mut body: Body, bytes_max: usize) -> Result<Bytes, Status> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let data = frame?.into_data().unwrap_or_default();
        if data.len() > bytes_max.saturating_sub(read.len()) {
            return Err(too_large(bytes_max));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
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

/// `request` as a gRPC call of `path`, whose message `read` makes of a body of at most `bytes_max` bytes and of this `work` (see
/// [`in_turn`]). Other headers than those of its form become metadata.
pub(crate) fn grpc_request(
    path: PathAndQuery,
    request: Request<Body>,
    work: impl Fn(&[u8]) -> usize + Send + 'static,
    read: impl FnOnce(&[u8]) -> Result<Vec<u8>, Status> + Send + 'static,
    bytes_max: usize,
) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    let headers = &mut parts.headers;
    leave_connection(headers, parts.version);
    for name in &OF_THE_FORM {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    parts.method = Method::POST;
    parts.uri = Uri::from(path);
    parts.version = Version::HTTP_2;
    let message = stream::once(async move {
        let body = gathered(body, bytes_max).await?;
        let message = in_turn(work(&body), move || read(&body)).await?;
        Ok::<_, Status>(Frame::data(framed(0, &message)))
    });
    Request::from_parts(parts, Body::new(StreamBody::new(message)))
}

fn too_large(bytes_max: usize) -> Status {
    let message = format!("the body has more than {bytes_max} bytes; send less at a time");
    let refusal = StatusBuilder::resource_exhausted("MESSAGE_TOO_LARGE", message);
    refusal.metadata("limit_bytes", bytes_max).build()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use futures_util::FutureExt as _;
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

    /// Takes all turns until what it gives is dropped.
    pub(crate) async fn all_turns() -> impl Sized {
        let turns = &LARGE.as_ref().expect("threads").turns;
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let all = u32::try_from(cores).expect("few cores");
        Arc::clone(turns).acquire_many_owned(all).await.expect("open")
    }

    #[tokio::test]
    async fn who_leaves_takes_a_large_body_along() {
        let others = all_turns().await;
        let body = Arc::new(());
        let large = Arc::clone(&body);
        let mut waits = Box::pin(in_turn(AT_ONCE_BYTES_MAX + 1, move || Ok(large)));
        assert!(waits.as_mut().now_or_never().is_none(), "it isn't its turn");
        drop(waits);
        assert_eq!(Arc::strong_count(&body), 1);
        drop(others);
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
