//! Writes the two text formats of Prometheus: its own (0.0.4) and OpenMetrics.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::time::UNIX_EPOCH;

use opentelemetry::{Key, KeyValue};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};

use super::super::exemplar::{self, Buckets, Exemplar};
use super::Format;
use crate::telemetry::Role;

/// The resource of a role, as a series of its own.
const TARGET_INFO: &str = "target_info";

/// The name of an instrument for Prometheus, with its unit but without the `_total` of a sum.
pub(in crate::telemetry) fn exposed_name(name: &str, unit: &str) -> String {
    let name = sanitized(name);
    match unit_word(unit) {
        Some(word) if !name.ends_with(&format!("_{word}")) => format!("{name}_{word}"),
        _ => name,
    }
}

/// A UCUM unit as the word that Prometheus's names end in; `None` for annotations of what is counted, as in `{call}`.
fn unit_word(unit: &str) -> Option<&'static str> {
    match unit {
        "s" => Some("seconds"),
        "By" => Some("bytes"),
        "1" => Some("ratio"),
        _ => None,
    }
}

/// Letters, digits and underscores.
fn sanitized(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// All series of one name, from all roles.
struct Family<'a> {
    unit: &'a str,
    description: &'a str,
    kind: &'static str,
    samples: String,
}

pub(super) fn render(parts: &[(Option<Role>, ResourceMetrics)], format: Format) -> String {
    let mut families: BTreeMap<String, Family<'_>> = BTreeMap::new();
    let mut targets = String::new();
    for (role, metrics) in parts {
        let service = metrics.resource().get(&Key::from_static_str("service.name"));
        let service = Labels::new().with(
            "service_name",
            &service.map(|name| name.to_string()).unwrap_or_default(),
        );
        let mut target = Labels::new();
        for (key, value) in metrics.resource().iter() {
            target = target.with(&sanitized(key.as_str()), &value.as_str());
        }
        target.sample(&mut targets, TARGET_INFO, &1, None);
        for metric in metrics.scope_metrics().flat_map(|scope| scope.metrics()) {
            let name = exposed_name(metric.name(), metric.unit());
            let family = families.entry(name.clone()).or_insert_with(|| Family {
                unit: metric.unit(),
                description: metric.description(),
                kind: "",
                samples: String::new(),
            });
            let exemplars = match format {
                Format::OpenMetrics => exemplar::of(*role, metric.name()),
                Format::Prometheus => HashMap::new(),
            };
            let series = Series {
                name: &name,
                service: &service,
                exemplars: &exemplars,
                out: &mut family.samples,
            };
            family.kind = series.write(metric);
        }
    }
    let mut text = String::new();
    let info = Family {
        unit: "",
        description: "Who is measured",
        kind: "gauge",
        samples: targets,
    };
    info.write(&mut text, TARGET_INFO, format);
    for (name, family) in families {
        family.write(&mut text, &name, format);
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

impl Family<'_> {
    // Writing to a String can't fail.
    fn write(&self, text: &mut String, name: &str, format: Format) {
        // The older format wants the name of the series, the newer one that of the family.
        let total = match (self.kind, format) {
            ("counter", Format::Prometheus) => "_total",
            _ => "",
        };
        let kind = match (self.kind, format) {
            ("unknown", Format::Prometheus) => "untyped",
            (kind, _) => kind,
        };
        let _ = writeln!(text, "# HELP {name}{total} {}", escaped(self.description));
        let _ = writeln!(text, "# TYPE {name}{total} {kind}");
        if let (Format::OpenMetrics, Some(unit)) = (format, unit_word(self.unit)) {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        text.push_str(&self.samples);
    }
}

struct Series<'a> {
    name: &'a str,
    service: &'a Labels,
    exemplars: &'a HashMap<Vec<KeyValue>, Buckets>,
    out: &'a mut String,
}

impl Series<'_> {
    /// Writes all points, and returns their type for the `# TYPE` line.
    fn write(mut self, metric: &Metric) -> &'static str {
        match metric.data() {
            AggregatedMetrics::F64(data) => self.points(data),
            AggregatedMetrics::U64(data) => self.points(data),
            AggregatedMetrics::I64(data) => self.points(data),
        }
    }

    fn points<T: Copy + fmt::Display>(&mut self, data: &MetricData<T>) -> &'static str {
        match data {
            MetricData::Gauge(gauge) => {
                for point in gauge.data_points() {
                    let labels = self.service.with_all(point.attributes());
                    labels.sample(self.out, self.name, &point.value(), None);
                }
                "gauge"
            }
            MetricData::Sum(sum) => {
                let (kind, total) = match sum.is_monotonic() {
                    true => ("counter", "_total"),
                    false => ("gauge", ""),
                };
                let name = format!("{}{total}", self.name);
                for point in sum.data_points() {
                    let labels = self.service.with_all(point.attributes());
                    labels.sample(self.out, &name, &point.value(), None);
                }
                kind
            }
            MetricData::Histogram(histogram) => {
                for point in histogram.data_points() {
                    self.buckets(
                        point.attributes().cloned().collect(),
                        point.bounds().zip(point.bucket_counts()),
                        (point.count(), &point.sum()),
                    );
                }
                "histogram"
            }
            // No view makes exponential histograms.
            MetricData::ExponentialHistogram(_) => "unknown",
        }
    }

    /// Writes one point of a histogram: cumulative buckets by their upper bounds, sum and count.
    fn buckets(
        &mut self,
        mut attributes: Vec<KeyValue>,
        buckets: impl Iterator<Item = (f64, u64)>,
        (count, sum): (u64, &dyn fmt::Display),
    ) {
        // Exemplars are kept by sorted attributes.
        attributes.sort_by(|one, other| one.key.cmp(&other.key));
        let labels = self.service.with_all(attributes.iter());
        let exemplars = self.exemplars.get(&attributes);
        let exemplar = |at: usize| exemplars.and_then(|exemplars| exemplars.get(at)?.as_ref());
        let name = format!("{}_bucket", self.name);
        let (mut cumulative, mut bounds) = (0, 0);
        for (at, (bound, more)) in buckets.enumerate() {
            cumulative += more;
            bounds = at + 1;
            let le = labels.clone().with("le", &format!("{bound:?}"));
            le.sample(self.out, &name, &cumulative, exemplar(at));
        }
        let le = labels.clone().with("le", "+Inf");
        le.sample(self.out, &name, &count, exemplar(bounds));
        labels.sample(self.out, &format!("{}_sum", self.name), sum, None);
        labels.sample(self.out, &format!("{}_count", self.name), &count, None);
    }
}

/// Labels as they are written, without braces.
#[derive(Clone)]
struct Labels(String);

impl Labels {
    fn new() -> Self {
        Self(String::new())
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a String can't fail.
        let _ = write!(self.0, "{comma}{name}=\"{}\"", escaped(value));
        self
    }

    fn with_all<'a>(&self, attributes: impl Iterator<Item = &'a KeyValue>) -> Self {
        attributes.fold(self.clone(), |labels, attribute| {
            labels.with(&sanitized(attribute.key.as_str()), &attribute.value.as_str())
        })
    }

    /// Writes one line: a series with these labels, its value and, in OpenMetrics, its exemplar.
    fn sample(&self, out: &mut String, name: &str, value: &dyn fmt::Display, exemplar: Option<&Exemplar>) {
        let _ = write!(out, "{name}{{{}}} {value}", self.0);
        if let Some(Exemplar { trace, value, time }) = exemplar {
            let time = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let _ = write!(out, " # {{trace_id=\"{trace}\"}} {value} {time:.3}");
        }
        out.push('\n');
    }
}

/// Escapes a label's value or the text of a `# HELP` line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
