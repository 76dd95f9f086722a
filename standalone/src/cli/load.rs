//! `souk load`: generates rows, or reads them from a file, and creates them through the services' API.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use souk_chassis::client::Client;

use super::stores::{self, CommandError};
use super::target::TargetArgs;
use crate::dataset::{self, Dataset};
use crate::generate::SEED;
use crate::generate::tpch::Scale;
use crate::load::checkpoint::LoadCheckpoint;
use crate::load::kind::{self, Kind};
use crate::load::progress::Progress;
use crate::load::reject::Rejects;
use crate::load::{self, LoadOutputs, LoadPlan, LoadReport, STREAMS, ndjson};

/// Number of rows without `--count` and `--scale-factor`.
const ROWS_DEFAULT: u64 = 5_000;

/// The kind of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoadKind {
    /// Orders. Without `--file` they are TPC-H's, and the products, consumers and salespersons that they name are loaded first.
    Orders,
    /// Products that orders name.
    Products,
    /// Consumers that orders name.
    Consumers,
    /// Salespersons that orders name.
    Salespersons,
    /// Shops. Without `--file` they are around the world, with the genuine ones of Helsinki.
    Shops,
    /// Metadata of media.
    Media,
}

/// Arguments of `souk load`.
#[derive(Clone, Debug, Args)]
pub(super) struct LoadArgs {
    /// What is loaded.
    what: LoadKind,
    /// Generates this many rows; of products, consumers and salespersons, those that this many orders name.
    #[arg(long, value_name = "ROWS", conflicts_with_all = ["file", "scale_factor"])]
    count: Option<u64>,
    /// Generates TPC-H's tables at this size; 1 has 6,000,000 orders. Not for shops and media.
    #[arg(long, value_name = "FACTOR", conflicts_with = "file")]
    scale_factor: Option<f64>,
    /// Your own rows: one JSON object a line, as the service's messages are written in JSON.
    #[arg(long, value_name = "NDJSON")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Batches in flight at a time.
    #[arg(long, value_name = "COUNT", default_value_t = STREAMS as u64, value_parser = clap::value_parser!(u64).range(1..=load::STREAMS_MAX as u64))]
    streams: u64,
    /// Seed of the generated data.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Writes refused rows to this file, one JSON object each, instead of to standard error.
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Resumes an interrupted load of the same rows; rows that exist already are skipped.
    #[arg(long)]
    resume: bool,
    /// Folder of the checkpoints of loads.
    #[arg(long, value_name = "FOLDER", default_value = ".souk-load")]
    state: PathBuf,
}

/// Loads. The exit code is 0 if no row was refused.
pub(super) fn main(args: &LoadArgs) -> ExitCode {
    stores::main_or("interrupted; continue with --resume", async {
        let report = args.run().await?;
        Ok(report.rejected == 0)
    })
}

impl LoadArgs {
    fn scale(&self) -> Scale {
        match self.scale_factor {
            Some(factor) => Scale::new(factor),
            None => Scale::for_orders(self.count.unwrap_or(ROWS_DEFAULT)),
        }
    }

    /// The number of orders; `None` for all of the scale factor.
    fn orders(&self) -> Option<u64> {
        self.scale_factor
            .is_none()
            .then(|| self.count.unwrap_or(ROWS_DEFAULT))
    }

    async fn run(&self) -> Result<LoadReport, CommandError> {
        if self.scale_factor.is_some() && matches!(self.what, LoadKind::Shops | LoadKind::Media) {
            return Err("shops and media have no scale factor; use --count".into());
        }
        let target = self.target.client()?;
        std::fs::create_dir_all(&self.state)?;
        let rejects = &mut None;
        let (scale, seed, count) = (self.scale(), self.seed, self.count.unwrap_or(ROWS_DEFAULT));
        if self.file.is_some() {
            return match self.what {
                LoadKind::Orders => self.load_file::<kind::Orders>(&target, rejects).await,
                LoadKind::Products => self.load_file::<kind::Products>(&target, rejects).await,
                LoadKind::Consumers => self.load_file::<kind::Consumers>(&target, rejects).await,
                LoadKind::Salespersons => self.load_file::<kind::Salespersons>(&target, rejects).await,
                LoadKind::Shops => self.load_file::<kind::Shops>(&target, rejects).await,
                LoadKind::Media => self.load_file::<kind::MediaItems>(&target, rejects).await,
            };
        }
        match self.what {
            LoadKind::Orders => {
                let orders = dataset::orders(scale, seed, self.orders());
                let products = dataset::products(scale);
                let mut sum = self.load(&target, products, true, rejects).await?;
                let consumers = dataset::consumers(scale, seed);
                sum += self.load(&target, consumers, true, rejects).await?;
                let salespersons = dataset::salespersons(scale, seed);
                sum += self.load(&target, salespersons, true, rejects).await?;
                sum += self.load(&target, orders, false, rejects).await?;
                Ok(sum)
            }
            LoadKind::Products => self.load(&target, dataset::products(scale), false, rejects).await,
            LoadKind::Consumers => {
                let consumers = dataset::consumers(scale, seed);
                self.load(&target, consumers, false, rejects).await
            }
            LoadKind::Salespersons => {
                let salespersons = dataset::salespersons(scale, seed);
                self.load(&target, salespersons, false, rejects).await
            }
            LoadKind::Shops => {
                self.load(&target, dataset::shops(count, seed), false, rejects)
                    .await
            }
            LoadKind::Media => {
                self.load(&target, dataset::media(count, seed), false, rejects)
                    .await
            }
        }
    }

    /// Opens `rejects` for the first kind that is loaded, and returns it for the others. Opening may empty the file, so it happens when
    /// arguments and checkpoint have been found valid.
    fn open_rejects<'r>(&self, rejects: &'r mut Option<Rejects>) -> io::Result<&'r mut Rejects> {
        match rejects {
            Some(rejects) => Ok(rejects),
            None => Ok(rejects.insert(match &self.rejects {
                Some(path) => Rejects::file(path, self.resume)?,
                None => Rejects::StandardError,
            })),
        }
    }

    async fn load_file<K: Kind>(
        &self,
        target: &Client,
        rejects: &mut Option<Rejects>,
    ) -> Result<LoadReport, CommandError> {
        let path = self.file.clone().unwrap_or_default();
        let file = File::open(&path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
        let rows = ndjson::rows::<K>(BufReader::new(file))?;
        let dataset = Dataset::<K> {
            name: format!("{} file {}", K::NAME, path.display()),
            rows: Box::new(rows),
            total: None,
        };
        self.load(target, dataset, false, rejects).await
    }

    /// Loads one data set. With `may_exist`, rows that exist are skipped.
    async fn load<K: Kind>(
        &self,
        target: &Client,
        dataset: Dataset<K>,
        may_exist: bool,
        rejects: &mut Option<Rejects>,
    ) -> Result<LoadReport, CommandError> {
        let state = self.state.join(format!("{}.json", K::NAME));
        // Before anything that another load reads or empties.
        let _lock = LoadCheckpoint::lock(&state)?;
        let mut checkpoint = if self.resume {
            LoadCheckpoint::resume(&state, &dataset.name)?
        } else {
            LoadCheckpoint::start(Some(&state), &dataset.name)
        };
        let rejects = self.open_rejects(rejects)?;
        let plan = LoadPlan {
            streams: self.streams as usize,
            skip_existing: self.resume || may_exist,
            ..LoadPlan::new(dataset.name.as_str())
        };
        let progress = Progress::new(K::NAME, checkpoint.rows(), dataset.total);
        let outputs = LoadOutputs {
            checkpoint: &mut checkpoint,
            rejects,
            progress: &progress,
        };
        let report = load::run::<K>(target.clone(), &plan, dataset.rows, outputs).await;
        progress.finish();
        let report = report?;
        checkpoint.remove()?;
        let LoadReport {
            created,
            existed,
            rejected,
        } = report;
        let line = format!(
            "{}: {created} created, {existed} existed, {rejected} refused",
            K::NAME
        );
        writeln!(io::stdout(), "{line}")?;
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: LoadArgs,
    }

    #[tokio::test]
    async fn wrong_arguments_leave_the_rejects_of_another_load() {
        let folder = tempfile::tempdir().expect("a folder");
        let rejects = folder.path().join("rejects");
        std::fs::write(&rejects, "{}\n").expect("written");
        let [path, state, missing] = [
            &rejects,
            &folder.path().join("state"),
            &folder.path().join("missing"),
        ]
        .map(|path| path.display().to_string());
        for (option, value, says) in [
            ("--scale-factor", "1", "no scale factor"),
            ("--file", &missing, "can't be read"),
        ] {
            let line = [
                "load",
                "shops",
                option,
                value,
                "--rejects",
                &path,
                "--state",
                &state,
            ];
            let error = Command::parse_from(line).args.run().await.expect_err(says);
            assert!(error.to_string().contains(says), "{error}");
            assert_eq!(std::fs::read_to_string(&rejects).expect("there"), "{}\n");
        }
    }

    #[tokio::test]
    async fn files_of_a_load_that_is_under_way_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let [state, rejects] = ["state", "rejects"].map(|name| folder.path().join(name));
        let path = |path: &PathBuf| path.display().to_string();
        let (state_path, rejects_path) = (path(&state), path(&rejects));
        let line = ["load", "shops", "--count", "1", "--state", &state_path];
        let line = line.into_iter().chain(["--rejects", &rejects_path]);
        let load = Command::parse_from(line).args;
        let first = Rejects::file(&rejects, false).expect("a file");
        std::fs::write(&rejects, "of the first\n").expect("written");
        let error = load.run().await.expect_err("the first is under way");
        assert!(error.to_string().contains("lists its refused rows"), "{error}");
        let listed = std::fs::read_to_string(&rejects).expect("there");
        assert_eq!(listed, "of the first\n");
        drop(first);
        let checkpoint = state.join("shops.json");
        std::fs::write(&checkpoint, "of the first").expect("written");
        let _lock = LoadCheckpoint::lock(&checkpoint).expect("a lock");
        let error = load.run().await.expect_err("the first is under way");
        assert!(
            error.to_string().contains("another load or import is under way"),
            "{error}"
        );
        let kept = std::fs::read_to_string(&checkpoint).expect("there");
        assert_eq!(kept, "of the first");
        let listed = std::fs::read_to_string(&rejects).expect("there");
        assert_eq!(listed, "of the first\n");
    }
}
