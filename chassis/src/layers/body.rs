//! The body of a layer's answer: what is inside, and what the layer does to its frames.

use std::pin::Pin;
use std::task::Context;

use bytes::Bytes;
use http::Response;
use http_body::SizeHint;
use tonic::Status;

use super::{AnswerBody, PollFrame};

/// What a layer does to the frames of a body.
pub(crate) trait Follow: Send + Unpin + 'static {
    /// May it end the body before its end?
    const CUTS: bool = false;

    /// The next frame of `body`, which has ended, and isn't polled again, once it is `None`.
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame;
}

/// A body that a layer follows to its end, if there is anything to follow it for. By default it is that of a refusal, and empty.
pub(crate) struct FollowedBody<B, F> {
    body: Option<B>,
    follow: Option<F>,
}

impl<B, F> Default for FollowedBody<B, F> {
    fn default() -> Self {
        Self {
            body: None,
            follow: None,
        }
    }
}

impl<B, F> FollowedBody<B, F> {
    pub(crate) fn new(body: B, follow: Option<F>) -> Self {
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
pub(crate) fn poll_open(body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
    match body {
        Some(body) => Pin::new(body).poll_frame(cx),
        None => PollFrame::Ready(None),
    }
}
