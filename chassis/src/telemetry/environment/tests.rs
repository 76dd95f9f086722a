use super::*;

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn read(pairs: &[(&str, &str)]) -> OtelEnvironment {
    OtelEnvironment::read(&variables(pairs)).expect("good variables")
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");

#[test]
fn variables_decide_what_is_exported() {
    let read = |pairs: &[(&str, &str)]| {
        let environment = read(pairs);
        (environment.traces.is_some(), environment.metrics.is_some())
    };
    assert_eq!(read(&[]), (false, false));
    assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), (false, false));
    assert_eq!(read(&[ENDPOINT]), (true, true));
    assert_eq!(
        read(&[ENDPOINT, ("OTEL_METRICS_EXPORTER", "none")]),
        (true, false)
    );
    assert_eq!(read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]), (false, true));
    let traces_only = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4317");
    assert_eq!(read(&[traces_only]), (true, false));
    let metrics_only = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://127.0.0.1:4317");
    assert_eq!(read(&[metrics_only]), (false, true));
}

#[test]
fn a_collector_with_tls_needs_somebody_to_trust_it_by() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4317");
    let error = OtelEnvironment::read(&variables(&[endpoint])).expect_err("nobody checks it");
    assert!(
        error.to_string().contains("OTEL_EXPORTER_OTLP_CERTIFICATE"),
        "{error}"
    );
    let environment = read(&[
        endpoint,
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
        ("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "metrics-ca.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "client.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "client.key"),
    ]);
    let secure = |authorities: &str| {
        Some(ClientTlsConfig {
            ca: authorities.into(),
            cert: "client.pem".into(),
            key: "client.key".into(),
            server_name: String::new(),
        })
    };
    let tls = |collector: Option<Collector>| collector.and_then(|collector| collector.tls);
    assert_eq!(tls(environment.traces), secure("ca.pem"));
    assert_eq!(tls(environment.metrics), secure("metrics-ca.pem"));
    assert_eq!(environment.warnings, [""; 0]);
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (variable, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "deflate"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "br"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "-1"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "sometimes"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_LOGS_EXPORTER", "file"),
        ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "br"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_PROPAGATORS", "b3"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_METRICS_EXEMPLAR_FILTER", "some"),
        ("OTEL_BSP_SCHEDULE_DELAY", "5s"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1e3"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1m"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1"),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "x"),
        ("OTEL_SPAN_LINK_COUNT_LIMIT", "x"),
        ("OTEL_BSP_SCHEDULE_DELAY", "0"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "0"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "0"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", " 4096"),
    ] {
        let error = OtelEnvironment::read(&variables(&[ENDPOINT, (variable, value)])).expect_err(variable);
        let error = error.to_string();
        assert!(
            error.contains(variable) && error.contains(value.trim()),
            "{error}"
        );
    }
    for ratio in ["2", "-0.1", "NaN", "1%"] {
        let sampler = ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
        let error = OtelEnvironment::read(&variables(&[sampler, ("OTEL_TRACES_SAMPLER_ARG", ratio)]));
        let error = error.expect_err(ratio).to_string();
        assert!(error.contains("OTEL_TRACES_SAMPLER_ARG"), "{error}");
    }
}

#[test]
fn what_an_exporter_cant_honour_is_told_of_where_there_is_none() {
    for (variable, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_BSP_SCHEDULE_DELAY", "0"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1m"),
    ] {
        let warnings = read(&[(variable, value)]).warnings;
        assert!(
            matches!(warnings.as_slice(), [warning] if warning.starts_with(variable)),
            "{warnings:?}"
        );
    }
    // Those of a signal that isn't exported, though others are.
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4317");
    let of_logs = ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/json");
    assert_eq!(read(&[traces, of_logs]).warnings.len(), 1);
    let of_all = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    assert!(OtelEnvironment::read(&variables(&[traces, of_all])).is_err());
    // What has to do with no exporter is judged in any case.
    let sampler = ("OTEL_TRACES_EXPORTER", "zipkin");
    assert!(OtelEnvironment::read(&variables(&[sampler])).is_err());
}

#[test]
fn logs_go_where_the_others_go_unless_the_console_is_enough() {
    let logs = |pairs: &[(&str, &str)]| read(pairs).logs.is_some();
    assert!(!logs(&[]));
    assert!(logs(&[ENDPOINT]));
    assert!(logs(&[("OTEL_LOGS_EXPORTER", "otlp")]));
    assert!(logs(&[("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://a:1")]));
    for instead in ["none", "console"] {
        assert!(!logs(&[ENDPOINT, ("OTEL_LOGS_EXPORTER", instead)]), "{instead}");
    }
}

#[test]
fn what_is_honoured_is_taken_without_a_word() {
    let environment = read(&[
        ENDPOINT,
        ("OTEL_SERVICE_NAME", "mine"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "tenant=a"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.01"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "tenant=b"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100"),
        ("OTEL_METRICS_EXEMPLAR_FILTER", "always_on"),
    ]);
    assert_eq!(environment.warnings, [""; 0]);
    assert_eq!(environment.service.as_deref(), Some("mine"));
    assert!(!environment.names_service && !environment.names_instance);
    assert_eq!(environment.exemplars, ExemplarFilter::AlwaysOn);
}

#[test]
fn what_has_no_effect_is_said_without_its_value() {
    for variable in [
        "OTEL_SEMCONV_STABILITY_OPT_IN",
        "OTEL_BSP_EXPORT_TIMEOUT",
        "OTEL_METRIC_EXPORT_TIMEOUT",
        "OTEL_LOG_LEVEL",
        "OTEL_EXPORTER_OTLP_INSECURE",
        "OTEL_BLRP_EXPORT_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TEMPORALITY_PREFERENCE",
        "OTEL_EXPORTER_PROMETHEUS_PORT",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        "OTEL_CONFIG_FILE",
        "OTEL_EXPORTER_ZIPKIN_ENDPOINT",
        "OTEL_SDK_DISABLED",
    ] {
        let environment = read(&[ENDPOINT, (variable, "s3cret")]);
        let [warning] = environment.warnings.as_slice() else {
            panic!("{variable}: {:?}", environment.warnings);
        };
        assert!(
            warning.starts_with(variable) && !warning.contains("s3cret"),
            "{warning}"
        );
        assert!(!environment.disabled);
    }
    assert_eq!(
        read(&[("SOUK_CONFIG", "x"), ("OTEL_LOG_LEVEL", "")]).warnings,
        [""; 0]
    );
}

#[test]
fn exports_have_an_address_and_a_time() {
    let of = |pairs: &[_]| read(pairs).traces.expect("they are exported");
    let collector = of(&[("OTEL_TRACES_EXPORTER", "otlp")]);
    assert_eq!(collector.uri, "http://localhost:4317");
    assert_eq!(collector.timeout, Duration::from_secs(10));
    assert!(!collector.sizes_queue);
    let set = of(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "64"),
    ]);
    assert_eq!((set.timeout, set.sizes_queue), (Duration::from_millis(250), true));
    let address = variables(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a b")]);
    assert!(OtelEnvironment::read(&address).is_err());
}
