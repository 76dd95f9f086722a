//! What somebody without a key does: a round of each attack.

use bytes::Bytes;
use futures_util::future::join_all;
use http::Method;
use tonic_health::pb::HealthCheckRequest;

use super::bodies;
use super::outcome::Outcome;
use super::raid::Raid;
use super::wire::{Call, Plain};

const WATCH: &str = "/grpc.health.v1.Health/Watch";
const GET: &str = "/souk.shop.v1.ShopService/GetShop";

/// Calls of a round of a flood.
const FLOOD: usize = 250;
/// Connections of one address: more than the server has places for.
const CONNECTIONS: usize = 4_500;
/// Connections that are made at a time.
const AT_A_TIME: usize = 50;
/// What traces of strangers begin with.
pub(super) const TRACE: &str = "bad0bad0bad0bad0";

pub(super) async fn long_names(raid: &Raid) {
    let call = Call::grpc(WATCH, bodies::LONG_NAME.clone());
    raid.besiege(&call, 4, 32).await;
}

pub(super) async fn endless_watches(raid: &Raid) {
    let whole = HealthCheckRequest::default();
    let unknown = HealthCheckRequest {
        service: "x".repeat(1_000),
    };
    for message in [whole, unknown] {
        raid.besiege(&Call::grpc(WATCH, bodies::plain(&message)), 4, 256)
            .await;
    }
}

pub(super) async fn connections(raid: &Raid) {
    let mut open = Vec::new();
    for _ in (0..CONNECTIONS).step_by(AT_A_TIME) {
        let asks = (0..AT_A_TIME).map(|_| Plain::ask(raid.from, raid.target.address, "souk", "/v1/shops/h1"));
        let mut silent = false;
        for (stream, outcome) in join_all(asks).await {
            raid.tally.count(outcome);
            open.extend(stream);
            silent |= outcome == Outcome::Silent;
        }
        if silent {
            // There is no room for anybody, and further ones wouldn't make it worse.
            break;
        }
    }
    raid.hold().await;
    for stream in &open {
        raid.tally.count(if stream.is_cut() {
            Outcome::Cut
        } else {
            Outcome::Open
        });
    }
}

pub(super) async fn calls(raid: &Raid) {
    raid.flood(&vec![Call::grpc(GET, Bytes::from_static(&[0; 5])); FLOOD])
        .await;
}

pub(super) async fn front(raid: &Raid) {
    let get = |path: &str| Call::http(Method::GET, "souk", path, None);
    let preflight = Call::http(Method::OPTIONS, "souk", "/v1/shops", None)
        .with("origin", "http://evil.example")
        .with("access-control-request-method", "POST");
    // Few of those, each for itself: so many long headers end a connection.
    raid.flood(&vec![get(&"/".repeat(15_000)); 8]).await;
    let kinds = [preflight, get("/openapi.json"), get("/nothing/there")];
    let calls: Vec<_> = kinds.iter().cycle().take(FLOOD).cloned().collect();
    raid.flood(&calls).await;
}

pub(super) async fn other_hosts(raid: &Raid) {
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        let (_, outcome) = Plain::ask(raid.from, raid.target.address, host, "/v1/shops/h00000000").await;
        raid.tally.count(outcome);
        raid.flood(&[Call::http(Method::GET, host, "/v1/shops/h00000000", None)])
            .await;
    }
}

pub(super) async fn recorded(raid: &Raid) {
    let calls: Vec<_> = (0..FLOOD)
        .map(|number| {
            let parent = format!("00-{TRACE}{:016x}-{:016x}-01", number + 1, number + 1);
            Call::grpc(GET, Bytes::from_static(&[0; 5])).with("traceparent", &parent)
        })
        .collect();
    raid.flood(&calls).await;
}
