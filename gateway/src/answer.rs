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
use crate::one_message::in_turn;

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
        let answered = stack.own_answer(&head, told, std::future::ready(response)).await;
        Ok(answered.unwrap_or_else(|refusal| error::response(&pool, &refusal)))
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

/// The content of an answer that went well.
pub(crate) struct Content {
    bytes: Vec<u8>,
    encoding: Option<Encoding>,
}

impl Content {
    /// What `write` makes of `message`, compressed where that is worth it and `encoding` says how.
    pub(crate) async fn of(
        message: Bytes,
        write: impl FnOnce(&[u8]) -> Result<Vec<u8>, Status> + Send + 'static,
        encoding: Option<Encoding>,
    ) -> Result<Self, Status> {
        in_turn(message.len(), move || {
            let bytes = write(&message)?;
            let packed = encoding
                .filter(|_| bytes.len() >= COMPRESS_BYTES_MIN)
                .and_then(|encoding| Some((encoding.pack(&bytes).ok()?, Some(encoding))));
            let (bytes, encoding) = packed.unwrap_or((bytes, None));
            Ok(Self { bytes, encoding })
        })
        .await
    }

    /// The answer. What it was made of is kept until it is taken, and with it what the call holds.
    pub(crate) fn answer(
        self,
        metadata: HeaderMap,
        content_type: HeaderValue,
        made_of: Body,
    ) -> Response<Body> {
        let content = http_body_util::Full::new(Bytes::from(self.bytes)).map_err(move |never| {
            let _kept = &made_of;
            match never {}
        });
        let mut response = Response::new(Body::new(content));
        *response.headers_mut() = metadata;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type);
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(encoding) = self.encoding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        response
    }
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
    /// What was read: the call holds its place until this is dropped.
    pub(crate) body: Body,
}

impl Unary {
    /// Reads `response`, whose message has at most `bytes_max` bytes.
    pub(crate) async fn read(response: Response<Body>, bytes_max: usize) -> Self {
        let (parts, mut body) = response.into_parts();
        let mut trailers = HeaderMap::new();
        let message = match status_of(&parts.headers) {
            Some(status) => Err(status),
            None => read(&mut body, bytes_max, &mut trailers).await,
        };
        Self {
            metadata: metadata(&parts.headers),
            trailers: metadata(&trailers),
            message,
            body,
        }
    }
}

/// The one message of `body`.
async fn read(body: &mut Body, bytes_max: usize, trailers: &mut HeaderMap) -> Result<Bytes, Status> {
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
    use std::sync::Arc;

    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use souk_chassis::layers::messages::framed;
    use souk_chassis::status::GRPC_STATUS;

    use super::*;

    #[tokio::test]
    async fn what_a_call_holds_is_kept_until_its_answer_in_another_form_is_dropped() {
        let held = Arc::new(());
        let of_the_call = Arc::clone(&held);
        let frames = [
            Frame::data(framed(b"one")),
            Frame::trailers(HeaderMap::from_iter([(
                GRPC_STATUS,
                "0".parse().expect("a value"),
            )])),
        ];
        let frames = StreamBody::new(stream::iter(frames.map(Ok::<_, Status>)));
        let body = Body::new(frames.map_err(move |error| {
            let _held = &of_the_call;
            error
        }));
        let unary = Unary::read(Response::new(body), 100).await;
        let message = unary.message.expect("a message");
        let content = Content::of(message, |message| Ok(message.to_vec()), None).await;
        let response = content
            .expect("a content")
            .answer(unary.metadata, JSON, unary.body);
        let mut body = response.into_body();
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), "one");
        assert_eq!(Arc::strong_count(&held), 2, "nobody may have taken it yet");
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }

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
