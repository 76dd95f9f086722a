//! The caller's time is handed on, what is left of it, and kept.

use std::time::Duration;

use souk_chassis::config::ServerConfig;
use souk_gateway::config::GatewayConfig;
use souk_proto::shop::v1::ExportShopsRequest;
use tonic::{Code, Request};

use crate::backends::{ENDLESS, EXPORTED, NEVER};
use crate::setting::{BOTH, Setting, info, shop_request};

#[tokio::test]
async fn the_backend_gets_what_is_left() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut request = Request::new(shop_request("h1"));
        request.set_timeout(Duration::from_secs(7));
        let shop = setting
            .shops()
            .get_shop(request)
            .await
            .expect("a shop")
            .into_inner();
        let left: u64 = shop.shop.expect("a shop").name.parse().expect("milliseconds");
        assert!((1..=7_000).contains(&left), "{layout:?}: {left} ms of 7 s");
    }
}

#[tokio::test]
async fn a_call_without_time_gets_the_default() {
    for layout in BOTH {
        let config = GatewayConfig {
            server: ServerConfig {
                deadline_default: Duration::from_millis(100),
                ..ServerConfig::default()
            },
            ..GatewayConfig::default()
        };
        let setting = Setting::with(layout, config).await;
        let status = setting.get_shop(NEVER).await.expect_err("it never comes");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{layout:?}: {status:?}");
        assert_eq!(info(&status).reason, "DEADLINE_EXCEEDED", "{layout:?}");
    }
}

#[tokio::test]
async fn a_call_ends_when_its_time_is_over() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut request = Request::new(shop_request(NEVER));
        let timeout = tonic::metadata::MetadataValue::from_static("100m");
        request.metadata_mut().insert("grpc-timeout", timeout);
        // A client with a channel would look at the clock by itself.
        let mut shops = setting.shops_at_the_stack();
        let status = shops.get_shop(request).await.expect_err("it never comes");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{layout:?}: {status:?}");
        assert_eq!(info(&status).reason, "DEADLINE_EXCEEDED", "{layout:?}");
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_time_is_over_and_not_before() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut request = Request::new(ExportShopsRequest {
            snapshot_token: ENDLESS.to_owned(),
            ..Default::default()
        });
        let timeout = tonic::metadata::MetadataValue::from_static("300m");
        request.metadata_mut().insert("grpc-timeout", timeout);
        let mut stream = setting
            .shops()
            .export_shops(request)
            .await
            .expect("a stream")
            .into_inner();
        for _ in 0..EXPORTED {
            stream.message().await.expect("no error").expect("a message");
        }
        let status = stream.message().await.expect_err("its time is over");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{layout:?}: {status:?}");
    }
}
