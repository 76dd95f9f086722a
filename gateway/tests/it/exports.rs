//! The `souk-gateway` process sends its spans to the collector that its environment names, at its end at the latest.

use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::process::{listening, spawn, terminate};
use crate::setting::{any_port, connect};

/// Keeps what was exported.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test]
async fn the_last_spans_arrive_before_the_process_ends() {
    let collector = Collector::default();
    let listener = TcpListener::bind(any_port()).await.expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(collector.clone()));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_METRICS_EXPORTER", "none"),
        // Longer than the test: nothing but the end sends them.
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let arguments = ["--listen", "127.0.0.1:0", "--backend", "shop=http://127.0.0.1:9"];
    let mut process = spawn(&arguments, &environment);
    let (address, _stdout) = listening(&mut process);
    let mut health = HealthClient::new(connect(address));
    let answer = health.check(HealthCheckRequest::default()).await;
    answer.expect("it answers");
    assert!(
        collector.0.lock().is_empty(),
        "too early for this test to say anything"
    );
    assert_eq!(terminate(process).await, Some(0));

    let exported = collector.0.lock().clone();
    let resources: Vec<_> = exported
        .into_iter()
        .flat_map(|request| request.resource_spans)
        .collect();
    let [of_process] = resources.as_slice() else {
        panic!("{resources:#?}");
    };
    let attributes = of_process
        .resource
        .iter()
        .flat_map(|resource| &resource.attributes);
    let attributes: BTreeMap<_, _> = attributes
        .filter_map(|pair| match pair.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some((pair.key.as_str(), text.as_str())),
            other => panic!("{}: {other:?}", pair.key),
        })
        .collect();
    assert_eq!(attributes["service.name"], "souk-gateway");
    assert_eq!(attributes["service.namespace"], "souk");
    assert_eq!(attributes["service.instance.id"].len(), 36);
    assert_eq!(attributes["deployment.environment.name"], "test");
    let spans = of_process.scope_spans.iter().flat_map(|scope| &scope.spans);
    let names: Vec<_> = spans.map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["grpc.health.v1.Health/Check"]);
}
