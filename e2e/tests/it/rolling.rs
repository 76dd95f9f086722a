//! Every process is restarted, one after the other, under load: no safe call fails, and others with UNAVAILABLE alone.
//!
//! Clients do what `docs/service-config.json` tells them. The new gateway is there before the old one goes, as in any rolling
//! restart of what has no data; a service has to leave its data before the next one takes it, and the gateway bridges that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Plan, Suite};
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::media::v1::{CreateMediaRequest, GetMediaRequest};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{CreateOrderRequest, GetOrderRequest};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{CreateShopRequest, GetShopRequest};
use tokio::sync::watch;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::SOUK;
use crate::never_sent::never_sent;

/// Clients of each service.
const CLIENTS: u64 = 3;
/// Calls of all clients between two restarts.
const CALLS: u64 = 300;

/// Time for so many calls.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the published service config says of safe calls.
#[derive(Clone, Copy)]
struct Policy {
    attempts: u32,
    backoff: Duration,
    backoff_max: Duration,
}

impl Policy {
    fn published() -> anyhow::Result<Self> {
        let text = include_str!("../../../docs/service-config.json");
        let config: serde_json::Value = serde_json::from_str(text)?;
        let policy = &config["methodConfig"][0]["retryPolicy"];
        let seconds = |name: &str| {
            let text = policy[name].as_str().unwrap_or_default();
            text.trim_end_matches('s')
                .parse::<f64>()
                .map(Duration::from_secs_f64)
        };
        Ok(Self {
            attempts: u32::try_from(policy["maxAttempts"].as_u64().unwrap_or_default())?,
            backoff: seconds("initialBackoff")?,
            backoff_max: seconds("maxBackoff")?,
        })
    }

    /// A read, repeated as the policy says.
    async fn read(self, client: &mut Client, id: &str) -> Result<(), Status> {
        let mut pause = self.backoff;
        for _ in 1..self.attempts {
            match client.get(id).await {
                Err(status) if status.code() == Code::Unavailable || never_sent(&status) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.backoff_max);
                }
                answer => return answer,
            }
        }
        client.get(id).await
    }
}

/// A client of one service.
#[derive(Clone)]
enum Client {
    Orders(OrderServiceClient<Channel>),
    Shops(ShopServiceClient<Channel>),
    Media(MediaServiceClient<Channel>),
}

impl Client {
    async fn create(&mut self, number: u64, random: &mut SeededRandom) -> Result<String, Status> {
        match self {
            Self::Orders(orders) => {
                let order = data::order(number, random);
                let id = order.order_id.clone();
                let order = Some(order);
                let request = CreateOrderRequest {
                    order,
                    ..Default::default()
                };
                orders.create_order(request).await.map(|_| id)
            }
            Self::Shops(shops) => {
                let shop = data::shop(number, random);
                let id = shop.shop_id.clone();
                let shop = Some(shop);
                let request = CreateShopRequest {
                    shop,
                    ..Default::default()
                };
                shops.create_shop(request).await.map(|_| id)
            }
            Self::Media(media) => {
                let item = data::media(number, random);
                let id = item.media_id.clone();
                let request = CreateMediaRequest {
                    media: Some(item),
                    ..Default::default()
                };
                media.create_media(request).await.map(|_| id)
            }
        }
    }

    async fn get(&mut self, id: &str) -> Result<(), Status> {
        let id = id.to_owned();
        let min_sequence = 0;
        match self {
            Self::Orders(orders) => {
                let order_id = id;
                let get = GetOrderRequest {
                    order_id,
                    min_sequence,
                };
                orders.get_order(get).await.map(drop)
            }
            Self::Shops(shops) => {
                let shop_id = id;
                let get = GetShopRequest {
                    shop_id,
                    min_sequence,
                };
                shops.get_shop(get).await.map(drop)
            }
            Self::Media(media) => {
                let media_id = id;
                let get = GetMediaRequest {
                    media_id,
                    min_sequence,
                };
                media.get_media(get).await.map(drop)
            }
        }
    }
}

/// What the clients have done so far.
#[derive(Default)]
struct Counted {
    stop: AtomicBool,
    /// Reads that were answered; a client that fails counts to the end of all waits.
    calls: watch::Sender<u64>,
    refused: AtomicU64,
}

/// Writes, and reads what was written, until it is told to stop; gives what was acknowledged, or what must not have happened.
async fn work(
    mut client: Client,
    first: u64,
    policy: Policy,
    counted: Arc<Counted>,
) -> anyhow::Result<Vec<String>> {
    let mut random = SeededRandom::new(first);
    let mut acknowledged: Vec<String> = Vec::new();
    for number in first.. {
        if counted.stop.load(Ordering::Relaxed) {
            break;
        }
        match client.create(number, &mut random).await {
            Ok(id) => acknowledged.push(id),
            Err(status) if status.code() == Code::Unavailable || never_sent(&status) => {
                counted.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(status) => anyhow::bail!("a write ended with {status:?}"),
        }
        let last: Vec<String> = acknowledged.iter().rev().take(3).cloned().collect();
        for id in last {
            let began = Instant::now();
            let read = policy.read(&mut client, &id).await;
            read.map_err(|status| {
                anyhow::anyhow!("a read ended after {:?} with {status:?}", began.elapsed())
            })?;
            counted
                .calls
                .send_modify(|calls| *calls = calls.saturating_add(1));
        }
    }
    Ok(acknowledged)
}

async fn restart(suite: &mut Suite, process: &str) -> anyhow::Result<()> {
    if process == "gateway" {
        suite.replace_process(process).await?.stop().await
    } else {
        suite.take_process(process)?.stop().await?;
        suite.start_process(process).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_every_process_costs_no_safe_call() -> anyhow::Result<()> {
    let mut suite = Plan::new(SOUK, Layout::SeveralProcesses).linked().start().await?;
    let (policy, counted) = (Policy::published()?, Arc::new(Counted::default()));
    let clients = |suite: &Suite| {
        anyhow::Ok([
            Client::Orders(suite.orders()?),
            Client::Shops(suite.shops()?),
            Client::Media(suite.media()?),
        ])
    };
    let mut working = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        for (kind, client) in clients(&suite)?.into_iter().enumerate() {
            let work = work(client, number * 1_000_000, policy, Arc::clone(&counted));
            let counted = Arc::clone(&counted);
            working.spawn(async move {
                let worked = work.await;
                if worked.is_err() {
                    counted.calls.send_replace(u64::MAX);
                }
                anyhow::Ok((kind, worked?))
            });
        }
    }
    let more = async || {
        let mut calls = counted.calls.subscribe();
        let wanted = calls.borrow().saturating_add(CALLS);
        let more = calls.wait_for(|calls| *calls >= wanted);
        tokio::time::timeout(PATIENCE, more).await??;
        anyhow::Ok(())
    };
    more().await?;
    for process in ["shop", "order", "media", "gateway"] {
        let before = counted.refused.load(Ordering::Relaxed);
        let began = Instant::now();
        restart(&mut suite, process).await?;
        let took = began.elapsed();
        more().await?;
        let refused = counted.refused.load(Ordering::Relaxed) - before;
        println!("{process} restarted in {took:?}: {refused} writes refused, no read");
    }
    counted.stop.store(true, Ordering::Relaxed);
    let mut acknowledged: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    while let Some(ended) = working.join_next().await {
        let (kind, ids) = ended??;
        acknowledged.entry(kind).or_default().extend(ids);
    }
    let mut kept = 0;
    for (kind, mut client) in clients(&suite)?.into_iter().enumerate() {
        for id in acknowledged.get(&kind).into_iter().flatten() {
            client.get(id).await?;
            kept += 1;
        }
    }
    let (reads, refused) = (*counted.calls.borrow(), counted.refused.load(Ordering::Relaxed));
    println!("{reads} reads, none failed; {kept} writes acknowledged and kept, {refused} refused");
    Ok(())
}
