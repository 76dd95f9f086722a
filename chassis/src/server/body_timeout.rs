//! Timeout for the first bytes of a request's body: a client that sends headers alone holds a place that others could work in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;

use crate::layers::body::{Follow, poll_open};
use crate::layers::{AnswerBody, PollFrame};
use crate::status::StatusBuilder;

/// Has the first bytes of a body come in time, counted from when somebody waits for them.
pub(super) struct Begins {
    max: Duration,
    begun: bool,
    /// `None` while nobody has waited: mostly the bytes come with the headers.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Begins {
    pub(super) fn within(max: Duration) -> Self {
        let (begun, timer) = (false, None);
        Self { max, begun, timer }
    }
}

impl Follow for Begins {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        let frame = poll_open(body, cx);
        if self.begun || frame.is_ready() {
            (self.begun, self.timer) = (true, None);
            return frame;
        }
        let timer = || Box::pin(tokio::time::sleep(self.max));
        ready!(self.timer.get_or_insert_with(timer).as_mut().poll(cx));
        self.begun = true;
        let millis = self.max.as_millis();
        let message = format!(
            "the first bytes of the request didn't come within {millis} ms (server.body_timeout); send them with its headers"
        );
        let status = StatusBuilder::deadline_exceeded("BODY_TIMEOUT", message);
        Poll::Ready(Some(Err(status.metadata("timeout_ms", millis).build())))
    }
}
