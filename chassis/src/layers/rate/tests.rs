use tonic::Code;
use tonic_types::StatusExt as _;

use super::callers::Callers;
use super::*;
use crate::ends::Ends;
use crate::layers::caller::Caller;
use crate::layers::refuse;
use crate::layers::testing::{CALL, CHECK, answering, call, end, request};
use crate::tls::TlsPeer;

fn limited(config: &RateConfig) -> impl Inner + use<> {
    let sheds = Sheds::new(&opentelemetry::global::meter("test"));
    RateLayer::new(config, sheds).layer(answering(|_| std::future::ready(refuse(Status::ok("")))))
}

fn from(address: &str) -> Request<Body> {
    to(CALL, address)
}

fn to(path: &str, address: &str) -> Request<Body> {
    let mut request = request(path);
    let ends = Ends::new(None, address.parse().expect("an address"));
    request.extensions_mut().insert(ends);
    request
}

async fn code(service: &impl Inner, request: Request<Body>) -> Code {
    end(call(service, request).await).await.1.code()
}

#[tokio::test(start_paused = true)]
async fn a_burst_passes_then_the_rate_and_each_refusal_says_when_to_come_back() {
    let service = limited(&RateConfig {
        calls_per_second: 10,
        burst: 3,
        ..RateConfig::default()
    });
    for _ in 0..3 {
        assert_eq!(code(&service, request(CALL)).await, Code::Ok);
    }
    let (_, status) = end(call(&service, request(CALL)).await).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(crate::status::reason(&status).as_deref(), Some("RATE_LIMIT"));
    let wait = status.get_details_retry_info().and_then(|info| info.retry_delay);
    assert_eq!(wait, Some(Duration::from_millis(100)));
    assert_eq!(
        status.metadata().get("grpc-retry-pushback-ms").expect("a time"),
        "100"
    );
    assert_eq!(code(&service, request(CHECK)).await, Code::Ok, "health passes");
    tokio::time::advance(Duration::from_millis(100)).await;
    assert_eq!(code(&service, request(CALL)).await, Code::Ok);
    assert_eq!(code(&service, request(CALL)).await, Code::ResourceExhausted);
}

#[tokio::test(start_paused = true)]
async fn one_callers_limit_is_not_anothers() {
    let service = limited(&RateConfig {
        caller_calls_per_second: 1,
        ..RateConfig::default()
    });
    assert_eq!(code(&service, from("192.0.2.1:1")).await, Code::Ok);
    assert_eq!(
        code(&service, from("192.0.2.1:2")).await,
        Code::ResourceExhausted,
        "another port"
    );
    assert_eq!(
        code(&service, from("192.0.2.2:1")).await,
        Code::Ok,
        "another host"
    );
    assert_eq!(code(&service, from("[2001:db8::1]:1")).await, Code::Ok);
    assert_eq!(
        code(&service, from("[2001:db8::2]:1")).await,
        Code::ResourceExhausted,
        "its neighbour"
    );
    assert_eq!(
        code(&service, from("[2001:db8:0:1::1]:1")).await,
        Code::Ok,
        "another network"
    );
    // A name counts more than an address, and the one that was found out here more than that of a certificate.
    let named = |name: &str| {
        let mut request = from("192.0.2.1:1");
        let peer = TlsPeer {
            version: "1.3",
            name: Some("gateway".into()),
        };
        request.extensions_mut().insert(peer);
        if !name.is_empty() {
            request.extensions_mut().insert(Caller(name.into()));
        }
        request
    };
    for name in ["", "alice", "bob"] {
        assert_eq!(code(&service, named(name)).await, Code::Ok, "{name}");
        assert_eq!(
            code(&service, named(name)).await,
            Code::ResourceExhausted,
            "{name}"
        );
    }
    // Calls of this process have no caller.
    for _ in 0..3 {
        assert_eq!(code(&service, request(CALL)).await, Code::Ok);
    }
}

#[tokio::test(start_paused = true)]
async fn health_has_a_rate_of_its_own_at_each_address() {
    let service = limited(&RateConfig {
        caller_calls_per_second: 1,
        ..RateConfig::default()
    });
    for path in [CALL, CHECK] {
        assert_eq!(code(&service, to(path, "192.0.2.1:1")).await, Code::Ok, "{path}");
        let again = code(&service, to(path, "192.0.2.1:2")).await;
        assert_eq!(again, Code::ResourceExhausted, "{path}");
    }
    assert_eq!(code(&service, to(CHECK, "192.0.2.2:1")).await, Code::Ok);
}

#[test]
fn a_million_callers_have_bounded_room_and_are_forgotten_when_their_buckets_are_full() {
    let callers = Callers::default();
    let bucket = Bucket::new(1, 1).expect("a limit");
    let name = |number: u32| CallerKey::Name(number.to_string().into());
    for number in 0..1_000_000 {
        let _ = callers.take(&name(number), 1, |full| bucket.take(full, 1));
    }
    assert_eq!(callers.len(), 65_536);
    // All are full again two seconds later, and one more comes to each part in time.
    let later = 2_000_000_001;
    for number in 0..1_000 {
        let taken = callers.take(&name(2_000_000 + number), later, |full| bucket.take(full, later));
        assert_eq!(taken, Ok(()));
    }
    assert_eq!(callers.len(), 1_000);
}
