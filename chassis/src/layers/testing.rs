//! Inner services for the tests of the layers, and a record of their telemetry.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use opentelemetry::propagation::TextMapCompositePropagator;
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use parking_lot::Mutex;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::service_fn;

use super::{AnyService, Inner};
use crate::methods::Methods;
use crate::propagate;
use crate::telemetry::{Telemetry, TelemetryConfig, TelemetryGuard};

/// A method of the health service, which every test's [`methods`] knows.
pub(crate) const CHECK: &str = "/grpc.health.v1.Health/Check";

/// A method that isn't the health service's, for layers that exempt health.
pub(crate) const NON_HEALTH: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// Methods of the built-in services.
pub(crate) fn methods() -> Methods {
    let sets = [
        crate::health::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    ];
    Methods::read(&sets, |_| true).expect("descriptors decode")
}

/// An empty request to `path`.
pub(crate) fn request(path: &str) -> Request<Body> {
    Request::builder()
        .uri(path)
        .body(Body::empty())
        .expect("a valid request")
}

/// A request to `path` with a header.
pub(crate) fn request_with<N>(path: &str, name: N, value: &str) -> Request<Body>
where
    N: TryInto<HeaderName, Error: Into<http::Error>>,
{
    Request::builder()
        .uri(path)
        .header(name, value)
        .body(Body::empty())
        .expect("a valid request")
}

/// Frames of a stream: data, then trailers with `code`, each after `pause`.
pub(crate) fn stream(messages: usize, pause: Duration, code: Code) -> Response<Body> {
    let frames = futures_util::stream::unfold(0, move |sent| async move {
        if sent > messages {
            return None;
        }
        tokio::time::sleep(pause).await;
        let frame = if sent < messages {
            Frame::data(plain_frame(b"hello"))
        } else {
            let mut trailers = http::HeaderMap::new();
            Status::new(code, "")
                .add_header(&mut trailers)
                .expect("valid headers");
            Frame::trailers(trailers)
        };
        Some((Ok::<_, Status>(frame), sent + 1))
    });
    Response::new(Body::new(StreamBody::new(frames)))
}

/// A service whose answer is made by `answer` for each request.
pub(crate) fn answering<F, R>(answer: F) -> AnyService
where
    F: Fn(Request<Body>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    AnyService::tower(service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    }))
}

/// Calls `service` once.
pub(crate) async fn call(service: &impl Inner, request: Request<Body>) -> Response<Body> {
    want_spans();
    service.call(request).await.map(Body::new)
}

/// Reads a response to its end: the body, and the status in its headers or trailers.
pub(crate) async fn read_to_end(response: Response<Body>) -> (Bytes, Status) {
    if let Some(status) = Status::from_header_map(response.headers()) {
        return (Bytes::new(), status);
    }
    match response.into_body().collect().await {
        Ok(body) => {
            let status = body.trailers().and_then(Status::from_header_map);
            let status = status.unwrap_or_else(|| Status::unknown("no trailers"));
            (body.to_bytes(), status)
        }
        Err(status) => (Bytes::new(), status),
    }
}

/// An uncompressed message in a frame.
pub(crate) fn plain_frame(bytes: &[u8]) -> Bytes {
    framed(0, bytes)
}

/// A frame of `bytes` with this flag; written by hand, to test [`frame`](super::messages).
pub(crate) fn framed(flag: u8, bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + bytes.len());
    frame.extend_from_slice(&[flag]);
    frame.extend_from_slice(&u32::try_from(bytes.len()).expect("a short message").to_be_bytes());
    frame.extend_from_slice(bytes);
    frame.freeze()
}

/// Records the telemetry of this thread until dropped.
pub(crate) struct Recorded {
    spans: InMemorySpanExporter,
    lines: Arc<Mutex<Vec<String>>>,
    _telemetry: TelemetryGuard,
    _default: tracing::dispatcher::DefaultGuard,
}

/// Installs a global subscriber that enables every span and drops it. Otherwise tracing may cache a callsite as disabled that a test
/// without a subscriber reaches first, and tests that record would miss its spans.
pub(crate) fn want_spans() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing::Dispatch::new(tracing_subscriber::registry());
        tracing::dispatcher::set_global_default(subscriber).expect("the only one of this process");
    });
}

/// Records spans and log lines of this thread until dropped.
pub(crate) fn record() -> Recorded {
    record_as(&[], true)
}

/// [`record`] with these environment variables; without an exporter of spans unless `exported`.
pub(crate) fn record_as(variables: &[(&str, &str)], exported: bool) -> Recorded {
    want_spans();
    let spans = InMemorySpanExporter::default();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut builder = Telemetry::builder(TelemetryConfig::default(), "souk-test")
        .environment(variables)
        .log_lines(move |line| sink.lock().push(String::from_utf8_lossy(line).into_owned()));
    if exported {
        builder = builder.span_exporter(spans.clone());
    }
    let telemetry = builder.build().expect("good settings");
    let default = tracing::dispatcher::set_default(telemetry.dispatch());
    // Of the process: the same for every test.
    propagate::install(TextMapCompositePropagator::new(vec![
        Box::new(TraceContextPropagator::new()),
        Box::new(BaggagePropagator::new()),
    ]));
    Recorded {
        spans,
        lines,
        _telemetry: telemetry.into_guard(),
        _default: default,
    }
}

impl Recorded {
    /// The spans that have ended.
    pub(crate) fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().expect("the exporter lives")
    }

    /// The only span that has ended.
    pub(crate) fn span(&self) -> SpanData {
        let mut spans = self.spans();
        assert_eq!(spans.len(), 1, "{spans:#?}");
        spans.remove(0)
    }

    /// The log lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

/// An attribute of a span as text; empty when there is none.
pub(crate) fn attribute(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|pair| pair.key.as_str() == key);
    found.map(|pair| pair.value.to_string()).unwrap_or_default()
}
