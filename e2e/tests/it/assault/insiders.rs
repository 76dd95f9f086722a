//! What callers with a key of a low role do: a round of each attack.

use std::time::Duration;

use http::Method;
use souk_proto::order::v1::{ExportOrdersRequest, WatchOrdersRequest};
use souk_proto::search::v1::Search;
use souk_proto::shop::v1::{GetShopRequest, SearchShopsRequest};

use super::outcome::Outcome;
use super::raid::Raid;
use super::wire::{Call, PATIENCE, Wire};
use super::{bodies, is_long};

const GET_SHOP: &str = "/souk.shop.v1.ShopService/GetShop";
const SEARCH_SHOPS: &str = "/souk.shop.v1.ShopService/SearchShops";

/// Calls of a round of a flood.
const FLOOD: usize = 250;
/// Large requests at a time.
const LARGE: usize = 4;
/// Time in which a call without a body has ended.
const BODILESS_MAX: Duration = Duration::from_secs(60);
/// Time for refusals of such calls where nobody waits for their end.
const BODILESS_LOOK: Duration = Duration::from_secs(2);

fn get_shop(min_sequence: i64) -> GetShopRequest {
    GetShopRequest {
        shop_id: "h00000000".to_owned(),
        min_sequence,
    }
}

pub(super) async fn idle_watches(raid: &Raid) {
    let watch = Call::grpc(
        "/souk.order.v1.OrderService/WatchOrders",
        bodies::plain(&WatchOrdersRequest::default()),
    );
    raid.besiege(&watch.by(raid.target.key("bad-watcher")), 16, 256)
        .await;
}

pub(super) async fn far_sequences(raid: &Raid) {
    let get = Call::grpc(GET_SHOP, bodies::plain(&get_shop(i64::MAX / 2)));
    let get = get.by(raid.target.key("bad-waiter")).with("grpc-timeout", "120S");
    let both = [vec![get.clone(); 256], vec![get; 256]];
    let [one, other] = &both;
    tokio::join!(raid.flood(one), raid.flood(other));
}

pub(super) async fn without_bodies(raid: &Raid) {
    let call = Call::without_body(GET_SHOP);
    let call = call
        .by(raid.target.key("bad-silent"))
        .with("grpc-timeout", "120S");
    let (mut wires, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        if let Some(mut wire) = raid.open().await {
            asked.extend(raid.ask(&mut wire, std::iter::repeat_n(&call, 256)).await);
            wires.push(wire);
        }
    }
    // The short form doesn't wait for their end, only for that of those that are refused.
    let (patience, unanswered) = match is_long() {
        true => (BODILESS_MAX, Outcome::Silent),
        false => (BODILESS_LOOK, Outcome::Open),
    };
    raid.count(asked.iter_mut().map(|call| call.end()), patience, unanswered)
        .await;
}

pub(super) async fn empty_elements(raid: &Raid) {
    let call = Call::grpc(
        "/souk.media.v1.MediaService/BatchCreateMedia",
        bodies::EMPTY_ELEMENTS.clone(),
    );
    raid.flood(&vec![call.by(raid.target.key("bad-batches")); LARGE])
        .await;
}

pub(super) async fn empty_clauses(raid: &Raid) {
    let call = Call::grpc(SEARCH_SHOPS, bodies::EMPTY_CLAUSES.clone());
    raid.flood(&vec![call.by(raid.target.key("bad-clauses")); LARGE])
        .await;
}

pub(super) async fn empty_clauses_in_json(raid: &Raid) {
    let body = Some(bodies::EMPTY_CLAUSES_IN_JSON.clone());
    let call = Call::http(Method::POST, "127.0.0.1", "/v1/shops:search", body);
    let call = call
        .with("content-type", "application/json")
        .with("content-encoding", "gzip");
    raid.flood(&vec![call.by(raid.target.key("bad-json")); LARGE])
        .await;
}

pub(super) async fn unread_exports(raid: &Raid) {
    let export = Call::grpc(
        "/souk.order.v1.OrderService/ExportOrders",
        bodies::plain(&ExportOrdersRequest::default()),
    );
    let export = export.by(raid.target.key("bad-exporter"));
    let Some(mut wire) = Wire::unread(raid.from, raid.target.address).await else {
        return raid.tally.count(Outcome::Cut);
    };
    let mut asked = raid.ask(&mut wire, std::iter::repeat_n(&export, 64)).await;
    raid.count(
        asked.iter_mut().map(|call| call.begin()),
        PATIENCE,
        Outcome::Silent,
    )
    .await;
    raid.hold().await;
}

pub(super) async fn left_views(raid: &Raid) {
    let search = Search {
        page_size: 1,
        keep_view: Some(prost_types::Duration {
            seconds: 300,
            nanos: 0,
        }),
        ..Search::default()
    };
    let search = Call::grpc(
        SEARCH_SHOPS,
        bodies::plain(&SearchShopsRequest { search: Some(search) }),
    );
    raid.flood(&vec![search.by(raid.target.key("bad-views")); FLOOD])
        .await;
}

pub(super) async fn flood(raid: &Raid) {
    let get = Call::grpc(GET_SHOP, bodies::plain(&get_shop(0)));
    raid.flood(&vec![get.by(raid.target.key("bad-flood")); FLOOD])
        .await;
}
