//! Backends that answer calls which prove no caller, behind a gateway that knows its callers.

use std::time::Duration;

use http::Request;
use souk_access::{AuthConfig, CredentialKeys, Reloaded, Role, Rules, ServiceGuard, credential};
use souk_chassis::config::ServerConfig;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::{Admit, Next};
use souk_gateway::Gateway;
use souk_gateway::auth::make_key;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::backends;
use crate::setting::{any_port, connect, info, serve, shop_request};

/// A guard that counts the calls that aren't let in anyway.
#[derive(Debug)]
struct Counted {
    guard: ServiceGuard,
    count: watch::Sender<usize>,
}

impl Admit for Counted {
    fn call(&self, request: Request<Body>, next: Next<'_>) -> ResponseFuture {
        if !request.uri().path().starts_with("/grpc.health") {
            self.count.send_modify(|count| *count += 1);
        }
        self.guard.call(request, next)
    }
}

/// A gateway that knows its callers, and one process of the shop behind it, which has the gateway's key or none.
struct Pair {
    folder: tempfile::TempDir,
    config: GatewayConfig,
    key: String,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = make_key("reader", Role::Reader, "").expect("a key");
        let secret = credential::new_secret().expect("random");
        std::fs::write(folder.path().join("keys"), &made.line).expect("written");
        std::fs::write(folder.path().join("credential"), secret).expect("written");
        let config = GatewayConfig {
            auth: AuthConfig {
                keys: folder.path().join("keys"),
                credential_key: folder.path().join("credential"),
                ..AuthConfig::default()
            },
            ..GatewayConfig::default()
        };
        Self {
            folder,
            config,
            key: made.key,
        }
    }

    fn guard(&self, with_key: bool) -> ServiceGuard {
        let rules = Rules::from_contract().expect("rules");
        let keys = std::fs::read_to_string(self.folder.path().join("credential")).expect("a file");
        let keys = Reloaded::fixed(CredentialKeys::parse(&keys).expect("a key"));
        ServiceGuard::new(rules, with_key.then_some(keys))
    }

    /// A call of somebody whom the gateway knows.
    async fn get(&self, address: std::net::SocketAddr) -> Result<(), Status> {
        let mut request = tonic::Request::new(shop_request("h1"));
        let key = self.key.parse().expect("ascii");
        request.metadata_mut().insert("x-api-key", key);
        let answer = ShopServiceClient::new(connect(address)).get_shop(request).await;
        answer.map(drop)
    }
}

#[tokio::test]
async fn a_backend_that_answers_calls_without_a_caller_counts_as_not_serving() {
    let pair = Pair::new();
    let (count, mut calls) = watch::channel(0);
    let guard = Counted {
        guard: pair.guard(false),
        count,
    };
    let server = ServerConfig::behind_a_gateway();
    let shop = backends::guarded_shop(&server, guard);
    let patience = Duration::from_secs(5);
    let running = serve(shop.stack, &server, any_port(), patience).await;
    let address = running.address;
    let backends = Backends::default().with(
        "shop",
        Target::remote(&format!("http://{address}")).expect("an address"),
    );
    let stack = Gateway::new(&pair.config, backends).expect("good backends").stack;
    let gateway = serve(stack, &pair.config.server, any_port(), patience).await;
    // One for each of its two services: what comes after was found out by the first ones.
    let probed = tokio::time::timeout(Duration::from_secs(30), calls.wait_for(|calls| *calls > 2));
    assert!(probed.await.is_ok_and(|probed| probed.is_ok()), "it is probed");
    let mut health = HealthClient::new(connect(gateway.address));
    let state = health
        .check(HealthCheckRequest::default())
        .await
        .expect("an answer");
    assert_eq!(state.into_inner().status(), ServingStatus::NotServing);
    // Nor does it show rows to a caller that it can't tell from others.
    let status = pair.get(gateway.address).await.expect_err("unchecked");
    assert_eq!(
        (status.code(), info(&status).reason.as_str()),
        (Code::Unavailable, "CALLER_UNCHECKED")
    );

    // Another process with the key, at the same place, is taken.
    running.stop();
    running.task.await.expect("no panic");
    let shop = backends::guarded_shop(&server, pair.guard(true));
    let _running = serve(shop.stack, &server, address, patience).await;
    let states = health
        .watch(HealthCheckRequest::default())
        .await
        .expect("a stream");
    let mut states = states.into_inner();
    let serving = async {
        while states
            .message()
            .await
            .expect("no error")
            .map(|state| state.status())
            != Some(ServingStatus::Serving)
        {}
    };
    tokio::time::timeout(Duration::from_secs(30), serving)
        .await
        .expect("it serves");
    pair.get(gateway.address).await.expect("a shop");
}
