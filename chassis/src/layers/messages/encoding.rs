//! gzip and zstd, bounded.

use std::io::{self, Read, Write as _};

use bytes::Bytes;
use http::HeaderMap;
use tonic::Status;

use super::GRPC_ACCEPT_ENCODING;

/// Largest window of a zstd frame we read, as a power of two: more than any message has.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Level of both encodings: fast, since a call waits for it.
const LEVEL: u8 = 1;

/// Bytes of the first prefix of a message that is checked while the rest arrives.
pub(super) const PREFIX_BYTES_MIN: usize = 64 * 1024;

/// How much longer the next one is: all checks of prefixes together cost at most a third of the check of the whole.
pub(super) const PREFIX_GROWTH: usize = 4;

/// How messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// Its name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The encoding of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Zstd, Self::Gzip]
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }

    /// The best encoding the client reads; `None` when it reads none of ours.
    pub fn choose(headers: &HeaderMap) -> Option<Self> {
        let accepted = headers.get_all(GRPC_ACCEPT_ENCODING);
        let names: Vec<&str> = accepted.iter().filter_map(|value| value.to_str().ok()).collect();
        let reads = |encoding: &Self| {
            names
                .iter()
                .any(|list| list.split(',').any(|name| name.trim() == encoding.name()))
        };
        [Self::Zstd, Self::Gzip].into_iter().find(reads)
    }

    /// The compressed form of `message`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn pack(self, message: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => {
                let level = flate2::Compression::new(u32::from(LEVEL));
                let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(message.len() / 2), level);
                encoder.write_all(message)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(message, i32::from(LEVEL)),
        }
    }

    /// The plain form of `message`, of at most `bytes_max` bytes. `check` sees prefixes of it that grow fourfold, so that what it
    /// refuses isn't unpacked to its end.
    ///
    /// # Errors
    /// [`UnpackError`].
    pub fn unpack(
        self,
        message: &[u8],
        bytes_max: usize,
        check: impl FnMut(&[u8]) -> Result<(), Status>,
    ) -> Result<Bytes, UnpackError> {
        match self {
            Self::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(message), bytes_max, check),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(message)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                read_bounded(decoder, bytes_max, check)
            }
        }
    }
}

/// Why a message wasn't unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It isn't of that encoding.
    #[error("not of that encoding")]
    Malformed(#[from] io::Error),
    /// It has more bytes than may be.
    #[error("too many bytes")]
    TooLarge,
    /// The check of a prefix refused it.
    #[error(transparent)]
    Refused(#[from] Status),
}

fn read_bounded(
    mut reader: impl Read,
    bytes_max: usize,
    mut check: impl FnMut(&[u8]) -> Result<(), Status>,
) -> Result<Bytes, UnpackError> {
    let mut plain = Vec::new();
    let mut prefix = PREFIX_BYTES_MIN;
    loop {
        let wanted = prefix
            .min(bytes_max.saturating_add(1))
            .saturating_sub(plain.len());
        let read = reader.by_ref().take(wanted as u64).read_to_end(&mut plain)?;
        if plain.len() > bytes_max {
            return Err(UnpackError::TooLarge);
        }
        if read < wanted {
            return Ok(plain.into());
        }
        check(&plain)?;
        prefix = prefix.saturating_mul(PREFIX_GROWTH);
    }
}
