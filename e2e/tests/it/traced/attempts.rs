//! 9 and 10: each attempt is a span beside the others; time is handed on; and what is given up stops.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::laws;
use souk_e2e::spans::SpanKind;
use souk_e2e::stand_in::StandIn;
use souk_e2e::suite::{Layout, Plan};
use souk_proto::shop::v1::{GetShopResponse, WatchShopsRequest};
use tonic::Status;

use super::{GET_SHOP, Gateway, get_shop};
use crate::SOUK;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a09_attempts_are_spans_side_by_side() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = StandIn::start(|nth| {
        Some(match nth {
            0 | 1 => Err(Status::unavailable("not yet")),
            _ => Ok(GetShopResponse::default()),
        })
    })
    .await?;
    let gateway = Gateway::before(&backend, &collector, &["retry.backoff_min=10ms"]).await?;
    let caller = Caller::new();
    gateway
        .shops
        .clone()
        .get_shop(caller.request(get_shop("h1"))?)
        .await?;
    let trace = caller.trace(&collector, 4).await?;
    laws::all(&trace, &caller.span_id)?;
    let server = trace.child(&caller.span_id, GET_SHOP, SpanKind::Server)?;
    assert_eq!(server.attribute("rpc.status_code"), "OK", "\n{trace}");
    let attempts = laws::attempts(&trace, &server.span_id, GET_SHOP);
    let codes: Vec<_> = attempts
        .iter()
        .map(|span| span.attribute("rpc.status_code"))
        .collect();
    assert_eq!(codes, ["UNAVAILABLE", "UNAVAILABLE", "OK"], "\n{trace}");
    for pair in attempts.windows(2) {
        assert!(pair[0].end_ns <= pair[1].start_ns, "one after the other\n{trace}");
    }
    // Each attempt reached the backend as its own span's child, and said which one it was.
    let arrived = backend.arrived();
    assert_eq!(arrived.len(), attempts.len());
    for (index, (arrived, attempt)) in arrived.iter().zip(attempts).enumerate() {
        let traceparent = arrived.header("traceparent");
        assert!(traceparent.contains(&attempt.span_id), "{traceparent}\n{trace}");
        let before = match index {
            0 => String::new(),
            before => before.to_string(),
        };
        assert_eq!(arrived.header("grpc-previous-rpc-attempts"), before);
    }
    Ok(())
}

/// The time of a `grpc-timeout`.
fn time(header: &str) -> Duration {
    let (number, unit) = header.split_at(header.len().saturating_sub(1));
    let nanoseconds = match unit {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        _ => 1_000_000_000,
    };
    let number: u64 = number.parse().expect("a number and a unit");
    Duration::from_nanos(number * nanoseconds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a10_who_is_asked_has_no_more_time_than_who_asks() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = StandIn::start(|nth| {
        Some(match nth {
            0 => Err(Status::unavailable("not yet")),
            _ => Ok(GetShopResponse::default()),
        })
    })
    .await?;
    let gateway = Gateway::before(&backend, &collector, &[]).await?;
    let mut request = Caller::new().request(get_shop("h1"))?;
    let given = Duration::from_secs(5);
    request.set_timeout(given);
    gateway.shops.clone().get_shop(request).await?;
    let [first, second] =
        [backend.nth(1).await?, backend.nth(2).await?].map(|arrived| time(arrived.header("grpc-timeout")));
    assert!(
        second < first && first <= given && second > given / 2,
        "{first:?}, {second:?} of {given:?}"
    );
    Ok(())
}

fn now_ns() -> anyhow::Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_nanos())?)
}

/// A watch that waits for a write that never comes is given up by its caller: all processes hear of it, and begin nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a10_what_is_given_up_begins_nothing_more() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .start()
        .await?;
    let mut shops = suite.shops()?;
    let caller = Caller::new();
    let request = caller.request(WatchShopsRequest::default())?;
    let mut watch = shops.watch_shops(request).await?.into_inner();
    let began = watch.message().await?;
    anyhow::ensure!(began.is_some(), "a watch begins with where it is");
    let waiting = tokio::spawn(async move { watch.message().await });
    let other = Caller::new();
    let refused = suite.shops()?.get_shop(other.request(get_shop("nowhere"))?).await;
    refused.expect_err("there is none");
    other.trace(&collector, 4).await?;
    let given_up = now_ns()?;
    waiting.abort();
    let trace = caller.trace(&collector, 3).await?;
    laws::whole(&trace, &caller.span_id)?;
    for span in trace.spans() {
        assert!(span.start_ns <= given_up, "{} begins later\n{trace}", span.name);
        let late = Duration::from_nanos(span.end_ns.saturating_sub(given_up));
        assert!(
            late < Duration::from_secs(1),
            "{} ends {late:?} later\n{trace}",
            span.name
        );
        if span.attributes.contains_key("rpc.method") {
            assert_eq!(span.attribute("rpc.status_code"), "CANCELLED", "\n{trace}");
        }
    }
    // A later call's spans are there: so would be those of the one that was given up.
    let last = Caller::new();
    let refused = suite.shops()?.get_shop(last.request(get_shop("nowhere"))?).await;
    refused.expect_err("there is none");
    last.trace(&collector, 4).await?;
    assert_eq!(collector.trace(&caller.trace_id).spans().len(), 3);
    Ok(())
}

/// The same call on its way twice, as clients do by `docs/service-config-hedging.json`: the backend learns which one it is,
/// and of the one that loses nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a10_a_hedge_that_loses_is_given_up() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = StandIn::start(|nth| (nth > 0).then(|| Ok(GetShopResponse::default()))).await?;
    let gateway = Gateway::before(&backend, &collector, &[]).await?;
    let caller = Caller::new();
    let mut shops = gateway.shops.clone();
    let first = caller.request(get_shop("h1"))?;
    let first = tokio::spawn(async move { shops.get_shop(first).await });
    backend.nth(1).await?;
    let mut second = caller.request(get_shop("h1"))?;
    let before = tonic::metadata::MetadataValue::from_static("1");
    second.metadata_mut().insert("grpc-previous-rpc-attempts", before);
    gateway.shops.clone().get_shop(second).await?;
    let answered = now_ns()?;
    first.abort();
    let arrived = backend.arrived();
    let told: Vec<_> = arrived
        .iter()
        .map(|arrived| arrived.header("grpc-previous-rpc-attempts"))
        .collect();
    assert_eq!(told, ["", "1"]);
    let trace = caller.trace(&collector, 4).await?;
    let mut codes = Vec::new();
    for span in trace.spans() {
        codes.push((span.kind, span.attribute("rpc.status_code")));
        let late = Duration::from_nanos(span.end_ns.saturating_sub(answered));
        assert!(
            late < Duration::from_secs(1),
            "{} ends {late:?} later\n{trace}",
            span.name
        );
    }
    for kind in [SpanKind::Server, SpanKind::Client] {
        for code in ["OK", "CANCELLED"] {
            let count = codes.iter().filter(|span| **span == (kind, code)).count();
            assert_eq!(count, 1, "{kind:?} {code}\n{trace}");
        }
    }
    Ok(())
}

/// A backend that wants no other attempt says so once: neither the gateway makes one, nor the client, who is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a09_who_wants_no_other_attempt_gets_none() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = StandIn::start(|_| {
        let mut status = Status::unavailable("not before tomorrow");
        let never = tonic::metadata::MetadataValue::from_static("-1");
        status.metadata_mut().insert("grpc-retry-pushback-ms", never);
        Some(Err(status))
    })
    .await?;
    let gateway = Gateway::before(&backend, &collector, &[]).await?;
    let call = Caller::new().request(get_shop("h1"))?;
    let refused = gateway.shops.clone().get_shop(call).await;
    let refused = refused.expect_err("it is unavailable");
    let pushback = refused.metadata().get("grpc-retry-pushback-ms");
    assert_eq!(pushback.expect("a word for clients"), "-1");
    assert_eq!(backend.arrived().len(), 1);
    Ok(())
}
