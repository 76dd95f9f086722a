//! What the gateway refuses before a backend sees it.

use souk_chassis::config::ServerConfig;
use souk_gateway::config::GatewayConfig;
use tonic::Code;

use crate::backends::NEVER;
use crate::setting::{BOTH, Setting, info, retry_after};

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused_by_name() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let status = setting.get_shop(&"x".repeat(5 << 20)).await.expect_err("5 MiB");
        assert_eq!(status.code(), Code::ResourceExhausted, "{layout:?}: {status:?}");
        let info = info(&status);
        assert_eq!(info.reason, "MESSAGE_TOO_LARGE", "{layout:?}");
        assert_eq!(
            info.metadata.get("limit_bytes").map(String::as_str),
            Some("4194304"),
            "{layout:?}"
        );
        assert!(
            status.message().contains("4194304"),
            "{layout:?}: {}",
            status.message()
        );
        // The connection goes on.
        setting.get_shop("h1").await.expect("a shop");
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_are_shed_with_the_time_to_come_back() {
    for layout in BOTH {
        let config = GatewayConfig {
            server: ServerConfig {
                concurrency_max: 1,
                queue_max: 0,
                ..ServerConfig::default()
            },
            ..GatewayConfig::default()
        };
        let setting = Setting::with(layout, config).await;
        let (one, other) = (setting.get_shop(NEVER), setting.get_shop(NEVER));
        // One of them has the place and never ends: the first to end is the shed one.
        let status = tokio::select! {
            ended = one => ended,
            ended = other => ended,
        }
        .expect_err("only one at a time");
        assert_eq!(status.code(), Code::ResourceExhausted, "{layout:?}: {status:?}");
        assert_eq!(info(&status).reason, "CONCURRENCY_LIMIT", "{layout:?}");
        assert!(retry_after(&status).is_some(), "{layout:?}");
    }
}
