//! The gateway is as healthy as what is behind it.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::setting::{BOTH, Setting, info};

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

const SHOPS: &str = "souk.shop.v1.ShopService";
const MEDIA: &str = "souk.media.v1.MediaService";
const INDEXES: &str = "souk.index.v1.IndexService";

#[tokio::test]
async fn the_whole_serves_while_all_backends_do() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut states = setting
            .health()
            .watch(of(""))
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

        setting.shop_serving.send_replace(false);
        assert_eq!(next().await, ServingStatus::NotServing, "{layout:?}");
        let mut health = setting.health();
        let mut check = async |service| {
            let answer = health.check(of(service)).await.expect("a known service");
            answer.into_inner().status()
        };
        assert_eq!(check("").await, ServingStatus::NotServing, "{layout:?}");
        assert_eq!(check(SHOPS).await, ServingStatus::NotServing, "{layout:?}");
        assert_eq!(check(MEDIA).await, ServingStatus::Serving, "{layout:?}");
        // Both have indexes.
        assert_eq!(check(INDEXES).await, ServingStatus::NotServing, "{layout:?}");

        setting.shop_serving.send_replace(true);
        assert_eq!(next().await, ServingStatus::Serving, "{layout:?}");
        assert_eq!(check(SHOPS).await, ServingStatus::Serving, "{layout:?}");
        assert_eq!(check(INDEXES).await, ServingStatus::Serving, "{layout:?}");

        setting.media_serving.send_replace(false);
        assert_eq!(next().await, ServingStatus::NotServing, "{layout:?}");
    }
}

#[tokio::test]
async fn a_service_without_backend_is_not_known() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let status = setting
            .health()
            .check(of("souk.order.v1.OrderService"))
            .await
            .expect_err("not routed");
        assert_eq!(status.code(), Code::NotFound, "{layout:?}");
        assert_eq!(info(&status).reason, "SERVICE_UNKNOWN", "{layout:?}");
    }
}
