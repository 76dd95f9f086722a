//! One trace through all hops: the gateway's server span, its client span, the backend's server span.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use souk_chassis::telemetry::{Telemetry, TelemetryConfig, TelemetryGuard};
use tokio::sync::watch;
use tonic::Request;
use tonic::metadata::MetadataValue;

use crate::backends::MISSING;
use crate::setting::{BOTH, Layout, SHOP, Setting, shop_request};

const METHOD: &str = "souk.shop.v1.ShopService/GetShop";

/// Keeps the spans of all tests with the `service.name` they were sent under.
#[derive(Clone, Debug)]
struct Recorder {
    service: String,
    spans: Arc<watch::Sender<Vec<(String, SpanData)>>>,
}

impl SpanExporter for Recorder {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.spans.send_modify(|spans| {
            spans.extend(batch.into_iter().map(|span| (self.service.clone(), span)));
        });
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        let name = resource.get(&opentelemetry::Key::from_static_str("service.name"));
        self.service = name.map(|name| name.to_string()).unwrap_or_default();
    }
}

static INSTALLED: OnceLock<(Recorder, TelemetryGuard)> = OnceLock::new();

/// Telemetry for all tests of this binary, which share a process.
pub(crate) fn install() {
    recorder();
}

fn recorder() -> &'static Recorder {
    let (recorder, _) = INSTALLED.get_or_init(|| {
        let recorder = Recorder {
            service: String::new(),
            spans: Arc::new(watch::Sender::new(Vec::new())),
        };
        let config = TelemetryConfig {
            log_filter: "off".to_owned(),
            ..TelemetryConfig::default()
        };
        let guard = Telemetry::builder(config, "souk-gateway")
            .roles([SHOP])
            .span_exporter(recorder.clone())
            .build()
            .and_then(Telemetry::install)
            .expect("the first telemetry of this process");
        (recorder, guard)
    });
    recorder
}

/// The spans of a trace, once there are `count`.
async fn spans(trace: &str, count: usize) -> Vec<(String, SpanData)> {
    let mut all = recorder().spans.subscribe();
    let of_trace = |all: &[(String, SpanData)]| {
        let mine = all
            .iter()
            .filter(|(_, span)| span.span_context.trace_id().to_string() == trace);
        mine.cloned().collect::<Vec<_>>()
    };
    let wait = all.wait_for(|all| of_trace(all).len() >= count);
    let found = tokio::time::timeout(Duration::from_secs(10), wait).await;
    let found = found.unwrap_or_else(|_| panic!("{count} spans of {trace} don't come"));
    of_trace(&found.expect("the recorder lives"))
}

/// The one span of a service and kind.
fn find<'a>(spans: &'a [(String, SpanData)], service: &str, kind: SpanKind) -> &'a SpanData {
    let mut found = spans
        .iter()
        .filter(|(of, span)| of == service && span.span_kind == kind);
    let (_, span) = found
        .next()
        .unwrap_or_else(|| panic!("no {kind:?} of {service}: {spans:#?}"));
    assert!(found.next().is_none(), "two {kind:?} of {service}: {spans:#?}");
    span
}

fn attributes(span: &SpanData) -> BTreeMap<&str, String> {
    let pairs = span.attributes.iter();
    pairs
        .map(|pair| (pair.key.as_str(), pair.value.to_string()))
        .collect()
}

fn request(shop_id: &str, trace: &str) -> Request<souk_proto::shop::v1::GetShopRequest> {
    let mut request = Request::new(shop_request(shop_id));
    let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
    let traceparent = MetadataValue::try_from(traceparent).expect("ASCII");
    request.metadata_mut().insert("traceparent", traceparent);
    request
        .metadata_mut()
        .insert("baggage", MetadataValue::from_static("tenant=t1"));
    request
}

#[tokio::test]
async fn a_call_is_one_trace_of_three_spans_each_by_its_own_service() {
    for (layout, trace) in BOTH.into_iter().zip([
        "4bf92f3577b34da6a3ce929d0e0e4701",
        "4bf92f3577b34da6a3ce929d0e0e4702",
    ]) {
        let setting = Setting::start(layout).await;
        let answer = setting
            .shops()
            .get_shop(request("h1", trace))
            .await
            .expect("a shop");
        let baggage = answer.metadata().get("baggage").expect("baggage arrived");
        assert_eq!(baggage, "tenant=t1", "{layout:?}");

        let spans = spans(trace, 3).await;
        let front = find(&spans, "souk-gateway", SpanKind::Server);
        let client = find(&spans, "souk-gateway", SpanKind::Client);
        let back = find(&spans, "souk-shop", SpanKind::Server);
        assert_eq!(front.parent_span_id.to_string(), "00f067aa0ba902b7", "{layout:?}");
        assert_eq!(client.parent_span_id, front.span_context.span_id(), "{layout:?}");
        assert_eq!(back.parent_span_id, client.span_context.span_id(), "{layout:?}");
        assert!(front.start_time <= client.start_time && client.start_time <= back.start_time);
        for span in [front, client, back] {
            assert_eq!(span.name, METHOD, "{layout:?}");
            let attributes = attributes(span);
            assert_eq!(attributes["rpc.system.name"], "grpc", "{layout:?}");
            assert_eq!(attributes["rpc.method"], METHOD, "{layout:?}");
            assert_eq!(attributes["rpc.status_code"], "OK", "{layout:?}");
        }
        let address = match layout {
            Layout::Local => "shop",
            Layout::Remote => "127.0.0.1",
        };
        assert_eq!(attributes(client)["server.address"], address, "{layout:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_to_the_client_span_only() {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4703";
    let setting = Setting::start(Layout::Local).await;
    setting
        .shops()
        .get_shop(request(MISSING, trace))
        .await
        .expect_err("it is missing");
    let spans = spans(trace, 3).await;
    for (service, kind, is_error) in [
        ("souk-gateway", SpanKind::Server, false),
        ("souk-gateway", SpanKind::Client, true),
        ("souk-shop", SpanKind::Server, false),
    ] {
        let span = find(&spans, service, kind.clone());
        assert_eq!(attributes(span)["rpc.status_code"], "NOT_FOUND");
        assert_eq!(
            matches!(span.status, Status::Error { .. }),
            is_error,
            "{service} {kind:?}"
        );
    }
}

#[tokio::test]
async fn a_malformed_traceparent_starts_a_new_trace() {
    let setting = Setting::start(Layout::Local).await;
    let id = "malformed-traceparent";
    let mut call = Request::new(shop_request(id));
    call.metadata_mut().insert(
        "traceparent",
        MetadataValue::from_static("00-zz-00f067aa0ba902b7-01"),
    );
    setting.shops().get_shop(call).await.expect("a shop");
    let known = recorder().spans.borrow().clone();
    let from_caller = SpanId::from_hex("00f067aa0ba902b7").expect("an id");
    let strays = known.iter().filter(|(_, span)| {
        span.parent_span_id == from_caller
            && !span.span_context.trace_id().to_string().starts_with("4bf92f35")
    });
    assert_eq!(strays.count(), 0);
}
