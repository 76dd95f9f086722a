//! One `souk serve` whose metrics are fetched.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use souk_e2e::scrape::Scrape;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::{Channel, Endpoint};

use crate::SOUK;

/// How long a process may take to start, and a test waits for a value.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A running process. Dropping it kills it.
pub(super) struct Souk {
    child: Child,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    _directory: TempDir,
}

impl Souk {
    /// Starts one with further arguments, and these variables.
    pub(super) async fn start(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut child = Command::new(SOUK)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--metrics-listen",
                "127.0.0.1:0",
            ])
            .arg("--data")
            .arg(directory.path())
            .args(arguments)
            .envs(variables.iter().copied())
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let stdout = child.stdout.take().context("standard output is a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut metrics = None;
        let said = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.strip_prefix("metrics on http://") {
                    metrics = Some(address.trim_end_matches("/metrics").parse()?);
                } else if let Some(address) = line.strip_prefix("listening on ") {
                    return anyhow::Ok(address.parse()?);
                }
            }
            anyhow::bail!("it ended before it listened; its words are above")
        };
        let address = tokio::time::timeout(WAIT_MAX, said)
            .await
            .context("it doesn't listen")??;
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            child,
            address,
            metrics,
            _directory: directory,
        })
    }

    /// A connection to it.
    pub(super) fn channel(&self) -> anyhow::Result<Channel> {
        Ok(Endpoint::from_shared(format!("http://{}", self.address))?.connect_lazy())
    }

    /// Its metrics now.
    pub(super) async fn scrape(&self) -> anyhow::Result<Scrape> {
        Scrape::fetch(self.metrics.context("it says where its metrics are")?).await
    }

    /// Fetches again and again until a condition holds.
    pub(super) async fn wait_for(
        &self,
        what: &str,
        holds: impl Fn(&Scrape) -> bool,
    ) -> anyhow::Result<Scrape> {
        let wait = async {
            loop {
                let scrape = self.scrape().await?;
                if holds(&scrape) {
                    return anyhow::Ok(scrape);
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT_MAX, wait)
            .await
            .with_context(|| format!("{what} doesn't come within {WAIT_MAX:?}"))?
    }

    /// Ends it as operators do, and waits for that.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.child.id().context("it runs")?;
        let sent = Command::new("kill")
            .args(["-TERM", &id.to_string()])
            .status()
            .await?;
        anyhow::ensure!(sent.success(), "the signal can't be sent");
        let status = tokio::time::timeout(WAIT_MAX, self.child.wait()).await??;
        anyhow::ensure!(status.success(), "{status}");
        Ok(())
    }
}
