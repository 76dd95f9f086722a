//! What the variables of OpenTelemetry say. Each is read by the SDK or here; what neither can honour is refused or warned
//! of at the start, never passed over in silence.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry_sdk::propagation::BaggagePropagator;
use opentelemetry_sdk::trace::Sampler;
use percent_encoding::percent_decode_str;
use tonic::codec::CompressionEncoding;

use super::TelemetryError;
use super::exemplar::ExemplarFilter;
use super::span_batches::Batching;
use crate::propagate::TraceContext;

/// Where a signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exporting {
    None,
    /// By OTLP; with the files to trust the collector by where its address is `https`.
    Otlp(Option<SecureEndpoint>),
}

/// A collector that is spoken to by TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecureEndpoint {
    pub(super) uri: String,
    pub(super) authorities: PathBuf,
    /// The certificate that this process shows, and its key; empty for none.
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// How spans are sent.
#[derive(Clone, Debug)]
pub(super) struct SpanExport {
    /// The collector's address.
    pub(super) uri: Uri,
    /// The files to trust it by where that is `https`.
    pub(super) secure: Option<SecureEndpoint>,
    /// What each request is sent with.
    pub(super) headers: HeaderMap,
    /// For a batch, tries again included.
    pub(super) timeout: Duration,
    pub(super) compression: Option<CompressionEncoding>,
    pub(super) batching: Batching,
}

/// The variables, understood.
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
    /// How spans are sent, if they are.
    pub(super) traces: Option<SpanExport>,
    pub(super) metrics: Exporting,
    /// Log lines are written in any case.
    pub(super) logs: Exporting,
    pub(super) exemplars: ExemplarFilter,
    /// What is set but has no effect, each with what to do instead.
    pub(super) warnings: Vec<String>,
    trace_context: bool,
    baggage: bool,
}

/// The variables of one signal.
struct Signal {
    exporter: &'static str,
    /// The middle of its own variables, as in `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`.
    infix: &'static str,
}

const TRACES: Signal = Signal {
    exporter: "OTEL_TRACES_EXPORTER",
    infix: "TRACES_",
};

const METRICS: Signal = Signal {
    exporter: "OTEL_METRICS_EXPORTER",
    infix: "METRICS_",
};

const LOGS: Signal = Signal {
    exporter: LOGS_EXPORTER,
    infix: "LOGS_",
};

const LOGS_EXPORTER: &str = "OTEL_LOGS_EXPORTER";

/// What all `OTEL_EXPORTER_OTLP_` variables begin with.
const OTLP: &str = "OTEL_EXPORTER_OTLP_";

/// Where a collector is by habit.
const COLLECTOR: &str = "http://localhost:4317";

/// Time to send something, if none is set.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether sums are since the start or since the export before.
const TEMPORALITY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";

/// Read by the SDK or here, beside those of exporters: any value is taken, or is checked below.
const HONOURED: [&str; 21] = [
    TEMPORALITY,
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SDK_DISABLED",
    "OTEL_PROPAGATORS",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    LOGS_EXPORTER,
    "OTEL_METRICS_EXEMPLAR_FILTER",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_BLRP_SCHEDULE_DELAY",
    "OTEL_BLRP_MAX_QUEUE_SIZE",
    "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
];

/// Of exporters, by what stands behind `OTEL_EXPORTER_OTLP_` and the signal.
const OF_EXPORTERS: [&str; 8] = [
    "ENDPOINT",
    "PROTOCOL",
    "HEADERS",
    "TIMEOUT",
    "COMPRESSION",
    "CERTIFICATE",
    "CLIENT_CERTIFICATE",
    "CLIENT_KEY",
];

/// Has no effect here, with what has.
const UNHEEDED: [(&str, &str); 7] = [
    (
        "OTEL_SEMCONV_STABILITY_OPT_IN",
        "names follow the current conventions alone",
    ),
    ("OTEL_BSP_EXPORT_TIMEOUT", "set OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"),
    ("OTEL_BLRP_EXPORT_TIMEOUT", "set OTEL_EXPORTER_OTLP_LOGS_TIMEOUT"),
    (
        "OTEL_METRIC_EXPORT_TIMEOUT",
        "set OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
    ),
    ("OTEL_LOG_LEVEL", "set telemetry.log_filter"),
    (
        "OTEL_EXPORTER_OTLP_INSECURE",
        "the scheme of the endpoint says it",
    ),
    (
        "OTEL_EXPORTER_PROMETHEUS_PORT",
        "set telemetry.metrics_listen (--metrics-listen)",
    ),
];

/// Numbers that the SDK would pass over when it can't read them, in milliseconds or pieces.
const NUMBERS: [&str; 10] = [
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_BLRP_SCHEDULE_DELAY",
    "OTEL_BLRP_MAX_QUEUE_SIZE",
    "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
];

/// The variables as they are set.
struct Variables<'a>(&'a [(String, String)]);

impl<'a> Variables<'a> {
    /// The value of one; by the specification an empty one counts as unset.
    fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// A variable of an exporter with its name: that of the signal goes over that of all.
    fn of(&self, signal: &Signal, what: &str) -> Option<(String, &'a str)> {
        let own = format!("{OTLP}{}{what}", signal.infix);
        let all = format!("{OTLP}{what}");
        let get = |name: String| self.get(&name).map(|value| (name, value));
        get(own).or_else(|| get(all))
    }

    fn file(&self, signal: &Signal, what: &str) -> PathBuf {
        self.of(signal, what)
            .map_or_else(PathBuf::new, |(_, value)| value.into())
    }

    fn exporting(&self, signal: &Signal) -> Result<Exporting, TelemetryError> {
        let endpoint = self.of(signal, "ENDPOINT");
        match (self.get(signal.exporter), &endpoint) {
            (Some("none"), _) | (None, None) => return Ok(Exporting::None),
            (Some("otlp") | None, _) => {}
            (Some(value), _) => {
                let expected = "use otlp or none; metrics are fetched from --metrics-listen";
                return Err(refused(signal.exporter, value, expected));
            }
        }
        let allowed: [(&str, &[&str], &str); 2] = [
            (
                "PROTOCOL",
                &["grpc"],
                "use grpc, and an endpoint that speaks it (port 4317 by habit)",
            ),
            ("COMPRESSION", &["gzip", "zstd", "none"], "use gzip, zstd or none"),
        ];
        for (what, values, expected) in allowed {
            if let Some((variable, value)) = self.of(signal, what)
                && !values.contains(&value)
            {
                return Err(refused(&variable, value, expected));
            }
        }
        if let Some((variable, value)) = self.of(signal, "TIMEOUT") {
            number::<u64>(&variable, value, "use milliseconds, as in 10000")?;
        }
        let Some((variable, uri)) = endpoint else {
            return Ok(Exporting::Otlp(None));
        };
        match uri.split_once("://") {
            Some(("http", _)) if uri.parse::<Uri>().is_ok() => Ok(Exporting::Otlp(None)),
            Some(("https", _)) => {
                let authorities = self.file(signal, "CERTIFICATE");
                if authorities.as_os_str().is_empty() {
                    let expected = "name the authorities that its certificate is checked by \
                                    (OTEL_EXPORTER_OTLP_CERTIFICATE)";
                    return Err(refused(&variable, uri, expected));
                }
                Ok(Exporting::Otlp(Some(SecureEndpoint {
                    uri: uri.to_owned(),
                    authorities,
                    certificate: self.file(signal, "CLIENT_CERTIFICATE"),
                    key: self.file(signal, "CLIENT_KEY"),
                })))
            }
            _ => Err(refused(
                &variable,
                uri,
                "use http://host:port or https://host:port",
            )),
        }
    }

    fn exporting_traces(&self) -> Result<Option<SpanExport>, TelemetryError> {
        match self.exporting(&TRACES)? {
            Exporting::None => Ok(None),
            Exporting::Otlp(secure) => self.span_export(secure).map(Some),
        }
    }

    /// How spans are sent, by what [`Self::exporting`] found good.
    fn span_export(&self, secure: Option<SecureEndpoint>) -> Result<SpanExport, TelemetryError> {
        let text = |what| self.of(&TRACES, what).map(|(_, value)| value);
        let uri = text("ENDPOINT").and_then(|uri| uri.parse().ok());
        let timeout = text("TIMEOUT").and_then(|millis| millis.parse().ok());
        let compression = match text("COMPRESSION") {
            Some("gzip") => Some(CompressionEncoding::Gzip),
            Some("zstd") => Some(CompressionEncoding::Zstd),
            _ => None,
        };
        Ok(SpanExport {
            uri: uri.unwrap_or_else(|| Uri::from_static(COLLECTOR)),
            secure,
            headers: self.headers(&TRACES)?,
            timeout: timeout.map_or(EXPORT_TIMEOUT, Duration::from_millis),
            compression,
            batching: self.batching()?,
        })
    }

    /// `name=value` with values as in URLs, by commas.
    fn headers(&self, signal: &Signal) -> Result<HeaderMap, TelemetryError> {
        let Some((variable, list)) = self.of(signal, "HEADERS") else {
            return Ok(HeaderMap::new());
        };
        let pairs = list.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let headers = pairs.map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some((
                HeaderName::try_from(name.trim()).ok()?,
                HeaderValue::try_from(value.as_ref()).ok()?,
            ))
        });
        headers.collect::<Option<_>>().ok_or_else(|| {
            // The value may be a secret.
            refused(
                &variable,
                "…",
                "use name=value, with commas between them and values as in URLs",
            )
        })
    }

    /// Numbers of the specification where none are set, but for the queue: under full load a gateway ends the 2,048 spans of
    /// the specification in 35 ms, which is less than the thread that sends them may wait for a core. At least one of each.
    fn batching(&self) -> Result<Batching, TelemetryError> {
        let get = |name: &str, unset: u32| {
            self.get(name)
                .map_or(Ok(unset), |value| {
                    number::<u32>(name, value, "use a whole number")
                })
                .map(|number| number.max(1))
        };
        let [delay, queue, batch] = [
            ("OTEL_BSP_SCHEDULE_DELAY", 5_000),
            ("OTEL_BSP_MAX_QUEUE_SIZE", 16_384),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
        ]
        .map(|(name, unset)| get(name, unset));
        let queue_max = queue? as usize;
        Ok(Batching {
            delay: Duration::from_millis(delay?.into()),
            queue_max,
            batch_max: (batch? as usize).min(queue_max),
        })
    }

    /// What the SDK would pass over.
    fn check_numbers(&self) -> Result<(), TelemetryError> {
        for name in NUMBERS {
            if let Some(value) = self.get(name) {
                number::<u32>(name, value, "use a whole number")?;
            }
        }
        Ok(())
    }

    fn check_temporality(&self) -> Result<(), TelemetryError> {
        match self.get(TEMPORALITY) {
            None | Some("cumulative" | "delta" | "lowmemory") => Ok(()),
            Some(value) => Err(refused(TEMPORALITY, value, "use cumulative, delta or lowmemory")),
        }
    }

    fn sampler(&self) -> Result<Sampler, TelemetryError> {
        let name = "OTEL_TRACES_SAMPLER";
        let value = self.get(name).unwrap_or("parentbased_always_on");
        let of_parent = value.strip_prefix("parentbased_");
        let of_roots = match of_parent.unwrap_or(value) {
            "always_on" => Sampler::AlwaysOn,
            "always_off" => Sampler::AlwaysOff,
            "traceidratio" => Sampler::TraceIdRatioBased(self.ratio()?),
            _ => {
                return Err(refused(
                    name,
                    value,
                    "use always_on, always_off or traceidratio, with parentbased_ before it or not",
                ));
            }
        };
        Ok(match of_parent {
            Some(_) => Sampler::ParentBased(Box::new(of_roots)),
            None => of_roots,
        })
    }

    fn ratio(&self) -> Result<f64, TelemetryError> {
        let argument = "OTEL_TRACES_SAMPLER_ARG";
        let expected = "use a number from 0 to 1";
        let value = self.get(argument).unwrap_or("1");
        let ratio: f64 = number(argument, value, expected)?;
        match (0.0..=1.0).contains(&ratio) {
            true => Ok(ratio),
            false => Err(refused(argument, value, expected)),
        }
    }

    fn propagators(&self) -> Result<(bool, bool), TelemetryError> {
        let Some(list) = self.get("OTEL_PROPAGATORS") else {
            return Ok((true, true));
        };
        let (mut trace_context, mut baggage) = (false, false);
        for name in list.split(',').map(str::trim) {
            match name {
                "tracecontext" => trace_context = true,
                "baggage" => baggage = true,
                "none" | "" => {}
                name => {
                    return Err(refused(
                        "OTEL_PROPAGATORS",
                        name,
                        "use tracecontext, baggage or none",
                    ));
                }
            }
        }
        Ok((trace_context, baggage))
    }

    fn exemplars(&self) -> Result<ExemplarFilter, TelemetryError> {
        let name = "OTEL_METRICS_EXEMPLAR_FILTER";
        match self.get(name) {
            None | Some("trace_based") => Ok(ExemplarFilter::TraceBased),
            Some("always_off") => Ok(ExemplarFilter::AlwaysOff),
            Some("always_on") => Ok(ExemplarFilter::AlwaysOn),
            Some(value) => Err(refused(name, value, "use trace_based, always_on or always_off")),
        }
    }

    /// Lines go to the console in any case, so that `console` is what `none` is.
    fn exporting_logs(&self) -> Result<Exporting, TelemetryError> {
        match self.get(LOGS_EXPORTER) {
            Some("console") => Ok(Exporting::None),
            _ => self.exporting(&LOGS),
        }
    }

    /// What is set without an effect. Values aren't told: they may be secrets.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, _) in self.0 {
            if !name.starts_with("OTEL_") || self.get(name).is_none() {
                continue;
            }
            if let Some((_, instead)) = UNHEEDED.iter().find(|(unheeded, _)| unheeded == name) {
                warnings.push(format!("{name} has no effect: {instead}"));
            } else if !is_honoured(name) {
                warnings.push(format!("{name} has no effect: it isn't known here"));
            }
        }
        if let Some(value) = self.get("OTEL_SDK_DISABLED")
            && !["true", "false"].contains(&value.to_ascii_lowercase().as_str())
        {
            warnings.push("OTEL_SDK_DISABLED is neither true nor false: it counts as false".to_owned());
        }
        warnings.dedup();
        warnings
    }

    fn in_resource(&self, key: &str) -> bool {
        let list = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut keys = list.split(',').filter_map(|pair| pair.split_once('='));
        keys.any(|(name, _)| name.trim() == key)
    }
}

fn is_honoured(name: &str) -> bool {
    if HONOURED.contains(&name) {
        return true;
    }
    let Some(what) = name.strip_prefix(OTLP) else {
        return false;
    };
    let own = [TRACES, METRICS, LOGS]
        .iter()
        .find_map(|signal| what.strip_prefix(signal.infix));
    OF_EXPORTERS.contains(&own.unwrap_or(what))
}

fn refused(variable: &str, value: &str, expected: &'static str) -> TelemetryError {
    TelemetryError::Variable {
        variable: variable.to_owned(),
        value: value.to_owned(),
        expected,
    }
}

fn number<T: FromStr>(variable: &str, value: &str, expected: &'static str) -> Result<T, TelemetryError> {
    value.parse().map_err(|_| refused(variable, value, expected))
}

impl OtelEnvironment {
    /// Reads them.
    pub(super) fn read(variables: &[(String, String)]) -> Result<Self, TelemetryError> {
        let variables = Variables(variables);
        let get = |name| variables.get(name);
        let disabled = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        variables.check_numbers()?;
        variables.check_temporality()?;
        let (trace_context, baggage) = variables.propagators()?;
        Ok(Self {
            disabled,
            service: get("OTEL_SERVICE_NAME").map(str::to_owned),
            names_service: variables.in_resource("service.name"),
            names_instance: variables.in_resource("service.instance.id"),
            sampler: variables.sampler()?,
            traces: variables.exporting_traces()?,
            metrics: variables.exporting(&METRICS)?,
            logs: variables.exporting_logs()?,
            exemplars: variables.exemplars()?,
            warnings: variables.warnings(),
            trace_context,
            baggage,
        })
    }

    /// The chosen propagators.
    pub(super) fn propagator(&self) -> TextMapCompositePropagator {
        let trace_context: Box<dyn TextMapPropagator + Send + Sync> = Box::new(TraceContext::default());
        let baggage: Box<dyn TextMapPropagator + Send + Sync> = Box::new(BaggagePropagator::new());
        let chosen = [(self.trace_context, trace_context), (self.baggage, baggage)];
        TextMapCompositePropagator::new(chosen.into_iter().filter(|(on, _)| *on).map(|(_, p)| p).collect())
    }
}

#[cfg(test)]
mod tests;
