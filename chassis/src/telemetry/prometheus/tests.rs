use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::super::exemplar::{self, ExemplarFilter};
use super::super::instrument::{Instrument, Kind};
use super::super::{Telemetry, TelemetryConfig};
use super::*;
use crate::layers::testing::want_spans;

const BAKED: Instrument = Instrument {
    name: "souk.bread.baked",
    kind: Kind::Counter,
    unit: "{loaf}",
    description: "Loaves that came out of the oven",
    attributes: &["souk.oven"],
};

const HEAT: Instrument = Instrument {
    name: "souk.oven.energy",
    kind: Kind::Gauge,
    unit: "By",
    description: "What\nan oven holds",
    attributes: &[],
};

const BAKING: Instrument = Instrument {
    name: "souk.bread.duration",
    kind: Kind::Histogram(&[0.5, 2.0]),
    unit: "s",
    description: "How long a loaf takes",
    attributes: &["souk.oven"],
};

/// A provider for each role, read by one scraper.
fn providers() -> (Vec<SdkMeterProvider>, Scraper) {
    let roles = [None, Some(ServiceRole::new("souk-second"))];
    let readers = roles.map(|role| (role, Reader::default()));
    let provider = |(role, reader): &(Option<ServiceRole>, Reader)| {
        let name = role.map_or("souk-first", ServiceRole::name);
        SdkMeterProvider::builder()
            .with_resource(Resource::builder_empty().with_service_name(name).build())
            .with_reader(reader.clone())
            .build()
    };
    (
        readers.iter().map(provider).collect(),
        Scraper::new(readers.to_vec()),
    )
}

#[tokio::test]
async fn one_text_has_the_metrics_of_all_roles() {
    let (providers, scraper) = providers();
    for (provider, loaves) in providers.iter().zip([2, 3]) {
        let meter = provider.meter("test");
        let oven = [KeyValue::new("souk.oven", "the \"big\" one\\\n")];
        BAKED.counter(&meter).add(loaves, &oven);
        let baking = BAKING.histogram(&meter);
        [0.5, 1.0, 7.0].iter().for_each(|took| baking.record(*took, &[]));
    }
    HEAT.observe(&providers[0].meter("test"), |now| now.observe(7, &[]));
    let text = scraper
        .scrape(ExpositionFormat::Prometheus)
        .await
        .expect("it lives");
    assert_eq!(
        text,
        r#"# HELP target_info Who is measured
# TYPE target_info gauge
target_info{service_name="souk-first"} 1
target_info{service_name="souk-second"} 1
# HELP souk_bread_baked_total Loaves that came out of the oven
# TYPE souk_bread_baked_total counter
souk_bread_baked_total{service_name="souk-first",souk_oven="the \"big\" one\\\n"} 2
souk_bread_baked_total{service_name="souk-second",souk_oven="the \"big\" one\\\n"} 3
# HELP souk_bread_duration_seconds How long a loaf takes
# TYPE souk_bread_duration_seconds histogram
souk_bread_duration_seconds_bucket{service_name="souk-first",le="0.5"} 1
souk_bread_duration_seconds_bucket{service_name="souk-first",le="2.0"} 2
souk_bread_duration_seconds_bucket{service_name="souk-first",le="+Inf"} 3
souk_bread_duration_seconds_sum{service_name="souk-first"} 8.5
souk_bread_duration_seconds_count{service_name="souk-first"} 3
souk_bread_duration_seconds_bucket{service_name="souk-second",le="0.5"} 1
souk_bread_duration_seconds_bucket{service_name="souk-second",le="2.0"} 2
souk_bread_duration_seconds_bucket{service_name="souk-second",le="+Inf"} 3
souk_bread_duration_seconds_sum{service_name="souk-second"} 8.5
souk_bread_duration_seconds_count{service_name="souk-second"} 3
# HELP souk_oven_energy_bytes What\nan oven holds
# TYPE souk_oven_energy_bytes gauge
souk_oven_energy_bytes{service_name="souk-first"} 7
"#
    );
    let text = scraper
        .scrape(ExpositionFormat::OpenMetrics)
        .await
        .expect("it lives");
    for line in [
        "# TYPE souk_bread_baked counter",
        "# UNIT souk_bread_duration_seconds seconds",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
    for instrument in [BAKED, HEAT, BAKING] {
        assert!(text.contains(&instrument.prometheus_name()), "{instrument:?}");
    }
    for provider in providers {
        provider.shutdown().expect("nothing to send");
    }
    assert_eq!(scraper.scrape(ExpositionFormat::Prometheus).await, None);
}

#[tokio::test]
async fn buckets_remember_the_trace_of_a_value() {
    exemplar::keep(ExemplarFilter::TraceBased);
    want_spans();
    let telemetry = Telemetry::builder(TelemetryConfig::default(), "souk-test")
        .log_lines(|_| {})
        .build()
        .expect("good settings");
    let (providers, scraper) = providers();
    let role = ServiceRole::new("souk-second");
    let baking = {
        let _entered = role.enter();
        BAKING.histogram(&providers[1].meter("test"))
    };
    let labels = [KeyValue::new("z", 1), KeyValue::new("a", 2)];
    let traces = tracing::dispatcher::with_default(telemetry.dispatch(), || {
        [0.1, 9.0].map(|took| {
            tracing::info_span!("bake").in_scope(|| {
                baking.record(took, &labels);
                use opentelemetry::trace::TraceContextExt as _;
                opentelemetry::Context::map_current(|context| {
                    context.span().span_context().trace_id().to_string()
                })
            })
        })
    });
    // Outside of any span: a value, but no example.
    baking.record(1.0, &labels);
    let text = scraper
        .scrape(ExpositionFormat::OpenMetrics)
        .await
        .expect("it lives");
    let example = |le: &str| {
        let line = text.lines().find(|line| line.contains(&format!("le=\"{le}\"")));
        line.and_then(|line| Some(line.split_once(" # ")?.1.to_owned()))
    };
    assert!(
        example("0.5")
            .is_some_and(|found| found.starts_with(&format!("{{trace_id=\"{}\"}} 0.1 ", traces[0]))),
        "{text}"
    );
    assert_eq!(example("2.0"), None, "{text}");
    assert!(
        example("+Inf").is_some_and(|found| found.contains(&traces[1])),
        "{text}"
    );
    let old = scraper
        .scrape(ExpositionFormat::Prometheus)
        .await
        .expect("it lives");
    assert!(!old.contains("trace_id"), "{old}");
}

/// What an endpoint answers to some bytes, to its end.
async fn ask(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

#[tokio::test]
async fn metrics_are_fetched_by_http_and_nothing_else_is() {
    let (providers, scraper) = providers();
    HEAT.observe(&providers[0].meter("test"), |now| now.observe(7, &[]));
    let listener = bind(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let _serving = AbortOnDropHandle::new(tokio::spawn(serve(listener, scraper)));
    let get = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n")
    };
    let plain = ask(address, &get("/metrics", "")).await;
    assert!(plain.starts_with("HTTP/1.1 200 "), "{plain}");
    assert!(
        plain.contains("content-type: text/plain; version=0.0.4"),
        "{plain}"
    );
    assert!(plain.contains("souk_oven_energy_bytes"), "{plain}");
    let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let open = ask(address, &get("/metrics", accept)).await;
    assert!(
        open.contains("content-type: application/openmetrics-text"),
        "{open}"
    );
    assert!(open.ends_with("# EOF\n"), "{open}");
    assert!(ask(address, &get("/", "")).await.starts_with("HTTP/1.1 404 "));
    let post = "POST /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(ask(address, post).await.starts_with("HTTP/1.1 405 "));
    let long = format!("x: {}\r\n", "a".repeat(32 * 1024));
    let refused = ask(address, &get("/metrics", &long)).await;
    assert!(refused.starts_with("HTTP/1.1 431 "), "{refused}");
    // Connections beyond the limit wait; once there is room they are answered.
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let waiting = tokio::spawn(async move { ask(address, &get("/metrics", "")).await });
    drop(silent);
    assert!(waiting.await.expect("no panic").starts_with("HTTP/1.1 200 "));
    let taken = bind(address).await.expect_err("it is taken");
    assert!(taken.to_string().contains("--metrics-listen"), "{taken}");
}

#[tokio::test]
async fn the_instruments_of_a_process_are_read_through_its_telemetry() {
    let config = TelemetryConfig {
        metrics_listen: Some(([127, 0, 0, 1], 0).into()),
        ..TelemetryConfig::default()
    };
    let telemetry = Telemetry::builder(config, "souk-test")
        .roles([ServiceRole::new("souk-order")])
        .log_lines(|_| {})
        .build()
        .expect("good settings");
    let meters = telemetry.providers.meters.as_ref().expect("somebody fetches");
    super::super::process::observe(&meters.of(None).meter("test"));
    let text = telemetry
        .scraper()
        .expect("somebody fetches")
        .scrape(ExpositionFormat::Prometheus)
        .await
        .expect("it lives");
    for line in [
        "process_cpu_time_seconds_total{service_name=\"souk-test\",cpu_mode=\"user\"} ",
        "process_memory_usage_bytes{service_name=\"souk-test\"} ",
        "process_unix_file_descriptor_count{service_name=\"souk-test\"} ",
        "souk_runtime_busy_time_seconds_total",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("service_name=\"souk-order\""), "{text}");
    // This runtime's, and those of servers in other tests.
    let workers = text.split_once("souk_runtime_workers{service_name=\"souk-test\"} ");
    let workers = workers.and_then(|(_, rest)| rest.lines().next()?.parse().ok());
    assert!(workers >= Some(1), "{workers:?}\n{text}");
}
