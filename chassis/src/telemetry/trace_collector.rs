//! A collector that takes spans as bytes, by OTLP over gRPC (<https://opentelemetry.io/docs/specs/otlp/#otlpgrpc>).

use std::time::Duration;

use bytes::{BufMut as _, Bytes};
use http::HeaderMap;
use http::uri::PathAndQuery;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::{self, Channel};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::environment::SpanExport;
use super::span_batches::Collector;

/// What is called.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Times that a batch is sent at most.
const TRIES_MAX: u32 = 4;

/// Pause before the second try; it doubles from try to try.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// See the [module](self).
pub(super) struct TraceCollector {
    grpc: Grpc<Channel>,
    headers: HeaderMap,
    timeout: Duration,
}

impl TraceCollector {
    pub(super) fn new(channel: Channel, export: &SpanExport) -> Self {
        let grpc = Grpc::new(channel);
        let grpc = match export.compression {
            Some(encoding) => grpc.send_compressed(encoding).accept_compressed(encoding),
            None => grpc,
        };
        Self {
            grpc,
            headers: export.headers.clone(),
            timeout: export.timeout,
        }
    }

    async fn try_once(&mut self, bytes: Bytes) -> Result<ExportTraceServiceResponse, Status> {
        let lost = |error: tonic::transport::Error| Status::from_error(Box::new(error));
        self.grpc.ready().await.map_err(lost)?;
        let mut request = Request::new(bytes);
        *request.metadata_mut() = MetadataMap::from_headers(self.headers.clone());
        let path = PathAndQuery::from_static(EXPORT);
        let answer = self.grpc.unary(request, path, Raw).await?;
        Ok(answer.into_inner())
    }

    async fn try_often(&mut self, bytes: Bytes) -> Result<ExportTraceServiceResponse, Status> {
        let mut pause = PAUSE_MIN;
        for _ in 1..TRIES_MAX {
            let status = match self.try_once(bytes.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let Some(asked) = may_help(&status) else {
                return Err(status);
            };
            // All who lost the same collector mustn't come back at once.
            tokio::time::sleep(pause.max(asked).mul_f64(1.0 + fastrand::f64() / 2.0)).await;
            pause *= 2;
        }
        self.try_once(bytes).await
    }
}

impl Collector for TraceCollector {
    async fn take(&mut self, request: Bytes) -> Result<(), Status> {
        let timeout = self.timeout;
        let late = |_| Err(Status::deadline_exceeded("the collector took too long"));
        let answer = tokio::time::timeout(timeout, self.try_often(request))
            .await
            .unwrap_or_else(late)?;
        // By the protocol this is no reason to send it again.
        if let Some(partial) = answer.partial_success
            && partial.rejected_spans > 0
        {
            tracing::warn!(
                spans = partial.rejected_spans,
                "the collector refused some spans of a batch"
            );
        }
        Ok(())
    }
}

/// Whether to send a batch again, and after what pause at least, by
/// <https://opentelemetry.io/docs/specs/otlp/#failures>.
fn may_help(status: &Status) -> Option<Duration> {
    let asked = status.get_details_retry_info().and_then(|info| info.retry_delay);
    match status.code() {
        Code::ResourceExhausted => asked,
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Some(asked.unwrap_or_default()),
        // It isn't the collector that said so: the connection was lost.
        Code::Unknown => {
            let lost =
                std::error::Error::source(status).is_some_and(|source| source.is::<transport::Error>());
            lost.then_some(Duration::ZERO)
        }
        _ => None,
    }
}

/// Requests as the bytes that they are.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = ExportTraceServiceResponse;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, bytes: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ExportTraceServiceResponse;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let answer = ExportTraceServiceResponse::decode(from);
        answer
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
