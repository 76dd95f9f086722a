//! An OpenTelemetry collector in the test's own process: it receives spans, metrics and log records over OTLP/gRPC, and keeps
//! them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::spans::{Link, Span, SpanKind, Trace};

mod metrics;

pub use metrics::{DataPoint, Series};

/// How long a test waits for telemetry. The suites' exporters send batches every few hundred milliseconds at most.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// One log record of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The `service.name` of the process.
    pub service: String,
    /// `INFO`, `WARN` and so on.
    pub severity: String,
    /// The message.
    pub body: String,
    /// The fields besides the message.
    pub attributes: BTreeMap<String, String>,
    /// The trace that it belongs to, in hexadecimal; empty for none.
    pub trace_id: String,
    /// The span that it belongs to, in hexadecimal; empty for none.
    pub span_id: String,
}

/// A collector for the processes of a suite. Clones are the same collector.
#[derive(Clone)]
pub struct Collector {
    address: SocketAddr,
    received: Arc<Received>,
}

struct Received {
    spans: Mutex<Vec<Span>>,
    records: Mutex<Vec<LogRecord>>,
    /// The last point of each series.
    metrics: Mutex<BTreeMap<Series, DataPoint>>,
    /// When each service last exported metrics.
    last_metrics: Mutex<BTreeMap<String, Instant>>,
    /// Exports so far; it changes after what they hold was added.
    exports: watch::Sender<usize>,
}

impl Collector {
    /// Starts a collector on a free port of 127.0.0.1. It lives as long as the runtime.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let received = Arc::new(Received {
            spans: Mutex::default(),
            records: Mutex::default(),
            metrics: Mutex::default(),
            last_metrics: Mutex::default(),
            exports: watch::Sender::new(0),
        });
        let spans = TraceServiceServer::new(Receiver(Arc::clone(&received)));
        let metrics = MetricsServiceServer::new(Receiver(Arc::clone(&received)));
        let logs = LogsServiceServer::new(Receiver(Arc::clone(&received)));
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(spans)
                .add_service(metrics)
                .add_service(logs)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Ok(Self { address, received })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans of a trace so far.
    #[must_use]
    pub fn trace(&self, trace_id: &str) -> Trace {
        Trace::new(
            self.received
                .spans
                .lock()
                .iter()
                .filter(|s| s.trace_id == trace_id)
                .cloned()
                .collect(),
        )
    }

    /// All spans so far.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.received.spans.lock().clone()
    }

    /// All log records so far.
    #[must_use]
    pub fn records(&self) -> Vec<LogRecord> {
        self.received.records.lock().clone()
    }

    /// The series of a metric, each with its last value.
    #[must_use]
    pub fn metric(&self, name: &str) -> Vec<(Series, DataPoint)> {
        let metrics = self.received.metrics.lock();
        let mine = metrics.iter().filter(|(series, _)| series.metric == name);
        mine.map(|(series, point)| (series.clone(), point.clone()))
            .collect()
    }

    /// The services that exported metrics after a moment, so that they live.
    #[must_use]
    pub fn heard_since(&self, moment: Instant) -> Vec<String> {
        let last_metrics = self.received.last_metrics.lock();
        let since = last_metrics.iter().filter(|(_, at)| **at > moment);
        since.map(|(service, _)| service.clone()).collect()
    }

    /// All series of all metrics so far.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        self.received.metrics.lock().keys().cloned().collect()
    }

    /// The spans of other traces so far that link to a trace.
    #[must_use]
    pub fn linking_to(&self, trace_id: &str) -> Vec<Span> {
        let spans = self.received.spans.lock();
        spans
            .iter()
            .filter(|s| s.links.iter().any(|l| l.trace_id == trace_id))
            .cloned()
            .collect()
    }

    /// Waits until `condition`, which is called after each export, returns something.
    ///
    /// # Errors
    /// When it doesn't within 20 seconds; the message shows the spans of the trace so far.
    pub async fn wait_for<T>(
        &self,
        trace_id: &str,
        condition: impl Fn(&Self) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut exports = self.received.exports.subscribe();
        let wait = async {
            loop {
                exports.mark_unchanged();
                if let Some(found) = condition(self) {
                    return found;
                }
                if exports.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        match tokio::time::timeout(WAIT_MAX, wait).await {
            Ok(found) => Ok(found),
            Err(_) => anyhow::bail!(
                "the spans didn't come within {WAIT_MAX:?}; so far:\n{}",
                self.trace(trace_id)
            ),
        }
    }
}

/// The three services of OTLP.
struct Receiver(Arc<Received>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut spans = Vec::new();
        for resource in request.into_inner().resource_spans {
            let attributes = resource.resource.map(|r| r.attributes).unwrap_or_default();
            let service = attributes_of(attributes)
                .remove("service.name")
                .unwrap_or_default();
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                spans.push(span_of(span, &service));
            }
        }
        self.0.spans.lock().extend(spans);
        self.0.exports.send_modify(|exports| *exports += 1);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let mut all = Vec::new();
        for resource in request.into_inner().resource_metrics {
            let mut attributes = attributes_of(resource.resource.map(|r| r.attributes).unwrap_or_default());
            let mut take = |name| attributes.remove(name).unwrap_or_default();
            let (service, instance) = (take("service.name"), take("service.instance.id"));
            self.0.last_metrics.lock().insert(service.clone(), Instant::now());
            for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
                let name = metric.name.clone();
                for (labels, point) in metrics::points(metric) {
                    let series = Series {
                        service: service.clone(),
                        instance: instance.clone(),
                        metric: name.clone(),
                        labels,
                    };
                    all.push((series, point));
                }
            }
        }
        self.0.metrics.lock().extend(all);
        self.0.exports.send_modify(|exports| *exports += 1);
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let mut records = Vec::new();
        for resource in request.into_inner().resource_logs {
            let attributes = resource.resource.map(|r| r.attributes).unwrap_or_default();
            let service = attributes_of(attributes)
                .remove("service.name")
                .unwrap_or_default();
            for record in resource
                .scope_logs
                .into_iter()
                .flat_map(|scope| scope.log_records)
            {
                records.push(LogRecord {
                    service: service.clone(),
                    severity: record.severity_text,
                    body: record
                        .body
                        .and_then(|body| body.value)
                        .map(text)
                        .unwrap_or_default(),
                    attributes: attributes_of(record.attributes),
                    trace_id: hex(&record.trace_id),
                    span_id: hex(&record.span_id),
                });
            }
        }
        self.0.records.lock().extend(records);
        self.0.exports.send_modify(|exports| *exports += 1);
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

fn span_of(span: opentelemetry_proto::tonic::trace::v1::Span, service: &str) -> Span {
    Span {
        service: service.to_owned(),
        kind: SpanKind::from_wire(span.kind),
        name: span.name,
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_id: (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)),
        start_ns: span.start_time_unix_nano,
        end_ns: span.end_time_unix_nano,
        attributes: attributes_of(span.attributes),
        trace_state: span.trace_state,
        error: span
            .status
            .is_some_and(|status| status.code() == StatusCode::Error),
        links: span
            .links
            .iter()
            .map(|link| Link {
                trace_id: hex(&link.trace_id),
                span_id: hex(&link.span_id),
            })
            .collect(),
    }
}

fn text(value: any_value::Value) -> String {
    match value {
        any_value::Value::StringValue(text) => text,
        any_value::Value::BoolValue(value) => value.to_string(),
        any_value::Value::IntValue(value) => value.to_string(),
        any_value::Value::DoubleValue(value) => value.to_string(),
        other @ (any_value::Value::ArrayValue(_)
        | any_value::Value::KvlistValue(_)
        | any_value::Value::BytesValue(_)
        | any_value::Value::StringValueStrindex(_)) => format!("{other:?}"),
    }
}

fn attributes_of(pairs: Vec<opentelemetry_proto::tonic::common::v1::KeyValue>) -> BTreeMap<String, String> {
    let pair = |kv: opentelemetry_proto::tonic::common::v1::KeyValue| {
        (
            kv.key,
            kv.value.and_then(|v| v.value).map(text).unwrap_or_default(),
        )
    };
    pairs.into_iter().map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
