//! How long a lone client waits from the beginning of a write to the end of a search that contains it.
//!
//! `cargo run --release -p souk-e2e --example freshness -- http://127.0.0.1:50051 1000`
//!
//! It creates shops, searches each by its id with the write's sequence as `min_sequence`, and deletes them.
//!
//! `... --example freshness -- http://127.0.0.1:50051 load 5000 20 4 10` asks how old a write is when searches see it,
//! while nobody waits for it: 5,000 orders a second for 20 seconds, by 4 clients in batches of 10. One client asks
//! again and again how far searches see, another searches for a consumer's newest orders.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use souk_e2e::data::{self, SeededRandom};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{BatchCreateOrdersRequest, SearchOrdersRequest};
use souk_proto::search::v1::{HitsMode, Query, Search, TermQuery, query};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{CreateShopRequest, DeleteShopRequest, SearchShopsRequest};
use souk_proto::r#type::v1::{Value, value};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};

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

/// A load of writes.
#[derive(Clone, Copy)]
struct Load {
    /// Orders a second.
    rate: u64,
    seconds: u64,
    clients: u64,
    /// Orders in one call.
    batch: u64,
}

/// When a call began and ended whose writes have a sequence.
#[derive(Clone, Copy)]
struct Write {
    sequence: i64,
    began: Instant,
    acknowledged: Instant,
}

/// Writes at a steady rate: a call that is late is made up for.
async fn write(
    target: String,
    load: Load,
    client: u64,
    acknowledged: mpsc::UnboundedSender<Write>,
) -> anyhow::Result<Vec<Duration>> {
    let mut orders = OrderServiceClient::connect(target).await?;
    let mut random = SeededRandom::new(client);
    let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let every = Duration::from_secs_f64((load.batch * load.clients) as f64 / load.rate as f64);
    let calls = load.rate * load.seconds / load.batch / load.clients;
    let start = Instant::now();
    let mut times = Vec::new();
    for call in 0..calls {
        let due = start + every.mul_f64(call as f64 + client as f64 / load.clients as f64);
        tokio::time::sleep_until(due.into()).await;
        let batch = (0..load.batch).map(|place| {
            let mut order = data::order(call * load.batch + place, &mut random);
            order.order_id = format!("f{run}-{client}-{call}-{place}");
            order
        });
        let request = BatchCreateOrdersRequest {
            orders: batch.collect(),
            omit_resources: true,
            ..BatchCreateOrdersRequest::default()
        };
        let began = Instant::now();
        let sequence = orders.batch_create_orders(request).await?.into_inner().sequence;
        times.push(began.elapsed());
        acknowledged.send(Write {
            sequence,
            began,
            acknowledged: Instant::now(),
        })?;
    }
    Ok(times)
}

/// Asks how far searches see until every write is seen; the ages since the beginnings and the ends of the calls.
async fn look(
    target: String,
    mut written: mpsc::UnboundedReceiver<Write>,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let mut orders = OrderServiceClient::connect(target).await?;
    let mut unseen: BinaryHeap<Reverse<(i64, Instant, Instant)>> = BinaryHeap::new();
    let (mut since_begin, mut since_end) = (Vec::new(), Vec::new());
    loop {
        let search = Search {
            hits_mode: HitsMode::None.into(),
            ..Search::default()
        };
        let request = SearchOrdersRequest { search: Some(search) };
        let sequence = orders.search_orders(request).await?.into_inner().sequence;
        let now = Instant::now();
        let ended = loop {
            match written.try_recv() {
                Ok(write) => unseen.push(Reverse((write.sequence, write.began, write.acknowledged))),
                Err(error) => break error == TryRecvError::Disconnected,
            }
        };
        while let Some(Reverse((_, began, acknowledged))) = unseen.peek().filter(|next| next.0.0 <= sequence)
        {
            since_begin.push(now.duration_since(*began));
            since_end.push(now.saturating_duration_since(*acknowledged));
            unseen.pop();
        }
        if ended && unseen.is_empty() {
            return Ok((since_begin, since_end));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Searches until it is told to stop.
async fn search(target: String, stop: watch::Receiver<bool>) -> anyhow::Result<Vec<Duration>> {
    let mut orders = OrderServiceClient::connect(target).await?;
    let mut random = SeededRandom::new(99);
    let mut times = Vec::new();
    while !*stop.borrow() {
        let request = data::newest_of_consumer(random.below(data::CONSUMERS), HitsMode::Full);
        let began = Instant::now();
        orders.search_orders(request).await?;
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(times)
}

async fn under_load(target: String, load: Load) -> anyhow::Result<()> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let looking = tokio::spawn(look(target.clone(), receiver));
    let searching = tokio::spawn(search(target.clone(), stopped));
    let began = Instant::now();
    let writing: Vec<_> = (0..load.clients)
        .map(|client| tokio::spawn(write(target.clone(), load, client, sender.clone())))
        .collect();
    drop(sender);
    let mut calls = Vec::new();
    for writer in writing {
        calls.extend(writer.await??);
    }
    let took = began.elapsed();
    let (since_begin, since_end) = looking.await??;
    stop.send(true)?;
    let orders = calls.len() as u64 * load.batch;
    println!(
        "{orders} orders in {took:?}: {:.0}/s",
        orders as f64 / took.as_secs_f64()
    );
    report("call that writes a batch", calls);
    report("age when searches see it, since the call began", since_begin);
    report("age when searches see it, since it was acknowledged", since_end);
    report("search meanwhile", searching.await??);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments
        .next()
        .unwrap_or_else(|| "http://127.0.0.1:50051".to_owned());
    let rounds = arguments.next().unwrap_or_else(|| "1000".to_owned());
    if rounds == "load" {
        let mut number = |default: u64| arguments.next().map_or(Ok(default), |number| number.parse());
        let load = Load {
            rate: number(5_000)?.max(1),
            seconds: number(20)?,
            clients: number(4)?.max(1),
            batch: number(10)?.clamp(1, 200),
        };
        return under_load(target, load).await;
    }
    let rounds: u64 = rounds.parse()?;
    let mut shops = ShopServiceClient::connect(target).await?;
    let mut random = SeededRandom::new(1);
    let (mut writes, mut both) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        let mut shop = data::shop(number, &mut random);
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
