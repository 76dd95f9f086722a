use std::collections::HashMap;
use std::time::Duration;

use http::Response;
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanKind, Status as SpanStatus};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::Status;
use tower::Layer as _;

use super::*;
use crate::layers::refuse;
use crate::layers::testing::{
    CHECK, answering, attribute, call, methods, read_to_end, record, record_as, request, request_with, stream,
};

const METHOD: &str = "grpc.health.v1.Health/Check";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn server(answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static) -> impl Inner {
    TraceLayer::server(methods()).layer(answering(move |_| std::future::ready(answer())))
}

fn is_error(span: &opentelemetry_sdk::trace::SpanData) -> bool {
    matches!(span.status, SpanStatus::Error { .. })
}

#[tokio::test]
async fn a_server_span_continues_the_callers_trace() {
    let recorded = record();
    let service = server(|| refuse(Status::not_found("no such order")));
    call(&service, request_with(CHECK, "traceparent", PARENT)).await;
    let span = recorded.span();
    assert_eq!(
        (span.name.as_ref(), span.span_kind.clone()),
        (METHOD, SpanKind::Server)
    );
    assert_eq!(
        span.span_context.trace_id().to_string(),
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    assert_eq!(span.parent_span_id.to_string(), "00f067aa0ba902b7");
    assert_eq!(attribute(&span, "rpc.system.name"), "grpc");
    assert_eq!(attribute(&span, "rpc.method"), METHOD);
    assert_eq!(attribute(&span, "rpc.status_code"), "NOT_FOUND");
    assert!(!is_error(&span), "NOT_FOUND is no fault of the server");
}

#[tokio::test]
async fn a_malformed_traceparent_starts_a_trace_and_an_unsampled_one_is_kept() {
    let recorded = record();
    let service = server(|| refuse(Status::ok("")));
    call(&service, request_with(CHECK, "traceparent", "00-nonsense-01")).await;
    let span = recorded.span();
    assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID);
    assert!(span.span_context.is_valid());

    let unsampled = PARENT.replace("-01", "-00");
    call(&service, request_with(CHECK, "traceparent", &unsampled)).await;
    assert_eq!(recorded.spans().len(), 1, "the caller said: don't sample");
}

#[tokio::test]
async fn six_codes_are_the_servers_fault_and_all_but_ok_the_clients_error() {
    let uri = Uri::from_static("http://order:1");
    let faults = [2, 4, 12, 13, 14, 15];
    for number in 0..=16 {
        let code = Code::from(number);
        for server_side in [true, false] {
            let recorded = record();
            let layer = match server_side {
                true => TraceLayer::server(methods()),
                false => TraceLayer::client(methods(), &uri, false),
            };
            let answer = move |_| std::future::ready(refuse(Status::new(code, "words")));
            call(&layer.layer(answering(answer)), request(CHECK)).await;
            let span = recorded.span();
            let expected = match server_side {
                true => faults.contains(&number),
                false => code != Code::Ok,
            };
            assert_eq!(is_error(&span), expected, "{code:?}, server: {server_side}");
            assert_eq!(attribute(&span, "rpc.status_code"), code_name(code));
            let error_type = if expected { code_name(code) } else { "" };
            assert_eq!(attribute(&span, "error.type"), error_type, "{code:?}");
            // One line for each failed call, by the side that serves it; none for one that its caller gave up.
            let lines = recorded.lines();
            let failed = !matches!(code, Code::Ok | Code::Cancelled);
            assert_eq!(lines.len(), usize::from(server_side && failed), "{lines:?}");
        }
    }
}

#[tokio::test]
async fn a_client_span_gives_its_context_baggage_included() {
    let recorded = record();
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(http::HeaderMap::new()));
    let sink = seen.clone();
    let inner = answering(move |request: Request<Body>| {
        *sink.lock() = request.headers().clone();
        std::future::ready(refuse(Status::ok("")))
    });
    let client = TraceLayer::client(methods(), &Uri::from_static("http://order:50061"), false).layer(inner);
    let client = Arc::new(client);
    let front = TraceLayer::server(methods()).layer(answering(move |_| {
        let client = Arc::clone(&client);
        async move { call(&*client, request(CHECK)).await }
    }));
    let mut asked = request_with(CHECK, "traceparent", PARENT);
    asked
        .headers_mut()
        .insert("baggage", http::HeaderValue::from_static("tenant=t1"));
    call(&front, asked).await;

    let spans = recorded.spans();
    let [client, server] = spans.as_slice() else {
        panic!("{spans:#?}");
    };
    assert_eq!(client.span_kind, SpanKind::Client);
    assert_eq!(client.parent_span_id, server.span_context.span_id());
    assert_eq!(attribute(client, "server.address"), "order");
    assert_eq!(attribute(client, "server.port"), "50061");
    let headers = seen.lock().clone();
    let context = propagate::extract(&headers);
    let sent = opentelemetry::trace::TraceContextExt::span(&context)
        .span_context()
        .clone();
    assert_eq!(sent.span_id(), client.span_context.span_id());
    assert_eq!(sent.trace_id(), client.span_context.trace_id());
    assert_eq!(
        context
            .baggage()
            .get("tenant")
            .map(ToString::to_string)
            .as_deref(),
        Some("t1")
    );
}

#[tokio::test]
async fn made_up_methods_share_one_name() {
    let recorded = record();
    let service = server(|| refuse(Status::unimplemented("")));
    let path = format!("/{}/Do", "长".repeat(100));
    let encoded: String = path
        .bytes()
        .map(|b| {
            if b == b'/' {
                "/".into()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect();
    call(&service, request(&encoded)).await;
    let span = recorded.span();
    assert_eq!(span.name, METHOD_OTHER);
    assert_eq!(attribute(&span, "rpc.method"), METHOD_OTHER);
    assert_eq!(attribute(&span, "rpc.method_original").len(), ORIGINAL_BYTES_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_span_lasts_until_the_trailers() {
    let recorded = record();
    let service = server(|| stream(2, Duration::from_secs(1), Code::DataLoss));
    let response = call(&service, request(CHECK)).await;
    assert!(recorded.spans().is_empty(), "the stream is open");
    let (_, status) = read_to_end(response).await;
    assert_eq!(status.code(), Code::DataLoss);
    let span = recorded.span();
    assert_eq!(attribute(&span, "rpc.status_code"), "DATA_LOSS");
    assert!(is_error(&span));
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled() {
    let recorded = record();
    let service = server(|| stream(2, Duration::from_secs(1), Code::Ok));
    drop(call(&service, request(CHECK)).await);
    assert_eq!(attribute(&recorded.span(), "rpc.status_code"), "CANCELLED");
}

#[tokio::test(start_paused = true)]
async fn a_call_for_another_that_runs_out_of_time_says_so() {
    // Given up after its time, and before it.
    for (given, code) in [(100, "DEADLINE_EXCEEDED"), (300, "CANCELLED")] {
        let recorded = record();
        let client = TraceLayer::client(methods(), &Uri::from_static("http://order:1"), false);
        let service = client.layer(answering(|_| std::future::pending()));
        let mut forwarded = request(CHECK);
        let deadline = Deadline::after(Duration::from_millis(given));
        forwarded.extensions_mut().insert(deadline);
        let asked = tokio::time::timeout(Duration::from_millis(200), call(&service, forwarded));
        asked.await.expect_err("it never answers");
        assert_eq!(attribute(&recorded.span(), "rpc.status_code"), code);
    }
}

#[tokio::test]
async fn the_log_doesnt_have_what_was_refused() {
    let recorded = record();
    let refused = r#"phone is "Ada \"the\" \\", use digits; `name` is "Lovelace"; rank is 7, not "cut of"#;
    let service = server(move || refuse(Status::invalid_argument(refused)));
    call(&service, request(CHECK)).await;
    let lines = recorded.lines();
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    let words = unquoted(refused);
    assert_eq!(
        words,
        r#"phone is "…", use digits; `name` is "…"; rank is 7, not "…""#
    );
    for part in ["Ada", "Lovelace", "cut of"] {
        assert!(!line.contains(part), "{part}: {line}");
    }
    assert!(line.contains("use digits; `name` is"), "{line}");
}

#[tokio::test]
async fn no_refusal_tells_the_log_what_its_caller_sent() {
    for code in (1..=16).map(Code::from) {
        let recorded = record();
        let service =
            server(move || refuse(Status::new(code, r#"no consumer "Ada Lovelace"; check the id"#)));
        call(&service, request(CHECK)).await;
        let lines = recorded.lines().concat();
        let at_fault = is_server_fault(code) && code != Code::Unimplemented;
        assert_eq!(lines.contains("Ada"), at_fault, "{code:?}: {lines}");
        assert_eq!(
            lines.contains("check the id"),
            code != Code::Cancelled,
            "{code:?}: {lines}"
        );
    }
}

/// Believes those with a header.
#[derive(Debug)]
struct Known;

impl Believe for Known {
    fn believes(&self, request: &mut Request<Body>) -> bool {
        request.headers().contains_key("known")
    }
}

#[tokio::test]
async fn the_trace_of_a_stranger_is_linked_and_neither_gone_on_with_nor_handed_on() {
    // A thousandth is recorded of what begins here, and what callers want of what they send.
    let variables = [
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.001"),
    ];
    for (ratio, calls) in [(&variables[..], 50), (&[][..], 1)] {
        let recorded = record_as(ratio, true);
        let seen = Arc::new(parking_lot::Mutex::new(http::HeaderMap::new()));
        let sink = Arc::clone(&seen);
        let layer = TraceLayer::server(methods()).believing(Some(Arc::new(Known)));
        let service = layer.layer(answering(move |request: Request<Body>| {
            *sink.lock() = request.headers().clone();
            std::future::ready(refuse(Status::ok("")))
        }));
        let asked = || {
            let mut asked = request_with(CHECK, "traceparent", PARENT);
            let headers = asked.headers_mut();
            headers.insert("tracestate", http::HeaderValue::from_static("vendor=abc"));
            headers.insert("baggage", http::HeaderValue::from_static("tenant=t1"));
            asked
        };
        for _ in 0..calls {
            call(&service, asked()).await;
        }
        let spans = recorded.spans();
        assert!(
            spans.len() <= calls / 5 + 1,
            "{} of {calls} are recorded",
            spans.len()
        );
        for span in &spans {
            assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID);
            assert!(!PARENT.contains(&span.span_context.trace_id().to_string()));
            assert_eq!(span.span_context.trace_state().header(), "");
            let [link] = span.links.links.as_slice() else {
                panic!("{:#?}", span.links);
            };
            assert!(PARENT.contains(&link.span_context.span_id().to_string()));
            assert_eq!(link.span_context.trace_state().header(), "");
        }
        let headers = seen.lock().clone();
        assert!(
            !headers.contains_key("traceparent") && !headers.contains_key("tracestate"),
            "{headers:?}"
        );
        assert!(headers.contains_key("baggage"), "{headers:?}");

        // Of 512 bytes.
        let long = format!("one={},two={}", "a".repeat(252), "b".repeat(251));
        for (sent, gone_on_with) in [(long.clone(), long.as_str()), (format!("{long}b"), "")] {
            let mut known = asked();
            let headers = known.headers_mut();
            headers.insert("known", http::HeaderValue::from_static("1"));
            headers.insert("tracestate", sent.parse().expect("a header"));
            call(&service, known).await;
            let spans = recorded.spans();
            let last = spans.last().expect("a span");
            assert_eq!(
                last.parent_span_id.to_string(),
                "00f067aa0ba902b7",
                "a known one is gone on with"
            );
            assert_eq!(last.span_context.trace_state().header(), gone_on_with);
        }
    }
}

#[tokio::test]
async fn a_long_state_without_a_trace_is_nothing() {
    let recorded = record();
    let service = server(|| refuse(Status::ok("")));
    for parent in [None, Some("x")] {
        let mut asked = request(CHECK);
        let headers = asked.headers_mut();
        headers.insert("tracestate", "a".repeat(513).parse().expect("a header"));
        if let Some(parent) = parent {
            headers.insert("traceparent", http::HeaderValue::from_static(parent));
        }
        call(&service, asked).await;
    }
    let spans = recorded.spans();
    assert_eq!(spans.len(), 2, "{spans:#?}");
}

#[tokio::test]
async fn the_log_line_has_ids_reason_and_cause_and_only_the_cause_stays_here() {
    let recorded = record();
    let service = server(|| {
        let status = crate::status::StatusBuilder::data_loss("ROW_DAMAGED", "a row is damaged");
        refuse(status.source("checksum 1 isn't 2"))
    });
    let response = call(&service, request_with(CHECK, "traceparent", PARENT)).await;
    let headers = format!("{:?}", response.headers());
    assert!(!headers.contains("checksum"), "{headers}");
    let lines = recorded.lines();
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    for part in [
        "ERROR",
        "call failed",
        "DATA_LOSS",
        "ROW_DAMAGED",
        "checksum 1 isn't 2",
        "trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

/// A server whose answers call on, and what it knows of its place when it answers: its own span, and the header of its
/// own call.
fn calling_on() -> (impl Inner, Arc<parking_lot::Mutex<Vec<[String; 2]>>>) {
    let seen: Arc<parking_lot::Mutex<Vec<[String; 2]>>> = Arc::default();
    let sink = Arc::clone(&seen);
    let inner = answering(move |request: Request<Body>| {
        let header = request.headers().get("traceparent");
        let header = header.and_then(|header| header.to_str().ok()).unwrap_or_default();
        let mut own = HashMap::new();
        TraceContextPropagator::new().inject_context(&Context::current(), &mut own);
        let own = own.remove("traceparent").unwrap_or_default();
        sink.lock().push([own, header.to_owned()]);
        std::future::ready(refuse(Status::not_found("nothing")))
    });
    let client = TraceLayer::client(methods(), &Uri::from_static("http://order:50061"), false).layer(inner);
    let client = Arc::new(client);
    let front = TraceLayer::server(methods()).layer(answering(move |_| {
        let client = Arc::clone(&client);
        async move { call(&*client, request(CHECK)).await }
    }));
    (front, seen)
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn a_call_that_is_not_recorded_has_ids_all_the_same() {
    let recorded = record_as(&[("OTEL_TRACES_SAMPLER", "always_off")], true);
    let (front, seen) = calling_on();
    call(&front, request_with(CHECK, "traceparent", PARENT)).await;
    assert_eq!(recorded.spans().len(), 0);
    let seen = seen.lock().clone();
    let [[stored, header]] = seen.as_slice() else {
        panic!("{seen:?}");
    };
    assert_eq!(stored, header, "the only ids there are");
    assert!(
        header.contains(TRACE) && header.ends_with("-00") && !header.contains("00f067aa0ba902b7"),
        "{header}"
    );
    let lines = recorded.lines();
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(line.contains(&format!("trace_id={TRACE} ")), "{line}");
    let own = header.split('-').nth(2).expect("an id");
    assert!(line.contains(&format!("span_id={own}")), "{line}");
}

#[tokio::test]
async fn where_nobody_takes_spans_the_decision_is_handed_on() {
    let recorded = record_as(&[], false);
    let (front, seen) = calling_on();
    for (sent, flags) in [(PARENT.to_owned(), "-01"), (PARENT.replace("-01", "-00"), "-00")] {
        call(&front, request_with(CHECK, "traceparent", &sent)).await;
        let [_, header] = seen.lock().pop().expect("a call");
        assert!(header.contains(TRACE) && header.ends_with(flags), "{header}");
    }
    call(&front, request(CHECK)).await;
    let [_, header] = seen.lock().pop().expect("a call");
    assert!(header.ends_with("-01"), "a trace begins: {header}");
    assert_eq!(recorded.spans().len(), 0);
}

#[tokio::test]
async fn a_ratio_decides_by_the_id_that_the_trace_has() {
    let ratio = [
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
    ];
    let recorded = record_as(&ratio, true);
    let (front, seen) = calling_on();
    for _ in 0..200 {
        call(&front, request(CHECK)).await;
    }
    let spans = recorded.spans();
    let sampler = opentelemetry_sdk::trace::Sampler::TraceIdRatioBased(0.5);
    for [stored, _] in &*seen.lock() {
        let trace = stored.split('-').nth(1).expect("an id");
        let id = opentelemetry::trace::TraceId::from_hex(trace).expect("hexadecimal");
        let decided = opentelemetry_sdk::trace::ShouldSample::should_sample(
            &sampler,
            None,
            id,
            METHOD,
            &SpanKind::Server,
            &[],
            &[],
        );
        let wanted = decided.decision == opentelemetry_sdk::trace::SamplingDecision::RecordAndSample;
        let found = spans.iter().filter(|span| span.span_context.trace_id() == id);
        // The server's and its client's.
        assert_eq!(found.count(), if wanted { 2 } else { 0 }, "{stored}");
        assert_eq!(stored.ends_with("-01"), wanted, "{stored}");
    }
    assert!((40..360).contains(&spans.len()), "{} of 400", spans.len());
}

#[tokio::test]
async fn work_takes_its_ids_along_to_another_thread() {
    for sampler in ["always_off", "always_on"] {
        let recorded = record_as(&[("OTEL_TRACES_SAMPLER", sampler)], true);
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let server = TraceLayer::server(methods()).layer(answering(move |_| {
            let (trace, dispatch) = (Context::current(), dispatch.clone());
            let elsewhere = move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    let entered = trace.attach();
                    tracing::info!("elsewhere");
                    drop(entered);
                    tracing::info!("after it");
                });
            };
            std::thread::spawn(elsewhere).join().expect("no panic");
            std::future::ready(refuse(Status::ok("")))
        }));
        call(&server, request_with(CHECK, "traceparent", PARENT)).await;
        let lines = recorded.lines();
        let [within, after] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        assert!(within.contains(TRACE), "{sampler}: {within}");
        assert!(!after.contains("trace_id"), "{sampler}: {after}");
    }
}

#[tokio::test]
async fn what_is_told_in_a_call_is_in_its_span_and_spans_below_are_its_children() {
    let recorded = record();
    let service = server(|| {
        tracing::info!(rows = 3_u64, word = "w", "read");
        tracing::info_span!("below").in_scope(|| tracing::info!("told below"));
        refuse(Status::not_found("nothing"))
    });
    call(&service, request(CHECK)).await;
    let spans = recorded.spans();
    let [below, call] = spans.as_slice() else {
        panic!("{spans:#?}");
    };
    assert_eq!(below.parent_span_id, call.span_context.span_id());
    assert_eq!(below.span_context.trace_id(), call.span_context.trace_id());
    let told = |span: &opentelemetry_sdk::trace::SpanData| -> Vec<String> {
        span.events.iter().map(|event| event.name.to_string()).collect()
    };
    assert_eq!(told(below), ["told below"]);
    assert_eq!(told(call), ["read", "call refused"]);
    let read = call.events.iter().next().expect("an event");
    for (name, value) in [("level", "INFO"), ("rows", "3"), ("word", "w")] {
        let found = read.attributes.iter().find(|pair| pair.key.as_str() == name);
        assert_eq!(
            found.map(|pair| pair.value.to_string()).as_deref(),
            Some(value),
            "{name}"
        );
    }
}

fn damaged() -> Response<Body> {
    let status = crate::status::StatusBuilder::data_loss("ROW_DAMAGED", "a row is damaged");
    refuse(status.source("checksum 1 isn't 2"))
}

/// How a handler answers.
type Answer = fn() -> Response<Body>;

/// A server with another one of its process behind it, as a gateway is.
fn in_front_of(behind: impl Inner + 'static, answered: fn(Response<Body>) -> Response<Body>) -> impl Inner {
    let client = TraceLayer::client(methods(), &Uri::from_static("order"), true).layer(behind);
    let client = Arc::new(client);
    TraceLayer::server(methods()).layer(answering(move |request| {
        let client = Arc::clone(&client);
        async move { answered(call(&*client, request).await) }
    }))
}

#[tokio::test]
async fn a_server_of_the_process_takes_the_context_as_it_is() {
    let recorded = record();
    let behind = TraceLayer::server(methods()).layer(answering(|request: Request<Body>| {
        let context = Context::current();
        let trace = context.span().span_context().trace_id().to_string();
        assert!(PARENT.contains(&trace), "{trace}");
        let baggage = context.baggage().get("tenant").map(ToString::to_string);
        assert_eq!(baggage.as_deref(), Some("t1"));
        // As its caller had it: nothing was written for this server.
        let told = request.headers().get("traceparent");
        assert!(told.is_some_and(|told| PARENT.starts_with(&told.to_str().unwrap_or("?")[..53])));
        std::future::ready(refuse(Status::ok("")))
    }));
    let service = in_front_of(behind, |response| response);
    for parent in [PARENT.to_owned(), PARENT.replace("-01", "-00")] {
        let mut asked = request_with(CHECK, "traceparent", &parent);
        let baggage = http::HeaderValue::from_static("tenant=t1");
        asked.headers_mut().insert("baggage", baggage);
        call(&service, asked).await;
    }
    // The second call is sampled by none of them.
    let spans = recorded.spans();
    let [behind, client, front] = spans.as_slice() else {
        panic!("{spans:#?}");
    };
    assert_eq!(behind.parent_span_id, client.span_context.span_id());
    assert_eq!(client.parent_span_id, front.span_context.span_id());
    assert_eq!(front.parent_span_id.to_string(), "00f067aa0ba902b7");
}

#[tokio::test]
async fn two_servers_of_one_process_have_one_line_for_a_failed_call() {
    let behind: [(Answer, _); 2] = [
        (damaged, "checksum 1 isn't 2"),
        (
            || stream(1, Duration::ZERO, Code::ResourceExhausted),
            "RESOURCE_EXHAUSTED",
        ),
    ];
    for (answer, part) in behind {
        let recorded = record();
        let service = in_front_of(server(answer), |response| response);
        read_to_end(call(&service, request_with(CHECK, "traceparent", PARENT)).await).await;
        let lines = recorded.lines();
        let [line] = lines.as_slice() else {
            panic!("{lines:#?}");
        };
        assert!(line.contains(part), "{part}: {line}");
        assert_eq!(recorded.spans().len(), 3, "each has its span");
    }
    // What the one in front makes of it is its own to tell.
    let recorded = record();
    let other = in_front_of(server(damaged), |_| refuse(Status::not_found("nothing")));
    read_to_end(call(&other, request(CHECK)).await).await;
    let lines = recorded.lines();
    assert_eq!(lines.len(), 2, "{lines:#?}");
}
