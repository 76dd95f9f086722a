//! Response bodies whose messages are compressed when it is worth it.

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::Status;
use tonic::body::Body;

use super::encoding::Encoding;
use super::frame;
use crate::status::StatusBuilder;

/// Smallest message that is compressed, in bytes: smaller ones fit into one packet anyway.
pub const COMPRESS_BYTES_MIN: usize = 1024;

/// `body` with its messages compressed, where that is worth it.
pub(super) fn packed(body: Body, encoding: Encoding) -> Body {
    let packing = Packing {
        body,
        encoding,
        buffer: BytesMut::new(),
        last: None,
    };
    let frames = stream::unfold(packing, |mut packing| async move {
        let frame = packing.next().await?;
        Some((frame, packing))
    });
    Body::new(StreamBody::new(frames))
}

struct Packing {
    body: Body,
    encoding: Encoding,
    /// The message that isn't all there yet.
    buffer: BytesMut,
    /// Trailers, or an error, that came behind messages still to be sent.
    last: Option<Result<Frame<Bytes>, Status>>,
}

impl Packing {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, Status>> {
        if self.last.is_some() {
            return self.last.take();
        }
        loop {
            let last = self.body.frame().await;
            if let Some(Ok(frame)) = &last
                && let Some(data) = frame.data_ref()
            {
                self.buffer.extend_from_slice(data);
                match self.messages() {
                    Ok(messages) if messages.is_empty() => continue,
                    messages => return Some(messages.map(Frame::data)),
                }
            }
            if self.buffer.is_empty() {
                return last;
            }
            // Half a message at the end is the service's mistake; the client shall see it as it is.
            self.last = last;
            return Some(Ok(Frame::data(self.buffer.split().freeze())));
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
                    StatusBuilder::internal_from("the response couldn't be compressed", error)
                })?;
                Some(packed).filter(|packed| packed.len() < message.len())
            };
            let (compressed, bytes) = match &packed {
                Some(packed) => (true, packed.as_slice()),
                None => (header.compressed, message.as_ref()),
            };
            frame::write(&mut out, compressed.into(), bytes);
        }
        Ok(out.freeze())
    }
}
