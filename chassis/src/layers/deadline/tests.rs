use http::Response;
use tonic::Code;
use tower::Layer as _;

use super::*;
use crate::layers::AnyService;
use crate::layers::testing::{CHECK, answering, call, end, request, request_with, stream};

impl Deadline {
    /// The deadline `time` from now.
    pub(crate) fn after(time: Duration) -> Self {
        Self {
            at: Instant::now() + time,
            asked: None,
        }
    }

    /// Runs `work` as a call that has this.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }
}

const DEFAULT: Duration = Duration::from_secs(10);
const MAX: Duration = Duration::from_secs(60);

fn layer() -> DeadlineLayer {
    DeadlineLayer::new(DEFAULT, MAX)
}

#[test]
fn timeouts_are_read_as_the_protocol_writes_them() {
    let read = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(GRPC_TIMEOUT, text.parse().expect("a header"));
        parse(&headers)
    };
    for (text, time) in [
        ("1n", Duration::from_nanos(1)),
        ("100u", Duration::from_micros(100)),
        ("100m", Duration::from_millis(100)),
        ("5S", Duration::from_secs(5)),
        ("2M", Duration::from_secs(120)),
        ("99999999H", Duration::from_nanos(u64::MAX)),
        ("0S", Duration::ZERO),
    ] {
        assert_eq!(read(text).expect(text), Some(time), "{text}");
    }
    for text in ["", "S", "5", "5s", "-5S", "5.5S", "123456789S", "5 S", "S5"] {
        let status = read(text).expect_err(text);
        assert_eq!(status.code(), Code::InvalidArgument, "{text}");
    }
    assert_eq!(parse(&HeaderMap::new()).expect("none"), None);
}

#[tokio::test]
async fn a_malformed_time_is_refused_behind_those_who_judge_callers() {
    let asked = || request_with(CHECK, GRPC_TIMEOUT, "x");
    let judges = layer().layer(answering(|_| {
        std::future::ready(refuse(Status::unauthenticated("who are you?")))
    }));
    let (_, status) = end(call(&judges, asked()).await).await;
    assert_eq!(status.code(), Code::Unauthenticated);
    let behind = MalformedTimeoutLayer.layer(answering(|_| std::future::ready(refuse(Status::ok("")))));
    let (_, status) = end(call(&layer().layer(AnyService::layered(behind)), asked()).await).await;
    assert_eq!(
        crate::status::reason(&status).as_deref(),
        Some("GRPC_TIMEOUT_INVALID")
    );
}

#[test]
fn what_is_written_is_read_again_and_never_more() {
    // Linear congruential (Knuth, MMIX): any spread of magnitudes will do.
    let mut state = souk_seeds::seed();
    for _ in 0..1_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let time = Duration::from_nanos(state >> (state % 60));
        let mut headers = HeaderMap::new();
        let written = format(time);
        assert!(written.is_sensitive(), "connections would remember it");
        headers.insert(GRPC_TIMEOUT, written);
        let again = parse(&headers).expect("well-formed").expect("a time");
        assert!(again <= time, "{time:?} became {again:?}");
        // At least five of the eight digits are in use.
        assert!(time - again <= time / 90_000, "{time:?} became {again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_smallest_of_default_asked_and_maximum_ends_a_call() {
    for (asked, limit, by) in [
        (None, DEFAULT, "server"),
        (Some("3S"), Duration::from_secs(3), "grpc-timeout"),
        (Some("20S"), Duration::from_secs(20), "grpc-timeout"),
        (Some("2M"), MAX, "server"),
    ] {
        let service = layer().layer(answering(|_| std::future::pending::<Response<Body>>()));
        let started = Instant::now();
        let request = match asked {
            Some(asked) => request_with(CHECK, GRPC_TIMEOUT, asked),
            None => request(CHECK),
        };
        let (_, status) = end(call(&service, request).await).await;
        assert_eq!(status.code(), Code::DeadlineExceeded, "{asked:?}");
        assert!(started.elapsed() >= limit && started.elapsed() < limit + Duration::from_secs(1));
        use tonic_types::StatusExt as _;
        let info = status.get_details_error_info().expect("an ErrorInfo");
        assert_eq!(info.reason, "DEADLINE_EXCEEDED");
        assert_eq!(info.metadata["limited_by"], by, "{asked:?}");
        assert_eq!(info.metadata["timeout_ms"], limit.as_millis().to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_headers_only_the_clients_own_time_counts() {
    let slow = || stream(3, Duration::from_secs(40), Code::Ok);
    let service = layer().layer(answering(move |_| std::future::ready(slow())));
    let (_, status) = end(call(&service, request(CHECK)).await).await;
    assert_eq!(status.code(), Code::Ok, "160 s, and nobody asked for less");
    let asked = request_with(CHECK, GRPC_TIMEOUT, "100S");
    let started = Instant::now();
    let (bytes, status) = end(call(&service, asked).await).await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(!bytes.is_empty(), "what was in time arrived");
    assert!(started.elapsed() < Duration::from_secs(101));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_whole_ends_in_the_time_that_its_call_is_given() {
    let slow = || stream(3, Duration::from_secs(40), Code::Ok);
    let service = layer().layer(answering(move |_| std::future::ready(slow())));
    for (asked, limit, by) in [
        (None, DEFAULT, "server"),
        (Some("50S"), Duration::from_secs(50), "grpc-timeout"),
        (Some("2M"), MAX, "server"),
    ] {
        let mut request = match asked {
            Some(asked) => request_with(CHECK, GRPC_TIMEOUT, asked),
            None => request(CHECK),
        };
        request.extensions_mut().insert(AnsweredWhole);
        let started = Instant::now();
        let (_, status) = end(call(&service, request).await).await;
        assert_eq!(status.code(), Code::DeadlineExceeded, "{asked:?}");
        assert!(started.elapsed() >= limit && started.elapsed() < limit + Duration::from_secs(1));
        use tonic_types::StatusExt as _;
        let info = status.get_details_error_info().expect("an ErrorInfo");
        assert_eq!(info.metadata["limited_by"], by, "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_work_is_dropped_when_its_time_is_over() {
    struct Stopped(std::sync::Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Stopped {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let stopped = std::sync::Arc::default();
    let for_work = std::sync::Arc::clone(&stopped);
    let service = layer().layer(answering(move |_| {
        let stopped = Stopped(std::sync::Arc::clone(&for_work));
        async move {
            std::future::pending::<()>().await;
            drop(stopped);
            unreachable!("it never ends")
        }
    }));
    call(&service, request(CHECK)).await;
    assert!(stopped.load(std::sync::atomic::Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn a_handler_knows_its_time_and_can_hand_it_on() {
    let service = layer().layer(answering(|request: Request<Body>| async move {
        let current = Deadline::current().expect("a deadline");
        assert_eq!(request.extensions().get::<Deadline>(), Some(&current));
        assert_eq!(current.remaining(), Duration::from_secs(3));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(current.remaining(), Duration::from_secs(2));
        assert_eq!(current.asked_remaining(), Some(Duration::from_secs(2)));
        let spawned = tokio::spawn(current.scope(async { Deadline::current() }));
        assert_eq!(spawned.await.expect("no panic"), Some(current));
        refuse(Status::ok(""))
    }));
    let response = call(&service, request_with(CHECK, GRPC_TIMEOUT, "3S")).await;
    assert_eq!(end(response).await.1.code(), Code::Ok);
    assert_eq!(Deadline::current(), None);
}
