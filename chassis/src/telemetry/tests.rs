use std::sync::Arc;

use opentelemetry::Key;
use opentelemetry::logs::{AnyValue, Severity};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, SdkLogRecord};
use opentelemetry_sdk::trace::SpanData;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

use super::*;
use crate::layers::testing::{record, want_spans};

/// Keeps the resource of each provider, and the spans by `service.name`.
#[derive(Clone, Debug, Default)]
struct Recorder {
    service: String,
    resources: Arc<Mutex<Vec<Resource>>>,
    spans: Arc<Mutex<Vec<(String, SpanData)>>>,
}

impl SpanExporter for Recorder {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let named = batch.into_iter().map(|span| (self.service.clone(), span));
        self.spans.lock().extend(named);
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.service = text(resource, "service.name");
        self.resources.lock().push(resource.clone());
    }
}

fn text(resource: &Resource, key: &'static str) -> String {
    let value = resource.get(&Key::from_static_str(key));
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn builder() -> TelemetryBuilder {
    want_spans();
    Telemetry::builder(TelemetryConfig::default(), "souk-test").log_lines(|_| {})
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn the_resource_says_who_speaks() {
    let recorder = Recorder::default();
    let _telemetry = builder()
        .roles([ServiceRole::new("souk-order")])
        .span_exporter(recorder.clone())
        .build()
        .expect("good settings");
    let resources = recorder.resources.lock().clone();
    let names: Vec<_> = resources
        .iter()
        .map(|resource| text(resource, "service.name"))
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&"souk-test".to_owned()) && names.contains(&"souk-order".to_owned()));
    let instances: Vec<_> = resources
        .iter()
        .map(|resource| text(resource, "service.instance.id"))
        .collect();
    assert_eq!(instances[0].len(), 36, "{instances:?}");
    assert_eq!(instances[0], instances[1], "one process, one instance");
    for resource in &resources {
        assert_eq!(text(resource, "service.namespace"), "souk");
        assert_eq!(text(resource, "service.version"), env!("CARGO_PKG_VERSION"));
    }
}

#[tokio::test]
async fn spans_belong_to_the_role_they_run_in_and_children_follow() {
    let recorder = Recorder::default();
    let order = ServiceRole::new("souk-order");
    let telemetry = builder()
        .roles([order, ServiceRole::new("souk-shop")])
        .span_exporter(recorder.clone())
        .build()
        .expect("good settings");
    let _default = tracing::dispatcher::set_default(telemetry.dispatch());
    tracing::info_span!("of-process").in_scope(|| {});
    order
        .scope(async {
            let parent = tracing::info_span!("of-order");
            let child = tracing::info_span!(parent: &parent, "child");
            let spawned = ServiceRole::inherit(async { tracing::info_span!("spawned").in_scope(|| {}) });
            drop((parent, child));
            // On a task of its own, the role goes along.
            let task = tokio::task::LocalSet::new();
            task.run_until(async move { tokio::task::spawn_local(spawned).await })
                .await
                .expect("no panic");
        })
        .await;
    {
        let _entered = ServiceRole::new("souk-shop").enter();
        tracing::info_span!("of-shop").in_scope(|| {});
    }
    ServiceRole::new("souk-unknown")
        .scope(async { tracing::info_span!("of-nobody").in_scope(|| {}) })
        .await;
    let spans = recorder.spans.lock().clone();
    let mut found: Vec<_> = spans
        .iter()
        .map(|(service, span)| (span.name.as_ref(), service.as_str()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("child", "souk-order"),
            ("of-nobody", "souk-test"),
            ("of-order", "souk-order"),
            ("of-process", "souk-test"),
            ("of-shop", "souk-shop"),
            ("spawned", "souk-order"),
        ]
    );
}

#[test]
fn nothing_is_exported_without_an_endpoint() {
    let telemetry = builder().environment([]).build().expect("good settings");
    assert!(
        telemetry.providers.tracers.is_some(),
        "spans have ids for the logs"
    );
    assert!(
        telemetry.providers.meters.is_some(),
        "an RPC tells what is measured"
    );
    assert!(telemetry.providers.loggers.is_none() && !telemetry.fetched);
    let off = builder()
        .environment(variables(&[("OTEL_SDK_DISABLED", "TRUE")]))
        .build()
        .expect("good settings");
    assert!(off.providers.tracers.is_none() && off.providers.meters.is_none() && off.propagator.is_none());
}

#[test]
fn a_filter_that_is_none_is_named() {
    let config = TelemetryConfig {
        log_filter: "souk=loudly".to_owned(),
        ..TelemetryConfig::default()
    };
    let error = Telemetry::builder(config, "souk-test")
        .build()
        .expect_err("no level");
    assert!(error.to_string().contains("souk=loudly"), "{error}");
}

#[test]
fn log_lines_carry_ids_and_cannot_be_forged() {
    let recorded = record();
    let span = tracing::info_span!("work");
    span.in_scope(|| tracing::warn!(order = "o1\nERROR forged", count = 3, "first\nsecond"));
    tracing::info!("outside");
    drop(span);
    let trace = recorded.span().span_context.trace_id().to_string();
    let lines = recorded.lines();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains(&format!("trace_id={trace}")), "{lines:?}");
    assert!(
        lines[0].contains("first second") && lines[0].contains("count=3"),
        "{lines:?}"
    );
    assert_eq!(lines[0].matches('\n').count(), 1, "{lines:?}");
    assert!(!lines[1].contains("trace_id"), "{lines:?}");
}

#[test]
fn json_lines_are_json() {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&lines);
    let config = TelemetryConfig {
        log_format: LogFormat::Json,
        log_filter: "info,quiet=off".to_owned(),
        ..TelemetryConfig::default()
    };
    want_spans();
    let telemetry = Telemetry::builder(config, "souk-test")
        .log_lines(move |line| sink.lock().push(String::from_utf8_lossy(line).into_owned()))
        .build()
        .expect("good settings");
    tracing::dispatcher::with_default(telemetry.dispatch(), || {
        tracing::info_span!("work").in_scope(|| tracing::error!(code = "ABORTED", "failed: \"x\""));
        tracing::error!(target: "quiet", "not to be seen");
        tracing::debug!("not at this level");
    });
    let lines = lines.lock().clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!(line["level"], "ERROR");
    assert_eq!(line["message"], "failed: \"x\"");
    assert_eq!(line["fields"]["code"], "ABORTED");
    assert_eq!(line["trace_id"].as_str().map(str::len), Some(32));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_collector_that_is_not_there_does_not_hold_up_the_end() {
    let variables = variables(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ]);
    let telemetry = builder().environment(variables).build().expect("good settings");
    tracing::dispatcher::with_default(telemetry.dispatch(), || {
        tracing::info_span!("lost").in_scope(|| {});
    });
    let started = Instant::now();
    telemetry.into_guard().shutdown(Duration::from_secs(2)).await;
    assert!(started.elapsed() < Duration::from_secs(4));
}

/// Keeps log records, each with the `service.name` of its provider.
#[derive(Clone, Debug, Default)]
struct LogRecorder {
    service: String,
    records: Arc<Mutex<Vec<(String, SdkLogRecord)>>>,
}

impl opentelemetry_sdk::logs::LogExporter for LogRecorder {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let named = batch
            .iter()
            .map(|(record, _)| (self.service.clone(), record.clone()));
        self.records.lock().extend(named);
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.service = text(resource, "service.name");
    }
}

#[test]
fn records_are_what_lines_are_in_the_role_and_the_span_they_belong_to() {
    let recorder = LogRecorder::default();
    let order = ServiceRole::new("souk-order");
    let telemetry = builder()
        .roles([order])
        .log_exporter(recorder.clone())
        .build()
        .expect("good settings");
    let _default = tracing::dispatcher::set_default(telemetry.dispatch());
    {
        let _role = order.enter();
        let span = tracing::info_span!("of-order").entered();
        let ids = opentelemetry::trace::TraceContextExt::span(&opentelemetry::Context::current())
            .span_context()
            .clone();
        assert!(ids.is_valid());
        tracing::warn!(
            rows = 3_u64,
            ratio = 0.5,
            full = true,
            huge = u64::MAX,
            none = "",
            reason = "disk",
            "slow"
        );
        drop(span);
        let records = recorder.records.lock();
        let [(service, record)] = records.as_slice() else {
            panic!("one record: {records:?}");
        };
        assert_eq!(service, "souk-order");
        assert_eq!(record.severity_number(), Some(Severity::Warn));
        assert_eq!(record.severity_text(), Some("WARN"));
        assert_eq!(record.body(), Some(&AnyValue::from("slow")));
        assert_eq!(record.target().map(AsRef::as_ref), Some(module_path!()));
        assert!(record.timestamp().is_some() && record.observed_timestamp().is_some());
        let context = record.trace_context().expect("a trace");
        assert_eq!(
            (context.trace_id, context.span_id),
            (ids.trace_id(), ids.span_id())
        );
        let mut attributes: Vec<(String, AnyValue)> = record
            .attributes_iter()
            .map(|(key, value)| (key.to_string(), value.clone()))
            .collect();
        attributes.sort_by(|a, b| a.0.cmp(&b.0));
        let wanted: [(&str, AnyValue); 5] = [
            ("full", true.into()),
            ("huge", u64::MAX.to_string().into()),
            ("ratio", 0.5.into()),
            ("reason", "disk".into()),
            ("rows", 3_i64.into()),
        ];
        assert_eq!(attributes, wanted.map(|(name, value)| (name.to_owned(), value)));
    }
    tracing::debug!("not wanted by the filter");
    tracing::error!(target: "h2::client", "the exporter's own connection");
    tracing::info!("of the process");
    let records = recorder.records.lock();
    let last: Vec<_> = records
        .iter()
        .skip(1)
        .map(|(service, record)| (service.as_str(), record.body()))
        .collect();
    assert_eq!(last, [("souk-test", Some(&AnyValue::from("of the process")))]);
    assert!(
        records
            .iter()
            .skip(1)
            .all(|(_, record)| record.trace_context().is_none())
    );
}
