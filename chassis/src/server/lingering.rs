//! Lingering close of requests: what is left of one when its answer is made is read, in bounds, and thrown away.
//!
//! Who refuses a call at once, for want of room or of a method, doesn't wait for its body. Were the body dropped, the stream would be
//! reset, and the bytes that are on their way would come for a stream that isn't known any more: an error of the client to HTTP/2, and
//! after some hundreds of them (`server.http2.local_error_reset_streams_max`) the end of the connection with all its calls.
//!
//! Over HTTP/1.1 there is no stream to reset, only the connection, and a client that still writes when that happens never sees why: there a
//! whole message that was too large is read, as nginx does.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};

use crate::config::MESSAGE_BYTES_CEILING;

/// Bytes that are taken of a request over HTTP/2 that nobody reads any more.
pub(super) const HTTP2_BYTES_MAX: u64 = 64 * 1024;

/// The same over HTTP/1.1: twice the largest message.
pub(super) const HTTP1_BYTES_MAX: u64 = 2 * MESSAGE_BYTES_CEILING as u64;

/// Time that they have to come.
const TIME_MAX: Duration = Duration::from_secs(1);

/// A body that is taken to its end when it is dropped.
pub(super) struct LingeringBody<B: Body + Unpin + Send + 'static> {
    /// `None` once it has ended or broken.
    body: Option<B>,
    bytes_max: u64,
}

impl<B: Body + Unpin + Send + 'static> LingeringBody<B> {
    pub(super) fn new(body: B, bytes_max: u64) -> Self {
        let ended = body.is_end_stream();
        Self {
            body: (!ended).then_some(body),
            bytes_max,
        }
    }
}

impl<B: Body + Unpin + Send + 'static> Body for LingeringBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
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
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl<B: Body + Unpin + Send + 'static> Drop for LingeringBody<B> {
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
async fn take<B: Body + Unpin>(mut body: B, bytes_max: u64) {
    let mut bytes = 0;
    while bytes <= bytes_max {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let Some(Ok(frame)) = frame else { return };
        let size = frame.data_ref().map_or(0, bytes::Buf::remaining);
        bytes = bytes.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http_body_util::StreamBody;

    use super::*;

    type Frames = Result<Frame<Bytes>, Infallible>;

    /// So many frames of 16 KiB, counted as they are taken.
    fn frames(count: usize, taken: &Arc<AtomicUsize>) -> impl Body + Unpin + Send + 'static {
        let taken = Arc::clone(taken);
        let frames = (0..count).map(move |_| -> Frames {
            taken.fetch_add(1, Ordering::SeqCst);
            Ok(Frame::data(Bytes::from_static(&[0; 16 * 1024])))
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
