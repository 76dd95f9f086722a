use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response};
use tonic_types::ErrorDetails;

use super::*;
use crate::telemetry::environment::OtelEnvironment;

/// Answers as it is told, then well; keeps what it was sent.
#[derive(Clone, Default)]
struct Told {
    answers: Arc<Mutex<VecDeque<Status>>>,
    calls: Arc<Mutex<Vec<(MetadataMap, ExportTraceServiceRequest)>>>,
}

#[tonic::async_trait]
impl TraceService for Told {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        self.calls.lock().push((metadata, message));
        match self.answers.lock().pop_front() {
            Some(status) => Err(status),
            None => Ok(Response::new(ExportTraceServiceResponse::default())),
        }
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// A collector that answers so, at first, and the way to it by these variables.
async fn told(
    answers: impl IntoIterator<Item = Status>,
    variables: &[(&str, &str)],
) -> (Told, TraceCollector) {
    let told = Told {
        answers: Arc::new(Mutex::new(answers.into_iter().collect())),
        ..Told::default()
    };
    let (listener, address) = listen().await;
    serve(&told, listener);
    (told, collector(address, variables))
}

fn serve(told: &Told, listener: TcpListener) {
    let service = TraceServiceServer::new(told.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd);
    let server = Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
}

fn collector(address: SocketAddr, variables: &[(&str, &str)]) -> TraceCollector {
    let endpoint = [(
        "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(),
        format!("http://{address}"),
    )];
    let others = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let variables: Vec<_> = endpoint.into_iter().chain(others).collect();
    let environment = OtelEnvironment::read(&variables).expect("good variables");
    let export = environment.traces.expect("they are exported");
    TraceCollector::new(Endpoint::from(export.uri.clone()).connect_lazy(), &export)
}

fn request() -> ExportTraceServiceRequest {
    let of_process = ResourceSpans {
        schema_url: "https://schema".repeat(100),
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![of_process],
    }
}

fn bytes() -> Bytes {
    request().encode_to_vec().into()
}

#[tokio::test]
async fn requests_go_as_the_variables_say() {
    for (compression, encoding) in [("none", None), ("gzip", Some("gzip")), ("zstd", Some("zstd"))] {
        let variables = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "tenant=all"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                "tenant=a, authorization=Bearer%20x%2Cy",
            ),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", compression),
        ];
        let (told, mut collector) = told([], &variables).await;
        collector.take(bytes()).await.expect("it is taken");
        let calls = told.calls.lock();
        let [(metadata, message)] = calls.as_slice() else {
            panic!("{calls:?}");
        };
        assert_eq!(*message, request());
        let header = |name| metadata.get(name).map(|value| value.to_str().expect("text"));
        assert_eq!(header("tenant"), Some("a"));
        assert_eq!(header("authorization"), Some("Bearer x,y"));
        assert_eq!(header("grpc-encoding"), encoding);
    }
}

#[tokio::test]
async fn what_may_help_is_tried_again_and_nothing_else() {
    let asked = ErrorDetails::with_retry_info(Some(Duration::from_millis(1)));
    let later = Status::with_error_details(Code::ResourceExhausted, "later", asked);
    let down = || Status::unavailable("down");
    let cases = [
        (vec![down(), later], 3, None),
        (
            vec![down(); TRIES_MAX as usize],
            TRIES_MAX as usize,
            Some(Code::Unavailable),
        ),
        (
            vec![Status::resource_exhausted("no")],
            1,
            Some(Code::ResourceExhausted),
        ),
        (
            vec![Status::invalid_argument("no")],
            1,
            Some(Code::InvalidArgument),
        ),
        (
            vec![Status::unauthenticated("no")],
            1,
            Some(Code::Unauthenticated),
        ),
    ];
    for (answers, calls, code) in cases {
        let (told, mut collector) = told(answers, &[]).await;
        let result = collector.take(bytes()).await;
        assert_eq!(result.err().map(|status| status.code()), code);
        assert_eq!(told.calls.lock().len(), calls);
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_is_made_again() {
    let (listener, address) = listen().await;
    let told = Told::default();
    tokio::spawn({
        let told = told.clone();
        async move {
            let (mut first, _) = listener.accept().await.expect("a connection");
            // It speaks, and is gone with the request.
            let mut preface = [0; 24];
            first.read_exact(&mut preface).await.expect("HTTP/2 begins");
            drop(first);
            serve(&told, listener);
        }
    });
    let mut collector = collector(address, &[]);
    collector.take(bytes()).await.expect("it is taken");
    assert_eq!(told.calls.lock().len(), 1);
}

#[tokio::test]
async fn a_collector_that_hangs_has_the_time_that_it_is_given() {
    // It connects, and nobody speaks.
    let (_listener, address) = listen().await;
    let mut collector = collector(address, &[("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "50")]);
    let status = collector.take(bytes()).await.expect_err("nobody answers");
    assert_eq!(status.code(), Code::DeadlineExceeded);
}
