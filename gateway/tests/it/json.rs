//! JSON over HTTP, as curl calls: the same stack as gRPC, the codes of HTTP, streams as events, and the document about it.

use std::io::Read as _;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::backends::{ENDLESS, EXPORTED, FAILING, MISSING, NEVER};
use crate::browser::{begin, send, whole};
use crate::setting::{BOTH, Layout, Setting};

fn request(method: Method, path: &str, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path");
    if !body.is_empty() {
        let json = "application/json; charset=utf-8".parse().expect("a value");
        request.headers_mut().insert(CONTENT_TYPE, json);
    }
    request
}

fn get(path: &str) -> Request<Full<Bytes>> {
    request(Method::GET, path, "")
}

fn with(mut request: Request<Full<Bytes>>, name: HeaderName, value: &str) -> Request<Full<Bytes>> {
    request
        .headers_mut()
        .insert(name, value.parse().expect("a value"));
    request
}

fn read(answer: &Response<Bytes>) -> Value {
    assert_eq!(
        answer.headers().get(CONTENT_TYPE).expect("a type"),
        "application/json"
    );
    serde_json::from_slice(answer.body()).expect("JSON")
}

/// The `ErrorInfo` of an error.
fn reason(error: &Value) -> &str {
    let details = error.get("details").and_then(Value::as_array).expect("details");
    let info = details
        .iter()
        .find(|detail| detail.get("@type") == Some(&json!("type.googleapis.com/google.rpc.ErrorInfo")));
    info.and_then(|info| info.get("reason")?.as_str())
        .expect("a reason")
}

#[tokio::test]
async fn a_resource_is_read_by_its_path() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let call = with(
            get("/v1/shops/a%2Fb"),
            HeaderName::from_static("x-echo"),
            "echoed",
        );
        let call = with(call, HeaderName::from_static("grpc-timeout"), "2S");
        let answer = send(setting.gateway.address, call).await;
        assert_eq!(answer.status(), StatusCode::OK, "{layout:?}");
        assert_eq!(
            answer.headers().get("x-echo").expect("metadata"),
            "echoed",
            "{layout:?}"
        );
        assert!(!answer.headers().contains_key("grpc-status"), "{layout:?}");
        let shop = read(&answer);
        assert_eq!(shop.pointer("/shop/shopId"), Some(&json!("a/b")), "{layout:?}");
        // The backend tells the time that is left.
        let left: u64 = shop
            .pointer("/shop/name")
            .and_then(Value::as_str)
            .and_then(|ms| ms.parse().ok())
            .expect("a time");
        assert!((1..=2000).contains(&left), "{layout:?}: {left}");
    }
}

#[tokio::test]
async fn errors_have_the_code_of_http_and_their_details() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let address = setting.gateway.address;
        let answer = send(address, get(&format!("/v1/shops/{MISSING}"))).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{layout:?}");
        let error = read(&answer);
        assert_eq!(error.get("code"), Some(&json!(5)), "{layout:?}");
        assert_eq!(
            error.get("message"),
            Some(&json!("no such shop: 没有")),
            "{layout:?}"
        );
        assert_eq!(reason(&error), "SHOP_NOT_FOUND", "{layout:?}");

        // A request that can't be read is the client's mistake, wherever the service is.
        for (call, words) in [
            (get("/v1/shops/h1?colour=red"), "PARAMETER_UNKNOWN"),
            (request(Method::POST, "/v1/shops", "{"), "JSON_MALFORMED"),
        ] {
            let answer = send(address, call).await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{layout:?}");
            assert_eq!(reason(&read(&answer)), words, "{layout:?}");
        }

        let late = with(
            get(&format!("/v1/shops/{NEVER}")),
            HeaderName::from_static("grpc-timeout"),
            "100m",
        );
        let answer = send(address, late).await;
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT, "{layout:?}");

        // There is no backend for orders.
        let answer = send(address, get("/v1/orders/o1")).await;
        assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED, "{layout:?}");
        assert_eq!(reason(&read(&answer)), "SERVICE_UNKNOWN", "{layout:?}");
    }
}

#[tokio::test]
async fn a_backend_that_is_gone_says_when_to_come_back() {
    let setting = Setting::start(Layout::Remote).await;
    setting.shop.as_ref().expect("a remote backend").stop();
    // Until the backend is gone it may answer.
    let answer = loop {
        let answer = send(setting.gateway.address, get("/v1/shops/h1")).await;
        if answer.status() != StatusCode::OK {
            break answer;
        }
    };
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers().get(RETRY_AFTER).expect("a time"), "1");
}

#[tokio::test]
async fn paths_that_there_are_not_say_what_there_is() {
    let setting = Setting::start(Layout::Local).await;
    let address = setting.gateway.address;
    let answer = send(address, get("/v1/colours")).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(reason(&read(&answer)), "PATH_UNKNOWN");
    let answer = send(address, request(Method::PUT, "/v1/shops/h1", "{}")).await;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    let allowed = answer
        .headers()
        .get(ALLOW)
        .expect("methods")
        .to_str()
        .expect("text");
    for method in ["GET", "PATCH", "DELETE"] {
        assert!(allowed.contains(method), "{allowed}");
    }
}

#[tokio::test]
async fn bodies_are_json_by_name_and_within_the_limit() {
    let setting = Setting::start(Layout::Remote).await;
    let address = setting.gateway.address;
    for content_type in ["text/plain", "application/x-www-form-urlencoded"] {
        let call = with(
            request(Method::POST, "/v1/shops", "{}"),
            CONTENT_TYPE,
            content_type,
        );
        let answer = send(address, call).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{content_type}");
        assert_eq!(
            reason(&read(&answer)),
            "CONTENT_TYPE_UNSUPPORTED",
            "{content_type}"
        );
    }
    let mut untyped = request(Method::POST, "/v1/shops", "{}");
    untyped.headers_mut().remove(CONTENT_TYPE);
    let answer = send(address, untyped).await;
    assert_eq!(reason(&read(&answer)), "CONTENT_TYPE_UNSUPPORTED");

    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(5 << 20));
    let answer = send(address, request(Method::POST, "/v1/shops", &large)).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(reason(&read(&answer)), "MESSAGE_TOO_LARGE");

    // A bomb is unpacked no further than the limit.
    let mut packer = flate2::read::GzEncoder::new(large.as_bytes(), flate2::Compression::fast());
    let mut bomb = Vec::new();
    packer.read_to_end(&mut bomb).expect("gzip");
    let mut call = with(request(Method::POST, "/v1/shops", "x"), CONTENT_ENCODING, "gzip");
    *call.body_mut() = Full::new(bomb.into());
    let answer = send(address, call).await;
    assert_eq!(reason(&read(&answer)), "MESSAGE_TOO_LARGE");
}

#[tokio::test]
async fn large_answers_are_compressed_for_who_takes_it() {
    let setting = Setting::start(Layout::Local).await;
    let path = format!("/v1/shops/{}", "long".repeat(1000));
    let answer = send(
        setting.gateway.address,
        with(get(&path), ACCEPT_ENCODING, "gzip, br"),
    )
    .await;
    assert_eq!(
        answer.headers().get(CONTENT_ENCODING).expect("compressed"),
        "gzip"
    );
    assert!(answer.body().len() < 1000, "{}", answer.body().len());
    let mut plain = String::new();
    let mut reader = flate2::read::GzDecoder::new(answer.body().as_ref());
    reader.read_to_string(&mut plain).expect("gzip");
    let shop: Value = serde_json::from_str(&plain).expect("JSON");
    assert!(shop.pointer("/shop/shopId").is_some());
    let answer = send(setting.gateway.address, get(&path)).await;
    assert!(!answer.headers().contains_key(CONTENT_ENCODING));
}

#[tokio::test]
async fn a_stream_is_events_with_ids_and_an_end() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        for (token, end) in [
            ("", "event: end\ndata: {}"),
            (FAILING, "event: error\ndata: {\"code\":15"),
        ] {
            let call = get(&format!("/v1/shops:export?snapshot_token={token}"));
            let answer = send(setting.gateway.address, call).await;
            assert_eq!(
                answer.headers().get(CONTENT_TYPE).expect("a type"),
                "text/event-stream"
            );
            let text = std::str::from_utf8(answer.body()).expect("text");
            let events: Vec<&str> = text.split_terminator("\n\n").collect();
            assert_eq!(events.len(), EXPORTED + 1, "{layout:?}: {text}");
            for (index, event) in events.iter().take(EXPORTED).enumerate() {
                let data = event
                    .lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .expect("data");
                let block: Value = serde_json::from_str(data).expect("JSON");
                assert_eq!(
                    block.get("sequence"),
                    Some(&json!((index + 1).to_string())),
                    "{layout:?}"
                );
            }
            let last = events.last().expect("an end");
            assert!(last.starts_with(end), "{layout:?}: {last}");
        }
    }
}

#[tokio::test]
async fn events_end_with_the_time_of_the_caller() {
    let setting = Setting::start(Layout::Remote).await;
    let call = get(&format!("/v1/shops:export?snapshot_token={ENDLESS}"));
    let call = with(call, HeaderName::from_static("grpc-timeout"), "300m");
    let answer = whole(begin(setting.gateway.address, call).await).await;
    let text = std::str::from_utf8(answer.body()).expect("text");
    assert!(text.contains("event: error\ndata: {\"code\":4"), "{text}");
    assert!(text.contains("DEADLINE_EXCEEDED"), "{text}");
}

#[tokio::test]
async fn the_document_is_served() {
    let setting = Setting::start(Layout::Local).await;
    let document = read(&send(setting.gateway.address, get("/openapi.json")).await);
    assert_eq!(document.get("openapi"), Some(&json!("3.1.0")));
    let call = document.pointer("/paths/~1v1~1shops~1{shop_id}/get/operationId");
    assert_eq!(call, Some(&json!("ShopService_GetShop")));
}
