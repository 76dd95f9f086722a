//! Responses of the stack in other forms than gRPC's.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, VARY};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use souk_chassis::layers::messages::{COMPRESS_BYTES_MIN, Encoding};
use souk_chassis::status::{StatusBuilder, status_in};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

use crate::one_message::in_turn;

pub(crate) mod error;
mod messages;

use messages::MessageOrEnd;
pub(crate) use messages::{Messages, too_large};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The headers or trailers of a gRPC response that clients of other protocols get, too: all but gRPC's own and those of its body.
pub(crate) fn metadata(headers: &HeaderMap) -> HeaderMap {
    let of_body = [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING];
    let of_grpc = |name: &HeaderName| name.as_str().starts_with("grpc-") || of_body.contains(name);
    headers
        .iter()
        .filter(|(name, _)| !of_grpc(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A response without a body.
pub(crate) fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

/// A body of these bytes.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Body::new(http_body_util::Full::new(bytes.into()))
}

/// The answer to a unary call, read to its end.
pub(crate) struct Unary {
    /// Headers for the client.
    pub(crate) metadata: HeaderMap,
    /// Trailers for the client.
    pub(crate) trailers: HeaderMap,
    pub(crate) message: Result<Bytes, Status>,
    /// The body that was read: the call holds its place until this is dropped.
    pub(crate) body: Body,
}

impl Unary {
    /// Reads `response`, whose message has at most `bytes_max` bytes. The stack ends it in time
    /// ([`AnsweredWhole`](souk_chassis::layers::deadline::AnsweredWhole)).
    pub(crate) async fn read(response: Response<Body>, bytes_max: usize) -> Self {
        let (parts, body) = response.into_parts();
        let mut messages = Messages::new(&parts.headers, body, bytes_max);
        let (message, (status, trailers)) = match (status_in(&parts.headers), messages.next().await) {
            (Some(status), _) => (None, (Some(status), HeaderMap::new())),
            (None, MessageOrEnd::End(status, trailers)) => (None, (status, trailers)),
            (None, MessageOrEnd::Message(message)) => (Some(message), messages.end().await),
        };
        let broken = || StatusBuilder::internal("the service ended its answer before it was whole").build();
        Self {
            metadata: metadata(&parts.headers),
            trailers,
            message: status.map_or_else(|| message.ok_or_else(broken), Err),
            body: messages.body,
        }
    }

    /// The response in another representation, compressed by `encoding` where that is worth it: `write` makes its message, `refuse` the
    /// response to an error, which is DEADLINE_EXCEEDED when the message isn't written before the call `ends`.
    pub(crate) async fn rewritten(
        self,
        content_type: HeaderValue,
        encoding: Option<Encoding>,
        ends: Instant,
        write: impl FnOnce(&[u8]) -> Result<Vec<u8>, Status> + Send + 'static,
        refuse: impl FnOnce(&Status) -> Response<Body>,
    ) -> Response<Body> {
        let written = async {
            let message = self.message?;
            in_turn(message.len(), move || {
                let bytes = write(&message)?;
                let encoding = encoding.filter(|_| bytes.len() >= COMPRESS_BYTES_MIN);
                let packed = encoding.and_then(|encoding| encoding.pack(&bytes).ok());
                Ok(packed.map_or((bytes, None), |packed| (packed, encoding)))
            })
            .await
        };
        let written = tokio::time::timeout_at(ends, written).await;
        let late = |_| {
            let message = "the call's time was over before its answer could be written in the form that was asked for; ask for less, or \
                           give it more time";
            Err(StatusBuilder::deadline_exceeded("DEADLINE_EXCEEDED", message).build())
        };
        let (bytes, encoding) = match written.unwrap_or_else(late) {
            Ok(content) => content,
            Err(status) => {
                let mut refusal = refuse(&status);
                refusal.headers_mut().extend(self.metadata);
                return refusal;
            }
        };
        // What the call holds is in the body that was read: it is released when the client has taken the response.
        let source = self.body;
        let content = http_body_util::Full::new(Bytes::from(bytes)).map_err(move |never| {
            let _kept = &source;
            match never {}
        });
        let mut response = Response::new(Body::new(content));
        *response.headers_mut() = self.metadata;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type);
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(encoding) = encoding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use souk_chassis::layers::messages::framed;
    use souk_chassis::status::{GRPC_STATUS, code_in};
    use tonic::Code;

    use super::*;
    use crate::one_message::tests::all_turns;

    /// The answer as it is, of a call that has this time.
    async fn rewritten(unary: Unary, time: Duration) -> Response<Body> {
        let ends = Instant::now() + time;
        let refuse = |status: &Status| status.clone().into_http();
        unary
            .rewritten(JSON, None, ends, |message| Ok(message.to_vec()), refuse)
            .await
    }

    #[tokio::test]
    async fn what_a_call_holds_is_kept_until_its_answer_in_another_form_is_dropped() {
        let held = Arc::new(());
        let of_the_call = Arc::clone(&held);
        let frames = [
            Frame::data(framed(0, b"one")),
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
        let response = rewritten(unary, Duration::from_secs(60)).await;
        let mut body = response.into_body();
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), "one");
        assert_eq!(Arc::strong_count(&held), 2, "nobody may have taken it yet");
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_isnt_waited_for_when_its_call_is_over() {
        let others = all_turns().await;
        let (asked, time) = (Instant::now(), Duration::from_secs(3));
        let large = Unary {
            metadata: HeaderMap::new(),
            trailers: HeaderMap::new(),
            message: Ok(Bytes::from(vec![0; 1 << 20])),
            body: Body::empty(),
        };
        let refused = rewritten(large, time).await;
        assert_eq!(code_in(refused.headers()), Some(Code::DeadlineExceeded));
        assert_eq!(asked.elapsed(), time);
        drop(others);
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
        let status = status_in(&headers).expect("an error");
        assert_eq!((status.code(), status.message()), (Code::NotFound, "none here"));
    }
}
