//! Answers of unary calls: one message, read to its end, as JSON.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::BytesMut;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, VARY,
};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use souk_chassis::layers::messages::{Encoding, take_plain};
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};

use super::error;

/// Smallest answer that is compressed, in bytes: below, a packet is a packet.
const COMPRESS_BYTES_MIN: usize = 1024;

/// Bytes of a frame in front of its message.
const FRAME_BYTES: usize = 5;

/// As gRPC writes binary headers: with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The best encoding that the client takes, zstd before gzip; `None` for plain.
pub(crate) fn accepted(headers: &HeaderMap) -> Option<Encoding> {
    let lists: Vec<&str> = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let takes = |encoding: &Encoding| {
        lists.iter().flat_map(|list| list.split(',')).any(|part| {
            let mut part = part.split(';').map(str::trim);
            let name = part.next().unwrap_or_default();
            let refused = part.any(|parameter| {
                parameter
                    .strip_prefix("q=")
                    .and_then(|q| q.parse::<f32>().ok())
                    .is_some_and(|q| q <= 0.0)
            });
            name.eq_ignore_ascii_case(encoding.name()) && !refused
        })
    };
    [Encoding::Zstd, Encoding::Gzip].into_iter().find(takes)
}

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

/// The JSON answer to a unary call.
pub(crate) async fn unary(
    response: Response<Body>,
    kind: MessageDescriptor,
    pool: &DescriptorPool,
    bytes_max: usize,
    encoding: Option<Encoding>,
) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let written = match status_of(&parts.headers) {
        Some(status) => Err(status),
        None => read(body, bytes_max)
            .await
            .and_then(|message| write(&decode(kind, &message)?)),
    };
    let json = match written {
        Ok(json) => json,
        Err(status) => {
            let mut response = error::response(pool, &status);
            response.headers_mut().extend(metadata(&parts.headers));
            return response;
        }
    };
    let packed = encoding
        .filter(|_| json.len() >= COMPRESS_BYTES_MIN)
        .and_then(|encoding| Some((encoding, encoding.pack(&json).ok()?)));
    let mut response = Response::new(Body::empty());
    *response.headers_mut() = metadata(&parts.headers);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, error::JSON);
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    let bytes = match packed {
        Some((encoding, packed)) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
            packed
        }
        None => json,
    };
    response.map(|_| error::whole(bytes))
}

/// The error in the headers or trailers of a call; `None` when it went well or goes on.
pub(crate) fn status_of(headers: &HeaderMap) -> Option<Status> {
    let code = Code::from_bytes(headers.get(Status::GRPC_STATUS)?.as_bytes());
    if code == Code::Ok {
        return None;
    }
    let details = headers.get(Status::GRPC_STATUS_DETAILS);
    if details.is_none_or(|details| BASE64.decode(details).is_ok()) {
        return Status::from_header_map(headers);
    }
    // tonic takes for granted that a backend's details are base64.
    let message = headers
        .get(Status::GRPC_MESSAGE)
        .map_or(&[][..], |text| text.as_bytes());
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy();
    Some(Status::new(code, message))
}

/// The one message of `body`.
async fn read(mut body: Body, bytes_max: usize) -> Result<bytes::Bytes, Status> {
    let mut buffer = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) if data.len() > (bytes_max + FRAME_BYTES).saturating_sub(buffer.len()) => {
                return Err(too_large(bytes_max));
            }
            Ok(data) => buffer.extend_from_slice(&data),
            Err(frame) => {
                if let Some(status) = frame.trailers_ref().and_then(status_of) {
                    return Err(status);
                }
            }
        }
    }
    take_plain(&mut buffer, bytes_max)?
        .ok_or_else(|| StatusBuilder::internal("the service ended its answer before it was whole").build())
}

fn too_large(bytes_max: usize) -> Status {
    let message = format!("the answer has more than {bytes_max} bytes; ask for less at a time");
    StatusBuilder::resource_exhausted("ANSWER_TOO_LARGE", message)
        .metadata("limit_bytes", bytes_max)
        .build()
}

/// Reads a message of an answer.
pub(crate) fn decode(kind: MessageDescriptor, message: &[u8]) -> Result<DynamicMessage, Status> {
    DynamicMessage::decode(kind, message).map_err(|error| {
        StatusBuilder::internal("the answer of the service isn't of its contract")
            .source(error)
            .build()
    })
}

/// A message as JSON, in one line.
pub(crate) fn write(message: &DynamicMessage) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(message).map_err(|error| {
        StatusBuilder::internal("the answer can't be written as JSON")
            .source(error)
            .build()
    })
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

    #[test]
    fn the_best_encoding_that_is_taken() {
        for (text, best) in [
            ("gzip, deflate, br, zstd", Some(Encoding::Zstd)),
            ("gzip;q=0.5", Some(Encoding::Gzip)),
            ("zstd;q=0, gzip", Some(Encoding::Gzip)),
            ("br", None),
            ("", None),
        ] {
            let headers = [(ACCEPT_ENCODING, HeaderValue::from_static(text))];
            assert_eq!(accepted(&headers.into_iter().collect()), best, "{text}");
        }
    }
}
