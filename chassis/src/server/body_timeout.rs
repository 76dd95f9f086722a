//! Timeout for the first bytes of a request's body: a client that sends headers alone holds a place that others could work in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;
use tonic::Status;

use crate::status::StatusBuilder;

/// A body whose first bytes come in time, counted from when somebody waits for them.
pub(super) struct Begins<B> {
    body: B,
    max: Duration,
    begun: bool,
    /// `None` while nobody has waited: mostly the bytes come with the headers.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> Begins<B> {
    pub(super) fn within(max: Duration, body: B) -> Self {
        Self {
            body,
            max,
            begun: false,
            timer: None,
        }
    }
}

impl<D: Buf, B: Body<Data = D, Error = Status> + Unpin> Body for Begins<B> {
    type Data = D;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<D>, Status>>> {
        let this = &mut *self;
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        if this.begun || frame.is_ready() {
            (this.begun, this.timer) = (true, None);
            return frame;
        }
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(this.max)));
        ready!(timer.as_mut().poll(cx));
        this.begun = true;
        Poll::Ready(Some(Err(late(this.max))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn late(max: Duration) -> Status {
    let millis = max.as_millis();
    let message = format!(
        "the first bytes of the request didn't come within {millis} ms (server.body_timeout); send them with its headers"
    );
    StatusBuilder::deadline_exceeded("BODY_TIMEOUT", message)
        .metadata("timeout_ms", millis)
        .build()
}
