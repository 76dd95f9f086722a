//! What the gateway's hop costs: processor time of a call in the process in between, and what it adds to the median, against
//! nginx `grpc_pass` with the same load, without telemetry, with one trace of a hundred, and with all; and with API keys and
//! limits of rates besides.
//!
//! `e2e/hop.sh` builds what is needed and runs it. By hand:
//! `cargo run --release -p souk-e2e --example hop -- --souk target/release/souk --nginx nginx --seconds 5 --rounds 3`
//!
//! One backend, `souk shop-svc` with one shop, is called by `GetShop`: directly, through nginx, and through gateways, all of them open
//! at the same time. In each round each way is loaded with `--in-flight` calls over `--connections` connections for `--seconds`, for
//! its throughput, and then called by one caller, one call at a time, for its median. The figures are the medians of the rounds,
//! processor times those of all rounds by all calls; many short rounds (`--seconds 0.5 --rounds 20`) hide least of what the machine
//! does besides. With `--against OTHER` the gateways with keys of two programs are measured in turns.
//!
//! With `--front` it measures `souk serve`, gateway and services in one process, by telemetry: durable writes and searches with
//! `--in-flight` calls, for `--seconds` each; and the resident memory of the demo (`--demo small` or `full`) and of the suite in
//! several processes, at rest. With `--against OTHER` it measures writes and searches of two programs without telemetry, in turns:
//! `--rounds` times each, for a machine whose speed changes from minute to minute.
//!
//! With `--tables` it measures what tables of users cost, at one `souk serve` without telemetry: rows that are put, read and found by
//! `souk.table.v1` and by the endpoint for Tablestore's clients, in turns with orders that hold the same, `--rounds` times each; how long the
//! creation of a table takes; and what a start with `--many` tables takes and holds. Answers are looked at, times aren't.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

mod connections;
mod endpoint;
mod front;
mod load;
mod proxy;
mod sink;
mod tables;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use connections::Threads;
use load::{Callers, Figures};
use proxy::{Backend, Way};
use sink::Sink;

/// As little of the processor as can be had is taken from what is measured.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What is asked for on the command line.
#[derive(Clone, Debug)]
struct Options {
    souk: PathBuf,
    /// Without one, nginx is left out.
    nginx: Option<PathBuf>,
    seconds: f64,
    rounds: usize,
    in_flight: usize,
    connections: usize,
    /// Further arguments of the gateways: limits, certificates.
    gateway: Vec<String>,
    /// Measure the front door instead.
    front: bool,
    /// Measure tables of users instead.
    tables: bool,
    /// How many tables there are at once, in the last part of that.
    many: usize,
    /// Size of the demo whose memory is looked at: `small` or `full`.
    demo: String,
    /// Another `souk`, to be measured in turns with the first one.
    against: Option<PathBuf>,
}

impl Options {
    fn read() -> anyhow::Result<Self> {
        let mut options = Self {
            souk: "target/release/souk".into(),
            nginx: None,
            seconds: 5.0,
            rounds: 3,
            in_flight: 64,
            connections: 4,
            gateway: Vec::new(),
            front: false,
            tables: false,
            many: 1_000,
            demo: "full".to_owned(),
            against: None,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{name} needs a value"));
            match name.as_str() {
                "--souk" => options.souk = value()?.into(),
                "--nginx" => options.nginx = Some(value()?.into()),
                "--seconds" => options.seconds = value()?.parse()?,
                "--rounds" => options.rounds = value()?.parse()?,
                "--in-flight" => options.in_flight = value()?.parse()?,
                "--connections" => options.connections = value()?.parse()?,
                "--front" => options.front = true,
                "--tables" => options.tables = true,
                "--many" => options.many = value()?.parse()?,
                "--demo" => options.demo = value()?,
                "--against" => options.against = Some(value()?.into()),
                "--gateway" => options.gateway = value()?.split(' ').map(str::to_owned).collect(),
                _ => anyhow::bail!(
                    "{name}: --souk, --nginx, --seconds, --rounds, --in-flight, --connections, --gateway, --front, --tables, --many, --demo, --against"
                ),
            }
        }
        Ok(options)
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    fn ways(&self) -> Vec<Way> {
        let nginx = self.nginx.clone().map(Way::Nginx);
        let gateway = |name, sampling| Way::Gateway {
            name,
            program: self.souk.clone(),
            sampling,
            guarded: false,
        };
        let guarded = |name, program: &PathBuf| Way::Gateway {
            name,
            program: program.clone(),
            sampling: Some("0.01"),
            guarded: true,
        };
        let gateways = match &self.against {
            Some(other) => vec![
                guarded("gateway, keys, limits, metrics and 1 % of traces", &self.souk),
                guarded("the same of the other program", other),
            ],
            None => vec![
                gateway("gateway, no telemetry", None),
                gateway("gateway, metrics and 1 % of traces", Some("0.01")),
                gateway("gateway, metrics and all traces", Some("1")),
                guarded("gateway, keys, limits, metrics and 1 % of traces", &self.souk),
            ],
        };
        [Some(Way::Direct), nginx]
            .into_iter()
            .flatten()
            .chain(gateways)
            .collect()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::read()?;
    let sink = Sink::start().await?;
    let threads = Threads::start(options.connections)?;
    if options.tables {
        return tables::measure(&options, &threads).await;
    }
    if let (true, Some(other)) = (options.front, &options.against) {
        return front::compare(&options, [&options.souk, other], &threads, &sink).await;
    }
    if options.front {
        return front::measure(&options, &threads, &sink).await;
    }
    let backend = Backend::start(&options.souk, None).await?;
    let ways = options.ways();
    let mut open = Vec::new();
    for way in &ways {
        let proxy = way.start(&options, &backend, &sink).await?;
        open.push((
            Callers::of(proxy, &threads, options.in_flight, options.connections).await?,
            Vec::new(),
        ));
    }
    for round in 0..options.rounds {
        // Whatever changes with time on the machine mustn't meet the same way always.
        for (callers, figures) in from_each_in_turn(&mut open, round) {
            figures.push(callers.measure(options.time()).await?);
        }
    }
    let measured: Vec<Vec<Figures>> = open.into_iter().map(|(_, figures)| figures).collect();
    print(&ways, &measured);
    Ok(())
}

/// All of them, in each round from another one on.
fn from_each_in_turn<T>(all: &mut [T], round: usize) -> impl Iterator<Item = &mut T> {
    let first = round % all.len().max(1);
    let (before, after) = all.split_at_mut(first);
    after.iter_mut().chain(before)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| {
        values
            .get(values.len() * quarter / 4)
            .copied()
            .unwrap_or_default()
    })
}

fn print(ways: &[Way], measured: &[Vec<Figures>]) {
    let of = |figures: &[Figures], figure: fn(&Figures) -> f64| median(figures.iter().map(figure).collect());
    let direct = measured
        .first()
        .map_or(0.0, |figures| of(figures, |figures| figures.alone_median));
    println!("| way | calls/s | p99 under load | processor time a call | median alone | added |");
    println!("|---|---|---|---|---|---|");
    for (way, figures) in ways.iter().zip(measured) {
        let alone = of(figures, |figures| figures.alone_median);
        let calls: f64 = figures.iter().map(|figures| figures.rate.calls).sum();
        let cpu: f64 = figures.iter().map(|figures| figures.cpu).sum();
        println!(
            "| {} | {:.0} | {:.2} ms | {:.1} µs | {:.0} µs | {:.0} µs |",
            way.name(),
            of(figures, |figures| figures.rate.per_second),
            of(figures, |figures| figures.rate.p99) * 1e3,
            cpu / calls * 1e6,
            alone * 1e6,
            (alone - direct) * 1e6,
        );
    }
}
