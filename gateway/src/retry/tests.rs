use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;

use http::HeaderValue;
use http_body_util::{BodyExt as _, Full};
use souk_chassis::client::Client;
use souk_chassis::status::StatusBuilder;
use tokio::time::Instant;
use tonic::Status;
use tower::service_fn;

use super::*;
use crate::metrics::testing::TestMeter;

const GET: &str = "/souk.shop.v1.ShopService/GetShop";
const CREATE: &str = "/souk.shop.v1.ShopService/CreateShop";

/// What a backend was sent: the header of earlier attempts and the body.
type Seen = Arc<parking_lot::Mutex<Vec<(Option<String>, Bytes)>>>;

/// A way to a backend that refuses so often before it answers.
fn refusing(times: usize, refusal: impl Fn() -> Status + Clone + Send + Sync + 'static) -> (Retry, Seen) {
    let (retry, seen, _) = measured(1, times, refusal);
    (retry, seen)
}

/// The same to so many processes together, and what is counted.
fn measured(
    processes: usize,
    times: usize,
    refusal: impl Fn() -> Status + Clone + Send + Sync + 'static,
) -> (Retry, Seen, TestMeter) {
    let seen = Seen::default();
    let (noted, count) = (Arc::clone(&seen), Arc::new(AtomicUsize::new(0)));
    let backend = service_fn(move |request: Request<Body>| {
        let (noted, count, refusal) = (Arc::clone(&noted), Arc::clone(&count), refusal.clone());
        async move {
            let before = request.headers().get(PREVIOUS_ATTEMPTS);
            let before = before.map(|before| before.to_str().expect("digits").to_owned());
            // The limit of messages is somebody else's: here a body may have any error.
            let body = request.into_body().collect().await.map(|body| body.to_bytes());
            noted.lock().push((before, body.unwrap_or_default()));
            let refuses = count.fetch_add(1, Ordering::Relaxed) < times;
            let status = if refuses { refusal() } else { Status::ok("") };
            Ok::<_, Infallible>(status.into_http())
        }
    });
    let methods = Methods::read(&[souk_proto::FILE_DESCRIPTOR_SET], |_| true).expect("our own descriptors");
    let client = Client::local(backend, "shop", methods.clone());
    let (measured, name) = (TestMeter::new(), "shop".into());
    let clients = (0..processes).map(|process| (process, client.clone()));
    let balance = Balance::new(clients, &name, &measured.meter());
    let config = RetryConfig::default();
    let retry = Retry::new(balance, methods, config, &name, &measured.meter());
    (retry, seen, measured)
}

fn request(path: &str, body: &'static [u8]) -> Request<Body> {
    let body = Body::new(Full::new(Bytes::from_static(body)));
    Request::builder().uri(path).body(body).expect("a request")
}

async fn code(retry: &Retry, request: Request<Body>) -> Code {
    let response = retry.clone().call(request).await;
    Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code())
}

fn unavailable() -> Status {
    Status::unavailable("not now")
}

#[tokio::test(start_paused = true)]
async fn a_safe_call_is_sent_again_as_it_was_and_says_how_often() {
    let (retry, seen, measured) = measured(1, 2, unavailable);
    assert_eq!(measured.sum(&RETRIES), Some(0), "a series from the beginning");
    assert_eq!(code(&retry, request(GET, b"body")).await, Code::Ok);
    assert_eq!(measured.sum(&RETRIES), Some(2));
    assert_eq!(measured.sum(&RETRIES_REFUSED), Some(0));
    let seen = seen.lock().clone();
    let body = Bytes::from_static(b"body");
    assert_eq!(
        seen,
        [None, Some("1"), Some("2")].map(|before| (before.map(str::to_owned), body.clone()))
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_sent_before_counts_too() {
    for (told, expected) in [("2", ["2", "3"]), ("a few", ["a few", "1"])] {
        let (retry, seen) = refusing(1, unavailable);
        let mut again = request(GET, b"");
        again
            .headers_mut()
            .insert(PREVIOUS_ATTEMPTS, HeaderValue::from_static(told));
        assert_eq!(code(&retry, again).await, Code::Ok);
        let seen: Vec<_> = seen
            .lock()
            .iter()
            .filter_map(|(before, _)| before.clone())
            .collect();
        assert_eq!(seen, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_repeated_is_not() {
    let (retry, seen) = refusing(1, unavailable);
    assert_eq!(code(&retry, request(CREATE, b"")).await, Code::Unavailable);
    assert_eq!(seen.lock().len(), 1, "it may have been done");
    for other in [
        Code::DeadlineExceeded,
        Code::ResourceExhausted,
        Code::Aborted,
        Code::Internal,
    ] {
        let (retry, seen) = refusing(1, move || Status::new(other, ""));
        assert_eq!(code(&retry, request(GET, b"")).await, other);
        assert_eq!(seen.lock().len(), 1, "{other:?}");
    }
    static LARGE: [u8; 100_000] = [7; 100_000];
    let (retry, seen) = refusing(1, unavailable);
    assert_eq!(code(&retry, request(GET, &LARGE)).await, Code::Unavailable);
    let sent: Vec<_> = seen.lock().iter().map(|(_, body)| body.len()).collect();
    assert_eq!(sent, [LARGE.len()], "whole, and once");
}

#[tokio::test(start_paused = true)]
async fn the_backends_word_on_when_to_come_back_is_kept() {
    let says = |millis: u64| {
        let wait = Duration::from_millis(millis);
        move || {
            StatusBuilder::unavailable("DRAINING", "going")
                .retry_after(wait)
                .build()
        }
    };
    let began = Instant::now();
    let (retry, _) = refusing(2, says(700));
    assert_eq!(code(&retry, request(GET, b"")).await, Code::Ok);
    assert_eq!(began.elapsed(), Duration::from_millis(1_400));

    // Longer than anybody waits here, and a word that means never.
    let began = Instant::now();
    let (retry, seen) = refusing(1, says(60_000));
    assert_eq!(code(&retry, request(GET, b"")).await, Code::Unavailable);
    assert_eq!(seen.lock().len(), 1);
    let never = || {
        let mut status = unavailable();
        status.metadata_mut().insert(RETRY_PUSHBACK, (-1).into());
        status
    };
    let (retry, seen) = refusing(1, never);
    assert_eq!(code(&retry, request(GET, b"")).await, Code::Unavailable);
    assert_eq!(seen.lock().len(), 1);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_isnt_available_of_a_process_is_asked_of_another_at_once_and_costs_nothing() {
    let building = || {
        StatusBuilder::unavailable("INDEX_BUILDING", "search again later")
            .resource("index", "shops", "is being built")
            .retry_after(Duration::from_secs(1))
            .build()
    };
    for (processes, times, expected, sent) in [
        (1, 1, Code::Unavailable, 1),
        (2, 1, Code::Ok, 2),
        (2, 2, Code::Unavailable, 2),
    ] {
        let (retry, seen, _) = measured(processes, times, building);
        let began = Instant::now();
        let code = code(&retry, request(GET, b"")).await;
        assert_eq!((code, seen.lock().len()), (expected, sent), "{processes} {times}");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(retry.budget.0.load(Ordering::Relaxed), BUDGET_MAX);
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_to_an_end() {
    let began = Instant::now();
    let (retry, seen) = refusing(usize::MAX, unavailable);
    assert_eq!(code(&retry, request(GET, b"")).await, Code::Unavailable);
    // 100, 200, 400, 800 and 1,000 ms, each 0.8 to 1.2 times.
    assert!((5..=6).contains(&seen.lock().len()), "{}", seen.lock().len());
    let took = began.elapsed().as_millis();
    assert!((1_200..=3_000).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_fails_all_is_soon_asked_once_for_each_call() {
    let (retry, seen) = refusing(usize::MAX, unavailable);
    let calls = 300;
    for _ in 0..calls {
        assert_eq!(code(&retry, request(GET, b"")).await, Code::Unavailable);
    }
    // Half of the budget of 1,000 is repeated, and each call is sent once in any case.
    let sent = seen.lock().len();
    assert!(sent <= 500 + calls, "{sent}");
    retry.budget.answered();
    let before = seen.lock().len();
    assert_eq!(code(&retry, request(GET, b"")).await, Code::Unavailable);
    assert_eq!(seen.lock().len(), before + 1);
}

#[tokio::test]
async fn bodies_in_frames_of_a_byte_are_kept_as_one_and_larger_ones_pass_in_order() {
    let body = |bytes: &'static [u8]| {
        let frames = bytes
            .iter()
            .map(|byte| Ok::<_, Status>(Frame::data(Bytes::copy_from_slice(&[*byte]))));
        Body::new(StreamBody::new(stream::iter(frames.collect::<Vec<_>>())))
    };
    let kept = keep(body(b"abc"), 3).await;
    assert_eq!(kept.ok().as_deref(), Some(&b"abc"[..]));
    let larger = keep(body(b"abcdef"), 3).await.expect_err("more than is kept");
    let larger = larger.collect().await.expect("all of it").to_bytes();
    assert_eq!(&*larger, b"abcdef");
}
