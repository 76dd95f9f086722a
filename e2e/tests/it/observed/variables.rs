//! The variables of OpenTelemetry, on real processes: what is said to be honoured is. What is refused or warned of is
//! tested beside the code, `chassis/src/telemetry/environment`.

use souk_proto::shop::v1::GetShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::metadata::MetadataMap;

use super::collector::{Collector, Sent};
use super::souk::Souk;

pub(super) const SOON: [(&str, &str); 2] = [
    ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
];

/// Calls something that there isn't.
pub(super) async fn call(souk: &Souk) -> anyhow::Result<()> {
    let request = GetShopRequest {
        shop_id: "nobody".to_owned(),
        ..Default::default()
    };
    let mut shops = ShopServiceClient::new(souk.channel()?);
    shops.get_shop(request).await.expect_err("there is none");
    Ok(())
}

fn header(headers: &MetadataMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// An attribute of the resource that sent this.
fn of_resource(sent: &Sent, key: &str) -> Vec<String> {
    let resources: Vec<_> = match sent {
        Sent::Spans(spans) => spans
            .resource_spans
            .iter()
            .map(|of| of.resource.clone())
            .collect(),
        Sent::Metrics(metrics) => metrics
            .resource_metrics
            .iter()
            .map(|of| of.resource.clone())
            .collect(),
    };
    let attributes = resources
        .into_iter()
        .flatten()
        .flat_map(|resource| resource.attributes);
    let found = attributes.filter(|attribute| attribute.key == key);
    found.map(|attribute| format!("{:?}", attribute.value)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_headers_compression_and_addresses_are_taken() -> anyhow::Result<()> {
    let (traces, metrics) = (Collector::start().await?, Collector::start().await?);
    let (to_traces, to_metrics) = (traces.endpoint(), metrics.endpoint());
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to_traces.as_str()),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", to_metrics.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=all"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-tenant=metrics"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
        ("OTEL_SERVICE_NAME", "front"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=unheard,service.instance.id=first,deployment.environment.name=test",
        ),
    ];
    variables.extend(SOON);
    let souk = Souk::start(&[], &variables).await?;
    call(&souk).await?;
    let has = |sent: &Sent, key: &str, value: &str| {
        of_resource(sent, key).iter().any(|found| found.contains(value))
    };
    let named = |sent: &Sent| {
        has(sent, "service.name", "front")
            && has(sent, "service.instance.id", "first")
            && has(sent, "deployment.environment.name", "test")
    };
    traces
        .wait_for("a span, as it was asked for", |headers, sent| {
            named(sent) && header(headers, "x-tenant") == "all" && matches!(sent, Sent::Spans(_))
        })
        .await?;
    metrics
        .wait_for("metrics, as they were asked for", |headers, sent| {
            named(sent) && header(headers, "x-tenant").contains("metrics") && matches!(sent, Sent::Metrics(_))
        })
        .await?;
    // Roles keep their names.
    traces
        .wait_for("a span of a role", |_, sent| {
            has(sent, "service.name", "souk-shop")
        })
        .await?;
    let encodings = |collector: &Collector| -> Vec<String> {
        let kept = collector.kept();
        kept.iter()
            .map(|(headers, _)| header(headers, "grpc-encoding"))
            .collect()
    };
    assert!(
        encodings(&traces).iter().all(|encoding| encoding == "gzip"),
        "{:?}",
        encodings(&traces)
    );
    assert!(
        encodings(&metrics).iter().all(|encoding| encoding == "zstd"),
        "{:?}",
        encodings(&metrics)
    );
    assert!(
        traces
            .kept()
            .iter()
            .all(|(_, sent)| matches!(sent, Sent::Spans(_)))
    );
    assert!(
        metrics
            .kept()
            .iter()
            .all(|(_, sent)| matches!(sent, Sent::Metrics(_)))
    );
    souk.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samplers_and_exporters_are_chosen() -> anyhow::Result<()> {
    let ratio = [
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0"),
    ];
    for chosen in [
        &[("OTEL_TRACES_SAMPLER", "always_off")][..],
        &ratio,
        &[("OTEL_TRACES_EXPORTER", "none")],
    ] {
        let collector = Collector::start().await?;
        let endpoint = collector.endpoint();
        let mut variables = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
        variables.extend(SOON);
        variables.extend(chosen);
        let souk = Souk::start(&[], &variables).await?;
        call(&souk).await?;
        collector
            .wait_for("metrics", |_, sent| matches!(sent, Sent::Metrics(_)))
            .await?;
        // The end flushes whatever there is.
        souk.stop().await?;
        let spans = collector
            .kept()
            .into_iter()
            .filter(|(_, sent)| matches!(sent, Sent::Spans(_)));
        assert_eq!(spans.count(), 0, "{chosen:?}");
    }
    let collector = Collector::start().await?;
    let endpoint = collector.endpoint();
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    variables.extend(SOON);
    let souk = Souk::start(&[], &variables).await?;
    call(&souk).await?;
    collector
        .wait_for("spans", |_, sent| matches!(sent, Sent::Spans(_)))
        .await?;
    souk.stop().await?;
    let metrics = collector
        .kept()
        .into_iter()
        .filter(|(_, sent)| matches!(sent, Sent::Metrics(_)));
    assert_eq!(metrics.count(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabled_it_sends_nothing() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let endpoint = collector.endpoint();
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    variables.extend(SOON);
    let souk = Souk::start(&[], &variables).await?;
    call(&souk).await?;
    assert!(souk.scrape().await.is_err(), "there is nothing to fetch");
    souk.stop().await?;
    assert!(collector.kept().is_empty());
    Ok(())
}
