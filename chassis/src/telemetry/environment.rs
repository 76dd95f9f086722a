//! What the variables of OpenTelemetry say. Most are read by the SDK; what neither it nor this process can honour is refused or warned
//! of at the start, never passed over in silence.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::Sampler;

use super::TelemetryError;
use super::exemplar::ExemplarFilter;
use crate::config::ClientTlsConfig;

/// Where a signal goes, by OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collector {
    pub(super) uri: Uri,
    /// The files to trust it by where its address is `https`.
    pub(super) tls: Option<ClientTlsConfig>,
    /// For an export, tries again included.
    pub(super) timeout: Duration,
    /// `OTEL_BSP_MAX_QUEUE_SIZE` is set.
    pub(super) sizes_queue: bool,
}

#[derive(Debug)]
pub(super) struct OtelEnvironment {
    pub(super) disabled: bool,
    /// `OTEL_SERVICE_NAME`, which goes over everything; the SDK lets the resource's attributes go over it.
    pub(super) service: Option<String>,
    /// The resource's attributes have a service name.
    pub(super) names_service: bool,
    /// And an instance id.
    pub(super) names_instance: bool,
    /// Of `OTEL_TRACES_SAMPLER` and its argument.
    pub(super) sampler: Sampler,
    pub(super) traces: Option<Collector>,
    pub(super) metrics: Option<Collector>,
    /// Log lines are written in any case.
    pub(super) logs: Option<Collector>,
    pub(super) exemplars: ExemplarFilter,
    /// What is set but has no effect, each with what to do instead.
    pub(super) warnings: Vec<String>,
    pub(super) propagator: TextMapCompositePropagator,
}

/// The signals, as they stand in the names of variables.
const SIGNALS: [&str; 3] = ["TRACES", "METRICS", "LOGS"];

/// What all variables of exporters begin with; that of one signal has its name next.
const OTLP: &str = "OTEL_EXPORTER_OTLP_";

/// Where a collector is by habit.
const COLLECTOR: &str = "http://localhost:4317";

/// Time to send something, if none is set, in milliseconds.
const EXPORT_TIMEOUT: &str = "10000";

/// Read by the SDK or here, those of exporters without their signals: any value is taken, or is checked where it is used.
const TAKEN: &str = "OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES OTEL_SDK_DISABLED OTEL_PROPAGATORS \
     OTEL_TRACES_SAMPLER OTEL_TRACES_SAMPLER_ARG OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS \
     OTEL_EXPORTER_OTLP_CERTIFICATE OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE OTEL_EXPORTER_OTLP_CLIENT_KEY";

/// Whole numbers; the SDK passes over what is none, spaces before it included.
const NUMBERS: &str =
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT OTEL_SPAN_EVENT_COUNT_LIMIT OTEL_SPAN_LINK_COUNT_LIMIT";

/// Those that can't be 0: the SDK would never pause, keep nothing, or export nothing.
const POSITIVE_NUMBERS: &str = "OTEL_BSP_SCHEDULE_DELAY OTEL_BSP_MAX_QUEUE_SIZE OTEL_BSP_MAX_EXPORT_BATCH_SIZE \
     OTEL_BLRP_SCHEDULE_DELAY OTEL_BLRP_MAX_QUEUE_SIZE OTEL_BLRP_MAX_EXPORT_BATCH_SIZE OTEL_METRIC_EXPORT_INTERVAL \
     OTEL_EXPORTER_OTLP_TIMEOUT";

/// What other variables of the export of one signal begin with.
const OF_EXPORT: [(&str, &str); 3] = [
    ("OTEL_BSP_", "TRACES"),
    ("OTEL_METRIC_EXPORT_", "METRICS"),
    ("OTEL_BLRP_", "LOGS"),
];

const TEMPORALITY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";

/// The values of a variable that takes one of a few.
fn choices(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "OTEL_TRACES_EXPORTER" | "OTEL_METRICS_EXPORTER" => &["otlp", "none"],
        "OTEL_LOGS_EXPORTER" => &["otlp", "none", "console"],
        "OTEL_METRICS_EXEMPLAR_FILTER" => &["trace_based", "always_on", "always_off"],
        "OTEL_EXPORTER_OTLP_PROTOCOL" => &["grpc"],
        "OTEL_EXPORTER_OTLP_COMPRESSION" => &["gzip", "zstd", "none"],
        TEMPORALITY => &["cumulative", "delta", "lowmemory"],
        _ => return None,
    })
}

/// What has the effect of a variable that has none here.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "OTEL_SEMCONV_STABILITY_OPT_IN" => "names follow the current conventions alone",
        "OTEL_BSP_EXPORT_TIMEOUT" => "set OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_BLRP_EXPORT_TIMEOUT" => "set OTEL_EXPORTER_OTLP_LOGS_TIMEOUT",
        "OTEL_METRIC_EXPORT_TIMEOUT" => "set OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
        "OTEL_LOG_LEVEL" => "set telemetry.log_filter",
        "OTEL_EXPORTER_OTLP_INSECURE" => "the scheme of the endpoint says it",
        "OTEL_EXPORTER_PROMETHEUS_PORT" => "set telemetry.metrics_listen (--metrics-listen)",
        _ => return None,
    })
}

/// The signal of an exporter's variable that is for one alone, and what it says.
fn own_of_signal(name: &str) -> Option<(&str, &str)> {
    let own = name.strip_prefix(OTLP)?.split_once('_');
    own.filter(|(signal, _)| SIGNALS.contains(signal))
}

struct Variables<'a>(&'a [(String, String)]);

impl<'a> Variables<'a> {
    /// The value of one; by the specification an empty one counts as unset.
    fn get(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    /// A variable of an exporter with its name: that of the signal goes over that of all.
    fn of(&self, signal: &str, what: &str) -> Option<(String, &'a str)> {
        let mut names = [format!("{OTLP}{signal}_{what}"), format!("{OTLP}{what}")].into_iter();
        names.find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    /// Is the signal exported?
    fn exports(&self, signal: &str) -> bool {
        match self.get(&format!("OTEL_{signal}_EXPORTER")) {
            Some("none" | "console") => false,
            Some(_) => true,
            None => self.of(signal, "ENDPOINT").is_some(),
        }
    }

    /// Has a variable an effect? That of an export has none where its signal goes nowhere.
    fn matters(&self, name: &str) -> bool {
        let of_export = OF_EXPORT.iter().find(|(prefix, _)| name.starts_with(prefix));
        let own = own_of_signal(name).map(|(signal, _)| signal);
        match own.or(of_export.map(|(_, signal)| *signal)) {
            Some(signal) => self.exports(signal),
            None => !name.starts_with(OTLP) || SIGNALS.iter().any(|signal| self.exports(signal)),
        }
    }

    /// Refuses unsupported values, and returns warnings of variables without an effect, without their values, which may be secrets.
    fn check(&self) -> Result<Vec<String>, TelemetryError> {
        let mut warnings = Vec::new();
        for (name, set) in self.0 {
            let Some(value) = self.get(name).filter(|_| name.starts_with("OTEL_")) else {
                continue;
            };
            // The name of an exporter's variable without its signal.
            let own = own_of_signal(name).filter(|_| name != TEMPORALITY);
            let of_all = own.map_or_else(|| name.clone(), |(_, what)| format!("{OTLP}{what}"));
            let is_in = |list: &str| list.split_whitespace().any(|known| known == of_all);
            let mut expected = None;
            if let Some(values) = choices(&of_all) {
                expected = (!values.contains(&value)).then(|| format!("use {}", values.join(" or ")));
            } else if is_in(NUMBERS) || is_in(POSITIVE_NUMBERS) {
                let least = u32::from(is_in(POSITIVE_NUMBERS));
                // As it is set: the SDK reads it for itself.
                let number = set.parse::<u32>();
                let is_good = number.is_ok_and(|number| number >= least);
                expected = (!is_good).then(|| format!("use a whole number from {least}, without spaces"));
            } else if let Some(instead) = instead(&of_all) {
                warnings.push(format!("{name} has no effect: {instead}"));
            } else if !is_in(TAKEN) {
                warnings.push(format!("{name} has no effect: it isn't known here"));
            }
            match expected {
                Some(expected) if self.matters(name) => return Err(refused(name, value, &expected)),
                Some(expected) => warnings.push(format!(
                    "{name} has no effect where nothing is exported; else {expected}"
                )),
                None => {}
            }
        }
        if let Some(value) = self.get("OTEL_SDK_DISABLED")
            && !["true", "false"].contains(&value.to_ascii_lowercase().as_str())
        {
            warnings.push("OTEL_SDK_DISABLED is neither true nor false: it counts as false".to_owned());
        }
        warnings.dedup();
        Ok(warnings)
    }

    /// Where a signal goes; `None` for nowhere. Log lines go to the console in any case, so that `console` is what `none` is.
    fn collector(&self, signal: &str) -> Result<Option<Collector>, TelemetryError> {
        if !self.exports(signal) {
            return Ok(None);
        }
        let endpoint = self.of(signal, "ENDPOINT");
        let (variable, uri) = endpoint.unwrap_or((String::new(), COLLECTOR));
        let refused = |expected| Err(refused(&variable, uri, expected));
        let text = |what| self.of(signal, what).map(|(_, value)| value);
        let file = |what| text(what).map_or_else(PathBuf::new, PathBuf::from);
        let address: Uri = uri.parse().unwrap_or_default();
        let tls = match address.scheme_str() {
            Some("http") => None,
            Some("https") => Some(ClientTlsConfig {
                ca: file("CERTIFICATE"),
                cert: file("CLIENT_CERTIFICATE"),
                key: file("CLIENT_KEY"),
                server_name: String::new(),
            }),
            _ => return refused("use http://host:port or https://host:port"),
        };
        if tls.as_ref().is_some_and(|tls| !tls.has_authority()) {
            return refused(
                "name the authorities that its certificate is checked by (OTEL_EXPORTER_OTLP_CERTIFICATE)",
            );
        }
        let timeout = text("TIMEOUT").unwrap_or(EXPORT_TIMEOUT).parse();
        Ok(Some(Collector {
            uri: address,
            tls,
            timeout: Duration::from_millis(timeout.unwrap_or_default()),
            sizes_queue: self.get("OTEL_BSP_MAX_QUEUE_SIZE").is_some(),
        }))
    }

    fn sampler(&self) -> Result<Sampler, TelemetryError> {
        let name = "OTEL_TRACES_SAMPLER";
        let value = self.get(name).unwrap_or("parentbased_always_on");
        let of_parent = value.strip_prefix("parentbased_");
        let of_roots = match of_parent.unwrap_or(value) {
            "always_on" => Sampler::AlwaysOn,
            "always_off" => Sampler::AlwaysOff,
            "traceidratio" => {
                let argument = "OTEL_TRACES_SAMPLER_ARG";
                let value = self.get(argument).unwrap_or("1");
                let ratio = value.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                let refused = || refused(argument, value, "use a number from 0 to 1");
                Sampler::TraceIdRatioBased(ratio.ok_or_else(refused)?)
            }
            _ => {
                let expected =
                    "use always_on, always_off or traceidratio, with parentbased_ before it or not";
                return Err(refused(name, value, expected));
            }
        };
        Ok(match of_parent {
            Some(_) => Sampler::ParentBased(Box::new(of_roots)),
            None => of_roots,
        })
    }

    fn propagator(&self) -> Result<TextMapCompositePropagator, TelemetryError> {
        let name = "OTEL_PROPAGATORS";
        let list = self.get(name).unwrap_or("tracecontext,baggage");
        let mut chosen: Vec<Box<dyn TextMapPropagator + Send + Sync>> = Vec::new();
        for value in list.split(',').map(str::trim) {
            match value {
                "tracecontext" => chosen.push(Box::new(TraceContextPropagator::new())),
                "baggage" => chosen.push(Box::new(BaggagePropagator::new())),
                "none" | "" => {}
                _ => return Err(refused(name, value, "use tracecontext, baggage or none")),
            }
        }
        Ok(TextMapCompositePropagator::new(chosen))
    }

    fn exemplars(&self) -> ExemplarFilter {
        match self.get("OTEL_METRICS_EXEMPLAR_FILTER") {
            Some("always_off") => ExemplarFilter::AlwaysOff,
            Some("always_on") => ExemplarFilter::AlwaysOn,
            _ => ExemplarFilter::TraceBased,
        }
    }

    fn in_resource(&self, key: &str) -> bool {
        let list = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut keys = list.split(',').filter_map(|pair| pair.split_once('='));
        keys.any(|(name, _)| name.trim() == key)
    }
}

fn refused(variable: &str, value: &str, expected: &str) -> TelemetryError {
    TelemetryError::Variable(variable.to_owned(), value.to_owned(), expected.to_owned())
}

impl OtelEnvironment {
    pub(super) fn read(variables: &[(String, String)]) -> Result<Self, TelemetryError> {
        let variables = Variables(variables);
        let get = |name| variables.get(name);
        let warnings = variables.check()?;
        Ok(Self {
            disabled: get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")),
            service: get("OTEL_SERVICE_NAME").map(str::to_owned),
            names_service: variables.in_resource("service.name"),
            names_instance: variables.in_resource("service.instance.id"),
            sampler: variables.sampler()?,
            traces: variables.collector("TRACES")?,
            metrics: variables.collector("METRICS")?,
            logs: variables.collector("LOGS")?,
            exemplars: variables.exemplars(),
            warnings,
            propagator: variables.propagator()?,
        })
    }
}

#[cfg(test)]
mod tests;
