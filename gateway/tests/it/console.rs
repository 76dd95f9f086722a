//! The console: a page of the gateway's own, which anybody may open and which may call.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use souk_gateway::config::GatewayConfig;
use souk_gateway::origins::{ConsoleMode, WebConfig};

use crate::browser::send;
use crate::setting::{BOTH, Layout, Setting};

fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::default()).expect("a request")
}

#[tokio::test]
async fn the_page_is_there_from_wherever_it_was_opened() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        for site in ["none", "cross-site"] {
            let asked = request(Method::GET, "/", &[("sec-fetch-site", site)]);
            let page = send(setting.gateway.address, asked).await;
            assert_eq!(page.status(), StatusCode::OK, "{layout:?} {site}");
            assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
            assert!(page.headers().contains_key(CONTENT_SECURITY_POLICY));
            let text = std::str::from_utf8(page.body()).expect("UTF-8");
            let script = text
                .split('"')
                .find(|part| part.ends_with(".js"))
                .expect("a script");
            let asked = request(Method::GET, script, &[("accept-encoding", "gzip")]);
            let script = send(setting.gateway.address, asked).await;
            assert_eq!(script.headers()[CONTENT_ENCODING], "gzip");
        }
        let head = send(setting.gateway.address, request(Method::HEAD, "/", &[])).await;
        assert_eq!((head.status(), head.body().len()), (StatusCode::OK, 0));
    }
}

#[tokio::test]
async fn the_page_may_call_and_pages_of_others_may_not() {
    let setting = Setting::start(Layout::Local).await;
    let address = setting.gateway.address;
    let own = format!("http://{address}");
    let call = |origin: &str, site: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("sec-fetch-site", site),
            (ORIGIN.as_str(), origin),
        ];
        let mut request = request(Method::POST, "/souk.shop.v1.ShopService/GetShop", &headers);
        *request.body_mut() = Full::from(r#"{"shopId":"h1"}"#);
        request
    };
    assert_eq!(
        send(address, call(&own, "same-origin")).await.status(),
        StatusCode::OK
    );
    let refused = send(address, call("https://evil.example", "cross-site")).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_name_that_was_made_ours_has_no_page() {
    let setting = Setting::start(Layout::Local).await;
    let asked = request(Method::GET, "/", &[(HOST.as_str(), "evil.example")]);
    let answer = send(setting.gateway.address, asked).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn there_is_no_page_when_it_is_off() {
    let config = GatewayConfig {
        web: WebConfig {
            console: ConsoleMode::Off,
            ..WebConfig::default()
        },
        ..GatewayConfig::default()
    };
    let setting = Setting::with(Layout::Local, config).await;
    for path in ["/", "/icon.svg"] {
        let answer = send(setting.gateway.address, request(Method::GET, path, &[])).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
