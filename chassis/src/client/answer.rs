//! The body of an answer as it comes from the server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http_body::Frame;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use super::channel::unavailable;
use super::ended::Ended;
use crate::layers::outcome;

/// A connection that breaks on the way is the end of the call with a status, not of the stream. Dropped before its end, the call is
/// cancelled, also what is still sent for it.
pub(super) struct Answer {
    /// Until it has ended.
    stream: Option<RecvStream>,
    ended: Ended,
    at: Part,
    backend: Arc<str>,
    /// The rest of the request, of a call whose answer began before.
    upload: Option<AbortOnDropHandle<Result<(), Status>>>,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
    Nothing,
}

impl Answer {
    pub(super) fn new(
        stream: RecvStream,
        ended: Ended,
        backend: Arc<str>,
        upload: Option<AbortOnDropHandle<Result<(), Status>>>,
    ) -> Self {
        Self {
            stream: Some(stream),
            ended,
            at: Part::Data,
            backend,
            upload,
        }
    }

    fn broken(&mut self, error: h2::Error) -> Option<Result<Frame<Bytes>, Status>> {
        self.at = Part::Nothing;
        // All was said before, and what was still sent isn't wanted (RFC 9113, 8.1).
        if error.reason() == Some(Reason::NO_ERROR) && error.is_reset() {
            return None;
        }
        let status = unavailable(&self.backend, "broke off its response").source(error);
        Some(outcome::trailers(&status.build()))
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        if this.at == Part::Data {
            match ready!(stream.poll_data(cx)) {
                Some(Ok(bytes)) => {
                    // Whoever takes it is done with it as far as the server is concerned. It fails only after the end of the stream.
                    let _ = stream.flow_control().release_capacity(bytes.len());
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Err(error)) => return Poll::Ready(this.broken(error)),
                None => this.at = Part::Trailers,
            }
        }
        if this.at == Part::Trailers {
            let trailers = ready!(stream.poll_trailers(cx));
            this.at = Part::Nothing;
            return Poll::Ready(match trailers {
                Ok(trailers) => {
                    // What is still sent is cancelled with the stream.
                    if this.upload.is_none() {
                        this.stream
                            .take()
                            .into_iter()
                            .for_each(|ended| this.ended.keep(ended));
                    }
                    trailers.map(|trailers| Ok(Frame::trailers(trailers)))
                }
                Err(error) => this.broken(error),
            });
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.at == Part::Nothing
    }
}
