//! The end of telemetry: what is recorded is sent, in the time that there is.

use std::time::{Duration, Instant};

use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Time for the flush when the guard is dropped without [`TelemetryGuard::shutdown`].
const DROP_FLUSH: Duration = Duration::from_secs(2);

/// Flushes telemetry at the end of the process.
#[derive(Debug)]
#[must_use = "dropped, it flushes and ends telemetry at once"]
pub struct TelemetryGuard(pub(super) Providers);

#[derive(Clone, Debug, Default)]
pub(super) struct Providers {
    pub(super) tracers: Vec<SdkTracerProvider>,
    pub(super) meters: Vec<SdkMeterProvider>,
    pub(super) loggers: Vec<SdkLoggerProvider>,
}

impl Providers {
    fn is_empty(&self) -> bool {
        self.tracers.is_empty() && self.meters.is_empty() && self.loggers.is_empty()
    }

    /// Ends all of them together: each has what is left of `time`.
    fn end(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let left = || deadline.saturating_duration_since(Instant::now());
        let spans = self.tracers.iter();
        let spans = spans.map(|provider| ("spans", provider.shutdown_with_timeout(left())));
        let metrics = self.meters.iter();
        let metrics = metrics.map(|provider| ("metrics", provider.shutdown_with_timeout(left())));
        // Last: they tell what became of the others.
        let logs = self.loggers.iter();
        let logs = logs.map(|provider| ("logs", provider.shutdown_with_timeout(left())));
        for (what, ended) in spans.chain(metrics).chain(logs) {
            if let Err(error) = ended {
                tracing::warn!(what, %error, "telemetry couldn't be sent");
            }
        }
    }
}

impl TelemetryGuard {
    /// Sends what is recorded and ends telemetry, within `time`.
    pub async fn shutdown(mut self, time: Duration) {
        let providers = std::mem::take(&mut self.0);
        let ended = tokio::task::spawn_blocking(move || providers.end(time));
        if tokio::time::timeout(time, ended).await.is_err() {
            tracing::warn!(?time, "telemetry couldn't be flushed in time");
        }
    }
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        let providers = std::mem::take(&mut self.0);
        if providers.is_empty() {
            return;
        }
        // On a thread of its own: the exporter needs the runtime, which this thread may be driving.
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            providers.end(DROP_FLUSH);
            // Nobody listens when it took too long.
            let _ = done.send(());
        });
        let _ = ended.recv_timeout(DROP_FLUSH);
    }
}
