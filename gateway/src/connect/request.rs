//! What a request of Connect says of itself, and the message that it brings.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;
use prost::Message as _;
use prost_reflect::MessageDescriptor;
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::json;
use crate::one_message::Read;

/// Bytes of an envelope in front of its message: flags, then its length.
pub(super) const ENVELOPE_BYTES: usize = 5;

/// The flag of an envelope whose message is compressed.
const COMPRESSED: u8 = 1;

/// Most digits of a time in `connect-timeout-ms`.
const TIMEOUT_DIGITS_MAX: usize = 10;

/// Most digits of a time in `grpc-timeout`.
const GRPC_TIMEOUT_DIGITS_MAX: usize = 8;

/// Base64 in an address: of the alphabet for addresses, with padding or without.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Json,
    Proto,
}

/// The form of a call's messages, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) codec: Codec,
    /// Messages in envelopes, for a stream.
    pub(super) streams: bool,
}

pub(super) fn media_types(streams: bool) -> &'static str {
    if streams {
        "application/connect+json, application/connect+proto"
    } else {
        "application/json, application/proto"
    }
}

impl Shape {
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(CONTENT_TYPE)?;
        if json::is_json(value) {
            return Some(Self {
                codec: Codec::Json,
                streams: false,
            });
        }
        let name = value.to_str().ok()?.split(';').next()?.trim();
        let (codec, streams) = match name.to_ascii_lowercase().as_str() {
            "application/proto" => (Codec::Proto, false),
            "application/connect+json" => (Codec::Json, true),
            "application/connect+proto" => (Codec::Proto, true),
            _ => return None,
        };
        Some(Self { codec, streams })
    }

    /// The shape that the address of a GET names.
    pub(super) fn of_query(query: &str) -> Option<Self> {
        let codec = match &*parameter(query, "encoding")? {
            b"json" => Codec::Json,
            b"proto" => Codec::Proto,
            _ => return None,
        };
        Some(Self {
            codec,
            streams: false,
        })
    }

    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match (self.codec, self.streams) {
            (Codec::Json, false) => "application/json",
            (Codec::Proto, false) => "application/proto",
            (Codec::Json, true) => "application/connect+json",
            (Codec::Proto, true) => "application/connect+proto",
        })
    }
}

/// What a request asks for besides its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) shape: Shape,
    /// How a unary answer may be compressed.
    pub(super) accepts: Option<Encoding>,
}

impl Asked {
    /// Reads the headers, and makes the time that the call has one of gRPC.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another version of the protocol, and for what is no time.
    pub(super) fn read(shape: Shape, request: &mut Request<Body>) -> Result<Self, Status> {
        let version = match *request.method() {
            Method::GET => parameter(request.uri().query().unwrap_or_default(), "connect")
                .map(|version| version.strip_prefix(b"v").unwrap_or(&version).to_vec()),
            _ => request
                .headers()
                .get("connect-protocol-version")
                .map(|version| version.as_bytes().to_vec()),
        };
        if let Some(given) = version.filter(|version| version != b"1") {
            let given = String::from_utf8_lossy(&given).into_owned();
            let message = format!("version {given:?} of Connect's protocol isn't spoken here; use 1");
            return Err(
                StatusBuilder::invalid_argument("CONNECT_VERSION_UNSUPPORTED", message)
                    .metadata("version", given)
                    .build(),
            );
        }
        let headers = request.headers_mut();
        headers.remove("grpc-timeout");
        if let Some(given) = headers.get("connect-timeout-ms") {
            let timeout = grpc_timeout(given)?;
            headers.insert("grpc-timeout", timeout);
        }
        Ok(Self {
            shape,
            accepts: Encoding::accepted(headers, &ACCEPT_ENCODING),
        })
    }

    /// Bytes of a body besides those of its message.
    pub(super) fn envelope_bytes(&self) -> usize {
        if self.shape.streams { ENVELOPE_BYTES } else { 0 }
    }
}

/// Milliseconds as gRPC writes them; seconds where they have too many digits.
fn grpc_timeout(given: &HeaderValue) -> Result<HeaderValue, Status> {
    let read = given
        .to_str()
        .ok()
        .filter(|text| {
            (1..=TIMEOUT_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
        })
        .and_then(|text| text.parse::<u64>().ok());
    let written = read.and_then(|millis| {
        let text = match millis.to_string() {
            text if text.len() <= GRPC_TIMEOUT_DIGITS_MAX => format!("{text}m"),
            _ => format!("{}S", millis / 1000),
        };
        HeaderValue::try_from(text).ok()
    });
    written.ok_or_else(|| {
        let message = format!(
            "connect-timeout-ms isn't a number of milliseconds of at most {TIMEOUT_DIGITS_MAX} digits; send one"
        );
        StatusBuilder::invalid_argument("TIMEOUT_MALFORMED", message).build()
    })
}

/// Where the message is, and how it is packed.
#[derive(Clone, Debug)]
enum Source {
    Body(Option<Encoding>),
    /// The one envelope of the body.
    Envelope(Option<Encoding>),
    Query(Bytes, Option<Encoding>),
}

#[derive(Clone, Debug)]
pub(super) struct Message {
    kind: MessageDescriptor,
    codec: Codec,
    source: Source,
    bytes_max: usize,
}

impl Message {
    /// The message of `kind` that `request` has, of at most `bytes_max` bytes, before and after it is unpacked.
    ///
    /// # Errors
    /// UNIMPLEMENTED for encodings that aren't known here, INVALID_ARGUMENT for an address without a message.
    pub(super) fn new(
        asked: &Asked,
        kind: MessageDescriptor,
        request: &Request<Body>,
        bytes_max: usize,
    ) -> Result<Self, Status> {
        let encoding = |name: Option<&[u8]>| Encoding::named(Code::Unimplemented, "a message", name);
        let named = |name: &str| encoding(request.headers().get(name).map(HeaderValue::as_bytes));
        let source = if *request.method() == Method::GET {
            let query = request.uri().query().unwrap_or_default();
            let compression = parameter(query, "compression");
            Source::Query(in_address(query)?, encoding(compression.as_deref())?)
        } else if asked.shape.streams {
            Source::Envelope(named("connect-content-encoding")?)
        } else {
            Source::Body(named(CONTENT_ENCODING.as_str())?)
        };
        Ok(Self {
            kind,
            codec: asked.shape.codec,
            source,
            bytes_max,
        })
    }

    fn plain(&self, message: &[u8], encoding: Option<Encoding>) -> Result<Vec<u8>, Status> {
        let unpacked;
        let message = match encoding {
            None => message,
            Some(encoding) => {
                let check = |prefix: &[u8]| match self.codec {
                    Codec::Proto => Ok(()),
                    Codec::Json => json::check_size(prefix),
                };
                unpacked = encoding.unpack(message, self.bytes_max, check)?;
                unpacked.as_ref()
            }
        };
        match self.codec {
            Codec::Proto => Ok(message.to_vec()),
            Codec::Json => Ok(json::parse(self.kind.clone(), message)?.encode_to_vec()),
        }
    }
}

impl Read for Message {
    fn is_compressed(&self) -> bool {
        let (Source::Body(encoding) | Source::Envelope(encoding) | Source::Query(_, encoding)) = &self.source;
        encoding.is_some()
    }

    fn read(&self, body: &[u8]) -> Result<Vec<u8>, Status> {
        match &self.source {
            Source::Body(encoding) => self.plain(body, *encoding),
            Source::Query(message, encoding) => self.plain(message, *encoding),
            Source::Envelope(encoding) => {
                let (compressed, message) = opened(body)?;
                if compressed && encoding.is_none() {
                    let words =
                        "the envelope is compressed, but connect-content-encoding doesn't say how; send it";
                    return Err(StatusBuilder::invalid_argument("ENCODING_MALFORMED", words).build());
                }
                self.plain(message, encoding.filter(|_| compressed))
            }
        }
    }
}

/// The message in the one envelope of `body`, and whether it is compressed.
fn opened(body: &[u8]) -> Result<(bool, &[u8]), Status> {
    let malformed = |words: &str| StatusBuilder::invalid_argument("ENVELOPE_MALFORMED", words).build();
    let Some((&[flags, a, b, c, d], message)) = body.split_first_chunk::<ENVELOPE_BYTES>() else {
        return Err(malformed(
            "the body has no whole envelope; send flags, a length and one message",
        ));
    };
    if flags > COMPRESSED {
        return Err(malformed(
            "the envelope has unknown flags; send 0, or 1 for a compressed message",
        ));
    }
    if u32::from_be_bytes([a, b, c, d]) as usize != message.len() {
        return Err(malformed(
            "the body isn't one envelope of the length that it says; send exactly one",
        ));
    }
    Ok((flags == COMPRESSED, message))
}

fn in_address(query: &str) -> Result<Bytes, Status> {
    let malformed = |words: &str| StatusBuilder::invalid_argument("QUERY_MALFORMED", words).build();
    let message = parameter(query, "message").ok_or_else(|| {
        malformed(
            "the address has no message; send the parameters message, encoding and, for base64, base64=1",
        )
    })?;
    if parameter(query, "base64").as_deref() != Some(b"1") {
        return Ok(message.into());
    }
    let decoded = BASE64_URL.decode(message);
    decoded
        .map(Bytes::from)
        .map_err(|_| malformed("the message in the address isn't base64 of the alphabet for addresses"))
}

fn parameter(query: &str, name: &str) -> Option<Vec<u8>> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    // A form's way to write a space.
    let spaced = value.replace('+', " ");
    Some(percent_decode_str(&spaced).collect())
}
