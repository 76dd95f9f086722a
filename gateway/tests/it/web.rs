//! gRPC-Web over HTTP/1.1, as browsers call, and which pages may.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, HOST, ORIGIN,
};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use souk_chassis::config::ServerConfig;
use souk_gateway::config::GatewayConfig;
use souk_gateway::origins::WebConfig;
use souk_proto::shop::v1::{ExportShopsRequest, ExportShopsResponse, GetShopResponse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::{Code, Status};

use crate::backends::{ENDLESS, EXPORTED, FAILING, MISSING};
use crate::browser::{FORMS, Form, begin, call, read, send, whole};
use crate::setting::{BOTH, Layout, Setting, info, shop_request};

const GET_SHOP: &str = "/souk.shop.v1.ShopService/GetShop";
const EXPORT_SHOPS: &str = "/souk.shop.v1.ShopService/ExportShops";

#[tokio::test]
async fn a_unary_call_is_answered_in_both_forms() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        for form in FORMS {
            let mut request = call(form, GET_SHOP, &shop_request("h1"));
            // What a proxy or a browser adds for its connection must not reach HTTP/2.
            request
                .headers_mut()
                .insert("connection", "keep-alive, x-hop".parse().expect("a value"));
            request
                .headers_mut()
                .insert("x-hop", "1".parse().expect("a value"));
            request
                .headers_mut()
                .insert("x-echo", "echoed".parse().expect("a value"));
            let answer = send(setting.gateway.address, request).await;
            assert_eq!(answer.status(), StatusCode::OK, "{layout:?} {form:?}");
            assert_eq!(answer.headers().get("x-echo").expect("a header"), "echoed");
            let (shops, trailers) = read::<GetShopResponse>(form, &answer);
            assert_eq!(
                trailers.get("grpc-status").expect("a status"),
                "0",
                "{layout:?} {form:?}"
            );
            let shop = shops
                .first()
                .and_then(|answer| answer.shop.clone())
                .expect("a shop");
            assert_eq!(shop.shop_id, "h1", "{layout:?} {form:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_arrives_in_order_and_ends_with_its_status() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        for form in FORMS {
            for (snapshot_token, code) in [("", Code::Ok), (FAILING, Code::DataLoss)] {
                let request = ExportShopsRequest {
                    snapshot_token: snapshot_token.to_owned(),
                    ..Default::default()
                };
                let answer = send(setting.gateway.address, call(form, EXPORT_SHOPS, &request)).await;
                let (blocks, trailers) = read::<ExportShopsResponse>(form, &answer);
                assert_eq!(blocks.len(), EXPORTED, "{layout:?} {form:?}");
                assert!(
                    blocks.is_sorted_by_key(|block| block.sequence),
                    "{layout:?} {form:?}"
                );
                let status = Status::from_header_map(&trailers).expect("a status");
                assert_eq!(status.code(), code, "{layout:?} {form:?}");
                if code != Code::Ok {
                    assert_eq!(info(&status).reason, "SNAPSHOT_DAMAGED", "{layout:?} {form:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn errors_keep_their_details_and_malformed_text_has_words() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let answer = send(
            setting.gateway.address,
            call(Form::Binary, GET_SHOP, &shop_request(MISSING)),
        )
        .await;
        let (_, trailers) = read::<GetShopResponse>(Form::Binary, &answer);
        let status = Status::from_header_map(&trailers).expect("a status");
        assert_eq!(
            (status.code(), info(&status).reason.as_str()),
            (Code::NotFound, "SHOP_NOT_FOUND"),
            "{layout:?}"
        );

        let mut request = call(Form::Text, GET_SHOP, &shop_request("h1"));
        *request.body_mut() = Full::new(Bytes::from_static(b"*not base64*"));
        let answer = send(setting.gateway.address, request).await;
        let (_, trailers) = read::<GetShopResponse>(Form::Text, &answer);
        let status = Status::from_header_map(&trailers).expect("a status");
        assert_eq!(
            (status.code(), info(&status).reason.as_str()),
            (Code::InvalidArgument, "GRPC_WEB_MALFORMED"),
            "{layout:?}"
        );
    }
}

#[tokio::test]
async fn limits_and_deadlines_are_those_of_every_call() {
    let setting = Setting::start(Layout::Remote).await;
    let large = shop_request(&"x".repeat(5 << 20));
    let answer = send(setting.gateway.address, call(Form::Binary, GET_SHOP, &large)).await;
    let (_, trailers) = read::<GetShopResponse>(Form::Binary, &answer);
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(info(&status).reason, "MESSAGE_TOO_LARGE");

    let request = ExportShopsRequest {
        snapshot_token: ENDLESS.to_owned(),
        ..Default::default()
    };
    let mut request = call(Form::Binary, EXPORT_SHOPS, &request);
    request
        .headers_mut()
        .insert("grpc-timeout", "200m".parse().expect("a value"));
    let answer = send(setting.gateway.address, request).await;
    let (blocks, trailers) = read::<ExportShopsResponse>(Form::Binary, &answer);
    assert_eq!(blocks.len(), EXPORTED);
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_body_that_never_comes_is_refused_for_that() {
    let config = GatewayConfig {
        server: ServerConfig {
            body_timeout: Duration::from_millis(100),
            ..ServerConfig::forwarding()
        },
        ..GatewayConfig::default()
    };
    let setting = Setting::with(Layout::Local, config).await;
    for content_type in ["application/grpc-web+proto", "application/grpc-web-text"] {
        let address = setting.gateway.address;
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let headers = format!(
            "POST {GET_SHOP} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {content_type}\r\ncontent-length: 9\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(headers.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("server.body_timeout"), "{content_type}: {answer}");
    }
}

fn preflight(origin: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(Method::OPTIONS)
        .uri(GET_SHOP)
        .header(ORIGIN, origin)
        .header(ACCESS_CONTROL_REQUEST_METHOD, "POST")
        .body(Full::default())
        .expect("a request")
}

#[tokio::test]
async fn only_the_pages_of_the_settings_may_call() {
    let page = "https://shop.example";
    let config = GatewayConfig {
        web: WebConfig {
            origins: vec![page.to_owned()],
            ..WebConfig::default()
        },
        ..GatewayConfig::default()
    };
    let setting = Setting::with(Layout::Local, config).await;
    let answer = send(setting.gateway.address, preflight(page)).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let header = |name: http::HeaderName| {
        let value = answer.headers().get(&name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    assert_eq!(header(ACCESS_CONTROL_ALLOW_ORIGIN), page);
    assert!(header(ACCESS_CONTROL_ALLOW_METHODS).contains("PATCH"));
    for name in [
        "authorization",
        "content-type",
        "grpc-timeout",
        "x-grpc-web",
        "traceparent",
    ] {
        assert!(header(ACCESS_CONTROL_ALLOW_HEADERS).contains(name), "{name}");
    }

    let mut request = call(Form::Binary, GET_SHOP, &shop_request("h1"));
    request
        .headers_mut()
        .insert(ORIGIN, page.parse().expect("a value"));
    let answer = send(setting.gateway.address, request).await;
    assert_eq!(
        answer
            .headers()
            .get(ACCESS_CONTROL_ALLOW_ORIGIN)
            .expect("allowed"),
        page
    );
    let exposed = answer
        .headers()
        .get(ACCESS_CONTROL_EXPOSE_HEADERS)
        .expect("exposed");
    let exposed = exposed.to_str().expect("text");
    for name in [
        "grpc-status",
        "grpc-message",
        "grpc-status-details-bin",
        "traceparent",
    ] {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }

    for origin in ["https://evil.example", "http://shop.example", "null"] {
        let answer = send(setting.gateway.address, preflight(origin)).await;
        assert!(
            !answer.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN),
            "{origin}"
        );
    }
}

#[tokio::test]
async fn no_page_may_call_by_default() {
    let setting = Setting::start(Layout::Local).await;
    for origin in ["http://localhost:3000", "https://shop.example"] {
        let answer = send(setting.gateway.address, preflight(origin)).await;
        assert!(
            !answer.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN),
            "{origin}"
        );
        // What a browser sends for a page without having asked.
        for site in ["cross-site", "same-site"] {
            let request = Request::post("/v1/indexes/shops:rebuild")
                .header(HOST, "127.0.0.1")
                .header(ORIGIN, origin)
                .header("sec-fetch-site", site)
                .body(Full::new(Bytes::new()))
                .expect("a request");
            let answer = send(setting.gateway.address, request).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin} {site}");
            let told = String::from_utf8_lossy(answer.body()).into_owned();
            assert!(told.contains("ORIGIN_UNKNOWN"), "{told}");
        }
    }
}

#[tokio::test]
async fn grpc_itself_is_refused_without_http2() {
    let setting = Setting::start(Layout::Local).await;
    let mut request = call(Form::Binary, GET_SHOP, &shop_request("h1"));
    request
        .headers_mut()
        .insert(CONTENT_TYPE, "application/grpc".parse().expect("a value"));
    let answer = send(setting.gateway.address, request).await;
    assert_eq!(answer.status(), StatusCode::HTTP_VERSION_NOT_SUPPORTED);
}

#[tokio::test]
async fn a_drain_ends_streams_of_http1_with_words() {
    let config = GatewayConfig {
        server: ServerConfig {
            drain_deadline: Duration::from_secs(2),
            ..ServerConfig::default()
        },
        ..GatewayConfig::default()
    };
    let setting = Setting::with(Layout::Remote, config).await;
    let request = ExportShopsRequest {
        snapshot_token: ENDLESS.to_owned(),
        ..Default::default()
    };
    let answer = begin(
        setting.gateway.address,
        call(Form::Binary, EXPORT_SHOPS, &request),
    )
    .await;
    setting.gateway.stop();
    let answer = whole(answer).await;
    let (blocks, trailers) = read::<ExportShopsResponse>(Form::Binary, &answer);
    assert_eq!(blocks.len(), EXPORTED);
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(
        (status.code(), info(&status).reason.as_str()),
        (Code::Unavailable, "DRAINING")
    );
}
