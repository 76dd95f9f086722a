//! The life of a process: tracked tasks, the signals that end it, and a drain in order with one deadline.
//!
//! The order is: health NOT_SERVING and the [`draining`](Host::draining) token → no new connections and calls → calls in flight → the
//! [`stopping`](Host::stopping) token and the tasks → what was registered with [`on_close`](Host::on_close) → telemetry.
//!
//! Calls get at most [`CALLS_SHARE`] of the deadline: a slow reader must not cost the commit of an index. Telemetry is flushed in what
//! is left, but at least [`FLUSH_MIN`], the only thing that may exceed the deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ServerConfig;
use crate::server::{self, Listener, Stack};
use crate::telemetry::{ServiceRole, TelemetryGuard};
use crate::tls::Acceptor;

/// Part of the drain deadline that calls may use, in percent.
pub const CALLS_SHARE: u32 = 60;

/// The part of a drain deadline that calls may use.
pub fn calls_deadline(drain_deadline: Duration) -> Duration {
    drain_deadline.saturating_mul(CALLS_SHARE) / 100
}

/// Time that the flush of telemetry always has.
pub const FLUSH_MIN: Duration = Duration::from_secs(1);

/// Time that it has at most: a collector that doesn't answer must not hold the end of a process up.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Why something couldn't be closed.
pub type CloseError = Box<dyn std::error::Error + Send + Sync>;

type Closer = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), CloseError>> + Send>;

/// One process. See the [module](self).
pub struct Host {
    deadline: Duration,
    /// Cancelled when the drain begins. Streams that would never end by themselves end on it.
    pub draining: CancellationToken,
    /// Cancelled when no call is under way any more. Background tasks end on it.
    pub stopping: CancellationToken,
    /// By their names.
    tasks: Mutex<BTreeMap<&'static str, TaskTracker>>,
    closers: Vec<(&'static str, Closer)>,
    /// Flushed last.
    pub telemetry: Option<TelemetryGuard>,
}

impl Host {
    /// A process whose whole drain may take `deadline`.
    pub fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            tasks: Mutex::default(),
            closers: Vec::new(),
            telemetry: None,
        }
    }

    /// Runs a background task that the drain waits for, in the [`ServiceRole`] of its caller. It should end on [`stopping`](Self::stopping).
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        tasks.entry(name).or_default().spawn(ServiceRole::inherit(task));
    }

    /// Closes something at the end, in the order of registration: what depends on another thing goes first.
    pub fn on_close<F>(&mut self, name: &'static str, close: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = Result<(), CloseError>> + Send + 'static,
    {
        let role = ServiceRole::current();
        let close: Closer = Box::new(move || match role {
            Some(role) => Box::pin(role.scope(async { close().await })),
            None => Box::pin(async { close().await }),
        });
        self.closers.push((name, close));
    }

    /// Serves `stack` on `listener` until `stop`, then drains in order.
    pub async fn run(
        self,
        listener: Listener,
        stack: Stack,
        config: &ServerConfig,
        stop: impl Future<Output = ()> + Send,
    ) -> Exit {
        match listener.local_addr() {
            Ok(address) => tracing::info!(%address, "serving"),
            Err(error) => tracing::warn!(%error, "serving on an address that can't be told"),
        }
        listener.tell();
        if let Some(tls) = &listener.tls {
            self.look_at_hangup(tls.clone());
        }
        let stopped_at = Mutex::new(None);
        let draining = self.draining.clone();
        let stop = async {
            stop.await;
            *stopped_at.lock() = Some(Instant::now());
            tracing::info!("draining");
            draining.cancel();
        };
        let served = server::serve(listener, stack, config, stop, calls_deadline(self.deadline)).await;
        let deadline = stopped_at.lock().unwrap_or_else(Instant::now) + self.deadline;
        let mut cut_off = Vec::new();
        if served.calls_cut_off > 0 {
            cut_off.push(format!("{} calls", served.calls_cut_off));
        }
        let exit = self.close(deadline, cut_off).await;
        drop(served);
        exit
    }

    /// Has the certificates looked at whenever SIGHUP comes; they are also looked at as connections come.
    fn look_at_hangup(&self, tls: Acceptor) {
        let mut hangup = match signal(SignalKind::hangup()) {
            Ok(hangup) => hangup,
            Err(error) => return tracing::warn!(%error, "SIGHUP isn't listened to"),
        };
        let stopping = self.stopping.clone();
        self.spawn("certificates", async move {
            while let Some(Some(())) = stopping.run_until_cancelled(hangup.recv()).await {
                let tls = tls.clone();
                // Files may lie on a disk that answers slowly. That this fails is only a panic, and told by it.
                let _ = tokio::task::spawn_blocking(move || tls.look()).await;
            }
        });
    }

    /// Closes what was registered, in a process that never came to serve.
    pub async fn close_unserved(self) -> Exit {
        self.draining.cancel();
        let deadline = Instant::now() + self.deadline;
        self.close(deadline, Vec::new()).await
    }

    /// Everything after the calls.
    async fn close(self, deadline: Instant, mut cut_off: Vec<String>) -> Exit {
        self.stopping.cancel();
        let tasks = self.tasks.into_inner();
        let ended = async {
            for tasks in tasks.values() {
                tasks.close();
                tasks.wait().await;
            }
        };
        if tokio::time::timeout_at(deadline, ended).await.is_err() {
            let running = tasks.iter().filter(|(_, tasks)| !tasks.is_empty());
            cut_off.extend(running.map(|(name, tasks)| format!("task {name} ({})", tasks.len())));
        }
        for (name, close) in self.closers {
            // Even when the time is over each is asked to close, and may manage at once.
            match tokio::time::timeout_at(deadline, close()).await {
                Ok(Ok(())) => tracing::debug!(name, "closed"),
                Ok(Err(error)) => cut_off.push(format!("{name}: {error}")),
                Err(_) => cut_off.push(name.to_owned()),
            }
        }
        let exit = Exit { cut_off };
        if exit.is_clean() {
            tracing::info!("drained");
        } else {
            tracing::error!(cut_off = exit.cut_off.join("; "), "the drain was cut off");
        }
        if let Some(telemetry) = self.telemetry {
            let left = deadline.saturating_duration_since(Instant::now());
            telemetry.shutdown(left.clamp(FLUSH_MIN, FLUSH_MAX)).await;
        }
        exit
    }
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the exit code tells whoever started the process whether all was closed"]
pub struct Exit {
    /// What wasn't finished in time or failed to close, in the order of the drain.
    pub cut_off: Vec<String>,
}

impl Exit {
    /// Was everything finished and closed in time?
    pub fn is_clean(&self) -> bool {
        self.cut_off.is_empty()
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        u8::from(!exit.is_clean()).into()
    }
}

/// Completes at the first SIGTERM or SIGINT from now on.
///
/// # Errors
/// When the handlers can't be installed.
pub fn terminated() -> std::io::Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM"),
            _ = interrupt.recv() => tracing::info!("SIGINT"),
        }
    })
}

#[cfg(test)]
mod tests;
