//! Exporters to a collector, by OTLP over gRPC. The SDK reads addresses, headers, times and compression by itself, but for
//! [spans](super::span_batches); TLS is that of every client here.

use hyper_util::rt::TokioIo;
use opentelemetry_otlp::{LogExporter, MetricExporter, WithTonicConfig as _};
use tokio::runtime::Builder;
use tonic::transport::{Channel, Endpoint, Uri};

use super::TelemetryError;
use super::environment::{SecureEndpoint, SpanExport};
use super::span_batches::SpanBatches;
use super::trace_collector::TraceCollector;
use crate::client::{ClientConfig, ClientError};
use crate::config::ClientTlsConfig;
use crate::tls::Connector;

/// Sends spans in batches.
pub(super) fn spans(export: &SpanExport) -> Result<SpanBatches, TelemetryError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(TelemetryError::Thread)?;
    let channel = {
        let _entered = runtime.enter();
        match &export.secure {
            Some(endpoint) => channel(endpoint)?,
            None => Endpoint::from(export.uri.clone()).connect_lazy(),
        }
    };
    let collector = TraceCollector::new(channel, export);
    SpanBatches::start(export.batching, runtime, collector).map_err(TelemetryError::Thread)
}

/// Sends metrics.
pub(super) fn metrics(secure: Option<&SecureEndpoint>) -> Result<MetricExporter, TelemetryError> {
    let builder = MetricExporter::builder().with_tonic();
    let builder = match secure {
        Some(endpoint) => builder.with_channel(channel(endpoint)?),
        None => builder,
    };
    Ok(builder.build()?)
}

/// Sends log records.
pub(super) fn logs(secure: Option<&SecureEndpoint>) -> Result<LogExporter, TelemetryError> {
    let builder = LogExporter::builder().with_tonic();
    let builder = match secure {
        Some(endpoint) => builder.with_channel(channel(endpoint)?),
        None => builder,
    };
    Ok(builder.build()?)
}

/// The SDK takes tonic's channel alone, so this is the one place that makes one.
fn channel(endpoint: &SecureEndpoint) -> Result<Channel, TelemetryError> {
    let unusable = |source| TelemetryError::Collector(Box::new(source));
    let address = || {
        unusable(ClientError::Address {
            uri: endpoint.uri.clone(),
        })
    };
    let uri: Uri = endpoint.uri.parse().map_err(|_| address())?;
    if uri.scheme_str() != Some("https") {
        return Err(address());
    }
    let tls = ClientTlsConfig {
        ca: endpoint.authorities.clone(),
        cert: endpoint.certificate.clone(),
        key: endpoint.key.clone(),
        server_name: String::new(),
    };
    if !tls.has_authority() {
        return Err(unusable(ClientError::Authority { uri: uri.to_string() }));
    }
    let config = ClientConfig::default();
    let connector = Connector::new(&uri, &tls, config.unacknowledged_max)
        .map_err(|error| unusable(ClientError::Tls(Box::new(error))))?;
    let connect = tower::service_fn(move |_: Uri| {
        let connector = connector.clone();
        async move { connector.connect().await.map(TokioIo::new) }
    });
    let channel = Endpoint::from(uri)
        .connect_timeout(config.connect_timeout)
        .http2_keep_alive_interval(config.keepalive_interval)
        .keep_alive_timeout(config.keepalive_timeout)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(connect);
    Ok(channel)
}
