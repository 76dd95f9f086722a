//! Writes the two text formats of Prometheus: its own (0.0.4) and OpenMetrics.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::time::UNIX_EPOCH;

use opentelemetry_sdk::metrics::data::ResourceMetrics;

use super::super::exemplar::{self, Buckets, Exemplar};
use super::super::figures::{self, Figure, FigureValue};
use super::ExpositionFormat;
use crate::telemetry::ServiceRole;

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
struct Family {
    unit: String,
    description: String,
    kind: &'static str,
    samples: String,
}

pub(super) fn render(parts: &[(Option<ServiceRole>, ResourceMetrics)], format: ExpositionFormat) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut targets = String::new();
    for (role, metrics) in parts {
        let mut target = Labels::default();
        for (key, value) in metrics.resource().iter() {
            target = target.with(key.as_str(), &value.as_str());
        }
        target.sample(&mut targets, TARGET_INFO, &1, None);
        for figure in figures::of(metrics) {
            let name = exposed_name(&figure.name, &figure.unit);
            let family = families.entry(name.clone()).or_insert_with(|| Family {
                unit: figure.unit.clone(),
                description: figure.description.clone(),
                kind: figure.kind,
                samples: String::new(),
            });
            let exemplars = match format {
                ExpositionFormat::OpenMetrics => exemplar::of(*role, &figure.name),
                ExpositionFormat::Prometheus => HashMap::new(),
            };
            series(&mut family.samples, &name, figure, &exemplars);
        }
    }
    let mut text = String::new();
    let info = Family {
        unit: String::new(),
        description: "Who is measured".to_owned(),
        kind: "gauge",
        samples: targets,
    };
    info.write(&mut text, TARGET_INFO, format);
    for (name, family) in families {
        family.write(&mut text, &name, format);
    }
    if format == ExpositionFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

impl Family {
    // Writing to a String can't fail.
    fn write(&self, text: &mut String, name: &str, format: ExpositionFormat) {
        // The older format wants the name of the series, the newer one that of the family.
        let total = match (self.kind, format) {
            ("counter", ExpositionFormat::Prometheus) => "_total",
            _ => "",
        };
        let kind = match (self.kind, format) {
            ("unknown", ExpositionFormat::Prometheus) => "untyped",
            (kind, _) => kind,
        };
        let _ = writeln!(text, "# HELP {name}{total} {}", escaped(&self.description));
        let _ = writeln!(text, "# TYPE {name}{total} {kind}");
        if let (ExpositionFormat::OpenMetrics, Some(unit)) = (format, unit_word(&self.unit)) {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        text.push_str(&self.samples);
    }
}

/// Writes the values of a figure as series of this name, cumulative where they are buckets.
fn series(out: &mut String, name: &str, figure: Figure, exemplars: &HashMap<Vec<(String, String)>, Buckets>) {
    let service = Labels::default().with("service_name", &figure.service);
    for (mut attributes, value) in figure.values {
        match value {
            FigureValue::Number(number) => {
                let total = if figure.kind == "counter" { "_total" } else { "" };
                let labels = service.with_all(&attributes);
                labels.sample(out, &format!("{name}{total}"), &number, None);
            }
            FigureValue::Buckets { count, sum, counts } => {
                // Exemplars are kept by sorted attributes.
                attributes.sort();
                let labels = service.with_all(&attributes);
                let exemplars = exemplars.get(&attributes);
                let exemplar = |at: usize| exemplars.and_then(|exemplars| exemplars.get(at)?.as_ref());
                let (bucket, mut cumulative) = (format!("{name}_bucket"), 0);
                for (at, (bound, more)) in figure.bounds.iter().zip(counts).enumerate() {
                    cumulative += more;
                    let le = labels.clone().with("le", &format!("{bound:?}"));
                    le.sample(out, &bucket, &cumulative, exemplar(at));
                }
                let le = labels.clone().with("le", "+Inf");
                le.sample(out, &bucket, &count, exemplar(figure.bounds.len()));
                labels.sample(out, &format!("{name}_sum"), &sum, None);
                labels.sample(out, &format!("{name}_count"), &count, None);
            }
        }
    }
}

/// Labels as they are written, without braces.
#[derive(Clone, Default)]
struct Labels(String);

impl Labels {
    fn with(mut self, name: &str, value: &str) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a String can't fail.
        let _ = write!(self.0, "{comma}{}=\"{}\"", sanitized(name), escaped(value));
        self
    }

    fn with_all(&self, attributes: &[(String, String)]) -> Self {
        let attributes = attributes.iter();
        attributes.fold(self.clone(), |labels, (name, value)| labels.with(name, value))
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
