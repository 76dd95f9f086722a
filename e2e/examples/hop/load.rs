//! Calls as fast as they are answered, and one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use souk_proto::shop::v1::GetShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::transport::{Channel, Endpoint};

use crate::proxy::{Proxy, SHOP};

/// Time before the measuring, for connections, caches and threads.
const WARM_UP: Duration = Duration::from_secs(1);

/// What one way did in one round; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) calls_per_second: f64,
    pub(crate) p99: f64,
    /// Of the process in between.
    pub(crate) cpu_per_call: f64,
    /// With one call at a time.
    pub(crate) alone_median: f64,
}

/// Loads a way, then calls it one by one.
pub(crate) async fn measure(
    proxy: &Proxy,
    in_flight: usize,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Figures> {
    let clients = clients(&proxy.target, connections)?;
    call_for(&clients, in_flight, WARM_UP).await?;
    let before = proxy.cpu();
    let began = Instant::now();
    let mut under_load = call_for(&clients, in_flight, time).await?;
    let took = began.elapsed().as_secs_f64();
    let cpu = proxy.cpu() - before;
    let calls = under_load.len().max(1) as f64;
    let mut alone = call_for(clients.get(..1).unwrap_or_default(), 1, time).await?;
    under_load.sort_unstable();
    alone.sort_unstable();
    let at = |sorted: &[Duration], percent: usize| {
        let place = sorted.len().saturating_sub(1) * percent / 100;
        sorted.get(place).map_or(0.0, Duration::as_secs_f64)
    };
    Ok(Figures {
        calls_per_second: calls / took,
        p99: at(&under_load, 99),
        cpu_per_call: cpu / calls,
        alone_median: at(&alone, 50),
    })
}

fn clients(target: &str, connections: usize) -> anyhow::Result<Vec<ShopServiceClient<Channel>>> {
    let client = |_| {
        let endpoint = Endpoint::from_shared(target.to_owned())?.tcp_nodelay(true);
        Ok(ShopServiceClient::new(endpoint.connect_lazy()))
    };
    (0..connections.max(1)).map(client).collect()
}

/// So many callers for a time; how long each call took.
async fn call_for(
    clients: &[ShopServiceClient<Channel>],
    callers: usize,
    time: Duration,
) -> anyhow::Result<Vec<Duration>> {
    let over = Arc::new(AtomicBool::new(false));
    let mut calling = Vec::new();
    for client in clients.iter().cycle().take(callers).cloned() {
        let over = Arc::clone(&over);
        calling.push(tokio::spawn(call(client, over)));
    }
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for caller in calling {
        all.extend(caller.await??);
    }
    Ok(all)
}

async fn call(
    mut client: ShopServiceClient<Channel>,
    over: Arc<AtomicBool>,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let request = GetShopRequest {
            shop_id: SHOP.to_owned(),
            min_sequence: 0,
        };
        let began = Instant::now();
        client.get_shop(request).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}
