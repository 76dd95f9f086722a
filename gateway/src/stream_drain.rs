//! Closes streams that outlive a drain.
//!
//! When a gateway drains, its backends don't know, and a watch would be cut off in the middle of a message. So a stream that is still open
//! some time after the drain began is closed at a frame boundary with UNAVAILABLE and a retry delay.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use souk_chassis::layers::body::{Follow, FollowedBody, poll_open};
use souk_chassis::layers::{AnswerBody, PollFrame};
use souk_chassis::status::{RETRY_AFTER, StatusBuilder, trailers};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

/// Closes streams some time after a drain began.
pub(crate) struct StreamDrain {
    pub(crate) draining: CancellationToken,
    /// Time for open streams from then on.
    pub(crate) grace: Duration,
}

impl StreamDrain {
    /// `body`, closed when its time is over.
    pub(crate) fn to(self: &Arc<Self>, body: Body) -> Body {
        if http_body::Body::is_end_stream(&body) {
            return body;
        }
        let closing = Closing {
            drain: Arc::clone(self),
            over: None,
        };
        Body::new(FollowedBody::new(body, Some(closing)))
    }

    async fn over(self: Arc<Self>) {
        self.draining.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }
}

struct Closing {
    drain: Arc<StreamDrain>,
    /// `None` before the first wait: most responses need none.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Follow for Closing {
    const CUTS: bool = true;

    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        // What is ready goes first: the last message is whole.
        if let Poll::Ready(frame) = poll_open(body, cx) {
            return Poll::Ready(frame);
        }
        let over = || Box::pin(Arc::clone(&self.drain).over()) as Pin<Box<_>>;
        ready!(self.over.get_or_insert_with(over).as_mut().poll(cx));
        *body = None;
        let message = "the gateway is shutting down; call again, another one will go on";
        let status = StatusBuilder::unavailable("DRAINING", message).retry_after(RETRY_AFTER);
        Poll::Ready(Some(trailers(status)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::{BodyExt as _, StreamBody};
    use tonic::{Code, Status};

    use super::*;

    fn stream_drain() -> (CancellationToken, Arc<StreamDrain>) {
        let drain = StreamDrain {
            draining: CancellationToken::new(),
            grace: Duration::from_secs(5),
        };
        (drain.draining.clone(), Arc::new(drain))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_end_is_ended_with_words_after_the_grace() {
        let (draining, stream_drain) = stream_drain();
        let first = stream::once(async { Ok::<_, Status>(Frame::data(Bytes::from_static(b"first"))) });
        let endless = futures_util::StreamExt::chain(first, stream::pending());
        let mut body = stream_drain.to(Body::new(StreamBody::new(endless)));
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.data_ref().map(Bytes::as_ref), Some(&b"first"[..]));

        draining.cancel();
        let began = tokio::time::Instant::now();
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        let status = Status::from_header_map(frame.trailers_ref().expect("trailers")).expect("a status");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(body.frame().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ends_in_time_keeps_its_own_end() {
        let (draining, stream_drain) = stream_drain();
        draining.cancel();
        let slow = stream::once(async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok::<_, Status>(Frame::data(Bytes::from_static(b"last")))
        });
        let body = stream_drain.to(Body::new(StreamBody::new(slow)));
        let body = body.collect().await.expect("no error");
        assert!(body.trailers().is_none());
        assert_eq!(body.to_bytes(), "last");
    }
}
