//! Ends streams that outlive a drain.
//!
//! A service ends its own streams when it goes. When only the gateway goes, its backend knows nothing of that, and a
//! watch would go on until it is cut off in the middle of a message. So a stream that is still open some time after the drain began is
//! closed at a frame boundary with UNAVAILABLE and a retry delay.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use souk_chassis::layers::body::{Follow, FollowedBody, poll_open};
use souk_chassis::layers::{AnswerBody, PollFrame};
use souk_chassis::status::{RETRY_AFTER, StatusBuilder, trailers};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

/// Says when streams end. Clones share it.
#[derive(Clone)]
pub(crate) struct StreamDrain(Arc<Leaving>);

struct Leaving {
    draining: CancellationToken,
    grace: Duration,
}

impl StreamDrain {
    /// Streams end `grace` after `draining`.
    pub(crate) fn new(draining: CancellationToken, grace: Duration) -> Self {
        Self(Arc::new(Leaving { draining, grace }))
    }

    /// `body`, or as much of it as there is time for.
    pub(crate) fn to(&self, body: Body) -> Body {
        if http_body::Body::is_end_stream(&body) {
            return body;
        }
        let ending = Ending {
            leaving: Arc::clone(&self.0),
            over: None,
        };
        Body::new(FollowedBody::new(body, Some(ending)))
    }
}

impl Leaving {
    async fn over(self: Arc<Self>) {
        self.draining.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }
}

struct Ending {
    leaving: Arc<Leaving>,
    /// `None` while nothing was waited for: most answers are there at once.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Follow for Ending {
    const CUTS: bool = true;

    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        // What is ready goes first: the last message is whole.
        if let Poll::Ready(frame) = poll_open(body, cx) {
            return Poll::Ready(frame);
        }
        let over = || Box::pin(Arc::clone(&self.leaving).over()) as Pin<Box<_>>;
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

    fn stream_drain() -> (CancellationToken, StreamDrain) {
        let draining = CancellationToken::new();
        (
            draining.clone(),
            StreamDrain::new(draining, Duration::from_secs(5)),
        )
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
