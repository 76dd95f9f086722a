//! The frame of a gRPC message: a flag byte, the length in four bytes big-endian, the message.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tonic::Status;

use super::decoded::MessageLimits;
use crate::status::StatusBuilder;

pub(super) const HEADER_BYTES: usize = 5;

/// Bytes of the first prefix of a message that is checked while the rest arrives.
pub(super) const PREFIX_BYTES_MIN: usize = 64 * 1024;

/// How much longer the next one is: all checks of prefixes together cost at most a third of the check of the whole.
pub(super) const PREFIX_GROWTH: usize = 4;

/// What stands in front of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) compressed: bool,
    pub(super) bytes: usize,
}

impl Header {
    pub(super) fn read([flag, length @ ..]: [u8; HEADER_BYTES]) -> Result<Self, Status> {
        let bytes = u32::from_be_bytes(length);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match flag {
            0 | 1 => Ok(Self {
                compressed: flag == 1,
                bytes,
            }),
            flag => {
                let message = format!("a message begins with the flag {flag}; gRPC has 0 and 1");
                let refusal = StatusBuilder::invalid_argument("FRAME_MALFORMED", message);
                Err(refusal.metadata("flag", flag).build())
            }
        }
    }

    pub(super) fn within(self, bytes_max: usize) -> Result<Self, Status> {
        if self.bytes <= bytes_max {
            Ok(self)
        } else {
            Err(too_large(self.bytes, bytes_max))
        }
    }
}

/// The refusal of a message beyond the limit; `bytes` is what is known of its size.
pub(super) fn too_large(bytes: usize, bytes_max: usize) -> Status {
    let message = format!(
        "a message of {bytes} bytes or more was sent, at most {bytes_max} are taken; send less at a time"
    );
    StatusBuilder::resource_exhausted("MESSAGE_TOO_LARGE", message)
        .metadata("limit_bytes", bytes_max)
        .metadata("actual_bytes", bytes)
        .build()
}

/// The refusal of what comes behind the one message that an RPC takes, with the code that gRPC has for that.
pub(super) fn too_many() -> Status {
    let message = "the call takes one message, and more was sent behind it; make a call for each";
    StatusBuilder::unimplemented("ONE_MESSAGE_MAX", message).build()
}

/// Follows the frames through chunks of any size, copying nothing but headers, and messages that have to be seen whole.
#[derive(Debug, Default)]
pub(super) struct FrameScanner {
    header: [u8; HEADER_BYTES],
    filled: usize,
    left: usize,
    /// Messages that have begun.
    begun: usize,
    /// What has arrived of a message that has to be seen whole.
    content: Option<Vec<u8>>,
    /// Bytes of the next prefix of it that is checked.
    prefix: usize,
}

impl FrameScanner {
    /// Scans the next chunk; fails at the first frame that is malformed, one too many, or beyond the limits.
    pub(super) fn scan(&mut self, mut chunk: &[u8], limits: &MessageLimits) -> Result<(), Status> {
        while !chunk.is_empty() {
            if self.left > 0 {
                let passed = self.left.min(chunk.len());
                self.left -= passed;
                if let Some(content) = &mut self.content {
                    content.extend_from_slice(&chunk[..passed]);
                    if content.len() >= self.prefix {
                        limits.check(content, false)?;
                        self.prefix = content.len().saturating_mul(PREFIX_GROWTH);
                    }
                }
                chunk.advance(passed);
                // Nobody decodes it before its last part, which is held back until here.
                if self.left == 0
                    && let Some(content) = self.content.take()
                {
                    limits.check(&content, true)?;
                }
            } else if self.begun > 0 && !limits.is_stream {
                return Err(too_many());
            } else {
                let wanted = HEADER_BYTES - self.filled;
                let taken = wanted.min(chunk.len());
                if let Some(part) = self.header.get_mut(self.filled..self.filled + taken) {
                    chunk.copy_to_slice(part);
                }
                self.filled += taken;
                if self.filled == HEADER_BYTES {
                    let header = Header::read(self.header)?.within(limits.bytes_max)?;
                    self.left = header.bytes;
                    self.filled = 0;
                    self.begun += 1;
                    self.content = limits.concerns(header.bytes).map(|_| Vec::new());
                    self.prefix = PREFIX_BYTES_MIN;
                }
            }
        }
        Ok(())
    }
}

/// Takes the next whole frame off the front of `buffer`; `None` while it isn't all there. Fails as soon as its header is there.
pub(super) fn next(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<(Header, Bytes)>, Status> {
    let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let header = Header::read(*header)?.within(bytes_max)?;
    if buffer.len() - HEADER_BYTES < header.bytes {
        return Ok(None);
    }
    buffer.advance(HEADER_BYTES);
    Ok(Some((header, buffer.split_to(header.bytes).freeze())))
}

/// `message` in a frame of its own, with these flags: 0 when it isn't compressed. Connect's envelopes are the same, with more flags.
pub fn framed(flags: u8, message: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out, flags, message);
    out.freeze()
}

/// Adds a frame. Lengths beyond 32 bits can't be: messages are limited far below.
pub(super) fn write(out: &mut BytesMut, flags: u8, message: &[u8]) {
    let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX);
    out.reserve(HEADER_BYTES + message.len());
    out.put_u8(flags);
    out.put_u32(bytes);
    out.put_slice(message);
}

/// Takes the next whole message off the front of `buffer`; `None` while it isn't all there. For answers to calls that
/// asked for none compressed.
///
/// # Errors
/// As soon as its header is there, when it is malformed, compressed, or announces more than `bytes_max` bytes.
pub fn take_plain(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Bytes>, Status> {
    match next(buffer, bytes_max)? {
        Some((Header { compressed: true, .. }, _)) => {
            let message = "the service compressed its answer, and wasn't asked to";
            Err(StatusBuilder::internal(message).build())
        }
        Some((_, message)) => Ok(Some(message)),
        None => Ok(None),
    }
}
