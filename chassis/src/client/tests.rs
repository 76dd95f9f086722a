pub(super) mod stage;

use std::time::Duration;

use http::HeaderMap;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::*;
use crate::layers::testing::{CHECK, answering, methods, read_to_end, record, request, request_with};
use crate::testing::{REPEAT, SAY, echo, serve, text};

/// A client of something that tells which timeout arrived, in the header `x-timeout` of its answer.
fn telling() -> Client {
    let inner = answering(|request: Request<Body>| {
        let mut response = refuse(Status::ok(""));
        if let Some(timeout) = request.headers().get(deadline::GRPC_TIMEOUT) {
            response.headers_mut().insert("x-timeout", timeout.clone());
        }
        std::future::ready(response)
    });
    let inner = service_fn(move |request| inner.answer(request));
    Client::local(inner, "order", methods())
}

/// The timeout that arrived for `request`.
async fn sent(request: Request<Body>) -> Option<Duration> {
    let Ok(response) = telling().answer(request).await;
    let mut headers = HeaderMap::new();
    headers.insert(
        deadline::GRPC_TIMEOUT,
        response.headers().get("x-timeout")?.clone(),
    );
    deadline::parse(&headers).expect("well-formed")
}

#[tokio::test(start_paused = true)]
async fn a_call_made_while_serving_one_inherits_what_is_left() {
    assert_eq!(sent(request(CHECK)).await, None, "outside of a call");
    let inside = Deadline::after(Duration::from_secs(3));
    inside
        .scope(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(sent(request(CHECK)).await, Some(Duration::from_secs(2)));
            let shorter = request_with(CHECK, deadline::GRPC_TIMEOUT, "500m");
            assert_eq!(sent(shorter).await, Some(Duration::from_millis(500)));
            let longer = request_with(CHECK, deadline::GRPC_TIMEOUT, "1H");
            assert_eq!(sent(longer).await, Some(Duration::from_secs(2)));
        })
        .await;
}

#[tokio::test]
async fn a_malformed_timeout_is_refused_before_it_is_sent() {
    let bad = request_with(CHECK, deadline::GRPC_TIMEOUT, "soon");
    let Ok(response) = telling().answer(bad).await;
    let (_, status) = read_to_end(response).await;
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[test]
fn an_address_is_http_host_and_port() {
    let make = |uri: &'static str| {
        let uri = Uri::from_static(uri);
        Client::remote("order", &uri, &ClientConfig::default(), methods()).map(|_| ())
    };
    for bad in ["ftp://order:1", "order:1", "/order"] {
        let error = make(bad).expect_err(bad);
        assert!(error.to_string().contains("http://host:port"), "{error}");
    }
    let error = make("https://order:1").expect_err("nobody to believe it by");
    assert!(error.to_string().contains("client.tls.ca"), "{error}");
}

#[tokio::test]
async fn a_backend_that_is_not_there_is_unavailable_with_words() {
    let recorded = record();
    let uri = Uri::from_static("http://127.0.0.1:9");
    let client = Client::remote("order", &uri, &ClientConfig::default(), methods()).expect("an address");
    let Ok(response) = client.answer(request(CHECK)).await;
    let (_, status) = read_to_end(response).await;
    assert_eq!(status.code(), Code::Unavailable);
    let info = status.get_details_error_info().expect("an ErrorInfo");
    assert_eq!(info.reason, "BACKEND_UNAVAILABLE");
    assert_eq!(info.metadata["backend"], "order");
    assert!(status.get_details_retry_info().is_some());
    let span = recorded.span();
    assert_eq!(
        crate::layers::testing::attribute(&span, "rpc.status_code"),
        "UNAVAILABLE"
    );
}

#[tokio::test]
async fn calls_and_streams_pass_over_a_socket() {
    let config = crate::config::ServerConfig::default();
    let running = serve(echo(&config), &config, Duration::from_secs(5)).await;
    let uri = Uri::try_from(format!("http://{}", running.address)).expect("an address");
    let client = Client::remote("echo", &uri, &ClientConfig::default(), methods()).expect("an address");
    let mut grpc = tonic::client::Grpc::new(client);
    let codec = tonic_prost::ProstCodec::<crate::testing::Text, crate::testing::Text>::default;
    let path = http::uri::PathAndQuery::from_static;
    let answer = grpc
        .unary(tonic::Request::new(text("far")), path(SAY), codec())
        .await;
    assert_eq!(answer.expect("an echo").into_inner().text, "far");
    let answer = grpc
        .server_streaming(tonic::Request::new(text("far")), path(REPEAT), codec())
        .await;
    let mut stream = answer.expect("a stream").into_inner();
    let mut count = 0;
    while stream.message().await.expect("no error").is_some() {
        count += 1;
    }
    assert_eq!(count, 2);
}
