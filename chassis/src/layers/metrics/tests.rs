use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use tonic::Status;
use tower::Layer as _;

use super::*;
use crate::layers::refuse;
use crate::layers::testing::{CHECK, answering, call, methods, read_to_end, request, stream};
use crate::telemetry::instrument::CALL_SECONDS;

struct Measured {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

fn measured() -> Measured {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter.clone())
        .build();
    Measured { exporter, provider }
}

impl Measured {
    fn meter(&self) -> Meter {
        self.provider.meter("test")
    }

    /// Labels, count and bounds of the points of a histogram.
    fn points(&self, name: &str) -> Vec<(BTreeMap<String, String>, u64, Vec<f64>)> {
        self.provider.force_flush().expect("the exporter lives");
        let exported = self.exporter.get_finished_metrics().expect("the exporter lives");
        let last = exported.last().expect("an export");
        let metrics = last.scope_metrics().flat_map(|scope| scope.metrics());
        let metric = metrics.into_iter().find(|metric| metric.name() == name);
        let metric = metric.unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(metric.unit(), "s");
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            panic!("{name} is no histogram of floats");
        };
        let points = histogram.data_points().map(|point| {
            let labels = point
                .attributes()
                .map(|pair| (pair.key.to_string(), pair.value.to_string()));
            (labels.collect(), point.count(), point.bounds().collect())
        });
        points.collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_are_measured_by_method_and_code() {
    let measured = measured();
    let layer = MetricsLayer::server(methods(), &measured.meter());
    let service = layer.layer(answering(|request: Request<Body>| {
        let known = request.uri().path() == CHECK;
        std::future::ready(refuse(match known {
            true => Status::not_found(""),
            false => Status::unimplemented(""),
        }))
    }));
    call(&service, request(CHECK)).await;
    call(&service, request(CHECK)).await;
    for made_up in 0..100 {
        call(&service, request(&format!("/made.up/Method{made_up}"))).await;
    }
    let mut points = measured.points("rpc.server.call.duration");
    points.sort_by_key(|(_, count, _)| *count);
    assert_eq!(points.len(), 2, "made-up methods share one: {points:?}");
    let (labels, count, bounds) = &points[0];
    assert_eq!(*count, 2);
    assert_eq!(labels["rpc.method"], "grpc.health.v1.Health/Check");
    assert_eq!(labels["rpc.status_code"], "NOT_FOUND");
    assert_eq!(labels["rpc.system.name"], "grpc");
    assert!(!labels.contains_key("error.type"), "{labels:?}");
    assert_eq!(bounds.as_slice(), CALL_SECONDS);
    let (labels, count, _) = &points[1];
    assert_eq!((*count, labels["rpc.method"].as_str()), (100, METHOD_OTHER));
    assert_eq!(labels["error.type"], "UNIMPLEMENTED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_is_measured_at_its_end_by_the_code_in_its_trailers() {
    let measured = measured();
    let peer = Uri::from_static("http://order.internal:50061");
    let layer = MetricsLayer::client(methods(), &peer, &measured.meter());
    let service = layer.layer(answering(|_| {
        std::future::ready(stream(1, Duration::from_millis(1), Code::Aborted))
    }));
    read_to_end(call(&service, request(CHECK)).await).await;
    let points = measured.points("rpc.client.call.duration");
    let [(labels, 1, _)] = points.as_slice() else {
        panic!("{points:?}");
    };
    assert_eq!(labels["rpc.status_code"], "ABORTED");
    assert_eq!(labels["server.address"], "order.internal");
    assert_eq!(labels["server.port"], "50061");
    assert_eq!(
        labels["error.type"], "ABORTED",
        "to a client every failure is one"
    );
}
