//! Answers of the stack for clients of other forms than gRPC's: what they say, and what HTTP says of it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, VARY};
use http::{HeaderMap, Response, StatusCode};
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::{StatusBuilder, code_in, message_in};
use tonic::body::Body;
use tonic::{Code, Status};

pub(crate) mod error;
mod messages;

pub(crate) use messages::{Messages, Next};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Smallest answer that is compressed, in bytes: below, a packet is a packet.
const COMPRESS_BYTES_MIN: usize = 1024;

/// As gRPC writes binary headers: with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The metadata of an answer that its HTTP client gets, too.
pub(crate) fn metadata(headers: &HeaderMap) -> HeaderMap {
    let of_body = [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING];
    let of_grpc = |name: &HeaderName| name.as_str().starts_with("grpc-") || of_body.contains(name);
    headers
        .iter()
        .filter(|(name, _)| !of_grpc(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// An answer that its code says all of.
pub(crate) fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Body::new(http_body_util::Full::new(bytes.into()))
}

/// An answer that went well: `bytes`, compressed where that is worth it and `encoding` says how.
pub(crate) fn success(
    metadata: HeaderMap,
    content_type: HeaderValue,
    bytes: Vec<u8>,
    encoding: Option<Encoding>,
) -> Response<Body> {
    let packed = encoding
        .filter(|_| bytes.len() >= COMPRESS_BYTES_MIN)
        .and_then(|encoding| Some((encoding, encoding.pack(&bytes).ok()?)));
    let mut response = Response::new(Body::empty());
    *response.headers_mut() = metadata;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    let bytes = match packed {
        Some((encoding, packed)) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
            packed
        }
        None => bytes,
    };
    response.map(|_| whole(bytes))
}

/// The error in the headers or trailers of a call; `None` when it went well or goes on.
pub(crate) fn status_of(headers: &HeaderMap) -> Option<Status> {
    let code = code_in(headers)?;
    if code == Code::Ok {
        return None;
    }
    let details = headers.get(Status::GRPC_STATUS_DETAILS);
    if details.is_none_or(|details| BASE64.decode(details).is_ok()) {
        return Status::from_header_map(headers);
    }
    // tonic takes for granted that a backend's details are base64.
    Some(Status::new(code, message_in(headers)))
}

/// The answer to a unary call, read to its end.
pub(crate) struct Unary {
    /// What came before the message, for the client.
    pub(crate) metadata: HeaderMap,
    /// What came behind it, for the client.
    pub(crate) trailers: HeaderMap,
    pub(crate) message: Result<Bytes, Status>,
}

impl Unary {
    /// Reads `response`, whose message has at most `bytes_max` bytes.
    pub(crate) async fn read(response: Response<Body>, bytes_max: usize) -> Self {
        let (parts, body) = response.into_parts();
        let mut messages = Messages::new(&parts.headers, body, bytes_max);
        let (message, end) = match (status_of(&parts.headers), messages.next().await) {
            (Some(status), _) => (None, (Some(status), HeaderMap::new())),
            (None, Next::End(status, trailers)) => (None, (status, trailers)),
            (None, Next::Message(message)) => (Some(message), messages.end().await),
        };
        let (status, trailers) = end;
        let broken = || StatusBuilder::internal("the service ended its answer before it was whole").build();
        Self {
            metadata: metadata(&parts.headers),
            trailers,
            message: status.map_or_else(|| message.ok_or_else(broken), Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_that_are_none_do_no_harm() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("grpc-status", "5"),
            ("grpc-message", "none%20here"),
            ("grpc-status-details-bin", "*"),
        ] {
            headers.insert(name, value.parse().expect("a value"));
        }
        let status = status_of(&headers).expect("an error");
        assert_eq!((status.code(), status.message()), (Code::NotFound, "none here"));
    }
}
