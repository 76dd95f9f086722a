//! Closes streams that outlive a drain.
//!
//! When a gateway drains, its backends don't know, and a watch would be cut off in the middle of a message. So a stream that is still open
//! some time after the drain began is closed at a frame boundary with UNAVAILABLE and a retry delay.

use std::sync::Arc;
use std::time::Duration;

use souk_chassis::layers::body::{CutOff, FollowedBody};
use souk_chassis::status::{RETRY_AFTER, StatusBuilder};
use tokio_util::sync::CancellationToken;
use tonic::Status;
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
        let drain = Arc::clone(self);
        let over = CutOff::new(move || Arc::clone(&drain).over());
        Body::new(FollowedBody::new(body, Some(over)))
    }

    async fn over(self: Arc<Self>) -> Status {
        self.draining.cancelled().await;
        tokio::time::sleep(self.grace).await;
        let message = "the gateway is shutting down; call again, another one will go on";
        let status = StatusBuilder::unavailable("DRAINING", message);
        status.retry_after(RETRY_AFTER).build()
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
