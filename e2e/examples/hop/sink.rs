//! A collector that forgets everything, unread: what it would do with spans isn't the cost of those who send them.

use std::convert::Infallible;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::LogsServiceServer;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::MetricsServiceServer;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::TraceServiceServer;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

/// An empty message: not compressed, no bytes.
const EMPTY: &[u8] = &[0, 0, 0, 0, 0];

/// Where telemetry goes.
pub(crate) struct Sink {
    endpoint: String,
}

impl Sink {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let server = tonic::transport::Server::builder()
            .add_service(Forget::<TraceServiceServer<()>>::default())
            .add_service(Forget::<LogsServiceServer<()>>::default())
            .add_service(Forget::<MetricsServiceServer<()>>::default());
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Ok(Self { endpoint })
    }

    /// Has a process send all metrics and logs here, and this part of its traces; with `None` nothing.
    pub(crate) fn sends(&self, command: &mut Command, sampling: Option<&str>) {
        if let Some(ratio) = sampling {
            command
                .env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.endpoint)
                .env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
                .env("OTEL_TRACES_SAMPLER_ARG", ratio);
        }
    }
}

/// Answers all calls of the service `S`.
struct Forget<S>(PhantomData<fn() -> S>);

impl<S> Default for Forget<S> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<S> Clone for Forget<S> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<S: NamedService> NamedService for Forget<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Forget<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async {
            let mut body = request.into_body();
            while poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx))
                .await
                .is_some()
            {}
            let ok = HeaderMap::from_iter([(Status::GRPC_STATUS.clone(), HeaderValue::from_static("0"))]);
            let answer = Full::new(EMPTY.into()).with_trailers(async { Some(Ok(ok)) });
            let mut response = Response::new(Body::new(answer));
            let grpc = HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(CONTENT_TYPE, grpc);
            Ok(response)
        })
    }
}
