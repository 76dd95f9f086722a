//! Metrics as a collector has them: the last value of each series.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::metrics::v1::exemplar::Value as ExemplarValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, Metric, number_data_point};

use super::{attributes_of, hex};

/// The last value of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataPoint {
    /// A histogram's number of measurements.
    pub count: Option<u64>,
    /// A histogram's sum, or the value.
    pub value: f64,
    /// Trace ids of its exemplars, in hexadecimal.
    pub exemplar_traces: Vec<String>,
}

/// The identity of a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// `service.name`.
    pub service: String,
    /// `service.instance.id`: a process that was started again is another one.
    pub instance: String,
    /// The metric's name.
    pub metric: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl Series {
    /// A label; empty when there is none.
    #[must_use]
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// All points of a metric, each with its labels.
pub(super) fn points(metric: Metric) -> Vec<(BTreeMap<String, String>, DataPoint)> {
    let number = |point: opentelemetry_proto::tonic::metrics::v1::NumberDataPoint| {
        let value = match point.value {
            Some(number_data_point::Value::AsDouble(value)) => value,
            // Counts of tests are far below 2^53, up to where an `f64` is exact.
            Some(number_data_point::Value::AsInt(value)) => value as f64,
            None => 0.0,
        };
        let read = DataPoint {
            count: None,
            value,
            exemplar_traces: traces(&point.exemplars),
        };
        (attributes_of(point.attributes), read)
    };
    match metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.into_iter().map(number).collect(),
        Some(Data::Sum(sum)) => sum.data_points.into_iter().map(number).collect(),
        Some(Data::Histogram(histogram)) => {
            let point = |point: opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint| {
                let read = DataPoint {
                    count: Some(point.count),
                    value: point.sum.unwrap_or_default(),
                    exemplar_traces: traces(&point.exemplars),
                };
                (attributes_of(point.attributes), read)
            };
            histogram.data_points.into_iter().map(point).collect()
        }
        Some(Data::ExponentialHistogram(_) | Data::Summary(_)) | None => Vec::new(),
    }
}

/// The trace ids of the exemplars that have a value.
fn traces(exemplars: &[Exemplar]) -> Vec<String> {
    let measured = |exemplar: &&Exemplar| {
        matches!(
            exemplar.value,
            Some(ExemplarValue::AsDouble(_) | ExemplarValue::AsInt(_))
        )
    };
    let traces = exemplars.iter().filter(measured).map(|e| hex(&e.trace_id));
    traces.collect()
}
