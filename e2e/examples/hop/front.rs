//! What comes in at the front door of `souk serve`, gateway and services in one process, and what an idle suite holds in
//! memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use souk_e2e::data::{self, Numbers};
use souk_proto::order::v1::CreateOrderRequest;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::search::v1::HitsMode;
use tokio::process::{Child, Command};
use tonic::transport::Channel;

use crate::Options;
use crate::load::{Call, Rate, call_for, channels};
use crate::proxy::{cpu_of, listening};
use crate::sink::Sink;

/// Time before each measuring.
const WARM_UP: Duration = Duration::from_secs(1);

/// Time that processes have to come to rest before their memory is looked at.
const REST: Duration = Duration::from_secs(10);

/// Orders that there are before the measuring.
const ORDERS: u64 = 20_000;

/// Creates one order after the other.
#[derive(Clone)]
struct Create {
    client: OrderServiceClient<Channel>,
    /// The next number of all callers.
    next: Arc<AtomicU64>,
}

impl Call for Create {
    async fn call(&mut self) -> anyhow::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let request = CreateOrderRequest {
            order: Some(data::order(number, &mut Numbers::new(number))),
            ..CreateOrderRequest::default()
        };
        self.client.create_order(request).await?;
        Ok(())
    }
}

/// Searches the newest 20 orders of one consumer after the other.
#[derive(Clone)]
struct Newest {
    client: OrderServiceClient<Channel>,
    mode: HitsMode,
    next: Arc<AtomicU64>,
}

impl Call for Newest {
    async fn call(&mut self) -> anyhow::Result<()> {
        let consumer = self.next.fetch_add(1, Ordering::Relaxed) % data::CONSUMERS;
        let request = data::newest_of_consumer(consumer, self.mode);
        let found = self.client.search_orders(request).await?.into_inner();
        anyhow::ensure!(
            found.hits.len() == 20,
            "{} orders of consumer {consumer}",
            found.hits.len()
        );
        Ok(())
    }
}

/// What one kind of calls came to.
struct Measured {
    calls: &'static str,
    rate: Rate,
    /// Seconds of the processor that the server took meanwhile.
    cpu: f64,
}

/// Measures rates by telemetry, then memory, and prints both.
pub(crate) async fn measure(options: &Options, sink: &Sink) -> anyhow::Result<()> {
    println!("| calls | telemetry | calls/s | p50 | p99 | processor, a call |");
    println!("|---|---|---|---|---|---|");
    for (telemetry, sampling) in [
        ("none", None),
        ("metrics and 1 % of traces", Some("0.01")),
        ("metrics and all traces", Some("1")),
    ] {
        for Measured { calls, rate, cpu } in rates(options, sink, sampling).await? {
            println!(
                "| {calls} | {telemetry} | {:.0} | {:.2} ms | {:.2} ms | {:.0} µs |",
                rate.per_second,
                rate.p50 * 1e3,
                rate.p99 * 1e3,
                cpu / rate.calls * 1e6,
            );
        }
    }
    println!();
    println!("| idle | resident | of it huge pages | shared pages counted once |");
    println!("|---|---|---|---|");
    let demo_of = format!("`souk demo`, {}", options.demo);
    for (what, memory) in [
        (demo_of.as_str(), demo(options).await?),
        ("gateway and three services, empty", apart(options).await?),
    ] {
        let [resident, huge, once] = memory;
        println!("| {what} | {resident:.0} MB | {huge:.0} MB | {once:.0} MB |");
    }
    Ok(())
}

/// The rates of one `souk serve`.
async fn rates(options: &Options, sink: &Sink, sampling: Option<&str>) -> anyhow::Result<Vec<Measured>> {
    let files = tempfile::tempdir()?;
    let mut command = Command::new(&options.souk);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(files.path());
    sink.sends(&mut command, sampling);
    let (child, target) = listening(command).await?;
    let id = child.id().context("souk serve ended")?;
    let clients: Vec<_> = channels(&target, options.connections)?
        .into_iter()
        .map(OrderServiceClient::new)
        .collect();
    let next = Arc::new(AtomicU64::new(0));
    let creating: Vec<_> = clients
        .iter()
        .map(|client| Create {
            client: client.clone(),
            next: Arc::clone(&next),
        })
        .collect();
    let searching = |mode| -> Vec<_> {
        let newest = |client: &OrderServiceClient<Channel>| Newest {
            client: client.clone(),
            mode,
            next: Arc::default(),
        };
        clients.iter().map(newest).collect()
    };
    while next.load(Ordering::Relaxed) < ORDERS {
        call_for(&creating, options.in_flight, WARM_UP).await?;
    }
    let before = cpu_of(id);
    let mut all = vec![Measured {
        calls: "CreateOrder, durable",
        rate: call_for(&creating, options.in_flight, options.time()).await?,
        cpu: cpu_of(id) - before,
    }];
    // What was written is merged behind the answers; searches are measured after it.
    tokio::time::sleep(REST).await;
    for (calls, mode) in [
        ("SearchOrders, newest 20 of a consumer, ids", HitsMode::Keys),
        ("SearchOrders, newest 20 of a consumer, whole", HitsMode::Full),
    ] {
        let callers = searching(mode);
        call_for(&callers, options.in_flight, WARM_UP).await?;
        let before = cpu_of(id);
        let rate = call_for(&callers, options.in_flight, options.time()).await?;
        let cpu = cpu_of(id) - before;
        all.push(Measured { calls, rate, cpu });
    }
    Ok(all)
}

/// The [`Memory`] of the demo at rest.
async fn demo(options: &Options) -> anyhow::Result<Memory> {
    let files = tempfile::tempdir()?;
    let mut command = Command::new(&options.souk);
    command
        .args([
            "demo",
            "--size",
            &options.demo,
            "--listen",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(files.path());
    let (child, _) = listening(command).await?;
    rested(&[child]).await
}

/// The [`Memory`] of the suite in four processes, at rest.
async fn apart(options: &Options) -> anyhow::Result<Memory> {
    let files = tempfile::tempdir()?;
    let mut gateway = Command::new(&options.souk);
    gateway.args(["gateway", "--listen", "127.0.0.1:0"]);
    let mut children = Vec::new();
    for (service, flag) in [
        ("order-svc", "--order"),
        ("shop-svc", "--shop"),
        ("meta-svc", "--media"),
    ] {
        let mut command = Command::new(&options.souk);
        command
            .args([service, "--listen", "127.0.0.1:0", "--data"])
            .arg(files.path().join(service));
        let (child, target) = listening(command).await?;
        gateway.args([flag, &target]);
        children.push(child);
    }
    children.push(listening(gateway).await?.0);
    rested(&children).await
}

/// Megabytes that processes hold: all that is resident, what of it is in huge pages, and all but with pages that several
/// share counted once.
type Memory = [f64; 3];

/// What of `/proc/ID/smaps_rollup` makes it up.
const LINES: [&str; 3] = ["Rss:", "AnonHugePages:", "Pss:"];

/// The memory of processes that have come to rest.
async fn rested(children: &[Child]) -> anyhow::Result<Memory> {
    let until = Instant::now() + REST;
    tokio::time::sleep_until(until.into()).await;
    let mut memory = Memory::default();
    for child in children {
        let id = child.id().context("a process ended")?;
        let maps = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("smaps_rollup"))?;
        for (name, sum) in LINES.iter().zip(&mut memory) {
            let line = maps.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
            *sum += kilobytes.context(*name)?.parse::<f64>()? * 1024.0 / 1e6;
        }
    }
    Ok(memory)
}
