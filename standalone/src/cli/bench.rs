//! `souk bench`: benchmarks of parts of a service.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use super::complain;
use crate::bench::measure::BenchReport;
use crate::bench::storage::{self, StorageBenchPlan};

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// The store alone: durable writes, a bulk load, point reads and scans.
    Storage(StorageArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StorageStep {
    /// Durable puts of rows of 400 bytes under a condition, beside the bare disk.
    Puts,
    /// Rows of 300 bytes in random order of their keys, and their disk space.
    Load,
    /// Point reads, ranges and scans of what was loaded.
    Reads,
}

#[derive(Debug, Args)]
struct StorageArgs {
    /// Folder for the data; give an empty one. What was loaded takes 0.5 to 2 GB for each million rows.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Rows to load and read.
    #[arg(long, value_name = "ROWS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Steps, in this order.
    #[arg(long, value_delimiter = ',', default_value = "puts,load,reads")]
    steps: Vec<StorageStep>,
    /// Numbers of concurrent clients of the puts, one round each.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,128", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    clients: Vec<u64>,
    /// Length of a round, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Leaves the loaded rows, so that `--steps reads` can follow.
    #[arg(long)]
    keep: bool,
}

/// Runs a benchmark, and writes its results to standard output.
pub(super) fn main(args: &BenchArgs) -> ExitCode {
    let BenchCommand::Storage(args) = &args.command;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let measured = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(args.run()));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

impl StorageArgs {
    async fn run(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let plan = StorageBenchPlan {
            data: self.data.clone(),
            rows: self.rows,
            clients: self.clients.clone(),
            seconds: self.seconds,
        };
        let mut report = BenchReport::new("souk", io::stdout());
        for step in &self.steps {
            match step {
                StorageStep::Puts => storage::puts(&plan, &mut report).await?,
                StorageStep::Load => storage::load(&plan, &mut report).await?,
                StorageStep::Reads => storage::reads(&plan, &mut report).await?,
            }
        }
        let loaded = storage::loaded(&plan);
        if !self.keep && loaded.exists() {
            std::fs::remove_dir_all(loaded)?;
        }
        Ok(())
    }
}
