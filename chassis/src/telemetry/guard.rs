//! The end of telemetry: what is recorded is sent, in the time that there is.

use std::time::{Duration, Instant};

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;

use super::service_role::ByRole;

/// Time for the flush when the guard is dropped without [`TelemetryGuard::shutdown`].
const DROP_FLUSH: Duration = Duration::from_secs(2);

/// Flushes telemetry at the end of the process.
#[derive(Debug)]
#[must_use = "dropped, it flushes and ends telemetry at once"]
pub struct TelemetryGuard(pub(super) Option<Providers>);

#[derive(Debug, Default)]
pub(super) struct Providers {
    pub(super) tracers: Option<ByRole<SdkTracerProvider>>,
    pub(super) meters: Option<ByRole<SdkMeterProvider>>,
    pub(super) loggers: Option<ByRole<SdkLoggerProvider>>,
}

impl Providers {
    /// Ends all of them together: each has what is left of `time`.
    fn end(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let left = || deadline.saturating_duration_since(Instant::now());
        let tell = |what, ended: OTelSdkResult| {
            if let Err(error) = ended {
                tracing::warn!(what, %error, "telemetry couldn't be sent");
            }
        };
        for (_, provider) in self.tracers.iter().flat_map(ByRole::iter) {
            tell("spans", provider.shutdown_with_timeout(left()));
        }
        for (_, provider) in self.meters.iter().flat_map(ByRole::iter) {
            tell("metrics", provider.shutdown_with_timeout(left()));
        }
        // Last: they tell what became of the others.
        for (_, provider) in self.loggers.iter().flat_map(ByRole::iter) {
            tell("logs", provider.shutdown_with_timeout(left()));
        }
    }
}

impl TelemetryGuard {
    /// Sends what is recorded and ends telemetry, within `time`.
    pub async fn shutdown(mut self, time: Duration) {
        let providers = self.0.take();
        let ended = tokio::task::spawn_blocking(move || providers.map(|providers| providers.end(time)));
        if tokio::time::timeout(time, ended).await.is_err() {
            tracing::warn!(?time, "telemetry couldn't be flushed in time");
        }
    }
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        let Some(providers) = self.0.take() else {
            return;
        };
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
