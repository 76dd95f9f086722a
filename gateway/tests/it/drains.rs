//! The end of a gateway: health first, then no new calls, then the calls under way, then the streams.

use std::time::Duration;

use souk_chassis::config::ServerConfig;
use souk_gateway::config::GatewayConfig;
use souk_proto::shop::v1::ExportShopsRequest;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::backends::{ENDLESS, EXPORTED};
use crate::setting::{BOTH, Setting, info, retry_after};

#[tokio::test]
async fn health_says_so_and_streams_end_with_words() {
    for layout in BOTH {
        let config = GatewayConfig {
            server: ServerConfig {
                drain_deadline: Duration::from_secs(2),
                ..ServerConfig::default()
            },
            ..GatewayConfig::default()
        };
        let setting = Setting::with(layout, config).await;
        let request = HealthCheckRequest::default();
        let mut states = setting
            .health()
            .watch(request)
            .await
            .expect("a stream")
            .into_inner();
        let mut next = async || {
            states
                .message()
                .await
                .expect("no error")
                .map(|state| state.status())
        };
        while next().await != Some(ServingStatus::Serving) {}
        let request = ExportShopsRequest {
            snapshot_token: ENDLESS.to_owned(),
            ..Default::default()
        };
        let mut stream = setting
            .shops()
            .export_shops(request)
            .await
            .expect("a stream")
            .into_inner();
        for _ in 0..EXPORTED {
            stream.message().await.expect("no error").expect("a message");
        }

        setting.gateway.stop();
        assert_eq!(next().await, Some(ServingStatus::NotServing), "{layout:?}");
        assert_eq!(next().await, None, "{layout:?}");
        let status = stream.message().await.expect_err("the gateway goes");
        assert_eq!(status.code(), Code::Unavailable, "{layout:?}: {status:?}");
        assert_eq!(info(&status).reason, "DRAINING", "{layout:?}");
        assert!(
            retry_after(&status).is_some_and(|delay| delay > Duration::ZERO),
            "{layout:?}"
        );
        let served = setting.gateway.task.await.expect("no panic");
        assert_eq!(served.calls_cut_off, 0, "{layout:?}");
    }
}
