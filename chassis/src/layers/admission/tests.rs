use std::future::ready;

use tonic::Code;

use super::*;
use crate::callers::CallerName;
use crate::config::RateConfig;
use crate::connection_info::ConnectionInfo;
use crate::layers::shed::Sheds;
use crate::layers::testing::{CHECK, NON_HEALTH, answering, call, read_to_end, request_with};

/// Lets in whoever has a name, under it.
#[derive(Debug)]
struct ByName;

impl Admit for ByName {
    fn call(&self, mut request: Request<Body>, next: Next<'_>) -> ResponseFuture {
        let name = request.headers().get("name").and_then(|name| name.to_str().ok());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => {
                let caller = CallerName(name.into());
                request.extensions_mut().insert(caller);
                next.run(request)
            }
            None => Next::refuse(Status::unauthenticated("who are you?")),
        }
    }
}

fn guarded() -> impl Inner + use<> {
    let config = RateConfig {
        caller_calls_per_second: 1,
        caller_burst: 2,
        ..RateConfig::default()
    };
    let sheds = Sheds::new(&opentelemetry::global::meter("test"));
    let rate = RateLayer::new(&config, sheds);
    let answer = answering(|_| ready(refuse(Status::ok(""))));
    AdmissionLayer(Some(Arc::new(ByName)), rate.clone()).layer(rate.layer(answer))
}

async fn code(service: &impl Inner, path: &str, address: &str, name: &str) -> Code {
    let mut request = request_with(path, "name", name);
    let info = ConnectionInfo::new(None, address.parse().expect("an address"));
    request.extensions_mut().insert(info);
    read_to_end(call(service, request).await).await.1.code()
}

#[tokio::test(start_paused = true)]
async fn callers_are_counted_by_their_name_and_strangers_by_their_address() {
    let service = guarded();
    // Two callers behind one address don't take from each other, and one has the same bucket from wherever it calls.
    for name in ["alice", "bob"] {
        for address in ["192.0.2.1:1", "192.0.2.2:1"] {
            assert_eq!(
                code(&service, NON_HEALTH, address, name).await,
                Code::Ok,
                "{name}"
            );
        }
        assert_eq!(
            code(&service, NON_HEALTH, "192.0.2.3:1", name).await,
            Code::ResourceExhausted,
            "{name}"
        );
    }
    // Names can't be tried for ever, and who has one is let in from the same address all the same.
    for _ in 0..2 {
        assert_eq!(
            code(&service, NON_HEALTH, "192.0.2.9:1", "").await,
            Code::Unauthenticated
        );
    }
    for (name, expected) in [("", Code::ResourceExhausted), ("carol", Code::Ok)] {
        assert_eq!(
            code(&service, NON_HEALTH, "192.0.2.9:1", name).await,
            expected,
            "{name}"
        );
    }
    assert_eq!(code(&service, NON_HEALTH, "192.0.2.1:1", "carol").await, Code::Ok);
    assert_eq!(code(&service, CHECK, "192.0.2.9:1", "probe").await, Code::Ok);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(
        code(&service, NON_HEALTH, "192.0.2.9:1", "").await,
        Code::Unauthenticated
    );
}
