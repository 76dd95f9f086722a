//! The body of a layer's answer: what is inside, and what the layer does to its frames, or keeps until it has been taken.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::SizeHint;
use tonic::Status;

use super::{AnswerBody, PollFrame};
use crate::status::trailers;

/// What a layer does to the frames of a body.
pub trait Follow: Send + Unpin + 'static {
    /// May it end the body before its end?
    const CUTS: bool = false;

    /// The next frame of `body`, which has ended, and isn't polled again, once it is `None`.
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame;
}

/// A body that a layer follows to its end, if there is anything to follow it for. By default it is that of a refusal, and empty.
#[derive(Debug)]
pub struct FollowedBody<B, F> {
    body: Option<B>,
    follow: Option<F>,
}

impl<B, F> Default for FollowedBody<B, F> {
    fn default() -> Self {
        let (body, follow) = (None, None);
        Self { body, follow }
    }
}

impl<B, F> FollowedBody<B, F> {
    /// Has `follow` see `body` to its end.
    pub fn new(body: B, follow: Option<F>) -> Self {
        let body = Some(body);
        Self { body, follow }
    }
}

/// Has `follow` see the body of `response` to its end.
pub(crate) fn followed<B, F>(response: Response<B>, follow: Option<F>) -> Response<FollowedBody<B, F>> {
    response.map(|body| FollowedBody::new(body, follow))
}

impl<B: AnswerBody, F: Follow> http_body::Body for FollowedBody<B, F> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        let this = &mut *self;
        match (&mut this.body, &mut this.follow) {
            (None, _) => PollFrame::Ready(None),
            (Some(body), None) => Pin::new(body).poll_frame(cx),
            (body, Some(follow)) => follow.poll_frame(body, cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let is_whole = !F::CUTS || self.follow.is_none();
        let body = self.body.as_ref().filter(|_| is_whole);
        body.map(B::size_hint).unwrap_or_default()
    }
}

/// Polls `body` until it has ended.
pub fn poll_open(body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
    match body {
        Some(body) => Pin::new(body).poll_frame(cx),
        None => PollFrame::Ready(None),
    }
}

/// Ends a body by the status that `wait` gives, which is begun when the body has nothing ready: most have no need of it.
pub struct CutOff<W, F> {
    wait: W,
    waiting: Option<Pin<Box<F>>>,
}

impl<W: FnMut() -> F, F> CutOff<W, F> {
    /// After `wait`.
    pub fn new(wait: W) -> Self {
        Self { wait, waiting: None }
    }
}

impl<W, F> Follow for CutOff<W, F>
where
    W: FnMut() -> F + Send + Unpin + 'static,
    F: Future<Output = Status> + Send + 'static,
{
    const CUTS: bool = true;

    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        // What is ready goes first: the last message is whole, and an answer that made it in time is one.
        if let Poll::Ready(frame) = poll_open(body, cx) {
            return Poll::Ready(frame);
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin((self.wait)()));
        let status = ready!(waiting.as_mut().poll(cx));
        // Dropping it stops the stream's work.
        *body = None;
        Poll::Ready(Some(trailers(status)))
    }
}

/// What is kept until a body is dropped: its end may be read long before it is sent.
pub(crate) struct Kept<T> {
    _held: T,
}

/// Keeps `held`, if there is anything to keep, until the body is dropped. What has no body has ended.
pub(crate) fn hold_until_dropped<B: AnswerBody, T>(
    response: Response<B>,
    held: Option<T>,
) -> Response<FollowedBody<B, Kept<T>>> {
    let held = held.filter(|_| !response.body().is_end_stream());
    followed(response, held.map(|held| Kept { _held: held }))
}

impl<T: Send + Unpin + 'static> Follow for Kept<T> {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        poll_open(body, cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http_body_util::BodyExt as _;
    use tonic::{Code, Status};

    use super::*;
    use crate::layers::refuse;
    use crate::layers::testing::stream;

    #[tokio::test]
    async fn it_is_kept_until_the_body_is_dropped_also_behind_its_end() {
        let held = Arc::new(());
        let keep = |response| hold_until_dropped(response, Some(Arc::clone(&held)));
        let mut sent = keep(stream(1, Duration::ZERO, Code::Ok)).into_body();
        assert!(
            sent.frame()
                .await
                .is_some_and(|frame| frame.is_ok_and(|frame| frame.is_data()))
        );
        assert_eq!(Arc::strong_count(&held), 2);
        assert!(
            sent.frame()
                .await
                .is_some_and(|frame| frame.is_ok_and(|frame| frame.is_trailers()))
        );
        assert!(sent.frame().await.is_none());
        assert_eq!(Arc::strong_count(&held), 2, "nobody may have taken it yet");
        drop(sent);
        assert_eq!(Arc::strong_count(&held), 1);

        let dropped = keep(stream(1, Duration::ZERO, Code::Ok));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(dropped);
        assert_eq!(Arc::strong_count(&held), 1);

        let _refused = keep(refuse(Status::not_found("nothing")));
        assert_eq!(Arc::strong_count(&held), 1, "headers say all");
    }
}
