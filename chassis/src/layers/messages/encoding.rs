//! gzip and zstd, bounded.

use std::io::{self, Read, Write as _};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use tonic::{Code, Status};

use super::frame::{PREFIX_BYTES_MIN, PREFIX_GROWTH, too_large};
use crate::status::StatusBuilder;

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
    /// The best first.
    const ALL: [Self; 2] = [Self::Zstd, Self::Gzip];

    /// Its name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The encoding in a header of that value; `None` for plain.
    ///
    /// # Errors
    /// `code`, for `what` is encoded in a way that isn't known here.
    pub fn named(code: Code, what: &str, name: Option<&[u8]>) -> Result<Option<Self>, Status> {
        let Some(name) = name.filter(|name| !name.is_empty() && *name != b"identity") else {
            return Ok(None);
        };
        let mut all = Self::ALL.into_iter();
        let known = all.find(|encoding| encoding.name().as_bytes() == name);
        known.map(Some).ok_or_else(|| {
            let given = String::from_utf8_lossy(name);
            let message = format!("{what} encoded as {given:?} can't be read; use identity, gzip or zstd");
            let refusal = StatusBuilder::new(code, "ENCODING_UNSUPPORTED", message);
            refusal.metadata("encoding", given).build()
        })
    }

    /// The best encoding that a client takes, by the lists in the headers of that name; `None` when it takes none of ours.
    pub fn accepted(headers: &HeaderMap, name: &HeaderName) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|encoding| encoding.is_accepted(headers, name))
    }

    /// Whether a client takes this encoding, by the same.
    pub fn is_accepted(self, headers: &HeaderMap, name: &HeaderName) -> bool {
        let lists = headers.get_all(name);
        let lists = lists.iter().filter_map(|value| value.to_str().ok());
        lists.flat_map(|list| list.split(',')).any(|part| {
            let mut part = part.split(';').map(str::trim);
            let name = part.next().unwrap_or_default();
            let quality = part.find_map(|parameter| parameter.strip_prefix("q=")?.parse::<f32>().ok());
            name.eq_ignore_ascii_case(self.name()) && quality.is_none_or(|quality| quality > 0.0)
        })
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
    /// INVALID_ARGUMENT when it isn't of that encoding, RESOURCE_EXHAUSTED when it has more bytes, and those of `check`.
    pub fn unpack(
        self,
        message: &[u8],
        bytes_max: usize,
        check: impl FnMut(&[u8]) -> Result<(), Status>,
    ) -> Result<Bytes, Status> {
        let malformed = |error: io::Error| {
            let name = self.name();
            let message = format!("the message is not {name}: send it plain or compress it again");
            let refusal = StatusBuilder::invalid_argument("ENCODING_MALFORMED", message);
            refusal.source(error).build()
        };
        match self {
            Self::Gzip => {
                let decoder = flate2::read::MultiGzDecoder::new(message);
                read_bounded(decoder, bytes_max, check, malformed)
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(message).map_err(malformed)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(malformed)?;
                read_bounded(decoder, bytes_max, check, malformed)
            }
        }
    }
}

fn read_bounded(
    mut reader: impl Read,
    bytes_max: usize,
    mut check: impl FnMut(&[u8]) -> Result<(), Status>,
    malformed: impl Fn(io::Error) -> Status,
) -> Result<Bytes, Status> {
    let mut plain = Vec::new();
    let mut prefix = PREFIX_BYTES_MIN;
    loop {
        let wanted = prefix
            .min(bytes_max.saturating_add(1))
            .saturating_sub(plain.len());
        let read = reader.by_ref().take(wanted as u64).read_to_end(&mut plain);
        let read = read.map_err(&malformed)?;
        if plain.len() > bytes_max {
            return Err(too_large(plain.len(), bytes_max));
        }
        if read < wanted {
            return Ok(plain.into());
        }
        check(&plain)?;
        prefix = prefix.saturating_mul(PREFIX_GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT_ENCODING, HeaderValue};

    use super::*;

    #[test]
    fn the_best_encoding_that_is_taken() {
        for (text, best) in [
            ("gzip, deflate, br, zstd", Some(Encoding::Zstd)),
            ("gzip;q=0.5", Some(Encoding::Gzip)),
            ("zstd;q=0, gzip", Some(Encoding::Gzip)),
            ("br", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(text))]);
            assert_eq!(Encoding::accepted(&headers, &ACCEPT_ENCODING), best, "{text}");
        }
    }
}
