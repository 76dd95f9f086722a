//! How long a lone client waits from the beginning of a write to the end of a search that contains it.
//!
//! `cargo run --release -p souk-e2e --example freshness -- http://127.0.0.1:50051 1000`
//!
//! It creates shops, searches each by its id with the write's sequence as `min_sequence`, and deletes them.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::time::{Duration, Instant};

use souk_e2e::data::{self, Numbers};
use souk_proto::search::v1::{Query, Search, TermQuery, query};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{CreateShopRequest, DeleteShopRequest, SearchShopsRequest};
use souk_proto::r#type::v1::{Value, value};

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(at).copied().unwrap_or_default()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let [p50, p90, p99] = [50, 90, 99].map(|percent| percentile(&times, percent));
    println!(
        "{what}: p50 {p50:?}, p90 {p90:?}, p99 {p99:?}, max {:?}",
        percentile(&times, 100)
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments
        .next()
        .unwrap_or_else(|| "http://127.0.0.1:50051".to_owned());
    let rounds: u64 = arguments.next().unwrap_or_else(|| "1000".to_owned()).parse()?;
    let mut shops = ShopServiceClient::connect(target).await?;
    let mut numbers = Numbers::new(1);
    let (mut writes, mut both) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        let mut shop = data::shop(number, &mut numbers);
        shop.shop_id = format!("freshness-{number}");
        let shop_id = shop.shop_id.clone();
        let began = Instant::now();
        let request = CreateShopRequest {
            shop: Some(shop),
            ..CreateShopRequest::default()
        };
        let min_sequence = shops.create_shop(request).await?.into_inner().sequence;
        writes.push(began.elapsed());
        let value = Some(Value {
            kind: Some(value::Kind::StringValue(shop_id.clone())),
        });
        let term = TermQuery {
            field: "shop_id".to_owned(),
            value,
            weight: None,
        };
        let search = Search {
            query: Some(Query {
                kind: Some(query::Kind::Term(term)),
            }),
            min_sequence,
            ..Search::default()
        };
        let request = SearchShopsRequest { search: Some(search) };
        let hits = shops.search_shops(request).await?.into_inner().hits;
        both.push(began.elapsed());
        anyhow::ensure!(hits.len() == 1, "the search doesn't contain the write");
        let request = DeleteShopRequest {
            shop_id,
            etag: String::new(),
        };
        shops.delete_shop(request).await?;
    }
    report("write", writes);
    report("write, then search that contains it", both);
    Ok(())
}
