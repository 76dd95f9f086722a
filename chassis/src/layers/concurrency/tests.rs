use futures_util::FutureExt as _;
use tokio::sync::Notify;
use tonic::Code;

use super::*;
use crate::layers::testing::{CALL, CHECK, answering, call, end, request, stream};

fn layer(calls_max: usize, queue_max: usize, bodies_max: usize) -> ConcurrencyLayer {
    let meter = opentelemetry::global::meter("test");
    ConcurrencyLayer::new(calls_max, queue_max, bodies_max, Sheds::new(&meter))
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
    let (_, status) = end(response).await;
    (status.code(), crate::status::reason(&status))
}

#[tokio::test]
async fn what_is_beyond_the_places_waits_and_beyond_the_queue_is_shed() {
    let (service, go) = waiting(&layer(1, 1, 8));
    let mut working = Box::pin(call(&service, request(CALL)));
    let mut queued = Box::pin(call(&service, request(CALL)));
    assert!(working.as_mut().now_or_never().is_none());
    assert!(queued.as_mut().now_or_never().is_none());

    let shed = call(&service, request(CALL)).await;
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
    let mut working = Box::pin(call(&service, request(CALL)));
    assert!(working.as_mut().now_or_never().is_none());
    for _ in 0..3 {
        let mut queued = Box::pin(call(&service, request(CALL)));
        assert!(queued.as_mut().now_or_never().is_none(), "there is room to wait");
        drop(queued);
    }
    go.notify_one();
    assert_eq!(code(working.await).await.0, Code::Ok);
}

#[tokio::test]
async fn health_passes_a_full_server() {
    let (service, go) = waiting(&layer(1, 0, 8));
    let mut working = Box::pin(call(&service, request(CALL)));
    assert!(working.as_mut().now_or_never().is_none());
    let mut health = Box::pin(call(&service, request(CHECK)));
    assert!(health.as_mut().now_or_never().is_none(), "not shed");
    go.notify_waiters();
    assert_eq!(code(health.await).await.0, Code::Ok);
}

#[tokio::test]
async fn open_streams_have_their_own_limit_and_hold_no_place_to_work() {
    let layer = layer(1, 0, 2);
    let service = layer.layer(answering(|_| {
        std::future::ready(stream(1, Duration::ZERO, Code::Ok))
    }));
    let first = call(&service, request(CALL)).await;
    let second = call(&service, request(CALL)).await;
    let third = call(&service, request(CALL)).await;
    let third = code(third).await;
    assert_eq!(
        third,
        (Code::ResourceExhausted, Some("RESPONSE_LIMIT".to_owned()))
    );
    drop(first);
    assert_eq!(code(second).await.0, Code::Ok);
    for _ in 0..3 {
        assert_eq!(code(call(&service, request(CALL)).await).await.0, Code::Ok);
    }
}
