//! The memory of a process that takes writes as fast as it can, while its index falls behind and catches up again.
//!
//! `cargo build --release -p souk-standalone && cargo run -p souk-e2e --example footprint -- target/release/souk 2.5`
//!
//! Starts that `souk serve` with a folder of its own below the current one, loads TPC-H's orders of the scale factor
//! (2.5 are 15 million), waits until searches see all of them and nothing is merged any more, and looks on for a while at
//! rest. Prints what the process takes, by part, and fails when it ever took more than [`LIMIT_MB`]. A third argument is
//! a setting for the process, as in `engine.memory_bytes=268435456`.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::time::{Duration, Instant};

use anyhow::Context as _;
use souk_e2e::process::Process;
use souk_e2e::scrape::Scrape;
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval};

/// What the process may take, resident, with the files that it has mapped.
const LIMIT_MB: u64 = 2_500;
/// Time between two looks at the process, and between two lines that are printed.
const LOOK: Duration = Duration::from_millis(500);
const LOOKS_PER_LINE: u32 = 20;
/// How long it is looked at when it has come to rest.
const REST: Duration = Duration::from_secs(60);

/// What the process is at one moment.
#[derive(Clone, Debug, Default)]
struct Look {
    /// Megabytes that are resident, those that no file backs, and the most so far.
    resident: u64,
    anonymous: u64,
    most: u64,
    /// Changes that searches don't see, and merges under way.
    lag: u64,
    merges: u64,
    segments: u64,
    /// Megabytes by part, as the process itself tells.
    parts: Vec<(String, u64)>,
}

/// Series of megabytes by part, with the label that tells the part.
const PARTS: [(&str, &str); 2] = [
    ("souk_store_memory_usage_bytes", "souk_store_part"),
    ("souk_index_memory_usage_bytes", "souk_index_part"),
];

struct Watched {
    process: Process,
    metrics: std::net::SocketAddr,
    most: u64,
}

impl Watched {
    fn megabytes(&self, line: &str) -> anyhow::Result<u64> {
        let told = self.process.status(line)?;
        let kilobytes = told.strip_suffix(" kB").context("kilobytes")?;
        Ok(kilobytes.parse::<u64>()? / 1_000)
    }

    async fn look(&mut self) -> anyhow::Result<Look> {
        let resident = self.megabytes("VmRSS")?;
        self.most = self.most.max(resident);
        let scrape = Scrape::fetch(self.metrics).await?;
        let sum = |name| scrape.sum(name, &[]).unwrap_or_default() as u64;
        let mut parts: Vec<(String, u64)> = Vec::new();
        for (series, label) in PARTS {
            for sample in scrape.samples().iter().filter(|sample| sample.name == series) {
                let part = sample.labels.get(label).cloned().unwrap_or_default();
                let megabytes = (sample.value / 1e6) as u64;
                match parts.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, known)) => *known += megabytes,
                    None => parts.push((part, megabytes)),
                }
            }
        }
        Ok(Look {
            resident,
            anonymous: self.megabytes("RssAnon")?,
            most: self.most,
            lag: sum("souk_index_lag_changes"),
            merges: sum("souk_index_merges_active"),
            segments: sum("souk_index_segments"),
            parts,
        })
    }
}

fn print(what: &str, since: Instant, look: &Look) {
    let parts: Vec<String> = look
        .parts
        .iter()
        .map(|(part, mb)| format!("{part} {mb}"))
        .collect();
    println!(
        "| {what} | {} | {} | {} | {} | {} | {} | {} | {} |",
        since.elapsed().as_secs(),
        look.lag,
        look.segments,
        look.merges,
        look.resident,
        look.anonymous,
        look.most,
        parts.join(", ")
    );
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let souk = arguments.next().context("the souk binary")?;
    let scale = arguments.next().context("a scale factor")?;
    let folder = tempfile::Builder::new().prefix("footprint").tempdir_in(".")?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let anywhere = "127.0.0.1:0";
    let serve = [
        "serve",
        "--listen",
        anywhere,
        "--metrics-listen",
        anywhere,
        "--data",
    ];
    let mut serve: Vec<String> = serve.map(str::to_owned).into();
    serve.push(path("data"));
    serve.extend(arguments.flat_map(|setting| ["--set".to_owned(), setting]));
    let process = Process::start(&souk, &serve, &[], None).await?;
    let target = format!("http://{}", process.address());
    let mut watched = Watched {
        metrics: process.metrics().context("it shows its metrics")?,
        process,
        most: 0,
    };
    let mut load = Command::new(&souk)
        .args([
            "load",
            "orders",
            "--scale-factor",
            &scale,
            "--target",
            &target,
            "--state",
            &path("state"),
        ])
        .kill_on_drop(true)
        .spawn()?;
    println!(
        "| | s | changes behind | segments | merges | MB resident | without files | at most | by part |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let began = Instant::now();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut loaded, mut resting) = (None, None);
    let mut most_behind = 0;
    for nth in 0_u32.. {
        looks.tick().await;
        let look = watched.look().await?;
        most_behind = most_behind.max(look.lag);
        if loaded.is_none()
            && let Some(status) = load.try_wait()?
        {
            anyhow::ensure!(status.success(), "the load ended with {status}");
            loaded = Some(began.elapsed());
            print("loaded", began, &look);
        }
        if loaded.is_some() && resting.is_none() && look.lag == 0 {
            resting = Some(Instant::now());
            print("caught up", began, &look);
        }
        if resting.is_some_and(|since| since.elapsed() >= REST && look.merges == 0) {
            print("at rest", began, &look);
            break;
        }
        if nth.is_multiple_of(LOOKS_PER_LINE) {
            print("", began, &look);
        }
    }
    let loaded = loaded.unwrap_or_default();
    let catching_up = resting.map(|since| (since - began).saturating_sub(loaded));
    println!(
        "loaded in {loaded:.0?}, at most {most_behind} changes behind, caught up {:.0?} later, at most {} MB resident",
        catching_up.unwrap_or_default(),
        watched.most
    );
    watched.process.stop().await?;
    anyhow::ensure!(watched.most <= LIMIT_MB, "more than {LIMIT_MB} MB");
    Ok(())
}
