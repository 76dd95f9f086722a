//! The end of telemetry: what is recorded is sent, in the time that there is.

use std::time::{Duration, Instant};

use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Time for the flush when the guard is dropped without [`TelemetryGuard::shutdown`].
const DROP_FLUSH: Duration = Duration::from_secs(2);

/// Flushes telemetry at the end of the process.
#[derive(Debug)]
#[must_use = "dropped, it flushes and ends telemetry at once"]
pub struct TelemetryGuard {
    pub(super) tracers: Vec<SdkTracerProvider>,
    pub(super) meters: Vec<SdkMeterProvider>,
}

impl TelemetryGuard {
    /// Sends what is recorded, so that it can be asked for; telemetry goes on.
    pub async fn flush(&self) {
        let (tracers, meters) = (self.tracers.clone(), self.meters.clone());
        let flush = move || {
            for provider in &tracers {
                report("spans", provider.force_flush());
            }
            for provider in &meters {
                report("metrics", provider.force_flush());
            }
        };
        // The exporters block while they send.
        if let Err(error) = tokio::task::spawn_blocking(flush).await {
            tracing::warn!(%error, "the flush of telemetry failed");
        }
    }

    /// Sends what is recorded and ends telemetry, within `time`.
    pub async fn shutdown(mut self, time: Duration) {
        let ended = tokio::task::spawn_blocking({
            let (tracers, meters) = self.take();
            move || end(&tracers, &meters, time)
        });
        if tokio::time::timeout(time, ended).await.is_err() {
            tracing::warn!(?time, "telemetry couldn't be flushed in time");
        }
    }

    fn take(&mut self) -> (Vec<SdkTracerProvider>, Vec<SdkMeterProvider>) {
        (
            std::mem::take(&mut self.tracers),
            std::mem::take(&mut self.meters),
        )
    }
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        let (tracers, meters) = self.take();
        if tracers.is_empty() && meters.is_empty() {
            return;
        }
        // On a thread of its own: the exporter needs the runtime, which this thread may be driving.
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            end(&tracers, &meters, DROP_FLUSH);
            // Nobody listens when it took too long.
            let _ = done.send(());
        });
        let _ = ended.recv_timeout(DROP_FLUSH);
    }
}

/// Ends all of them together: each has what is left of `time`.
fn end(tracers: &[SdkTracerProvider], meters: &[SdkMeterProvider], time: Duration) {
    let deadline = Instant::now() + time;
    let left = || deadline.saturating_duration_since(Instant::now());
    for provider in tracers {
        report("spans", provider.shutdown_with_timeout(left()));
    }
    for provider in meters {
        report("metrics", provider.shutdown_with_timeout(left()));
    }
}

fn report(what: &'static str, result: opentelemetry_sdk::error::OTelSdkResult) {
    if let Err(error) = result {
        tracing::warn!(what, %error, "telemetry couldn't be sent");
    }
}
