use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use tonic::Code;
use tower::Layer as _;

use super::*;
use crate::layers::testing::{CHECK, answering, call, end, message, request};

#[tokio::test]
async fn a_panic_is_internal_and_says_nothing_of_itself() {
    let service = CatchPanicLayer.layer(answering(|_| async { panic!("secret: row 7 of table orders") }));
    let response = call(&service, request(CHECK)).await;
    let status = response
        .extensions()
        .get::<Status>()
        .cloned()
        .expect("the error itself");
    let cause = std::error::Error::source(&status).map(ToString::to_string);
    assert!(
        cause.is_some_and(|cause| cause.contains("secret")),
        "the log needs it"
    );
    assert!(!format!("{:?}", response.headers()).contains("secret"));
    let (_, status) = end(response).await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(crate::status::reason(&status).as_deref(), Some("INTERNAL"));
}

#[tokio::test]
async fn a_panic_in_a_stream_ends_it_with_internal_after_what_was_sent() {
    let service = CatchPanicLayer.layer(answering(|_| async {
        let first = stream::iter([Ok::<_, Status>(Frame::data(message(b"first")))]);
        let second = stream::once(async {
            tokio::time::sleep(Duration::ZERO).await;
            panic!("{}", "secret".to_owned())
        });
        Response::new(Body::new(StreamBody::new(first.chain(second))))
    }));
    let response = call(&service, request(CHECK)).await;
    let (bytes, status) = end(response).await;
    assert_eq!(bytes, message(b"first"));
    assert_eq!(status.code(), Code::Internal);
    assert!(!status.message().contains("secret"));
}
