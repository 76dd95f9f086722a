use tonic::Code;
use tonic_types::StatusExt as _;
use tower::Layer as _;

use super::*;
use crate::callers::Caller;
use crate::connection_info::ConnectionInfo;
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
    let info = ConnectionInfo::new(None, address.parse().expect("an address"));
    request.extensions_mut().insert(info);
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

#[tokio::test(start_paused = true)]
async fn hardly_anybody_shares_the_rate_of_ten_thousand_others() {
    let callers = limiter(1, 1, CallerBuckets::new).expect("a limit");
    let name = |number: u32| CallerKey::Name(number.to_string().into());
    for number in 0..10_000 {
        let _ = callers.check_key(&name(number));
        assert!(
            callers.check_key(&name(number)).is_err(),
            "{number} is over its rate"
        );
    }
    let refused = |number: &u32| callers.check_key(&name(*number)).is_err();
    // One in 2,500 by chance.
    assert!((10_000..12_000).filter(refused).count() < 40);
}
