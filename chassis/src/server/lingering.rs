//! Lingering close of requests: the rest of a request body is read, within bounds, and discarded after its response.
//!
//! A call that is refused early never reads its body. Dropping the body would reset the stream, and the bytes in flight would be errors of
//! the client to HTTP/2, some hundreds of which close the connection (`server.http2.local_error_reset_streams_max`). Over HTTP/1.1 it would
//! close the connection before the client, which is still writing, reads the response; there a whole message is read, as nginx does.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use http_body_util::BodyExt as _;
use tonic::Status;

use crate::config::MESSAGE_BYTES_CEILING;
use crate::layers::{AnswerBody, PollFrame};

/// Bytes that are taken of a request over HTTP/2 that nobody reads any more.
pub(super) const HTTP2_BYTES_MAX: u64 = 64 * 1024;

/// The same over HTTP/1.1: twice the largest message.
pub(super) const HTTP1_BYTES_MAX: u64 = 2 * MESSAGE_BYTES_CEILING as u64;

/// Time that they have to come.
const TIME_MAX: Duration = Duration::from_secs(1);

/// A body that is taken to its end when it is dropped.
pub(super) struct LingeringBody<B: AnswerBody> {
    /// `None` once it has ended or broken.
    body: Option<B>,
    bytes_max: u64,
}

impl<B: AnswerBody> LingeringBody<B> {
    pub(super) fn new(body: B, bytes_max: u64) -> Self {
        let ended = body.is_end_stream();
        Self {
            body: (!ended).then_some(body),
            bytes_max,
        }
    }
}

impl<B: AnswerBody> Body for LingeringBody<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), B::size_hint)
    }
}

impl<B: AnswerBody> Drop for LingeringBody<B> {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !body.is_end_stream());
        // Without a runtime there is no connection either.
        if let (Some(body), Ok(runtime)) = (left, tokio::runtime::Handle::try_current()) {
            let bytes_max = self.bytes_max;
            runtime.spawn(async move {
                // What isn't there in time is reset, as it would have been at once.
                let _ = tokio::time::timeout(TIME_MAX, take(body, bytes_max)).await;
            });
        }
    }
}

/// Takes frames until the end, an error, or too many bytes.
async fn take(mut body: impl AnswerBody, bytes_max: u64) {
    let mut bytes = 0;
    while bytes <= bytes_max {
        let Some(Ok(frame)) = body.frame().await else {
            return;
        };
        let size = frame.data_ref().map_or(0, Bytes::len);
        bytes = bytes.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// So many frames of 16 KiB, counted as they are taken.
    fn frames(count: usize, taken: &Arc<AtomicUsize>) -> impl AnswerBody {
        let taken = Arc::clone(taken);
        let frames = (0..count).map(move |_| {
            taken.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Status>(Frame::data(Bytes::from_static(&[0; 16 * 1024])))
        });
        StreamBody::new(futures_util::stream::iter(frames))
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_reads_is_taken_and_no_more_than_some() {
        let http2 = [(0, 0), (3, 3), (100, 5)].map(|case| (HTTP2_BYTES_MAX, case));
        let http1 = [(100, 100), (600, 513)].map(|case| (HTTP1_BYTES_MAX, case));
        for (bytes_max, (sent, expected)) in http2.into_iter().chain(http1) {
            let taken = Arc::new(AtomicUsize::new(0));
            drop(LingeringBody::new(frames(sent, &taken), bytes_max));
            // A clock that stands still goes on when nothing else can.
            tokio::time::sleep(TIME_MAX).await;
            assert_eq!(taken.load(Ordering::SeqCst), expected, "of {sent}");
        }
    }
}
