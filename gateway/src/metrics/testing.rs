//! A meter for tests, with its exported values.

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use souk_chassis::telemetry::instrument::Instrument;

/// A meter provider with an in-memory exporter.
pub(crate) struct TestMeter {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl TestMeter {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exporter.clone())
            .build();
        Self { exporter, provider }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.provider.meter("test")
    }

    /// The sum of all values of an instrument; `None` when it has none.
    pub(crate) fn sum(&self, instrument: &Instrument) -> Option<u64> {
        self.provider.force_flush().expect("the exporter lives");
        let exported = self.exporter.get_finished_metrics().expect("the exporter lives");
        let mut metrics = exported.last()?.scope_metrics().flat_map(|scope| scope.metrics());
        let metric = metrics.find(|metric| metric.name() == instrument.name)?;
        let AggregatedMetrics::U64(data) = metric.data() else {
            return None;
        };
        Some(match data {
            MetricData::Sum(sum) => sum.data_points().map(|point| point.value()).sum(),
            MetricData::Gauge(gauge) => gauge.data_points().map(|point| point.value()).sum(),
            _ => return None,
        })
    }
}
