//! Request bodies: checked as they pass, or unpacked.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use super::complaint::Complaint;
use super::decoded::Limits;
use super::encoding::Encoding;
use super::frame::{self, FrameScanner};
use crate::layers::PollFrame;

/// Bytes of messages that are unpacked until others have their turn.
const TURN_BYTES: usize = 64 * 1024;

/// What each message counts of them at least: a small one takes its time, too.
const TURN_BYTES_MIN: usize = 1024;

/// A body whose messages keep the limits; the bytes pass unchanged.
pub(super) struct CheckedBody {
    body: Body,
    scanner: FrameScanner,
    limits: Limits,
    complaint: Complaint,
}

impl CheckedBody {
    pub(super) fn new(body: Body, limits: Limits, complaint: Complaint) -> Self {
        Self {
            body,
            scanner: FrameScanner::default(),
            limits,
            complaint,
        }
    }
}

impl http_body::Body for CheckedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        let wrong = match &frame {
            Some(Ok(frame)) => frame
                .data_ref()
                .and_then(|data| this.scanner.scan(data, &this.limits).err()),
            // What was in front of this layer couldn't make messages of what it read.
            Some(Err(status)) => Some(status.clone()),
            None => None,
        };
        Poll::Ready(match wrong {
            Some(status) => {
                this.body = Body::empty();
                Some(Err(this.complaint.raise(status)))
            }
            None => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pub(super) struct DecodedBody {
    body: Body,
    encoding: Encoding,
    limits: Limits,
    /// What has arrived of the message that isn't all there yet: at most one message and one chunk.
    buffer: BytesMut,
    /// Whether a message has been there.
    begun: bool,
    /// Bytes unpacked in this turn.
    turn: usize,
    trailers: Option<HeaderMap>,
    complaint: Complaint,
}

impl DecodedBody {
    pub(super) fn new(body: Body, encoding: Encoding, limits: Limits, complaint: Complaint) -> Self {
        Self {
            body,
            encoding,
            limits,
            buffer: BytesMut::new(),
            begun: false,
            turn: 0,
            trailers: None,
            complaint,
        }
    }

    /// The next message with a new header, if it is all there.
    fn message(&mut self) -> Result<Option<Bytes>, Status> {
        if self.begun && !self.limits.is_stream && !self.buffer.is_empty() {
            return Err(frame::too_many());
        }
        let Some((header, message)) = frame::next(&mut self.buffer, self.limits.bytes_max)? else {
            return Ok(None);
        };
        let plain = if header.compressed {
            let check = |prefix: &[u8]| self.limits.check(prefix, false);
            self.encoding.unpack(&message, self.limits.bytes_max, check)?
        } else {
            message
        };
        self.limits.check(&plain, true)?;
        self.begun = true;
        self.turn += plain.len().max(TURN_BYTES_MIN);
        Ok(Some(frame::framed(&plain)))
    }
}

impl http_body::Body for DecodedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        let this = &mut *self;
        // Many that are small as they come may be unpacked for whoever reads on: the thread has other connections.
        if this.turn >= TURN_BYTES {
            this.turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            match this.message() {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(Frame::data(message)))),
                Ok(None) => {}
                Err(status) => {
                    this.body = Body::empty();
                    this.buffer.clear();
                    return Poll::Ready(Some(Err(this.complaint.raise(status))));
                }
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.buffer.extend_from_slice(&data),
                    Err(frame) => this.trailers = frame.into_trailers().ok(),
                },
                Some(Err(status)) => {
                    this.body = Body::empty();
                    return Poll::Ready(Some(Err(this.complaint.raise(status))));
                }
                // A message cut off by the end is passed on as it is: the decoder behind has the words for it.
                None if !this.buffer.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(this.buffer.split().freeze()))));
                }
                None => {
                    return Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.buffer.is_empty() && self.trailers.is_none() && self.body.is_end_stream()
    }
}
