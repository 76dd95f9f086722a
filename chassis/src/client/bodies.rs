//! The request and response bodies of a call.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tonic::Status;
use tonic::body::Body;

use super::error::unavailable;
use crate::layers::PollFrame;
use crate::status::trailers;

/// The body of a request, which ends with CANCEL when its [`CancelOnDrop`] is dropped.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Body,
    error: Arc<OnceLock<Status>>,
    cancelled: oneshot::Receiver<Infallible>,
}

/// Cancels a [`RequestBody`] when dropped, and has its error.
#[derive(Debug)]
pub(super) struct CancelOnDrop {
    error: Arc<OnceLock<Status>>,
    _cancel: oneshot::Sender<Infallible>,
}

impl RequestBody {
    pub(super) fn new(body: Body) -> (Self, CancelOnDrop) {
        let (_cancel, cancelled) = oneshot::channel();
        let error = Arc::<OnceLock<Status>>::default();
        let request = Self {
            body,
            error: Arc::clone(&error),
            cancelled,
        };
        (request, CancelOnDrop { error, _cancel })
    }
}

impl CancelOnDrop {
    /// The error that the body ended with, if it did.
    pub(super) fn error(&self) -> Option<Status> {
        self.error.get().cloned()
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame<h2::Error> {
        let this = &mut *self;
        if Pin::new(&mut this.cancelled).poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Reason::CANCEL.into())));
        }
        loop {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            // h2 closes a connection after a few empty frames (`MAX_RECV_EMPTY_DATA_FRAMES`), and callers share this one.
            if matches!(&frame, Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty)) {
                continue;
            }
            return Poll::Ready(frame.map(|frame| {
                frame.map_err(|status| {
                    // A body ends once.
                    let _ = this.error.set(status);
                    Reason::CANCEL.into()
                })
            }));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// The body of a response. A connection that breaks ends it with a status in trailers. Dropped before its end, it cancels the call: at once,
/// or, while a part of the request waits for flow control, when the server takes that or resets the stream.
pub(super) struct ResponseBody {
    body: Incoming,
    /// Trailers were read.
    ended: bool,
    backend: Arc<str>,
    _request: CancelOnDrop,
}

impl ResponseBody {
    pub(super) fn new(body: Incoming, backend: Arc<str>, request: CancelOnDrop) -> Self {
        Self {
            body,
            ended: false,
            backend,
            _request: request,
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let broke_off = || unavailable(&self.backend, "broke off its response");
        let frame = match frame {
            Some(Ok(frame)) if frame.is_data() => return Poll::Ready(Some(Ok(frame))),
            Some(Ok(trailers)) => Ok(trailers),
            Some(Err(error)) => trailers(broke_off().source(error)),
            // Without trailers: hyper ends some bodies whose stream was reset without an error.
            None => trailers(broke_off()),
        };
        self.ended = true;
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
