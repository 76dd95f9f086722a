//! One real `souk` process: started with arguments, read line by line, killed or stopped.

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::log::Log;

/// What a process prints on standard output, before its address, once it answers calls.
const LISTENING: &str = "listening on ";
/// What it prints before that, around the address where its metrics are.
const METRICS: [&str; 2] = ["metrics on http://", "/metrics"];
/// What it prints before that, around the address for clients of Tablestore, if it has one.
const TABLESTORE: &str = "Tablestore endpoint on http://";
/// How long a process may take to answer calls.
const START_MAX: Duration = Duration::from_secs(60);
/// How long a process may take to end after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(60);

/// A running `souk` process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    tablestore: Option<SocketAddr>,
}

/// Where a process's standard error goes.
#[derive(Clone, Copy, Debug)]
pub enum Stderr<'a> {
    /// The test's own.
    Inherit,
    /// Appended to a file.
    File(&'a Path),
    /// Captured by a log, under the process's name.
    Log(&'a Log, &'a str),
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to standard error.
    pub stderr: String,
}

fn command(binary: &str, arguments: &[String], environment: &[(String, String)]) -> Command {
    let mut command = Command::new(binary);
    command
        .args(arguments)
        .envs(environment.iter().cloned())
        .kill_on_drop(true)
        .stdin(Stdio::null());
    command
}

impl Process {
    /// Starts `binary` and waits until it says where it listens. Its standard error is ours, or is added to `log`.
    ///
    /// # Errors
    /// When it ends before, with what it wrote to standard error, or doesn't answer within a minute.
    pub async fn start(
        binary: &str,
        arguments: &[String],
        environment: &[(String, String)],
        log: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let target = log.map_or(Stderr::Inherit, Stderr::File);
        Self::start_with_stderr(binary, arguments, environment, target).await
    }

    /// [`start`](Self::start), with its standard error sent to `target`.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub async fn start_with_stderr(
        binary: &str,
        arguments: &[String],
        environment: &[(String, String)],
        target: Stderr<'_>,
    ) -> anyhow::Result<Self> {
        let stderr = match target {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::File(file) => OpenOptions::new().create(true).append(true).open(file)?.into(),
            Stderr::Log(..) => Stdio::piped(),
        };
        let mut child = command(binary, arguments, environment)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("start {binary}"))?;
        if let (Stderr::Log(log, name), Some(stderr)) = (target, child.stderr.take()) {
            log.follow(name, std::fs::File::from(stderr.into_owned_fd()?));
        }
        let stdout = child.stdout.take().context("standard output is a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        let (mut metrics, mut tablestore) = (None, None);
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(told) = line.strip_prefix(METRICS[0]) {
                    metrics = Some(told.trim_end_matches(METRICS[1]).parse()?);
                } else if let Some(told) = line.strip_prefix(TABLESTORE) {
                    // The demo says more behind it.
                    let address = told.split_once(": ").map_or(told, |(address, _)| address);
                    tablestore = Some(address.parse()?);
                } else if let Some((_, address)) = line.split_once(LISTENING) {
                    return Ok(address.trim().parse::<SocketAddr>()?);
                }
            }
            let said = match target {
                Stderr::Inherit => "its words are above".to_owned(),
                Stderr::File(file) => format!("its words are in {}", file.display()),
                Stderr::Log(log, _) => format!("it said {:#?}", log.lines()),
            };
            anyhow::bail!("{arguments:?} ended before it listened; {said}")
        };
        let address = tokio::time::timeout(START_MAX, listening)
            .await
            .with_context(|| format!("{arguments:?} doesn't listen after {START_MAX:?}"))??;
        // Whatever it prints later has to go somewhere, or it would block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            child,
            address,
            metrics,
            tablestore,
        })
    }

    /// Runs `binary` to its end: for starts that have to fail.
    ///
    /// # Errors
    /// When it can't be started or doesn't end within a minute.
    pub async fn run_to_end(
        binary: &str,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> anyhow::Result<Ended> {
        let output = command(binary, arguments, environment)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output();
        let output = tokio::time::timeout(START_MAX, output)
            .await
            .context("it doesn't end")??;
        Ok(Ended {
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its metrics are, if it shows them.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Where clients of Tablestore reach it, if it has an endpoint for them.
    #[must_use]
    pub fn tablestore(&self) -> Option<SocketAddr> {
        self.tablestore
    }

    /// Its number.
    ///
    /// # Errors
    /// When it has ended.
    pub fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("it has ended already")
    }

    /// A line of what Linux tells about it in `/proc/ID/status`, as `VmRSS`.
    ///
    /// # Errors
    /// When the process is gone, or the system has no such line.
    pub fn status(&self, line: &str) -> anyhow::Result<String> {
        let id = self.id()?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let mut lines = status.lines();
        let value = lines.find_map(|told| told.strip_prefix(line)?.strip_prefix(':'));
        Ok(value.with_context(|| format!("no {line}"))?.trim().to_owned())
    }

    /// The most resident memory in bytes since [`forget_peak`](Self::forget_peak).
    ///
    /// # Errors
    /// When the process is gone, or the system doesn't tell.
    pub fn peak(&self) -> anyhow::Result<u64> {
        let value = self.status("VmHWM")?;
        let kib = value.strip_suffix("kB").context("kB")?.trim();
        Ok(kib.parse::<u64>()? << 10)
    }

    /// Begins anew with what was the most memory, at what it is now.
    ///
    /// # Errors
    /// When the process is gone, or isn't on Linux.
    pub fn forget_peak(&self) -> anyhow::Result<()> {
        let id = self.id()?;
        // Linux, proc(5): "5" sets VmHWM to VmRSS.
        Ok(std::fs::write(format!("/proc/{id}/clear_refs"), "5")?)
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        Ok(())
    }

    /// Sends SIGTERM.
    ///
    /// # Errors
    /// When the process is gone or `kill` can't be run.
    pub async fn terminate(&self) -> anyhow::Result<()> {
        self.signal("TERM").await
    }

    /// Suspends it (SIGSTOP): its connections stay open, and nobody answers.
    ///
    /// # Errors
    /// When the process is gone or `kill` can't be run.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.signal("STOP").await
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// When the process is gone or `kill` can't be run.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.signal("CONT").await
    }

    async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.id()?;
        let status = Command::new("kill")
            .args([format!("-{name}"), id.to_string()])
            .status()
            .await?;
        anyhow::ensure!(status.success(), "kill -{name} {id}: {status}");
        Ok(())
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it doesn't within a minute.
    pub async fn wait(mut self) -> anyhow::Result<ExitStatus> {
        Ok(tokio::time::timeout(STOP_MAX, self.child.wait())
            .await
            .context("it doesn't end")??)
    }

    /// Sends SIGTERM and waits until it has ended with code 0.
    ///
    /// # Errors
    /// When it ends otherwise or doesn't end within a minute.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.terminate().await?;
        let status = self.wait().await?;
        anyhow::ensure!(status.success(), "it ended with {status}; its words are above");
        Ok(())
    }
}
