//! Response bodies whose messages are compressed when it is worth it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;

use super::encoding::Encoding;
use super::frame;
use crate::layers::PollFrame;
use crate::status::StatusBuilder;

/// Smallest message that is compressed, in bytes: below, a packet is a packet.
const COMPRESS_BYTES_MIN: usize = 1024;

pub(super) struct EncodedBody {
    body: Body,
    encoding: Encoding,
    /// The message that isn't all there yet.
    buffer: BytesMut,
    /// Trailers, or an error, that came behind messages still to be sent.
    last: Option<Result<Frame<Bytes>, Status>>,
}

impl EncodedBody {
    pub(super) fn new(body: Body, encoding: Encoding) -> Self {
        Self {
            body,
            encoding,
            buffer: BytesMut::new(),
            last: None,
        }
    }

    /// All whole messages that have arrived, in one piece.
    fn messages(&mut self) -> Result<Bytes, Status> {
        let mut out = BytesMut::new();
        // Our own messages: their size is the service's business.
        while let Some((header, message)) = frame::next(&mut self.buffer, usize::MAX)? {
            let packed = if header.compressed || message.len() < COMPRESS_BYTES_MIN {
                None
            } else {
                let packed = self.encoding.pack(&message).map_err(|error| {
                    StatusBuilder::internal("the response couldn't be compressed")
                        .source(error)
                        .build()
                })?;
                Some(packed).filter(|packed| packed.len() < message.len())
            };
            let (compressed, bytes) = match &packed {
                Some(packed) => (true, packed.as_slice()),
                None => (header.compressed, message.as_ref()),
            };
            frame::write(&mut out, compressed, bytes);
        }
        Ok(out.freeze())
    }
}

impl http_body::Body for EncodedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        let this = &mut *self;
        if let Some(last) = this.last.take() {
            return Poll::Ready(Some(last));
        }
        loop {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            let last = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    this.buffer.extend_from_slice(&data);
                    let messages = this.messages()?;
                    if messages.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(messages))));
                }
                Some(Ok(Err(trailers))) => Some(Ok(trailers)),
                Some(Err(status)) => Some(Err(status)),
                None => None,
            };
            if this.buffer.is_empty() {
                return Poll::Ready(last);
            }
            // Half a message at the end is the service's mistake; the client shall see it as it is.
            this.last = last;
            return Poll::Ready(Some(Ok(Frame::data(this.buffer.split().freeze()))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.buffer.is_empty() && self.body.is_end_stream()
    }
}
