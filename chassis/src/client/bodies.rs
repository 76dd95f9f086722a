//! The bodies of a call: the request's on its way to the server, and the answer's as it comes from there.

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

/// The body of a request. It is cancelled when nobody wants the answer any more.
#[derive(Debug)]
pub(super) struct Upload {
    body: Body,
    broken: Arc<OnceLock<Status>>,
    unwanted: oneshot::Receiver<Infallible>,
}

/// What is known of an [`Upload`] by the call that it belongs to. Dropped, it cancels what is still sent.
#[derive(Debug)]
pub(super) struct Wanted {
    broken: Arc<OnceLock<Status>>,
    _until: oneshot::Sender<Infallible>,
}

impl Upload {
    pub(super) fn new(body: Body) -> (Self, Wanted) {
        let (until, unwanted) = oneshot::channel();
        let broken = Arc::default();
        let wanted = Wanted {
            broken: Arc::clone(&broken),
            _until: until,
        };
        let upload = Self {
            body,
            broken,
            unwanted,
        };
        (upload, wanted)
    }
}

impl Wanted {
    /// What the body broke off with, if it did.
    pub(super) fn broken(&self) -> Option<Status> {
        self.broken.get().cloned()
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame<h2::Error> {
        let this = &mut *self;
        if Pin::new(&mut this.unwanted).poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Reason::CANCEL.into())));
        }
        loop {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            // Empty frames say nothing, and a connection ends with few of them (`MAX_RECV_EMPTY_DATA_FRAMES` of h2), whoever sent them.
            if matches!(&frame, Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty)) {
                continue;
            }
            return Poll::Ready(frame.map(|frame| {
                frame.map_err(|status| {
                    // It ends once.
                    let _ = this.broken.set(status);
                    Reason::CANCEL.into()
                })
            }));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// The body of an answer. A connection that breaks on the way is the end of the call with a status, not of the stream. Dropped before its
/// end, the call is cancelled: at once where nothing of the request waits to be sent, and else when its server has room for that, or ends it.
pub(super) struct Answer {
    body: Incoming,
    /// With trailers.
    ended: bool,
    backend: Arc<str>,
    _wanted: Wanted,
}

impl Answer {
    pub(super) fn new(body: Incoming, backend: Arc<str>, wanted: Wanted) -> Self {
        Self {
            body,
            ended: false,
            backend,
            _wanted: wanted,
        }
    }
}

impl http_body::Body for Answer {
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
            // A call ends with trailers, and hyper doesn't tell of all resets.
            None => trailers(broke_off()),
        };
        self.ended = true;
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
