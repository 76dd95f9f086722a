use std::time::Duration;

use futures_util::FutureExt as _;
use http::Response;
use tokio::sync::Notify;
use tonic::Code;
use tower::Layer as _;

use super::*;
use crate::callers::CallerName;
use crate::connection_info::ConnectionInfo;
use crate::layers::testing::{CHECK, NON_HEALTH, answering, call, methods, read_to_end, request, stream};
use crate::status::RETRY_AFTER;

/// Behind a front door; as many answers as there are streams, and as may wait.
fn layer(calls_max: usize, queue_max: usize, streams_max: usize) -> ConcurrencyLayer {
    limited(calls_max, queue_max, streams_max, false)
}

fn limited(calls_max: usize, queue_max: usize, streams_max: usize, by_origin: bool) -> ConcurrencyLayer {
    let limits = ConcurrencyLimits {
        calls_max,
        queue_max,
        streams_max,
        answers_max: calls_max + queue_max + streams_max,
        by_origin,
    };
    let meter = opentelemetry::global::meter("test");
    ConcurrencyLayer::new(limits, methods(), Sheds::new(&meter))
}

/// A method whose answer is no stream, and that isn't health.
const UNARY: &str = "/test.Echo/Say";

fn by(path: &str, name: &str) -> Request<Body> {
    let mut request = request(path);
    request.extensions_mut().insert(CallerName(name.into()));
    request
}

fn from(path: &str, address: &str) -> Request<Body> {
    let mut request = request(path);
    let info = ConnectionInfo::new(None, address.parse().expect("an address"));
    request.extensions_mut().insert(info);
    request
}

/// What the answer to a call is, if it is there at once.
fn at_once(call: impl Future<Output = Response<Body>>) -> Option<Option<String>> {
    let response = call.now_or_never()?;
    Some(
        response
            .extensions()
            .get::<Status>()
            .and_then(crate::status::reason),
    )
}

/// A service whose calls end one by one as `go` is notified.
fn waiting(layer: &ConcurrencyLayer) -> (impl Inner, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let inner = Arc::clone(&go);
    let service = layer.layer(answering(move |_| {
        let go = Arc::clone(&inner);
        async move {
            go.notified().await;
            refuse(Status::ok(""))
        }
    }));
    (service, go)
}

async fn code(response: Response<Body>) -> (Code, Option<String>) {
    let (_, status) = read_to_end(response).await;
    (status.code(), crate::status::reason(&status))
}

#[tokio::test]
async fn what_is_beyond_the_places_waits_and_beyond_the_queue_is_shed() {
    let (service, go) = waiting(&layer(1, 1, 8));
    let mut working = Box::pin(call(&service, request(UNARY)));
    let mut queued = Box::pin(call(&service, request(UNARY)));
    assert!(working.as_mut().now_or_never().is_none());
    assert!(queued.as_mut().now_or_never().is_none());

    let shed = call(&service, request(UNARY)).await;
    let status = shed
        .extensions()
        .get::<Status>()
        .cloned()
        .expect("the error itself");
    use tonic_types::StatusExt as _;
    assert_eq!(
        status.get_details_retry_info().and_then(|info| info.retry_delay),
        Some(RETRY_AFTER)
    );
    let shed = code(shed).await;
    assert_eq!(
        shed,
        (Code::ResourceExhausted, Some("CONCURRENCY_LIMIT".to_owned()))
    );

    go.notify_one();
    assert_eq!(code(working.await).await.0, Code::Ok);
    go.notify_one();
    assert_eq!(code(queued.await).await.0, Code::Ok);
}

#[tokio::test]
async fn a_call_that_is_given_up_in_the_queue_leaves_its_place_there() {
    let (service, go) = waiting(&layer(1, 1, 8));
    let mut working = Box::pin(call(&service, request(UNARY)));
    assert!(working.as_mut().now_or_never().is_none());
    for _ in 0..3 {
        let mut queued = Box::pin(call(&service, request(UNARY)));
        assert!(queued.as_mut().now_or_never().is_none(), "there is room to wait");
        drop(queued);
    }
    go.notify_one();
    assert_eq!(code(working.await).await.0, Code::Ok);
}

#[tokio::test]
async fn health_passes_a_full_server() {
    let (service, go) = waiting(&layer(1, 0, 8));
    let mut working = Box::pin(call(&service, request(UNARY)));
    assert!(working.as_mut().now_or_never().is_none());
    let mut health = Box::pin(call(&service, request(CHECK)));
    assert!(health.as_mut().now_or_never().is_none(), "not shed");
    go.notify_waiters();
    assert_eq!(code(health.await).await.0, Code::Ok);
}

#[tokio::test]
async fn questions_for_health_have_a_number_at_each_address_until_their_answers_are_taken() {
    let service = layer(1, 0, 8).layer(answering(|_| {
        std::future::ready(stream(1, Duration::ZERO, Code::Ok))
    }));
    // By whichever name of a method.
    let asked = ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Chuck"];
    let ask = |number: usize, address| call(&service, from(asked[number % 2], address));
    let mut unread = Vec::new();
    for number in 0..health::CALLS_PER_ADDRESS_MAX {
        unread.push(ask(number, "192.0.2.1:1").await);
    }
    let refused = code(ask(0, "192.0.2.1:2").await).await;
    let reason = Some("CALLER_HEALTH_LIMIT".to_owned());
    assert_eq!(refused, (Code::ResourceExhausted, reason));
    assert_eq!(code(ask(0, "192.0.2.2:1").await).await.0, Code::Ok);
    unread.pop();
    assert_eq!(code(ask(0, "192.0.2.1:1").await).await.0, Code::Ok);
}

#[test]
fn all_reasons_have_series_from_the_start() {
    for [all, share, _] in [CALLS, STREAMS, ANSWERS, HEALTH_CALLS] {
        for reason in [all, share] {
            assert!(crate::layers::shed::REASONS.contains(&reason), "{reason}");
        }
    }
}

#[tokio::test]
async fn open_streams_have_their_own_limit_and_hold_no_place_to_work() {
    let layer = layer(1, 0, 2);
    let service = layer.layer(answering(|_| {
        std::future::ready(stream(1, Duration::ZERO, Code::Ok))
    }));
    let first = call(&service, request(NON_HEALTH)).await;
    let second = call(&service, request(NON_HEALTH)).await;
    let third = call(&service, request(NON_HEALTH)).await;
    let third = code(third).await;
    assert_eq!(third, (Code::ResourceExhausted, Some("STREAM_LIMIT".to_owned())));
    drop(first);
    assert_eq!(code(second).await.0, Code::Ok);
    for _ in 0..3 {
        assert_eq!(code(call(&service, request(NON_HEALTH)).await).await.0, Code::Ok);
    }
}

#[tokio::test]
async fn idle_streams_of_one_caller_leave_room_for_others_and_refuse_no_finished_call() {
    let layer = layer(4, 0, 8);
    let service = layer.layer(answering(|_| {
        std::future::ready(stream(1, Duration::ZERO, Code::Ok))
    }));
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(call(&service, by(NON_HEALTH, "one")).await);
    }
    assert_eq!(
        at_once(call(&service, by(NON_HEALTH, "one"))),
        Some(Some("CALLER_STREAM_LIMIT".to_owned()))
    );
    open.push(call(&service, by(NON_HEALTH, "another")).await);
    assert_eq!(at_once(call(&service, by(UNARY, "one"))), Some(None));
    for response in open {
        assert_eq!(code(response).await.0, Code::Ok);
    }
    assert_eq!(at_once(call(&service, by(NON_HEALTH, "one"))), Some(None));
}

#[tokio::test]
async fn unary_calls_beyond_the_answers_are_refused_before_they_are_worked_on() {
    let worked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&worked);
    let service = layer(1, 0, 5).layer(answering(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::future::ready(stream(1, Duration::ZERO, Code::Ok))
    }));
    // Answers that nobody takes.
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(call(&service, by(UNARY, "one")).await);
    }
    let refused = code(call(&service, by(UNARY, "one")).await).await;
    let reason = Some("CALLER_RESPONSE_LIMIT".to_owned());
    assert_eq!(refused, (Code::ResourceExhausted, reason));
    assert_eq!(worked.load(std::sync::atomic::Ordering::Relaxed), 3);
    assert_eq!(code(call(&service, by(UNARY, "another")).await).await.0, Code::Ok);
}

#[tokio::test]
async fn a_caller_works_in_half_of_the_places_and_waits_for_its_own_calls() {
    let layer = layer(4, 8, 8);
    let (service, go) = waiting(&layer);
    let mut calls: Vec<_> = (0..6)
        .map(|_| Box::pin(call(&service, by(UNARY, "one"))))
        .collect();
    for waits in &mut calls {
        assert!(waits.as_mut().now_or_never().is_none(), "two work, four wait");
    }
    assert_eq!(
        at_once(call(&service, by(UNARY, "one"))),
        Some(Some("CALLER_CONCURRENCY_LIMIT".to_owned())),
        "half of the queue is its share, too"
    );
    // Another one finds a place.
    let mut other = Box::pin(call(&service, by(UNARY, "another")));
    assert!(other.as_mut().now_or_never().is_none());
    assert_eq!(layer.places.free.available_permits(), 1);
    go.notify_waiters();
    assert_eq!(code(other.await).await.0, Code::Ok);
    let all = futures_util::future::join_all(calls);
    let done = async {
        loop {
            go.notify_waiters();
            tokio::task::yield_now().await;
        }
    };
    let answers = tokio::select! {
        answers = all => answers,
        () = done => unreachable!("it never ends"),
    };
    for answer in answers {
        assert_eq!(code(answer).await.0, Code::Ok);
    }
    assert_eq!(layer.places.free.available_permits(), 4);
}

#[tokio::test(start_paused = true)]
async fn of_those_who_wait_for_their_caller_one_looks() {
    let (service, _go) = waiting(&layer(1, 64, 8));
    let mut working = Box::pin(call(&service, by(UNARY, "one")));
    assert!(working.as_mut().now_or_never().is_none());
    let polls = std::cell::Cell::new(0);
    let mut waiting: futures_util::stream::FuturesUnordered<_> = (0..20)
        .map(|_| {
            let (polls, mut call) = (&polls, Box::pin(call(&service, by(UNARY, "one"))));
            std::future::poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                call.as_mut().poll(cx)
            })
        })
        .collect();
    let one = futures_util::StreamExt::next(&mut waiting);
    let waited = tokio::time::timeout(Duration::from_secs(1), one).await;
    assert!(waited.is_err(), "the place is taken");
    assert!(polls.get() <= 20 + 60, "{} polls", polls.get());
}

#[tokio::test]
async fn where_all_is_taken_who_asks_for_much_makes_nobody_wait_longer() {
    let (service, go) = waiting(&layer(1, 64, 8));
    let mut working = Box::pin(call(&service, by(UNARY, "one")));
    assert!(working.as_mut().now_or_never().is_none());
    let mut greedy: Vec<_> = (0..20)
        .map(|_| Box::pin(call(&service, by(UNARY, "one"))))
        .collect();
    for call in &mut greedy {
        assert!(call.as_mut().now_or_never().is_none());
    }
    let mut other = Box::pin(call(&service, by(UNARY, "another")));
    assert!(other.as_mut().now_or_never().is_none());
    go.notify_one();
    assert_eq!(code(working.await).await.0, Code::Ok);
    // One of the first caller's may be in front of it, no more.
    for call in &mut greedy {
        assert!(call.as_mut().now_or_never().is_none());
    }
    go.notify_one();
    let mut answered = 0;
    for call in &mut greedy {
        answered += usize::from(call.as_mut().now_or_never().is_some());
    }
    go.notify_one();
    assert!(answered <= 1, "{answered}");
    assert_eq!(code(other.await).await.0, Code::Ok);
}

#[tokio::test]
async fn callers_without_a_name_are_told_apart_at_a_front_door_alone_and_not_on_this_machine() {
    for (by_origin, address, open) in [
        (true, "192.0.2.1:1", 4),
        (true, "127.0.0.1:1", 8),
        (true, "[::1]:1", 8),
        (false, "192.0.2.1:1", 8),
    ] {
        let service = limited(4, 0, 8, by_origin).layer(answering(|_| {
            std::future::ready(stream(1, Duration::ZERO, Code::Ok))
        }));
        let mut streams = Vec::new();
        loop {
            let response = call(&service, from(NON_HEALTH, address)).await;
            if response.extensions().get::<Status>().is_some() {
                break;
            }
            streams.push(response);
        }
        assert_eq!(streams.len(), open, "{address}, {by_origin}");
    }
}
