//! What a request of Connect says of itself, and the message that it brings.

use std::time::Duration;

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
use souk_chassis::layers::deadline::{self, GRPC_TIMEOUT};
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::json::{self, media_type};

/// Bytes of an envelope in front of its message: flags, then its length.
const ENVELOPE_BYTES: usize = 5;

/// The flag of an envelope whose message is compressed.
const COMPRESSED: u8 = 1;

/// Most digits of a time in `connect-timeout-ms`.
const TIMEOUT_DIGITS_MAX: usize = 10;

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
    /// The shape whose content type the headers have.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let name = media_type(headers.get(CONTENT_TYPE)?);
        let mut shapes = [Codec::Json, Codec::Proto]
            .into_iter()
            .flat_map(|codec| [false, true].map(|streams| Self { codec, streams }));
        shapes.find(|shape| name.eq_ignore_ascii_case(shape.content_type().as_bytes()))
    }

    /// The shape that the address of a GET names.
    pub(super) fn of_query(query: &str) -> Option<Self> {
        let codec = match &*parameter(query, "encoding")? {
            b"json" => Codec::Json,
            b"proto" => Codec::Proto,
            _ => return None,
        };
        let streams = false;
        Some(Self { codec, streams })
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

/// Where the message is.
#[derive(Clone, Debug)]
enum Source {
    Body,
    /// The one envelope of the body.
    Envelope,
    Query(Bytes),
}

/// What a request asks for, and its message.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) shape: Shape,
    /// How a unary answer may be compressed.
    pub(super) accepts: Option<Encoding>,
    kind: MessageDescriptor,
    source: Source,
    encoding: Option<Encoding>,
    bytes_max: usize,
}

impl Asked {
    /// Reads the headers, and replaces `connect-timeout-ms` by `grpc-timeout`. The message is of `kind`, and of at most `bytes_max` bytes before
    /// and after decompression.
    pub(super) fn read(
        shape: Shape,
        kind: MessageDescriptor,
        request: &mut Request<Body>,
        bytes_max: usize,
    ) -> Result<Self, Status> {
        let query = request.uri().query().unwrap_or_default();
        let header = |name: &str| request.headers().get(name).map(|value| value.as_bytes().to_vec());
        let by_get = *request.method() == Method::GET;
        let version = match by_get {
            true => parameter(query, "connect")
                .map(|version| version.strip_prefix(b"v").unwrap_or(&version).to_vec()),
            false => header("connect-protocol-version"),
        };
        if let Some(given) = version.filter(|version| version != b"1") {
            let given = String::from_utf8_lossy(&given).into_owned();
            let message = format!("version {given:?} of Connect's protocol isn't spoken here; use 1");
            let status = StatusBuilder::invalid_argument("CONNECT_VERSION_UNSUPPORTED", message);
            return Err(status.metadata("version", given).build());
        }
        let timeout = request.headers().get("connect-timeout-ms").map(grpc_timeout);
        let timeout = timeout.transpose()?;
        let (source, encoding) = match shape.streams {
            _ if by_get => (Source::Query(message_in(query)?), parameter(query, "compression")),
            true => (Source::Envelope, header("connect-content-encoding")),
            false => (Source::Body, header(CONTENT_ENCODING.as_str())),
        };
        let encoding = Encoding::named(Code::Unimplemented, "a message", encoding.as_deref())?;
        let headers = request.headers_mut();
        headers.remove(GRPC_TIMEOUT);
        headers.extend(timeout.map(|timeout| (GRPC_TIMEOUT, timeout)));
        Ok(Self {
            shape,
            accepts: Encoding::accepted(headers, &ACCEPT_ENCODING),
            kind,
            source,
            encoding,
            bytes_max,
        })
    }

    /// Bytes of a body besides those of its message.
    pub(super) fn envelope_bytes(&self) -> usize {
        if self.shape.streams { ENVELOPE_BYTES } else { 0 }
    }

    fn plain(&self, message: &[u8], encoding: Option<Encoding>) -> Result<Vec<u8>, Status> {
        let unpacked;
        let message = match encoding {
            None => message,
            Some(encoding) => {
                let check = |prefix: &[u8]| match self.shape.codec {
                    Codec::Proto => Ok(()),
                    Codec::Json => json::check_size(prefix),
                };
                unpacked = encoding.unpack(message, self.bytes_max, check)?;
                unpacked.as_ref()
            }
        };
        match self.shape.codec {
            Codec::Proto => Ok(message.to_vec()),
            Codec::Json => Ok(json::parse(self.kind.clone(), message)?.encode_to_vec()),
        }
    }

    /// How much work the message is, as [`in_turn`](crate::one_message::in_turn) counts it.
    pub(super) fn work(&self, body: &[u8]) -> usize {
        let message = match &self.source {
            Source::Body => body,
            Source::Envelope => body.get(ENVELOPE_BYTES..).unwrap_or_default(),
            Source::Query(message) => message,
        };
        match (self.encoding, self.shape.codec) {
            // Nobody knows how large it is.
            (Some(_), _) => usize::MAX,
            (None, Codec::Proto) => message.len(),
            (None, Codec::Json) => json::work(message),
        }
    }

    /// The encoded message in `body` or the address.
    pub(super) fn message(&self, body: &[u8]) -> Result<Vec<u8>, Status> {
        match &self.source {
            Source::Body => self.plain(body, self.encoding),
            Source::Query(message) => self.plain(message, self.encoding),
            Source::Envelope => {
                let (compressed, message) = opened(body)?;
                if compressed && self.encoding.is_none() {
                    let words =
                        "the envelope is compressed, but connect-content-encoding doesn't say how; send it";
                    return Err(StatusBuilder::invalid_argument("ENCODING_MALFORMED", words).build());
                }
                self.plain(message, self.encoding.filter(|_| compressed))
            }
        }
    }
}

/// Milliseconds as gRPC writes them.
fn grpc_timeout(given: &HeaderValue) -> Result<HeaderValue, Status> {
    let is_time = |text: &&str| {
        (1..=TIMEOUT_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let millis = given.to_str().ok().filter(is_time);
    let millis = millis.and_then(|text| text.parse().ok());
    let time = millis.map(Duration::from_millis);
    time.map(deadline::format).ok_or_else(|| {
        let message = format!(
            "connect-timeout-ms isn't a number of milliseconds of at most {TIMEOUT_DIGITS_MAX} digits; send one"
        );
        StatusBuilder::invalid_argument("TIMEOUT_MALFORMED", message).build()
    })
}

/// The message in the one envelope of `body`, and whether it is compressed.
fn opened(body: &[u8]) -> Result<(bool, &[u8]), Status> {
    let words = match body.split_first_chunk::<ENVELOPE_BYTES>() {
        None => "the body has no whole envelope; send flags, a length and one message",
        Some(([flags, ..], _)) if *flags > COMPRESSED => {
            "the envelope has unknown flags; send 0, or 1 for a compressed message"
        }
        Some(([flags, length @ ..], message)) if u32::from_be_bytes(*length) as usize == message.len() => {
            return Ok((*flags == COMPRESSED, message));
        }
        Some(_) => "the body isn't one envelope of the length that it says; send exactly one",
    };
    Err(StatusBuilder::invalid_argument("ENVELOPE_MALFORMED", words).build())
}

fn message_in(query: &str) -> Result<Bytes, Status> {
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
