//! The protocol of Connect over HTTP/1.1, as its clients and curl call: the same stack as gRPC.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Buf as _, Bytes};
use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use prost::Message as _;
use serde_json::{Value, json};
use souk_proto::shop::v1::{ExportShopsRequest, ExportShopsResponse, GetShopResponse};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::backends::{ENDLESS, EXPORTED, FAILING, MISSING, NEVER};
use crate::browser::send;
use crate::setting::{BOTH, Layout, Setting, shop_request};

const GET_SHOP: &str = "/souk.shop.v1.ShopService/GetShop";
const CREATE_SHOP: &str = "/souk.shop.v1.ShopService/CreateShop";
const EXPORT_SHOPS: &str = "/souk.shop.v1.ShopService/ExportShops";

/// The flag of the envelope that ends a stream.
const END: u8 = 2;

fn post(
    path: &str,
    content_type: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::post(path)
        .header(CONTENT_TYPE, content_type)
        .header("connect-protocol-version", "1");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).expect("a request")
}

fn with_json(path: &str, body: &Value) -> Request<Full<Bytes>> {
    post(path, "application/json", &[], body.to_string())
}

fn get(address: &str) -> Request<Full<Bytes>> {
    Request::get(address).body(Full::default()).expect("a request")
}

fn as_json(answer: &Response<Bytes>) -> Value {
    assert_eq!(
        answer.headers().get(CONTENT_TYPE).expect("a type"),
        "application/json"
    );
    serde_json::from_slice(answer.body()).expect("JSON")
}

/// Code and reason of an error.
fn refusal(error: &Value) -> (&str, &str) {
    let text = |pointer: &str| error.pointer(pointer).and_then(Value::as_str).expect(pointer);
    (text("/code"), text("/details/0/debug/reason"))
}

fn envelope(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message");
    [&[0][..], &length.to_be_bytes(), message].concat()
}

/// The messages of a stream, and what its end says.
fn envelopes(answer: &Response<Bytes>) -> (Vec<Bytes>, Value) {
    assert_eq!(answer.status(), StatusCode::OK);
    let (mut rest, mut messages) = (answer.body().clone(), Vec::new());
    loop {
        let flags = rest.get_u8();
        let length = usize::try_from(rest.get_u32()).expect("a length");
        let content = rest.split_to(length);
        if flags == END {
            assert!(rest.is_empty(), "nothing comes behind the end");
            return (messages, serde_json::from_slice(&content).expect("JSON"));
        }
        assert_eq!(flags, 0);
        messages.push(content);
    }
}

#[tokio::test]
async fn a_unary_call_is_answered_in_both_codecs() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let headers = [
            ("x-echo", "echoed"),
            ("connect-timeout-ms", "2000"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
        ];
        let request = post(GET_SHOP, "application/json", &headers, r#"{"shopId": "a/b"}"#);
        let answer = send(setting.gateway.address, request).await;
        assert_eq!(answer.status(), StatusCode::OK, "{layout:?}");
        assert_eq!(answer.headers().get("x-echo").expect("metadata"), "echoed");
        assert!(!answer.headers().contains_key("grpc-status"), "{layout:?}");
        let shop = as_json(&answer);
        assert_eq!(shop.pointer("/shop/shopId"), Some(&json!("a/b")), "{layout:?}");
        // The backend tells the time that is left.
        let left: u64 = shop
            .pointer("/shop/name")
            .and_then(|name| name.as_str()?.parse().ok())
            .expect("a time");
        assert!((1..=2000).contains(&left), "{layout:?}: {left}");

        let request = post(
            GET_SHOP,
            "application/proto",
            &[],
            shop_request("h1").encode_to_vec(),
        );
        let answer = send(setting.gateway.address, request).await;
        assert_eq!(
            answer.headers().get(CONTENT_TYPE).expect("a type"),
            "application/proto"
        );
        let shop = GetShopResponse::decode(answer.body().clone()).expect("a message");
        assert_eq!(shop.shop.expect("a shop").shop_id, "h1", "{layout:?}");
    }
}

#[tokio::test]
async fn what_changes_nothing_is_asked_by_get_too() {
    let setting = Setting::start(Layout::Remote).await;
    let address = setting.gateway.address;
    let answer = send(
        address,
        get(&format!(
            "{GET_SHOP}?connect=v1&encoding=json&message=%7B%22shopId%22:%22h1%22%7D"
        )),
    )
    .await;
    assert_eq!(as_json(&answer).pointer("/shop/shopId"), Some(&json!("h1")));
    let message = URL_SAFE_NO_PAD.encode(shop_request("h2").encode_to_vec());
    let answer = send(
        address,
        get(&format!("{GET_SHOP}?encoding=proto&base64=1&message={message}")),
    )
    .await;
    let shop = GetShopResponse::decode(answer.body().clone()).expect("a message");
    assert_eq!(shop.shop.expect("a shop").shop_id, "h2");

    for (path, allowed) in [(CREATE_SHOP, "POST"), (EXPORT_SHOPS, "POST")] {
        let answer = send(address, get(&format!("{path}?encoding=json&message=%7B%7D"))).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(answer.headers().get(ALLOW).expect("methods"), allowed, "{path}");
    }
    let mut request = with_json(GET_SHOP, &json!({}));
    *request.method_mut() = Method::PUT;
    let answer = send(address, request).await;
    assert_eq!(answer.headers().get(ALLOW).expect("methods"), "GET, POST");
}

#[tokio::test]
async fn a_stream_arrives_in_order_and_ends_with_its_status() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        for (token, error) in [("", None), (FAILING, Some(("data_loss", "SNAPSHOT_DAMAGED")))] {
            let asked = ExportShopsRequest {
                snapshot_token: token.to_owned(),
                ..Default::default()
            };
            let text = json!({"snapshotToken": token}).to_string();
            for (content_type, message) in [
                ("application/connect+proto", asked.encode_to_vec()),
                ("application/connect+json", text.into_bytes()),
            ] {
                let request = post(EXPORT_SHOPS, content_type, &[], envelope(&message));
                let answer = send(setting.gateway.address, request).await;
                assert_eq!(answer.headers().get(CONTENT_TYPE).expect("a type"), content_type);
                let (messages, end) = envelopes(&answer);
                let sequences: Vec<i64> = messages
                    .into_iter()
                    .map(|message| {
                        if content_type.ends_with("proto") {
                            return ExportShopsResponse::decode(message).expect("a message").sequence;
                        }
                        let value: Value = serde_json::from_slice(&message).expect("JSON");
                        let sequence = value.get("sequence").and_then(Value::as_str);
                        sequence.and_then(|text| text.parse().ok()).expect("a number")
                    })
                    .collect();
                assert_eq!(sequences.len(), EXPORTED, "{layout:?} {content_type}");
                assert!(sequences.is_sorted(), "{layout:?} {content_type}");
                let told = end.get("error").map(refusal);
                assert_eq!(told, error, "{layout:?} {content_type}");
            }
        }
    }
}

#[tokio::test]
async fn errors_have_a_code_of_http_and_their_details() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let address = setting.gateway.address;
        let answer = send(address, with_json(GET_SHOP, &json!({"shopId": MISSING}))).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{layout:?}");
        let error = as_json(&answer);
        assert_eq!(refusal(&error), ("not_found", "SHOP_NOT_FOUND"), "{layout:?}");
        assert_eq!(error.get("message"), Some(&json!("no such shop: 没有")));

        let answer = send(address, with_json(GET_SHOP, &json!({"colour": "red"}))).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{layout:?}");
        assert_eq!(refusal(&as_json(&answer)), ("invalid_argument", "JSON_MALFORMED"));

        let time = [("connect-timeout-ms", "100")];
        let never = json!({"shopId": NEVER}).to_string();
        let answer = send(address, post(GET_SHOP, "application/json", &time, never)).await;
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT, "{layout:?}");
        let endless = envelope(json!({"snapshotToken": ENDLESS}).to_string().as_bytes());
        let answer = send(
            address,
            post(EXPORT_SHOPS, "application/connect+json", &time, endless),
        )
        .await;
        let (messages, end) = envelopes(&answer);
        assert_eq!(messages.len(), EXPORTED);
        assert_eq!(end.pointer("/error/code"), Some(&json!("deadline_exceeded")));

        // There is no backend for orders.
        let answer = send(
            address,
            with_json("/souk.order.v1.OrderService/GetOrder", &json!({"orderId": "o1"})),
        )
        .await;
        assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED, "{layout:?}");
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_of_the_form_that_the_rpc_has() {
    let setting = Setting::start(Layout::Remote).await;
    let address = setting.gateway.address;
    let large = json!({"shopId": "x".repeat(5 << 20)});
    let answer = send(address, with_json(GET_SHOP, &large)).await;
    assert_eq!(
        refusal(&as_json(&answer)),
        ("resource_exhausted", "MESSAGE_TOO_LARGE")
    );
    let answer = send(
        address,
        post(
            EXPORT_SHOPS,
            "application/connect+json",
            &[],
            envelope(large.to_string().as_bytes()),
        ),
    )
    .await;
    let (_, end) = envelopes(&answer);
    assert_eq!(
        end.get("error").map(refusal),
        Some(("resource_exhausted", "MESSAGE_TOO_LARGE"))
    );
    for (path, content_type, accepted) in [
        (GET_SHOP, "application/connect+json", "application/json"),
        (EXPORT_SHOPS, "application/json", "application/connect+json"),
        (GET_SHOP, "text/plain", "application/proto"),
    ] {
        let answer = send(address, post(path, content_type, &[], "{}")).await;
        assert_eq!(
            answer.status(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{content_type}"
        );
        let told = answer.headers().get("accept-post").expect("types");
        assert!(told.to_str().expect("text").contains(accepted), "{told:?}");
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_read_it() {
    let setting = Setting::start(Layout::Remote).await;
    let name = "茶".repeat(1000);
    let request = post(
        CREATE_SHOP,
        "application/json",
        &[(ACCEPT_ENCODING.as_str(), "gzip")],
        json!({"shop": {"shopId": "h1", "name": name}}).to_string(),
    );
    let answer = send(setting.gateway.address, request).await;
    assert_eq!(answer.headers().get(CONTENT_ENCODING).expect("gzip"), "gzip");
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&**answer.body())
        .read_to_string(&mut plain)
        .expect("gzip");
    let shop: Value = serde_json::from_str(&plain).expect("JSON");
    assert_eq!(shop.pointer("/shop/name"), Some(&json!(name)));
}

#[tokio::test]
async fn health_is_asked_by_connect_in_few_words() {
    let setting = Setting::start(Layout::Local).await;
    for (service, expected) in [
        ("x".repeat(900), "SERVICE_UNKNOWN"),
        ("x".repeat(1_100), "MESSAGE_TOO_LARGE"),
    ] {
        let request = with_json("/grpc.health.v1.Health/Check", &json!({ "service": service }));
        let answer = send(setting.gateway.address, request).await;
        assert_eq!(refusal(&as_json(&answer)).1, expected);
    }
}

#[tokio::test]
async fn health_answers_to_connect() {
    let setting = Setting::start(Layout::Remote).await;
    let mut watch = setting
        .health()
        .watch(HealthCheckRequest::default())
        .await
        .expect("a watch")
        .into_inner();
    let mut next = async || {
        let answer = watch.message().await.expect("an answer").expect("no end");
        answer.status()
    };
    while next().await != ServingStatus::Serving {}
    let request = with_json("/grpc.health.v1.Health/Check", &json!({"service": ""}));
    let answer = send(setting.gateway.address, request).await;
    assert_eq!(as_json(&answer).get("status"), Some(&json!("SERVING")));
}
