//! skeleton
use crate::{config::ServerConfig, server::Stack};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Failure of something being closed.
pub type CloseError = Box<dyn std::error::Error + Send + Sync>;

/// One process.
#[derive(Debug)]
pub struct Host {
    draining: CancellationToken,
}

impl Host {
    /// A host whose whole drain may take `deadline`.
    pub fn new(deadline: Duration) -> Self {
        let _ = deadline;
        Self {
            draining: CancellationToken::new(),
        }
    }
    /// Cancelled when the drain begins.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }
    /// Tracked task.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let _ = name;
        tokio::spawn(task);
    }
    /// Registers something to close.
    pub fn on_close<F>(&mut self, name: &'static str, close: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = Result<(), CloseError>> + Send + 'static,
    {
        let _ = (name, close);
    }
    /// Flushed last.
    pub fn telemetry(&mut self, guard: crate::telemetry::TelemetryGuard) {
        let _ = guard;
    }
    /// Serves until `stop`, then drains.
    pub async fn run(
        self,
        listener: TcpListener,
        stack: Stack,
        config: &ServerConfig,
        stop: impl Future<Output = ()> + Send,
    ) -> Exit {
        crate::server::serve(listener, stack, config, stop).await;
        Exit { cut_off: Vec::new() }
    }
}
/// How it ended.
#[derive(Debug)]
pub struct Exit {
    /// What didn't finish.
    pub cut_off: Vec<String>,
}
impl Exit {
    /// All in time.
    pub fn is_clean(&self) -> bool {
        self.cut_off.is_empty()
    }
}
/// SIGTERM or SIGINT.
///
/// # Errors
/// When handlers can't be installed.
pub fn terminated() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(std::future::pending())
}
