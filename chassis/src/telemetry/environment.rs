//! What the variables of OpenTelemetry say beyond what its SDK reads by itself.

use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};

use super::TelemetryError;

/// Where a signal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exporting {
    None,
    Otlp,
}

/// The variables, understood.
#[derive(Debug)]
pub(super) struct OtelEnvironment {
    pub(super) disabled: bool,
    /// The resource has a service name from a variable.
    pub(super) names_service: bool,
    /// And an instance id.
    pub(super) names_instance: bool,
    pub(super) traces: Exporting,
    pub(super) metrics: Exporting,
    trace_context: bool,
    baggage: bool,
}

impl OtelEnvironment {
    /// Reads them; by the specification an empty one counts as unset.
    pub(super) fn read(variables: &[(String, String)]) -> Result<Self, TelemetryError> {
        let get = |name: &str| {
            let found = variables.iter().rev().find(|(key, _)| key == name);
            found
                .map(|(_, value)| value.trim())
                .filter(|value| !value.is_empty())
        };
        let exporting = |exporter: &'static str, endpoint: &str, protocol: &'static str| {
            let named = get("OTEL_EXPORTER_OTLP_ENDPOINT")
                .or_else(|| get(endpoint))
                .is_some();
            let exporting = match get(exporter) {
                Some("none") => Exporting::None,
                Some("otlp") => Exporting::Otlp,
                None if named => Exporting::Otlp,
                None => Exporting::None,
                Some(value) => {
                    return Err(TelemetryError::Variable {
                        variable: exporter,
                        value: value.to_owned(),
                        expected: "use otlp or none",
                    });
                }
            };
            let (variable, protocol) = match get(protocol) {
                Some(value) => (protocol, Some(value)),
                None => ("OTEL_EXPORTER_OTLP_PROTOCOL", get("OTEL_EXPORTER_OTLP_PROTOCOL")),
            };
            match protocol.filter(|value| *value != "grpc") {
                Some(value) if exporting == Exporting::Otlp => Err(TelemetryError::Variable {
                    variable,
                    value: value.to_owned(),
                    expected: "use grpc, and an endpoint that speaks it (port 4317 by habit)",
                }),
                _ => Ok(exporting),
            }
        };
        let (mut trace_context, mut baggage) = (true, true);
        if let Some(list) = get("OTEL_PROPAGATORS") {
            (trace_context, baggage) = (false, false);
            for name in list.split(',').map(str::trim) {
                match name {
                    "tracecontext" => trace_context = true,
                    "baggage" => baggage = true,
                    "none" | "" => {}
                    name => {
                        return Err(TelemetryError::Variable {
                            variable: "OTEL_PROPAGATORS",
                            value: name.to_owned(),
                            expected: "use tracecontext, baggage or none",
                        });
                    }
                }
            }
        }
        let in_resource = |key: &str| {
            let list = get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
            let mut keys = list.split(',').filter_map(|pair| pair.split_once('='));
            keys.any(|(name, _)| name.trim() == key)
        };
        Ok(Self {
            disabled: get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")),
            names_service: get("OTEL_SERVICE_NAME").is_some() || in_resource("service.name"),
            names_instance: in_resource("service.instance.id"),
            traces: exporting(
                "OTEL_TRACES_EXPORTER",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            )?,
            metrics: exporting(
                "OTEL_METRICS_EXPORTER",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
            )?,
            trace_context,
            baggage,
        })
    }

    /// The chosen propagators.
    pub(super) fn propagator(&self) -> TextMapCompositePropagator {
        let trace_context: Box<dyn TextMapPropagator + Send + Sync> = Box::new(TraceContextPropagator::new());
        let baggage: Box<dyn TextMapPropagator + Send + Sync> = Box::new(BaggagePropagator::new());
        let chosen = [(self.trace_context, trace_context), (self.baggage, baggage)];
        TextMapCompositePropagator::new(chosen.into_iter().filter(|(on, _)| *on).map(|(_, p)| p).collect())
    }
}
