//! What comes in at the front door of `souk serve`, gateway and services in one process, and what an idle suite holds in
//! memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use souk_chassis::client::Channel;
use souk_e2e::data::{self, SeededRandom};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{BatchCreateOrdersRequest, CreateOrderRequest};
use souk_proto::search::v1::HitsMode;
use souk_standalone::load::STREAMS;
use souk_standalone::load::source::BATCH_ROWS;
use souk_standalone::services;
use tokio::process::{Child, Command};

use crate::connections::{Connection, Threads};
use crate::load::{Call, Caller, Rate, call_for};
use crate::proxy::{cpu_of, listening};
use crate::sink::Sink;
use crate::{Options, from_each_in_turn, median, quartiles};

/// Time before each measuring.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);

/// Time that processes have to come to rest before their memory is looked at.
pub(crate) const REST: Duration = Duration::from_secs(10);

/// What is measured.
const CREATE: &str = "CreateOrder, durable";
const LOAD: &str = "BatchCreateOrders of 200, durable";
const SEARCHES: [(&str, HitsMode); 2] = [
    ("SearchOrders, newest 20 of a consumer, ids", HitsMode::Keys),
    ("SearchOrders, newest 20 of a consumer, whole", HitsMode::Full),
];

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
            order: Some(data::order(number, &mut SeededRandom::new(number))),
            ..CreateOrderRequest::default()
        };
        self.client.create_order(request).await?;
        Ok(())
    }
}

/// Creates one batch of orders after the other, as loading does.
#[derive(Clone)]
struct Load(Create);

impl Call for Load {
    async fn call(&mut self) -> anyhow::Result<()> {
        let first = self.0.next.fetch_add(BATCH_ROWS as u64, Ordering::Relaxed);
        let orders = (first..).take(BATCH_ROWS);
        let orders = orders.map(|number| data::order(number, &mut SeededRandom::new(number)));
        let request = BatchCreateOrdersRequest {
            orders: orders.collect(),
            omit_resources: true,
            ..BatchCreateOrdersRequest::default()
        };
        self.0.client.batch_create_orders(request).await?;
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
pub(crate) async fn measure(options: &Options, threads: &Threads, sink: &Sink) -> anyhow::Result<()> {
    println!("| calls | telemetry | calls/s | p50 | p99 | processor, a call |");
    println!("|---|---|---|---|---|---|");
    for (telemetry, sampling) in [
        ("none", None),
        ("metrics and 1 % of traces", Some("0.01")),
        ("metrics and all traces", Some("1")),
    ] {
        for Measured { calls, rate, cpu } in rates(options, threads, sink, sampling).await? {
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
async fn rates(
    options: &Options,
    threads: &Threads,
    sink: &Sink,
    sampling: Option<&str>,
) -> anyhow::Result<Vec<Measured>> {
    let served = Served::start(options, &options.souk, threads, sink, sampling).await?;
    let mut all = vec![
        served
            .measure(&served.creating(), CREATE, options.in_flight, options)
            .await?,
    ];
    // What was written is merged behind the answers; searches are measured after it.
    tokio::time::sleep(REST).await;
    for (calls, mode) in SEARCHES {
        let callers = served.searching(mode);
        call_for(&callers, options.in_flight, WARM_UP).await?;
        all.push(
            served
                .measure(&callers, calls, options.in_flight, options)
                .await?,
        );
    }
    Ok(all)
}

/// Prints the rates of two programs, measured in turns: while one is measured, the other is stopped, with all that it has to do
/// behind its answers.
pub(crate) async fn compare(
    options: &Options,
    programs: [&PathBuf; 2],
    threads: &Threads,
    sink: &Sink,
) -> anyhow::Result<()> {
    let [one, other] = programs;
    let served = [
        Served::start(options, one, threads, sink, None).await?,
        Served::start(options, other, threads, sink, None).await?,
    ];
    println!(
        "| calls | program | calls/s | p99 | processor, a call | of the other's rate | calls/s of each turn |"
    );
    println!("|---|---|---|---|---|---|---|");
    let turns = in_turns(options, &served, CREATE, options.in_flight, Served::creating).await?;
    print_turns(programs, &turns);
    tokio::time::sleep(REST).await;
    for (calls, mode) in SEARCHES {
        let turns = in_turns(options, &served, calls, options.in_flight, |one| {
            one.searching(mode)
        })
        .await?;
        print_turns(programs, &turns);
    }
    // At the end: who loads faster has more rows then.
    let turns = in_turns(options, &served, LOAD, STREAMS, Served::loading).await?;
    print_turns(programs, &turns);
    Ok(())
}

/// The turns of each program, by what `callers` makes of it.
async fn in_turns<C: Call>(
    options: &Options,
    served: &[Served; 2],
    calls: &'static str,
    in_flight: usize,
    callers: impl Fn(&Served) -> Vec<Caller<C>>,
) -> anyhow::Result<[Vec<Measured>; 2]> {
    let mut turns = served.each_ref().map(|one| (one, Vec::new()));
    for one in served {
        one.signal("STOP").await?;
    }
    for round in 0..options.rounds {
        for (one, turns) in from_each_in_turn(&mut turns, round) {
            one.signal("CONT").await?;
            turns.push(one.measure(&callers(one), calls, in_flight, options).await?);
            one.signal("STOP").await?;
        }
    }
    for one in served {
        one.signal("CONT").await?;
    }
    Ok(turns.map(|(_, turns)| turns))
}

/// The medians of the turns of each program, and the ratio of neighbouring turns.
fn print_turns(programs: [&PathBuf; 2], turns: &[Vec<Measured>; 2]) {
    let others = turns.iter().rev();
    for ((program, turns), others) in programs.iter().zip(turns).zip(others) {
        let ratios = turns.iter().zip(others);
        let ratios = ratios.map(|(one, other)| one.rate.per_second / other.rate.per_second);
        let [least, ratio, most] = quartiles(ratios.collect());
        let of = |figure: fn(&Measured) -> f64| median(turns.iter().map(figure).collect());
        let each: Vec<_> = turns
            .iter()
            .map(|turn| format!("{:.0}", turn.rate.per_second))
            .collect();
        println!(
            "| {} | {} | {:.0} | {:.2} ms | {:.0} µs | {ratio:.2} ({least:.2} to {most:.2}) | {} |",
            turns.first().map_or("", |turn| turn.calls),
            program.display(),
            of(|turn| turn.rate.per_second),
            of(|turn| turn.rate.p99) * 1e3,
            of(|turn| turn.cpu / turn.rate.calls) * 1e6,
            each.join(" "),
        );
    }
}

/// A `souk serve` with orders in it.
struct Served {
    /// Ends before its files are removed.
    _child: Child,
    _files: tempfile::TempDir,
    id: u32,
    connections: Vec<Connection>,
    /// The number of the next order.
    next: Arc<AtomicU64>,
}

impl Served {
    async fn start(
        options: &Options,
        souk: &Path,
        threads: &Threads,
        sink: &Sink,
        sampling: Option<&str>,
    ) -> anyhow::Result<Self> {
        let files = tempfile::tempdir()?;
        let mut command = Command::new(souk);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(files.path());
        sink.sends(&mut command, sampling);
        let (child, target) = listening(command).await?;
        let served = Self {
            _files: files,
            id: id(&child)?,
            _child: child,
            connections: threads.connect(&target, options.connections)?,
            next: Arc::default(),
        };
        while served.next.load(Ordering::Relaxed) < ORDERS {
            call_for(&served.creating(), options.in_flight, WARM_UP).await?;
        }
        Ok(served)
    }

    fn creating(&self) -> Vec<Caller<Create>> {
        Caller::of(&self.connections, |channel| Create {
            client: OrderServiceClient::new(channel),
            next: Arc::clone(&self.next),
        })
    }

    fn loading(&self) -> Vec<Caller<Load>> {
        let callers = self.creating().into_iter();
        callers.map(|caller| caller.map(Load)).collect()
    }

    fn searching(&self, mode: HitsMode) -> Vec<Caller<Newest>> {
        Caller::of(&self.connections, |channel| Newest {
            client: OrderServiceClient::new(channel),
            mode,
            next: Arc::default(),
        })
    }

    /// Stops the process, or lets it go on.
    async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.id.to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().await?;
        anyhow::ensure!(status.success(), "kill -s {name} {id}: {status}");
        Ok(())
    }

    async fn measure<C: Call>(
        &self,
        callers: &[Caller<C>],
        calls: &'static str,
        in_flight: usize,
        options: &Options,
    ) -> anyhow::Result<Measured> {
        let before = cpu_of(self.id);
        let rate = call_for(callers, in_flight, options.time()).await?;
        let cpu = cpu_of(self.id) - before;
        Ok(Measured { calls, rate, cpu })
    }
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
    rested(&[id(&child)?]).await
}

/// The [`Memory`] of the suite in several processes, at rest.
async fn apart(options: &Options) -> anyhow::Result<Memory> {
    let files = tempfile::tempdir()?;
    let mut gateway = Command::new(&options.souk);
    gateway.args(["gateway", "--listen", "127.0.0.1:0"]);
    let mut children = Vec::new();
    for service in services::ALL {
        let mut command = Command::new(&options.souk);
        command
            .args([service.command, "--listen", "127.0.0.1:0", "--data"])
            .arg(files.path().join(service.name));
        let (child, target) = listening(command).await?;
        gateway.args(["--backend".to_owned(), format!("{}={target}", service.name)]);
        children.push(child);
    }
    children.push(listening(gateway).await?.0);
    rested(&children.iter().map(id).collect::<anyhow::Result<Vec<_>>>()?).await
}

fn id(child: &Child) -> anyhow::Result<u32> {
    child.id().context("a process ended")
}

/// Megabytes that processes hold: all that is resident, what of it is in huge pages, and all but with pages that several
/// share counted once.
pub(crate) type Memory = [f64; 3];

/// What of `/proc/ID/smaps_rollup` makes it up.
const LINES: [&str; 3] = ["Rss:", "AnonHugePages:", "Pss:"];

/// The memory of processes by their ids, once they have come to rest.
pub(crate) async fn rested(ids: &[u32]) -> anyhow::Result<Memory> {
    let until = Instant::now() + REST;
    tokio::time::sleep_until(until.into()).await;
    let mut memory = Memory::default();
    for id in ids {
        let maps = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("smaps_rollup"))?;
        for (name, sum) in LINES.iter().zip(&mut memory) {
            let line = maps.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
            *sum += kilobytes.context(*name)?.parse::<f64>()? * 1024.0 / 1e6;
        }
    }
    Ok(memory)
}
