//! A process from its first line to its exit code: telemetry, the port, what it serves, the one line that says so, and
//! the drain.
//!
//! Several services in one process start each in its role, so that each has a `service.name` of its own:
//!
//! ```no_run
//! # use souk_chassis::config::ServerConfig;
//! # use souk_chassis::host::{Exit, Host};
//! # use souk_chassis::process::{self, Process, RunError, StartError};
//! # use souk_chassis::server::Stack;
//! # use souk_chassis::telemetry::{ServiceRole, TelemetryConfig};
//! # async fn open_orders(host: &mut Host) -> Result<Stack, StartError> { Err("an example".into()) }
//! # async fn open_shops(host: &mut Host) -> Result<Stack, StartError> { Err("an example".into()) }
//! # fn in_front(order: Stack, shop: Stack) -> Result<Stack, StartError> { Ok(order) }
//! const ORDER: ServiceRole = ServiceRole::new("souk-order");
//! const SHOP: ServiceRole = ServiceRole::new("souk-shop");
//!
//! async fn run(telemetry: TelemetryConfig, server: ServerConfig) -> Result<Exit, RunError> {
//!     Process::new("souk-gateway")
//!         .roles([ORDER, SHOP])
//!         .run(&telemetry, &server, async |host| {
//!             let order = ORDER.scope(open_orders(host)).await?;
//!             let shop = SHOP.scope(open_shops(host)).await?;
//!             in_front(order, shop)
//!         })
//!         .await
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     process::main(run(TelemetryConfig::default(), ServerConfig::default()))
//! }
//! ```

use std::error::Error;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::causes::chain;
use crate::config::{ConfigError, ServerConfig, process_environment};
use crate::host::{self, Exit, Host};
use crate::huge_pages;
use crate::private_files;
use crate::server::{BindError, Listener, Stack};
use crate::telemetry::prometheus::{self, EndpointError, Scraper};
use crate::telemetry::{ServiceRole, Telemetry, TelemetryConfig, TelemetryError};

/// Why what a process serves couldn't be made: an error of the service.
pub type StartError = Box<dyn Error + Send + Sync>;

/// Why a process couldn't start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its telemetry.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// Its address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The address of its metrics.
    #[error(transparent)]
    Metrics(#[from] EndpointError),
    /// Its runtime or its signal handlers.
    #[error("the operating system refuses threads or signal handlers")]
    System(#[source] io::Error),
    /// What it serves.
    #[error("{0} can't start")]
    Start(&'static str, #[source] StartError),
}

/// A process to be.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until run()"]
pub struct Process {
    service: &'static str,
    roles: Vec<ServiceRole>,
}

impl Process {
    /// A process whose `service.name` is `service`.
    pub fn new(service: &'static str) -> Self {
        let roles = Vec::new();
        Self { service, roles }
    }

    /// Further services in this process, each with a `service.name` of its own: start each in its [`ServiceRole::scope`].
    pub fn roles(mut self, roles: impl IntoIterator<Item = ServiceRole>) -> Self {
        self.roles.extend(roles);
        self
    }

    /// Starts telemetry, takes the port, lets `start` make what is served, says `listening on <address>` on standard output, serves
    /// until SIGTERM or SIGINT, and drains. A signal during the start ends it too.
    ///
    /// # Errors
    /// When it can't start; what `start` had registered to be closed is closed then.
    pub async fn run(
        self,
        told: &TelemetryConfig,
        config: &ServerConfig,
        start: impl AsyncFnOnce(&mut Host) -> Result<Stack, StartError>,
    ) -> Result<Exit, RunError> {
        let telemetry = Telemetry::builder(told.clone(), self.service)
            .roles(self.roles)
            .environment(process_environment())
            .build()?;
        let scraper = telemetry.scraper();
        let telemetry = telemetry.install()?;
        // Until the end of the process: a drain is worth being watched.
        let _metrics = match (told.metrics_listen, scraper) {
            (Some(address), Some(scraper)) => Some(metrics(address, scraper).await?),
            _ => None,
        };
        let mut host = Host::new(config.drain_deadline);
        host.telemetry = Some(telemetry);
        let mut stop = std::pin::pin!(host::terminated().map_err(RunError::System)?);
        let listener = Listener::bind(config).await?;
        let started = tokio::select! {
            started = start(&mut host) => Some(started),
            () = &mut stop => None,
        };
        match started {
            Some(Ok(stack)) => {
                say_where(listener.local_addr(), |address| format!("listening on {address}"));
                Ok(host.run(listener, stack, config, stop).await)
            }
            Some(Err(source)) => {
                // How the closing went matters less than why there was no start.
                let _ = host.close_unserved().await;
                Err(RunError::Start(self.service, source))
            }
            None => Ok(host.close_unserved().await),
        }
    }
}

/// Serves metrics, and says where: the line `metrics on http://<address>/metrics` on standard output.
async fn metrics(address: SocketAddr, scraper: Scraper) -> Result<AbortOnDropHandle<()>, EndpointError> {
    let listener = prometheus::bind(address).await?;
    say_where(listener.local_addr(), |address| {
        format!("metrics on http://{address}/metrics")
    });
    let serving = tokio::spawn(prometheus::serve(listener, scraper));
    Ok(AbortOnDropHandle::new(serving))
}

/// A line on standard output with the address that was taken, for whoever started the process.
fn say_where(address: io::Result<SocketAddr>, line: impl FnOnce(SocketAddr) -> String) {
    let said = address.and_then(|address| {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{}", line(address))?;
        stdout.flush()
    });
    if let Err(error) = said {
        tracing::warn!(%error, "nobody is told where this process listens");
    }
}

/// How long the end of a process waits for threads that block still.
const LEFT_BEHIND_MAX: Duration = Duration::from_millis(500);

/// Runs `work` to its end on a runtime of all cores; its error, with its causes, goes to standard error. Memory comes in
/// [small pages](huge_pages) until the process holds much; the files that it creates are its owner's [alone](private_files).
pub fn main(work: impl Future<Output = Result<Exit, RunError>>) -> ExitCode {
    private_files::withhold();
    // Before threads take memory of their own.
    huge_pages::withhold();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(work);
            // Whatever blocks still had its time in the drain: a collector that says nothing must not hold the end up.
            runtime.shutdown_timeout(LEFT_BEHIND_MAX);
            ended
        }
        Err(error) => Err(RunError::System(error)),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            // Where standard error is closed, the exit code has to do.
            let _ = writeln!(io::stderr(), "error: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_each_cause_once() {
        let cause = io::Error::new(io::ErrorKind::AddrInUse, "taken");
        let source: StartError = Box::new(RunError::System(cause));
        let error = RunError::Start("souk-order", source);
        assert_eq!(
            chain(&error),
            "souk-order can't start: the operating system refuses threads or signal handlers: taken"
        );
        let mut problems = crate::config::Problems::default();
        problems.push("data", "must be a folder");
        let error = RunError::from(ConfigError::from(problems));
        assert_eq!(
            chain(&error),
            "1 problem in the settings\n  data: must be a folder"
        );
    }
}
