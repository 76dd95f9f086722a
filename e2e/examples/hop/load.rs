//! Calls as fast as they are answered, and one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use souk_chassis::client::Channel;
use souk_proto::shop::v1::GetShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tokio::runtime::Handle;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;

use crate::connections::{Connection, Threads};
use crate::proxy::{Proxy, SHOP};

/// Time before the measuring, for connections, caches and threads.
const WARM_UP: Duration = Duration::from_secs(1);

/// What one way did in one round; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) rate: Rate,
    /// Of the processor, by the process in between, for all these calls.
    pub(crate) cpu: f64,
    /// With one call at a time.
    pub(crate) alone_median: f64,
}

/// How fast calls were answered; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) calls: f64,
    pub(crate) per_second: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// What a caller does over and over.
pub(crate) trait Call: Clone + Send + 'static {
    /// One call, to its answer.
    fn call(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Who calls over one connection, on its thread.
#[derive(Clone)]
pub(crate) struct Caller<C> {
    call: C,
    thread: Handle,
}

impl<C> Caller<C> {
    /// One that does with it what `map` says.
    pub(crate) fn map<D>(self, map: impl FnOnce(C) -> D) -> Caller<D> {
        Caller {
            call: map(self.call),
            thread: self.thread,
        }
    }

    /// What it does.
    pub(crate) fn into_call(self) -> C {
        self.call
    }

    /// One for each of `connections`, of what `call` makes of them.
    pub(crate) fn of(connections: &[Connection], call: impl Fn(Channel) -> C) -> Vec<Self> {
        let caller = |connection: &Connection| Self {
            call: call(connection.channel.clone()),
            thread: connection.thread.clone(),
        };
        connections.iter().map(caller).collect()
    }
}

/// Gets the one shop, with a key where one is needed.
#[derive(Clone)]
struct GetShop {
    client: ShopServiceClient<Channel>,
    key: Option<AsciiMetadataValue>,
}

impl Call for GetShop {
    async fn call(&mut self) -> anyhow::Result<()> {
        let mut request = Request::new(GetShopRequest {
            shop_id: SHOP.to_owned(),
            min_sequence: 0,
        });
        if let Some(key) = &self.key {
            request.metadata_mut().insert("x-api-key", key.clone());
        }
        self.client.get_shop(request).await?;
        Ok(())
    }
}

/// Those who call one way.
pub(crate) struct Callers {
    proxy: Proxy,
    in_flight: usize,
    callers: Vec<Caller<GetShop>>,
}

impl Callers {
    /// Opens connections, and calls for a while.
    pub(crate) async fn of(
        proxy: Proxy,
        threads: &Threads,
        in_flight: usize,
        connections: usize,
    ) -> anyhow::Result<Self> {
        let key = proxy
            .key
            .as_deref()
            .map(AsciiMetadataValue::try_from)
            .transpose()?;
        let connections = threads.connect(&proxy.target, connections)?;
        let callers = Caller::of(&connections, |channel| GetShop {
            client: ShopServiceClient::new(channel),
            key: key.clone(),
        });
        call_for(&callers, in_flight, WARM_UP).await?;
        Ok(Self {
            proxy,
            in_flight,
            callers,
        })
    }

    /// Loads the way, then calls it one by one.
    pub(crate) async fn measure(&self, time: Duration) -> anyhow::Result<Figures> {
        let before = self.proxy.cpu();
        let rate = call_for(&self.callers, self.in_flight, time).await?;
        let cpu = self.proxy.cpu() - before;
        let alone = call_for(self.callers.get(..1).unwrap_or_default(), 1, time).await?;
        Ok(Figures {
            rate,
            cpu,
            alone_median: alone.p50,
        })
    }
}

/// So many calls at a time for a time, by `callers` in turn.
pub(crate) async fn call_for<C: Call>(
    callers: &[Caller<C>],
    in_flight: usize,
    time: Duration,
) -> anyhow::Result<Rate> {
    let over = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let mut calling = Vec::new();
    for Caller { call, thread } in callers.iter().cycle().take(in_flight).cloned() {
        let over = Arc::clone(&over);
        calling.push(thread.spawn(call_until(call, over)));
    }
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for caller in calling {
        all.extend(caller.await??);
    }
    let took = began.elapsed().as_secs_f64();
    all.sort_unstable();
    let at = |percent: usize| {
        let place = all.len().saturating_sub(1) * percent / 100;
        all.get(place).map_or(0.0, Duration::as_secs_f64)
    };
    let calls = all.len().max(1) as f64;
    Ok(Rate {
        calls,
        per_second: calls / took,
        p50: at(50),
        p99: at(99),
    })
}

async fn call_until<C: Call>(mut caller: C, over: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        caller.call().await?;
        times.push(began.elapsed());
    }
    Ok(times)
}
