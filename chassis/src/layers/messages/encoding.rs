//! gzip and zstd, bounded.

use std::io::{self, Read, Write as _};

use bytes::Bytes;
use http::HeaderMap;

use super::GRPC_ACCEPT_ENCODING;

/// Largest window of a zstd frame we read, as a power of two: more than any message has.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Level of both encodings: fast, since a call waits for it.
const LEVEL: u8 = 1;

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

    /// The plain form of `message`; `None` when it has more than `bytes_max` bytes.
    ///
    /// # Errors
    /// When it isn't what it says.
    pub fn unpack(self, message: &[u8], bytes_max: usize) -> io::Result<Option<Bytes>> {
        match self {
            Self::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(message), bytes_max),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(message)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                read_bounded(decoder, bytes_max)
            }
        }
    }
}

fn read_bounded(reader: impl Read, bytes_max: usize) -> io::Result<Option<Bytes>> {
    let mut plain = Vec::new();
    let one_more = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(one_more).read_to_end(&mut plain)?;
    Ok((plain.len() <= bytes_max).then(|| plain.into()))
}
