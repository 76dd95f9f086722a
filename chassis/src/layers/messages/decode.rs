//! Request bodies: checked as they pass, or unpacked.

use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::Status;
use tonic::body::Body;

use super::complaint::Complaint;
use super::decoded::MessageLimits;
use super::encoding::Encoding;
use super::frame::{self, FrameScanner};
use crate::layers::body::{Follow, poll_open};
use crate::layers::{AnswerBody, PollFrame};

/// Bytes of messages that are unpacked until others have their turn.
const TURN_BYTES: usize = 64 * 1024;

/// What each message counts of them at least: a small one takes its time, too.
const TURN_BYTES_MIN: usize = 1024;

/// Holds the messages of a body to the limits; the bytes pass unchanged.
pub(super) struct MessageCheck {
    pub(super) scanner: FrameScanner,
    pub(super) limits: MessageLimits,
    pub(super) complaint: Complaint,
}

impl Follow for MessageCheck {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        let frame = ready!(poll_open(body, cx));
        let wrong = match &frame {
            Some(Ok(frame)) => frame
                .data_ref()
                .and_then(|data| self.scanner.scan(data, &self.limits).err()),
            // What was in front of this layer couldn't make messages of what it read.
            Some(Err(status)) => Some(status.clone()),
            None => None,
        };
        Poll::Ready(match wrong {
            Some(status) => {
                *body = None;
                Some(Err(self.complaint.raise(status)))
            }
            None => frame,
        })
    }
}

/// The messages of `body`, unpacked.
pub(super) fn unpacked(body: Body, encoding: Encoding, limits: MessageLimits, complaint: Complaint) -> Body {
    let unpacking = Unpacking {
        body,
        encoding,
        limits,
        buffer: BytesMut::new(),
        begun: false,
        turn: 0,
    };
    let frames = stream::try_unfold((unpacking, complaint), |(mut unpacking, complaint)| async move {
        match unpacking.next().await {
            Ok(next) => Ok(next.map(|message| (Frame::data(message), (unpacking, complaint)))),
            Err(status) => Err(complaint.raise(status)),
        }
    });
    Body::new(StreamBody::new(frames))
}

struct Unpacking {
    body: Body,
    encoding: Encoding,
    limits: MessageLimits,
    /// What has arrived of the message that isn't all there yet: at most one message and one chunk.
    buffer: BytesMut,
    /// Whether a message has been there.
    begun: bool,
    /// Bytes unpacked in this turn.
    turn: usize,
}

impl Unpacking {
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        // Many that are small as they come may be unpacked for whoever reads on: the thread has other connections.
        if self.turn >= TURN_BYTES {
            self.turn = 0;
            tokio::task::yield_now().await;
        }
        loop {
            if let Some(message) = self.message()? {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                // Requests of gRPC have no trailers.
                Some(frame) => self
                    .buffer
                    .extend_from_slice(&frame?.into_data().unwrap_or_default()),
                // A message cut off by the end is passed on as it is: the decoder behind has the words for it.
                None => return Ok(Some(self.buffer.split().freeze()).filter(|rest| !rest.is_empty())),
            }
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
        Ok(Some(frame::framed(0, &plain)))
    }
}
