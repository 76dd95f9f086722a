//! 5: of every code, the spans of who answered and of who asked say what the conventions want.

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::laws;
use souk_e2e::schema::CODES;
use souk_e2e::spans::SpanKind;
use souk_e2e::stand_in::StandIn;
use souk_proto::shop::v1::GetShopResponse;
use tonic::{Code, Status};

use super::{GET_SHOP, Gateway, get_shop};

/// By the conventions' own table: codes that are errors of a SERVER span.
const ERRORS_OF_SERVERS: [&str; 6] = [
    "UNKNOWN",
    "DEADLINE_EXCEEDED",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a05_every_code_has_its_status() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = StandIn::start(|nth| {
        Some(match i32::try_from(nth).map(Code::from) {
            Ok(Code::Ok) | Err(_) => Ok(GetShopResponse::default()),
            Ok(code) => Err(Status::new(code, "as the script says")),
        })
    })
    .await?;
    // Each attempt is a call of the script: none is repeated.
    let gateway = Gateway::before(&backend, &collector, &["retry.attempts_max=1"]).await?;
    let mut shops = gateway.shops.clone();
    for code in CODES {
        let caller = Caller::new();
        let answer = shops.get_shop(caller.request(get_shop("h1"))?).await;
        assert_eq!(answer.is_ok(), code == "OK", "{code}: {answer:?}");
        let trace = caller.trace(&collector, 2).await?;
        laws::all(&trace, &caller.span_id)?;
        let server = trace.child(&caller.span_id, GET_SHOP, SpanKind::Server)?;
        let client = trace.child(&server.span_id, GET_SHOP, SpanKind::Client)?;
        for span in [server, client] {
            assert_eq!(span.attribute("rpc.status_code"), code, "\n{trace}");
        }
        assert_eq!(server.error, ERRORS_OF_SERVERS.contains(&code), "\n{trace}");
        assert_eq!(client.error, code != "OK", "\n{trace}");
    }
    assert_eq!(backend.arrived().len(), CODES.len());
    Ok(())
}
