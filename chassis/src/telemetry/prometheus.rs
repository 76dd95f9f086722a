//! Metrics in the text format of Prometheus, and as OpenMetrics with exemplars. (`opentelemetry-prometheus` has neither exemplars nor a
//! resource for each [`ServiceRole`].) Every series has its `service_name`.

mod endpoint;
mod text;

use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};
use tokio::sync::Mutex;

use super::ServiceRole;

pub use endpoint::{EndpointError, bind, serve};
pub(super) use text::exposed_name;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0, which has exemplars.
    OpenMetrics,
}

impl ExpositionFormat {
    /// What an `Accept` header asks for; anything but OpenMetrics is answered with the older format.
    pub fn accepted(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    /// Its `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Reads the metrics of one provider whenever it is asked to. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader(Arc<ManualReader>);

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

/// Reads the metrics of the process and of its roles. Clones share the work: one reads at a time.
#[derive(Clone, Debug)]
pub struct Scraper {
    readers: Arc<[(Option<ServiceRole>, Reader)]>,
    busy: Arc<Mutex<()>>,
}

impl Scraper {
    pub(super) fn new(readers: Vec<(Option<ServiceRole>, Reader)>) -> Self {
        Self {
            readers: readers.into(),
            busy: Arc::default(),
        }
    }

    /// All metrics as they are now; `None` after the end of telemetry.
    pub async fn scrape(&self, format: ExpositionFormat) -> Option<String> {
        self.collect(move |parts| text::render(parts, format)).await
    }

    /// What `make` makes of all metrics as they are now; `None` after the end of telemetry.
    pub(super) async fn collect<T: Send + 'static>(
        &self,
        make: impl FnOnce(&[(Option<ServiceRole>, ResourceMetrics)]) -> T + Send + 'static,
    ) -> Option<T> {
        // Whoever stops waiting leaves the work to its end, and the next one waits for it.
        let busy = Arc::clone(&self.busy).lock_owned().await;
        let readers = Arc::clone(&self.readers);
        let read = move || {
            let mut parts = Vec::new();
            for (role, reader) in readers.iter() {
                let mut metrics = ResourceMetrics::default();
                reader.collect(&mut metrics).ok()?;
                parts.push((*role, metrics));
            }
            drop(busy);
            Some(make(&parts))
        };
        // What is looked at may have to be asked for on the disk.
        tokio::task::spawn_blocking(read).await.ok()?
    }
}

#[cfg(test)]
mod tests;
