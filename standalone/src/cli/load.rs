//! `souk load`: generates rows, or reads them from a file, and creates them through the services' API.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue, Uri};
use souk_chassis::client::Client;
use souk_chassis::config::{ClientConfig, ClientTlsConfig};
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;

use super::complain;
use super::stores::CommandError;
use crate::dataset::{self, Dataset};
use crate::generate::SEED;
use crate::generate::tpch::Scale;
use crate::load::checkpoint::Checkpoint;
use crate::load::kind::{self, Kind};
use crate::load::progress::Progress;
use crate::load::reject::Rejects;
use crate::load::{self, LoadOutputs, LoadPlan, LoadReport, STREAMS, ndjson};

/// Number of rows without `--count` and `--scale-factor`.
const ROWS_DEFAULT: u64 = 5_000;

/// The kind of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoadKind {
    /// Orders after TPC-H; the products, consumers and salespersons that they name are loaded first.
    Orders,
    /// The products of a scale factor.
    Products,
    /// The consumers of a scale factor.
    Consumers,
    /// The salespersons of a scale factor.
    Salespersons,
    /// Shops around the world, and the genuine ones of Helsinki.
    Shops,
    /// Metadata of media.
    Media,
}

/// Arguments of `souk load`.
#[derive(Clone, Debug, Args)]
pub(super) struct LoadArgs {
    /// What is loaded.
    what: LoadKind,
    /// Generates so many rows; of products and persons, those that so many orders refer to.
    #[arg(long, value_name = "ROWS", conflicts_with_all = ["file", "scale_factor"])]
    count: Option<u64>,
    /// Generates TPC-H's tables at this size; 1 has 6,000,000 orders. Not for shops and media.
    #[arg(long, value_name = "FACTOR", conflicts_with = "file")]
    scale_factor: Option<f64>,
    /// Your own rows: one JSON object a line, as the service's messages are written in JSON.
    #[arg(long, value_name = "NDJSON")]
    file: Option<PathBuf>,
    /// Where the service, or the gateway, listens.
    #[arg(long, value_name = "URI", default_value = "http://127.0.0.1:50051")]
    target: Uri,
    /// PEM file of the certificate authorities to trust for an https target.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file of the client certificate chain.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of the client certificate's private key.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A file with the API key of an admin or an operator, for services that let in only those whom they know. The variable
    /// SOUK_API_KEY may hold the key itself.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let loaded = runtime.map_err(CommandError::from).and_then(|runtime| {
        let loaded = runtime.block_on(async {
            tokio::select! {
                loaded = args.run() => loaded,
                _ = tokio::signal::ctrl_c() => Err("interrupted; go on with --resume".into()),
            }
        });
        // Doesn't wait for a generator that is still computing rows.
        runtime.shutdown_background();
        loaded
    });
    match loaded {
        Ok(report) if report.rejected == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
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

    /// The API key, from `--key-file` or the environment; `None` without either.
    fn api_key(&self) -> Result<Option<HeaderValue>, CommandError> {
        let text = match &self.key_file {
            Some(path) => {
                let read = std::fs::read_to_string(path);
                read.map_err(|error| format!("{} can't be read: {error}", path.display()))?
            }
            None => match std::env::var("SOUK_API_KEY") {
                Ok(text) => text,
                Err(_) => return Ok(None),
            },
        };
        // Without the cause, which would show the key.
        let mut key = HeaderValue::try_from(text.trim()).map_err(|_| "the API key isn't one")?;
        key.set_sensitive(true);
        Ok(Some(key))
    }

    fn target(&self) -> Result<Client, CommandError> {
        if self.ca.is_none() && self.target.scheme_str() == Some("https") {
            return Err(
                "an https target needs the authorities that its certificate is checked by: --ca".into(),
            );
        }
        let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
        let client = ClientConfig {
            tls: ClientTlsConfig {
                ca: self.ca.clone().unwrap_or_default(),
                cert: self.cert.clone().unwrap_or_default(),
                key: self.key.clone().unwrap_or_default(),
                ..ClientTlsConfig::default()
            },
            ..ClientConfig::default()
        };
        let target = Client::remote("souk", &self.target, &client, methods)?;
        Ok(match self.api_key()? {
            Some(key) => target.with_header(HeaderName::from_static("x-api-key"), key),
            None => target,
        })
    }

    async fn run(&self) -> Result<LoadReport, CommandError> {
        if self.scale_factor.is_some() && matches!(self.what, LoadKind::Shops | LoadKind::Media) {
            return Err("shops and media have no scale factor; use --count".into());
        }
        let target = self.target()?;
        std::fs::create_dir_all(&self.state)?;
        if let Some(path) = self.rejects.as_ref().filter(|_| !self.resume) {
            // Emptied once: several kinds may be written to it.
            Rejects::file(path, false)?;
        }
        let (scale, seed, count) = (self.scale(), self.seed, self.count.unwrap_or(ROWS_DEFAULT));
        if self.file.is_some() {
            return match self.what {
                LoadKind::Orders => self.load_file::<kind::Orders>(&target).await,
                LoadKind::Products => self.load_file::<kind::Products>(&target).await,
                LoadKind::Consumers => self.load_file::<kind::Consumers>(&target).await,
                LoadKind::Salespersons => self.load_file::<kind::Salespersons>(&target).await,
                LoadKind::Shops => self.load_file::<kind::Shops>(&target).await,
                LoadKind::Media => self.load_file::<kind::MediaItems>(&target).await,
            };
        }
        match self.what {
            LoadKind::Orders => {
                let orders = dataset::orders(scale, seed, self.orders());
                let mut sum = self.load(&target, dataset::products(scale), true).await?;
                sum += self.load(&target, dataset::consumers(scale, seed), true).await?;
                sum += self
                    .load(&target, dataset::salespersons(scale, seed), true)
                    .await?;
                sum += self.load(&target, orders, false).await?;
                Ok(sum)
            }
            LoadKind::Products => self.load(&target, dataset::products(scale), false).await,
            LoadKind::Consumers => self.load(&target, dataset::consumers(scale, seed), false).await,
            LoadKind::Salespersons => {
                self.load(&target, dataset::salespersons(scale, seed), false)
                    .await
            }
            LoadKind::Shops => self.load(&target, dataset::shops(count, seed), false).await,
            LoadKind::Media => self.load(&target, dataset::media(count, seed), false).await,
        }
    }

    async fn load_file<K: Kind>(&self, target: &Client) -> Result<LoadReport, CommandError> {
        let path = self.file.clone().unwrap_or_default();
        let file = File::open(&path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
        let rows = ndjson::rows::<K>(BufReader::new(file))?;
        let dataset = Dataset::<K> {
            name: format!("{} file {}", K::NAME, path.display()),
            rows: Box::new(rows),
            total: None,
        };
        self.load(target, dataset, false).await
    }

    /// Loads one data set. With `may_exist`, rows that exist are skipped.
    async fn load<K: Kind>(
        &self,
        target: &Client,
        dataset: Dataset<K>,
        may_exist: bool,
    ) -> Result<LoadReport, CommandError> {
        let state = self.state.join(format!("{}.json", K::NAME));
        let mut checkpoint = if self.resume {
            Checkpoint::resume(&state, &dataset.name)?
        } else {
            Checkpoint::start(Some(&state), &dataset.name)
        };
        let mut rejects = match &self.rejects {
            Some(path) => Rejects::file(path, true)?,
            None => Rejects::StandardError,
        };
        let plan = LoadPlan {
            streams: self.streams as usize,
            skip_existing: self.resume || may_exist,
            ..LoadPlan::new(dataset.name.as_str())
        };
        let progress = Progress::new(K::NAME, checkpoint.rows(), dataset.total);
        let outputs = LoadOutputs {
            checkpoint: &mut checkpoint,
            rejects: &mut rejects,
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
        let path = rejects.to_str().expect("UTF-8");
        let line = ["load", "shops", "--scale-factor", "1", "--rejects", path];
        let error = Command::parse_from(line).args.run().await.expect_err("no factor");
        assert!(error.to_string().contains("no scale factor"), "{error}");
        assert_eq!(std::fs::read_to_string(&rejects).expect("there"), "{}\n");
    }
}
