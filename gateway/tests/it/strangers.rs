//! What strangers could do to a front door by its own answers: names that aren't its own, answers under no limit, traces that aren't theirs
//! to decide.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use souk_access::{AuthConfig, TraceTrust};
use souk_chassis::config::{RateConfig, ServerConfig};
use souk_gateway::config::GatewayConfig;
use souk_gateway::origins::WebConfig;
use tonic::Code;

use crate::browser::{FORMS, call, send};
use crate::setting::{BOTH, Layout, Setting, connect, info, shop_request};

const GET_SHOP: &str = "/souk.shop.v1.ShopService/GetShop";

fn empty(method: Method, path: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path");
    request
}

fn under(mut request: Request<Full<Bytes>>, host: &str) -> Request<Full<Bytes>> {
    request.headers_mut().insert(HOST, host.parse().expect("a value"));
    request
}

#[tokio::test]
async fn a_page_whose_name_was_made_ours_gets_nothing() {
    let setting = Setting::start(Layout::Local).await;
    let address = setting.gateway.address;
    for host in ["evil.example", "localhost.evil.example:80"] {
        for request in [
            empty(Method::GET, "/v1/shops/h1"),
            empty(Method::DELETE, "/v1/shops/h1"),
            empty(Method::GET, "/openapi.json"),
            empty(Method::OPTIONS, "/v1/shops/h1"),
            call(FORMS[0], GET_SHOP, &shop_request("h1")),
        ] {
            let is_grpc_web = request.headers().get(CONTENT_TYPE).is_some();
            let answer = send(address, under(request, host)).await;
            if is_grpc_web {
                assert_eq!(answer.headers().get("grpc-status").expect("a status"), "7");
                assert!(answer.body().is_empty());
            } else {
                assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{host}");
                let body = String::from_utf8_lossy(answer.body()).into_owned();
                assert!(
                    body.contains("HOST_UNKNOWN") && body.contains("auth.hosts"),
                    "{body}"
                );
            }
        }
    }
    for host in ["localhost:50051", "demo.localhost", "192.0.2.1", "[::1]:7"] {
        let answer = send(address, under(empty(Method::GET, "/v1/shops/h1"), host)).await;
        assert_eq!(answer.status(), StatusCode::OK, "{host}");
    }
}

#[tokio::test]
async fn a_name_is_asked_for_by_http_2_as_well_and_may_be_configured() {
    let config = GatewayConfig {
        auth: AuthConfig {
            hosts: vec!["shop.lan".to_owned()],
            ..AuthConfig::default()
        },
        ..GatewayConfig::default()
    };
    let setting = Setting::with(Layout::Local, config).await;
    let named = |authority: &str| {
        let origin = format!("http://{authority}").parse().expect("an origin");
        let address = format!("http://{}", setting.gateway.address);
        let endpoint = tonic::transport::Endpoint::from_shared(address).expect("an address");
        souk_proto::shop::v1::shop_service_client::ShopServiceClient::new(
            endpoint.origin(origin).connect_lazy(),
        )
    };
    let refused = named("evil.example")
        .get_shop(shop_request("h1"))
        .await
        .expect_err("a stranger's name");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    assert_eq!(info(&refused).reason, "HOST_UNKNOWN");
    named("shop.lan:7")
        .get_shop(shop_request("h1"))
        .await
        .expect("a shop");
    let channel = connect(setting.gateway.address);
    souk_proto::shop::v1::shop_service_client::ShopServiceClient::new(channel)
        .get_shop(shop_request("h1"))
        .await
        .expect("a shop");
}

/// What says gRPC-Web, and is no call of it.
fn grpc_web(method: Method, content_type: &str) -> Request<Full<Bytes>> {
    let mut request = empty(method, "/souk.shop.v1.ShopService/GetShop");
    let content_type = content_type.parse().expect("a value");
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    request
}

#[tokio::test]
async fn answers_of_the_front_itself_are_under_its_rate() {
    let config = GatewayConfig {
        server: ServerConfig {
            rate: RateConfig {
                caller_calls_per_second: 1,
                caller_burst: 2,
                ..RateConfig::default()
            },
            ..ServerConfig::default()
        },
        web: WebConfig {
            origins: vec!["https://shop.example".to_owned()],
            ..WebConfig::default()
        },
        ..GatewayConfig::default()
    };
    let requests: [fn() -> Request<Full<Bytes>>; 7] = [
        || empty(Method::GET, "/openapi.json"),
        || empty(Method::GET, "/nowhere"),
        || empty(Method::PUT, "/v1/shops"),
        || {
            let mut preflight = empty(Method::OPTIONS, "/v1/shops/h1");
            let headers = preflight.headers_mut();
            headers.insert(ORIGIN, "https://shop.example".parse().expect("a value"));
            headers.insert("access-control-request-method", "GET".parse().expect("a value"));
            preflight
        },
        || under(empty(Method::GET, "/v1/shops/h1"), "evil.example"),
        || grpc_web(Method::GET, "application/grpc-web"),
        || grpc_web(Method::POST, "application/grpc-web+json"),
    ];
    for request in requests {
        let setting = Setting::with(Layout::Local, config.clone()).await;
        let mut codes = Vec::new();
        for _ in 0..20 {
            let answer: Response<Bytes> = send(setting.gateway.address, request()).await;
            codes.push(answer.status());
        }
        assert_ne!(codes[0], StatusCode::TOO_MANY_REQUESTS);
        let refused = codes
            .iter()
            .filter(|code| **code == StatusCode::TOO_MANY_REQUESTS)
            .count();
        assert!(refused > 0, "{codes:?}");
    }
}

#[tokio::test]
async fn what_would_take_too_much_memory_is_refused_in_each_form() {
    let elements = [0x0a, 0].repeat(2_000_000);
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let post = |path: &str, content_type: &str, body: Vec<u8>| {
            let mut request = Request::new(Full::new(Bytes::from(body)));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = path.parse().expect("a path");
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, content_type.parse().expect("a value"));
            headers.insert(
                HeaderName::from_static("connect-protocol-version"),
                "1".parse().expect("a value"),
            );
            request
        };
        let json = format!(r#"{{"media":[{}{{}}]}}"#, "{},".repeat(1_000_000));
        let batch = "/souk.media.v1.MediaService/BatchCreateMedia";
        for request in [
            post(batch, "application/proto", elements.clone()),
            post(batch, "application/json", json.clone().into_bytes()),
            post("/v1/media:batchCreate", "application/json", json.into_bytes()),
        ] {
            let answer =
                tokio::time::timeout(Duration::from_secs(60), send(setting.gateway.address, request));
            let answer = answer.await.expect("an answer in time");
            let body = String::from_utf8_lossy(answer.body()).into_owned();
            assert_eq!(
                answer.status(),
                StatusCode::TOO_MANY_REQUESTS,
                "{layout:?}: {body}"
            );
            assert!(body.contains("once it is decoded"), "{layout:?}: {body}");
        }
    }
}

#[test]
fn whose_traces_are_gone_on_with_is_a_setting() {
    let read = |text: &str| {
        let setting = format!("backends.shop=http://127.0.0.1:7\nauth.traces={text}");
        let overrides: Vec<String> = setting.lines().map(str::to_owned).collect();
        souk_chassis::config::Loader::default()
            .overrides(overrides)
            .load::<GatewayConfig>()
            .map(|config| config.auth.traces)
    };
    for (text, expected) in [
        ("nobody", TraceTrust::Nobody),
        ("callers", TraceTrust::Callers),
        ("everybody", TraceTrust::Everybody),
    ] {
        assert_eq!(read(text).expect(text), expected);
    }
    assert!(read("strangers").is_err());
}
