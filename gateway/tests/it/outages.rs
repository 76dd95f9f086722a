//! Backends that can't be reached, go away, and come back.

use std::time::Duration;

use souk_chassis::config::ServerConfig;
use souk_gateway::Gateway;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_proto::shop::v1::ExportShopsRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::backends::{self, ENDLESS};
use crate::setting::{Layout, Setting, any_port, connect, info, retry_after, serve, shop_request};

fn check(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let info = info(status);
    assert_eq!(info.reason, "BACKEND_UNAVAILABLE", "{status:?}");
    assert_eq!(
        info.metadata.get("backend").map(String::as_str),
        Some("shop"),
        "{status:?}"
    );
    assert!(retry_after(status).is_some(), "{status:?}");
}

#[tokio::test]
async fn a_backend_that_is_not_there_is_unavailable_until_it_comes() {
    crate::traces::install();
    // A port that was free a moment ago, for the backend to come.
    let free = tokio::net::TcpListener::bind(any_port())
        .await
        .expect("a free port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let backends = Backends::default().with(
        "shop",
        Target::remote(&format!("http://{address}")).expect("an address"),
    );
    let config = GatewayConfig::default();
    let stack = Gateway::new(&config, backends).expect("good backends").stack;
    let gateway = serve(stack, &config.server, any_port(), Duration::from_secs(5)).await;
    let mut shops = ShopServiceClient::new(connect(gateway.address));
    check(
        &shops
            .get_shop(shop_request("h1"))
            .await
            .expect_err("nobody listens"),
    );

    let mut health = tonic_health::pb::health_client::HealthClient::new(connect(gateway.address));
    let mut states = health
        .watch(HealthCheckRequest::default())
        .await
        .expect("a stream")
        .into_inner();
    let state = states.message().await.expect("no error").expect("a state");
    assert_eq!(state.status(), ServingStatus::NotServing);

    let server = ServerConfig::behind_a_gateway();
    let shop = backends::shop(&server);
    let _running = serve(shop.stack, &server, address, Duration::from_secs(5)).await;
    let state = states.message().await.expect("no error").expect("a state");
    assert_eq!(state.status(), ServingStatus::Serving);
    shops.get_shop(shop_request("h1")).await.expect("it has come");
}

#[tokio::test]
async fn a_backend_that_comes_back_is_found_again() {
    let setting = Setting::start(Layout::Remote).await;
    setting.get_shop("h1").await.expect("a shop");
    let shop = setting.shop.as_ref().expect("a process of its own");
    let mut states = setting
        .health()
        .watch(HealthCheckRequest::default())
        .await
        .expect("a stream")
        .into_inner();
    let mut next = async || {
        states
            .message()
            .await
            .expect("no error")
            .expect("a state")
            .status()
    };
    while next().await != ServingStatus::Serving {}
    shop.stop();
    assert_eq!(next().await, ServingStatus::NotServing);

    let server = ServerConfig::behind_a_gateway();
    let again = backends::shop(&server);
    let _running = serve(again.stack, &server, shop.address, Duration::from_secs(5)).await;
    assert_eq!(next().await, ServingStatus::Serving);
    setting.get_shop("h1").await.expect("it is back");
}

#[tokio::test]
async fn a_stream_whose_backend_breaks_off_ends_with_words() {
    let mut setting = Setting::start(Layout::Remote).await;
    // A backend that is cut off: its calls have no time at all at the drain.
    let server = ServerConfig::behind_a_gateway();
    let shop = backends::shop(&server);
    let running = serve(shop.stack, &server, any_port(), Duration::ZERO).await;
    let backends = Backends::default().with(
        "shop",
        Target::remote(&format!("http://{}", running.address)).expect("an address"),
    );
    let config = GatewayConfig::default();
    let stack = Gateway::new(&config, backends).expect("good backends").stack;
    setting.gateway = serve(stack, &config.server, any_port(), Duration::from_secs(5)).await;

    let mut shops = ShopServiceClient::new(connect(setting.gateway.address));
    let request = ExportShopsRequest {
        snapshot_token: ENDLESS.to_owned(),
        ..Default::default()
    };
    let mut stream = shops.export_shops(request).await.expect("a stream").into_inner();
    stream.message().await.expect("no error").expect("a message");
    running.stop();
    let status = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended as if it were whole"),
            Err(status) => break status,
        }
    };
    check(&status);
}
