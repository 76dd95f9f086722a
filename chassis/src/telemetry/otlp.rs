//! Exporters to a collector, by OTLP over gRPC. The SDK reads addresses, headers, times and compression by itself; TLS is
//! that of every client here.

use opentelemetry_otlp::{MetricExporter, SpanExporter, WithTonicConfig as _};
use tonic::transport::{Channel, Uri};

use super::TelemetryError;
use super::environment::SecureEndpoint;
use crate::client::{self, ClientConfig, ClientError};
use crate::config::ClientTlsConfig;

/// Sends spans.
pub(super) fn spans(secure: Option<&SecureEndpoint>) -> Result<SpanExporter, TelemetryError> {
    let builder = SpanExporter::builder().with_tonic();
    let builder = match secure {
        Some(endpoint) => builder.with_channel(channel(endpoint)?),
        None => builder,
    };
    Ok(builder.build()?)
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

fn channel(endpoint: &SecureEndpoint) -> Result<Channel, TelemetryError> {
    let unusable = |source| TelemetryError::Collector(Box::new(source));
    let uri: Uri = endpoint.uri.parse().map_err(|_| {
        unusable(ClientError::Address {
            uri: endpoint.uri.clone(),
        })
    })?;
    let config = ClientConfig {
        tls: ClientTlsConfig {
            ca: endpoint.authorities.clone(),
            cert: endpoint.certificate.clone(),
            key: endpoint.key.clone(),
            server_name: String::new(),
        },
        ..ClientConfig::default()
    };
    client::channel(&uri, &config).map_err(unusable)
}
