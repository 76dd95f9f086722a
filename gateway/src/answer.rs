//! Answers of the stack for clients of other forms than gRPC's: what they say, and what HTTP says of it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    VARY, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use prost_reflect::DescriptorPool;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::messages::{Encoding, take_plain};
use souk_chassis::server::Stack;
use souk_chassis::status::{StatusBuilder, code_in};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::json::error;

mod messages;

pub(crate) use messages::{Messages, Next};

/// The media type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

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

/// A client that hung up before it was answered; not of the standard, but what google.rpc.Code says.
const CLIENT_CLOSED_REQUEST: u16 = 499;

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

/// A call that has its answer already.
pub(crate) fn done(response: Response<Body>) -> ResponseFuture {
    Box::pin(std::future::ready(Ok(response)))
}

/// An answer of the front's own to a request with this head: under the layers of `stack`, told there as `told` when it is a refusal. A
/// refusal of theirs is the answer in its place, with details of types in `pool`.
pub(crate) fn own(
    stack: &Stack,
    pool: &DescriptorPool,
    head: Parts,
    told: Option<Status>,
    response: Response<Body>,
) -> ResponseFuture {
    let (stack, pool) = (stack.clone(), pool.clone());
    Box::pin(async move {
        Ok(match stack.own_answer(&head, told).await {
            Ok(()) => response,
            Err(refusal) => error::response(&pool, &refusal),
        })
    })
}

/// What is told of an answer that its HTTP code says all of: the client's fault, which is none of the server.
pub(crate) fn told(message: &'static str) -> Option<Status> {
    Some(StatusBuilder::invalid_argument("HTTP_REQUEST_UNSUPPORTED", message).build())
}

/// An answer that its code says all of.
pub(crate) fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

/// A body of one piece.
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

/// The answer to a call that failed with `status`, which is told in `json`.
pub(crate) fn failure(status: &Status, json: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(whole(json));
    *response.status_mut() = http_status(status.code());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if status.code() == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(delay) = status.get_details_retry_info().and_then(|info| info.retry_delay) {
        // Whole seconds, and not before.
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The status of HTTP for a code, by google.rpc.Code.
pub(crate) fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Cancelled => StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
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
    let message = headers
        .get(Status::GRPC_MESSAGE)
        .map_or(&[][..], |text| text.as_bytes());
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy();
    Some(Status::new(code, message))
}

/// The answer to a unary call, read to its end.
pub(crate) struct Unary {
    /// What came before the message, for the client.
    pub(crate) metadata: HeaderMap,
    /// What came behind it, for the client.
    pub(crate) trailers: HeaderMap,
    /// The message, plain.
    pub(crate) message: Result<Bytes, Status>,
}

impl Unary {
    /// Reads `response`, whose message has at most `bytes_max` bytes.
    pub(crate) async fn read(response: Response<Body>, bytes_max: usize) -> Self {
        let (parts, body) = response.into_parts();
        let mut trailers = HeaderMap::new();
        let message = match status_of(&parts.headers) {
            Some(status) => Err(status),
            None => read(body, bytes_max, &mut trailers).await,
        };
        Self {
            metadata: metadata(&parts.headers),
            trailers: metadata(&trailers),
            message,
        }
    }
}

/// The one message of `body`.
async fn read(mut body: Body, bytes_max: usize, trailers: &mut HeaderMap) -> Result<Bytes, Status> {
    let mut buffer = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) if data.len() > (bytes_max + FRAME_BYTES).saturating_sub(buffer.len()) => {
                return Err(too_large(bytes_max));
            }
            Ok(data) => buffer.extend_from_slice(&data),
            Err(frame) => {
                *trailers = frame.into_trailers().unwrap_or_default();
                if let Some(status) = status_of(trailers) {
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

    #[test]
    fn codes_have_the_status_that_google_gives_them() {
        let statuses: Vec<u16> = (0..=16)
            .map(|code| http_status(Code::from(code)).as_u16())
            .collect();
        assert_eq!(
            statuses,
            [
                200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401
            ]
        );
    }
}
