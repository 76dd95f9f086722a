//! Exporters to a collector, by OTLP over gRPC, as the SDK has them: it reads headers, compression and numbers from the variables of the
//! process. TLS is that of every client here.

use hyper_util::rt::TokioIo;
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor};
use tonic::transport::{Channel, Endpoint, Uri};

use super::TelemetryError;
use super::environment::Collector;
use crate::config::{ClientConfig, ClientTlsConfig};
use crate::tls::{ALPN_H2, Connector};

/// Spans that wait to be sent, where `OTEL_BSP_MAX_QUEUE_SIZE` isn't set: under full load a gateway ends the 2,048 of the specification in
/// 35 ms, which is less than the thread that sends them may wait for a core.
const SPANS_WAITING_MAX: usize = 16_384;

pub(super) fn spans(collector: &Collector) -> Result<BatchSpanProcessor, TelemetryError> {
    let exporter = to(collector, SpanExporter::builder().with_tonic())?.build()?;
    let batches = BatchConfigBuilder::default();
    let batches = match collector.sizes_queue {
        true => batches,
        false => batches.with_max_queue_size(SPANS_WAITING_MAX),
    };
    let processor = BatchSpanProcessor::builder(exporter);
    Ok(processor.with_batch_config(batches.build()).build())
}

pub(super) fn metrics(collector: &Collector) -> Result<MetricExporter, TelemetryError> {
    Ok(to(collector, MetricExporter::builder().with_tonic())?.build()?)
}

pub(super) fn logs(collector: &Collector) -> Result<LogExporter, TelemetryError> {
    Ok(to(collector, LogExporter::builder().with_tonic())?.build()?)
}

fn to<B: WithExportConfig + WithTonicConfig>(collector: &Collector, builder: B) -> Result<B, TelemetryError> {
    let builder = builder.with_timeout(collector.timeout);
    Ok(match &collector.tls {
        Some(tls) => builder.with_channel(channel(collector, tls)?),
        None => builder.with_endpoint(collector.uri.to_string()),
    })
}

/// The SDK takes tonic's channel alone, so this is the one place that makes one.
fn channel(collector: &Collector, tls: &ClientTlsConfig) -> Result<Channel, TelemetryError> {
    let config = ClientConfig::default();
    let connector = Connector::new(ALPN_H2, &collector.uri, tls, config.unacknowledged_max);
    let connector = connector.map_err(TelemetryError::Collector)?;
    let connect = tower::service_fn(move |_: Uri| {
        let connector = connector.clone();
        async move { connector.connect().await.map(TokioIo::new) }
    });
    let channel = Endpoint::from(collector.uri.clone())
        .timeout(collector.timeout)
        .connect_timeout(config.connect_timeout)
        .http2_keep_alive_interval(config.keepalive_interval)
        .keep_alive_timeout(config.keepalive_timeout)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(connect);
    Ok(channel)
}
