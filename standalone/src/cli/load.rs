//! `souk load`.

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

/// Rows when neither a count nor a scale factor is given.
const COUNT: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
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
    what: What,
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
    /// Authorities that an https target is believed by, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate chain that is shown to the target, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of that certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A file with the API key of an admin or an operator, for services that let in only those whom they know. The variable
    /// SOUK_API_KEY may hold the key itself.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Batches under way at a time.
    #[arg(long, value_name = "COUNT", default_value_t = STREAMS as u64, value_parser = clap::value_parser!(u64).range(1..=load::STREAMS_MAX as u64))]
    streams: u64,
    /// Makes other data of the same size.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Writes refused rows to this file, one JSON object each, instead of to standard error.
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Goes on where an earlier load of the same rows was interrupted; rows that exist already are passed over.
    #[arg(long)]
    resume: bool,
    /// Folder of the files that say how far a load has come.
    #[arg(long, value_name = "FOLDER", default_value = ".souk-load")]
    state: PathBuf,
}

/// Loads, and says so by the exit code.
pub(super) fn main(args: &LoadArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let loaded = runtime.map_err(CommandError::from).and_then(|runtime| {
        let loaded = runtime.block_on(async {
            tokio::select! {
                loaded = args.run() => loaded,
                _ = tokio::signal::ctrl_c() => Err("interrupted; go on with --resume".into()),
            }
        });
        // A generator that is still computing rows doesn't keep the process.
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
            None => Scale::for_orders(self.count.unwrap_or(COUNT)),
        }
    }

    /// How many orders; all of a scale factor when that was given.
    fn orders(&self) -> Option<u64> {
        self.scale_factor.is_none().then(|| self.count.unwrap_or(COUNT))
    }

    /// The API key, if there is one.
    fn key(&self) -> Result<Option<HeaderValue>, CommandError> {
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
        // The cause would show the key.
        let mut key = HeaderValue::try_from(text.trim()).map_err(|_| "the API key isn't one")?;
        key.set_sensitive(true);
        Ok(Some(key))
    }

    async fn run(&self) -> Result<LoadReport, CommandError> {
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
        if self.ca.is_none() && self.target.scheme_str() == Some("https") {
            return Err(
                "an https target needs the authorities that its certificate is checked by: --ca".into(),
            );
        }
        let target = Client::remote("souk", &self.target, &client, methods)?;
        let target = match self.key()? {
            Some(key) => target.with_header(HeaderName::from_static("x-api-key"), key),
            None => target,
        };
        std::fs::create_dir_all(&self.state)?;
        if let Some(path) = self.rejects.as_ref().filter(|_| !self.resume) {
            // Emptied once: several kinds may be written to it.
            Rejects::file(path, false)?;
        }
        let (scale, seed, count) = (self.scale(), self.seed, self.count.unwrap_or(COUNT));
        if self.scale_factor.is_some() && matches!(self.what, What::Shops | What::Media) {
            return Err("shops and media have no scale factor; use --count".into());
        }
        if self.file.is_some() {
            return match self.what {
                What::Orders => self.file::<kind::Orders>(&target).await,
                What::Products => self.file::<kind::Products>(&target).await,
                What::Consumers => self.file::<kind::Consumers>(&target).await,
                What::Salespersons => self.file::<kind::Salespersons>(&target).await,
                What::Shops => self.file::<kind::Shops>(&target).await,
                What::Media => self.file::<kind::MediaItems>(&target).await,
            };
        }
        match self.what {
            What::Orders => {
                let mut sum = self.one(&target, dataset::products(scale), true).await?;
                for report in [
                    self.one(&target, dataset::consumers(scale, seed), true).await?,
                    self.one(&target, dataset::salespersons(scale, seed), true)
                        .await?,
                    self.one(&target, dataset::orders(scale, seed, self.orders()), false)
                        .await?,
                ] {
                    sum.created += report.created;
                    sum.existed += report.existed;
                    sum.rejected += report.rejected;
                }
                Ok(sum)
            }
            What::Products => self.one(&target, dataset::products(scale), false).await,
            What::Consumers => self.one(&target, dataset::consumers(scale, seed), false).await,
            What::Salespersons => self.one(&target, dataset::salespersons(scale, seed), false).await,
            What::Shops => self.one(&target, dataset::shops(count, seed), false).await,
            What::Media => self.one(&target, dataset::media(count, seed), false).await,
        }
    }

    async fn file<K: Kind>(&self, target: &Client) -> Result<LoadReport, CommandError> {
        let path = self.file.clone().unwrap_or_default();
        let file = File::open(&path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
        let rows = ndjson::rows::<K>(BufReader::new(file))?;
        let dataset = Dataset::<K> {
            name: format!("{} file {}", K::NAME, path.display()),
            rows: Box::new(rows),
            total: None,
        };
        self.one(target, dataset, false).await
    }

    /// Loads one data set. Rows that only others refer to `may_exist`.
    async fn one<K: Kind>(
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
