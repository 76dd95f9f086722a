//! A collector that keeps what it is sent as it came: bodies, headers, encodings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

/// How long a test waits for an export.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What was sent at once.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    Spans(ExportTraceServiceRequest),
    Metrics(ExportMetricsServiceRequest),
}

/// Keeps everything. Clones are the same.
#[derive(Clone)]
pub(super) struct Collector {
    address: SocketAddr,
    exports: watch::Sender<usize>,
    kept: Arc<Mutex<Vec<(MetadataMap, Sent)>>>,
}

impl Collector {
    /// On a free port of 127.0.0.1, as long as the runtime.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let collector = Self {
            address: listener.local_addr()?,
            exports: watch::Sender::new(0),
            kept: Arc::default(),
        };
        let encodings = [CompressionEncoding::Gzip, CompressionEncoding::Zstd];
        let (mut spans, mut metrics) = (
            TraceServiceServer::new(collector.clone()),
            MetricsServiceServer::new(collector.clone()),
        );
        for encoding in encodings {
            spans = spans.accept_compressed(encoding);
            metrics = metrics.accept_compressed(encoding);
        }
        let server = tonic::transport::Server::builder()
            .add_service(spans)
            .add_service(metrics);
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Ok(collector)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything so far.
    pub(super) fn kept(&self) -> Vec<(MetadataMap, Sent)> {
        self.kept.lock().clone()
    }

    /// Waits until something that was sent is like that.
    pub(super) async fn wait_for(
        &self,
        what: &str,
        is: impl Fn(&MetadataMap, &Sent) -> bool,
    ) -> anyhow::Result<()> {
        let mut exports = self.exports.subscribe();
        let came = async {
            loop {
                exports.mark_unchanged();
                if self.kept.lock().iter().any(|(headers, sent)| is(headers, sent)) {
                    return;
                }
                if exports.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let came = tokio::time::timeout(WAIT_MAX, came).await;
        came.map_err(|_| anyhow::anyhow!("{what} isn't sent within {WAIT_MAX:?}"))
    }

    fn keep(&self, headers: MetadataMap, sent: Sent) {
        self.kept.lock().push((headers, sent));
        self.exports.send_modify(|count| *count += 1);
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let (headers, _, spans) = request.into_parts();
        self.keep(headers, Sent::Spans(spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let (headers, _, metrics) = request.into_parts();
        self.keep(headers, Sent::Metrics(metrics));
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}
