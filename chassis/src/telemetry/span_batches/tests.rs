use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::SystemTime;

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};
use prost::Message as _;
use tokio::runtime::Builder;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

/// Time for a batch to come, far more than it takes.
const COMES_MAX: Duration = Duration::from_secs(10);

/// Later than any test ends.
const NEVER: Duration = Duration::from_secs(3600);

/// Shows what it takes, and answers when it is told what.
struct Shown {
    taken: Sender<ExportTraceServiceRequest>,
    answers: Option<Receiver<Result<(), tonic::Status>>>,
}

impl Collector for Shown {
    async fn take(&mut self, request: Bytes) -> Result<(), tonic::Status> {
        let request = ExportTraceServiceRequest::decode(request).expect("a request");
        // A test that is over doesn't listen.
        let _ = self.taken.send(request);
        match &self.answers {
            Some(answers) => answers.recv().expect("the test answers"),
            None => Ok(()),
        }
    }
}

fn batching(delay: Duration, queue_max: usize, batch_max: usize) -> Batching {
    Batching {
        delay,
        queue_max,
        batch_max,
    }
}

fn start(
    batching: Batching,
    answers: Option<Receiver<Result<(), tonic::Status>>>,
) -> (SpanBatches, Receiver<ExportTraceServiceRequest>) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (taken, shown) = channel();
    let mut batches = SpanBatches::start(batching, runtime, Shown { taken, answers }).expect("a thread");
    batches.set_resource(&Resource::builder_empty().with_service_name("test").build());
    (batches, shown)
}

fn span(name: &'static str, scope: &'static str, sampled: bool) -> SpanData {
    let flags = if sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::default()
    };
    SpanData {
        span_context: SpanContext::new(TraceId::from(1), SpanId::from(2), flags, false, TraceState::NONE),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Server,
        name: Cow::Borrowed(name),
        start_time: SystemTime::UNIX_EPOCH,
        end_time: SystemTime::UNIX_EPOCH,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder(scope).build(),
    }
}

/// Scopes and spans of one resource.
fn names(request: ExportTraceServiceRequest) -> Vec<(String, Vec<String>)> {
    let [of_process] = request.resource_spans.as_slice() else {
        panic!("{request:?}");
    };
    let of_resource = of_process.resource.as_ref().expect("a resource");
    assert_eq!(of_resource.attributes[0].key, "service.name");
    let scopes = of_process.scope_spans.iter();
    scopes
        .map(|of| {
            let spans = of.spans.iter().map(|span| span.name.clone());
            (of.scope.as_ref().expect("a scope").name.clone(), spans.collect())
        })
        .collect()
}

fn of_souk(spans: &[&str]) -> Vec<(String, Vec<String>)> {
    vec![(
        "souk".to_owned(),
        spans.iter().map(|&name| name.to_owned()).collect(),
    )]
}

#[test]
fn a_full_batch_is_sent_at_once_and_the_rest_by_a_flush() {
    let (batches, shown) = start(batching(NEVER, 100, 2), None);
    for name in ["a", "b", "c"] {
        batches.on_end(span(name, "souk", true));
        batches.on_end(span("unsampled", "souk", false));
    }
    let first = shown.recv_timeout(COMES_MAX).expect("a batch");
    assert_eq!(names(first), of_souk(&["a", "b"]));
    assert!(shown.try_recv().is_err(), "the other one isn't full");
    batches.force_flush().expect("a flush");
    assert_eq!(names(shown.try_recv().expect("it is sent")), of_souk(&["c"]));
    batches.force_flush().expect("nothing to send");
    assert!(shown.try_recv().is_err());
}

#[test]
fn a_batch_is_sent_when_it_is_old_enough() {
    let (batches, shown) = start(batching(Duration::from_millis(1), 100, 100), None);
    for name in ["a", "b"] {
        batches.on_end(span(name, "souk", true));
        let sent = shown.recv_timeout(COMES_MAX).expect("a batch");
        assert_eq!(names(sent), of_souk(&[name]));
    }
}

#[test]
fn spans_are_sent_by_their_scopes() {
    let (batches, shown) = start(batching(NEVER, 100, 100), None);
    for (name, scope) in [("a", "souk"), ("b", "other"), ("c", "souk")] {
        batches.on_end(span(name, scope, true));
    }
    batches.force_flush().expect("a flush");
    let sent = names(shown.try_recv().expect("it is sent"));
    let mut expected = of_souk(&["a", "c"]);
    expected.push(("other".to_owned(), vec!["b".to_owned()]));
    assert_eq!(sent, expected);
}

#[test]
fn what_the_queue_has_no_place_for_is_dropped_and_counted() {
    let (answer, answers) = channel();
    let (batches, shown) = start(batching(NEVER, 3, 1), Some(answers));
    batches.on_end(span("a", "souk", true));
    let sending = shown.recv_timeout(COMES_MAX).expect("a batch");
    assert_eq!(names(sending), of_souk(&["a"]));
    for name in ["b", "c", "lost", "lost, too"] {
        batches.on_end(span(name, "souk", true));
    }
    assert_eq!(batches.shared.queue.lock().dropped, 2);
    for _ in 0..4 {
        answer.send(Ok(())).expect("it waits for answers");
    }
    batches.force_flush().expect("a flush");
    batches.on_end(span("d", "souk", true));
    batches.shutdown_with_timeout(COMES_MAX).expect("an end");
    let sent: Vec<_> = shown.try_iter().map(names).collect();
    assert_eq!(sent, [of_souk(&["b"]), of_souk(&["c"]), of_souk(&["d"])]);
}

/// Counts what a thread logs.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Lines {
    fn on_event(&self, _: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The span that ends is locked meanwhile: a line in it would wait for itself.
#[test]
fn who_ends_a_span_that_is_dropped_logs_nothing() {
    let (batches, _shown) = start(batching(NEVER, 1, 10), None);
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    tracing::subscriber::with_default(subscriber, || {
        tracing::warn!("heard");
        for _ in 0..3 {
            batches.on_end(span("a", "souk", true));
        }
    });
    assert_eq!(batches.shared.queue.lock().dropped, 2);
    assert_eq!(lines.0.load(Ordering::Relaxed), 1);
}

#[test]
fn a_batch_that_is_lost_is_told_of_and_the_next_is_sent() {
    let (answer, answers) = channel();
    let (batches, shown) = start(batching(NEVER, 10, 10), Some(answers));
    batches.on_end(span("a", "souk", true));
    answer
        .send(Err(tonic::Status::invalid_argument("no")))
        .expect("it waits for answers");
    let error = batches.force_flush().expect_err("it was refused");
    assert!(error.to_string().contains("InvalidArgument"), "{error}");
    batches.on_end(span("b", "souk", true));
    answer.send(Ok(())).expect("it waits for answers");
    batches.force_flush().expect("a flush");
    let sent: Vec<_> = shown.try_iter().map(names).collect();
    assert_eq!(sent, [of_souk(&["a"]), of_souk(&["b"])]);
}

#[test]
fn nothing_is_taken_after_the_end() {
    let (batches, shown) = start(batching(NEVER, 10, 10), None);
    batches.on_end(span("a", "souk", true));
    batches.shutdown_with_timeout(COMES_MAX).expect("an end");
    assert_eq!(names(shown.try_recv().expect("it is sent")), of_souk(&["a"]));
    batches.on_end(span("b", "souk", true));
    assert_eq!(batches.shared.queue.lock().spans, 0);
    assert!(matches!(
        batches.force_flush(),
        Err(OTelSdkError::AlreadyShutdown)
    ));
    assert!(matches!(batches.shutdown(), Err(OTelSdkError::AlreadyShutdown)));
}
