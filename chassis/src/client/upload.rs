//! The body of a request on its way to the server.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body as _;
use tonic::Status;
use tonic::body::Body;

/// A body in pieces, of which the last is known as such where that can be seen without waiting.
pub(super) struct Pieces {
    body: Body,
    /// Not given yet: it may be the last.
    held: Option<Bytes>,
    ended: bool,
}

/// A piece, and is it the last?
pub(super) type Piece = (Bytes, bool);

impl Pieces {
    pub(super) fn of(body: Body) -> Self {
        Self {
            ended: body.is_end_stream(),
            body,
            held: None,
        }
    }

    /// The next piece; none when there was a last one, or nothing.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
        loop {
            if self.ended {
                return Poll::Ready(self.held.take().map(|last| Ok((last, true))));
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(None) => self.ended = true,
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Ready(Some(Ok(frame))) => {
                    self.ended = self.body.is_end_stream();
                    // Requests of gRPC have no trailers.
                    let Ok(piece) = frame.into_data() else { continue };
                    if let Some(before) = self.held.replace(piece) {
                        return Poll::Ready(Some(Ok((before, false))));
                    }
                }
                Poll::Pending => {
                    return match self.held.take() {
                        Some(piece) => Poll::Ready(Some(Ok((piece, false)))),
                        None => Poll::Pending,
                    };
                }
            }
        }
    }
}

/// What is still to be sent of a body. It ends when all of it is, or the server wants no more; what that means is told by the answer.
pub(super) struct Upload {
    pieces: Pieces,
    stream: SendStream<Bytes>,
    /// Waits until the server takes some of it.
    next: Option<Piece>,
}

impl Upload {
    pub(super) fn new(pieces: Pieces, stream: SendStream<Bytes>) -> Self {
        Self {
            pieces,
            stream,
            next: None,
        }
    }
}

impl Future for Upload {
    /// Fails when the body does; the server is told that the call is over.
    type Output = Result<(), Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            if this.stream.poll_reset(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if this.next.is_some() {
                while this.stream.capacity() == 0 {
                    match ready!(this.stream.poll_capacity(cx)) {
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => return Poll::Ready(Ok(())),
                    }
                }
            }
            if let Some((piece, last)) = this.next.take() {
                let sent = this.stream.send_data(piece, last);
                if last || sent.is_err() {
                    return Poll::Ready(Ok(()));
                }
            }
            match ready!(this.pieces.poll_next(cx)) {
                Some(Ok((piece, false))) if piece.is_empty() => {}
                Some(Ok(piece)) if !piece.0.is_empty() => {
                    // Asked for only now that there is something to send, and not for all of it: what one call reserves and doesn't
                    // use is missing to the others on the connection.
                    this.stream.reserve_capacity(1);
                    this.next = Some(piece);
                }
                Some(Err(status)) => {
                    this.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(Err(status));
                }
                Some(Ok(_)) | None => {
                    // It fails where nobody waits for it any more.
                    let _ = this.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}
