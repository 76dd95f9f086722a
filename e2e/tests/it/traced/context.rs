//! 6 and 7: what a caller sends of its trace is kept, and whether it wants it kept at all.

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::spans::SpanKind;
use souk_e2e::stand_in::StandIn;
use souk_e2e::suite::{Layout, Plan};
use souk_proto::shop::v1::GetShopResponse;
use tonic::Request;
use tonic::metadata::MetadataValue;

use super::{GET_SHOP, Gateway, get_shop};
use crate::SOUK;

async fn answering() -> anyhow::Result<StandIn> {
    StandIn::start(|_| Some(Ok(GetShopResponse::default()))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a06_the_callers_trace_tracestate_and_baggage_go_through() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = answering().await?;
    let gateway = Gateway::before(&backend, &collector, &[]).await?;
    let caller = Caller::new()
        .with("tracestate", "vendor=abc,other=1")
        .with("baggage", "tenant=t1,tier=gold");
    gateway
        .shops
        .clone()
        .get_shop(caller.request(get_shop("h1"))?)
        .await?;
    let arrived = backend.nth(1).await?;
    let trace = caller.trace(&collector, 2).await?;
    let server = trace.child(&caller.span_id, GET_SHOP, SpanKind::Server)?;
    let client = trace.child(&server.span_id, GET_SHOP, SpanKind::Client)?;
    // The backend hears of the client's span, in the caller's trace, sampled.
    let expected = format!("00-{}-{}-01", caller.trace_id, client.span_id);
    assert_eq!(arrived.header("traceparent"), expected);
    assert_eq!(arrived.header("tracestate"), "vendor=abc,other=1");
    let mut baggage: Vec<_> = arrived.header("baggage").split(',').collect();
    baggage.sort_unstable();
    assert_eq!(baggage, ["tenant=t1", "tier=gold"]);
    for span in trace.spans() {
        assert_eq!(span.trace_state, "vendor=abc,other=1", "\n{trace}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a06_a_malformed_traceparent_starts_a_new_trace() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let backend = answering().await?;
    let gateway = Gateway::before(&backend, &collector, &[]).await?;
    let caller = Caller::new();
    let (trace, span) = (&caller.trace_id, &caller.span_id);
    let malformed = [
        String::new(),
        "00".to_owned(),
        format!("00-{trace}-{span}"),
        format!("ff-{trace}-{span}-01"),
        format!("00-{}-{span}-01", "0".repeat(32)),
        format!("00-{trace}-{}-01", "0".repeat(16)),
        format!(
            "00-{}-{span}-01",
            trace.to_uppercase().replace(|c: char| c.is_numeric(), "G")
        ),
        format!("00-{trace}x-{span}-01"),
    ];
    for (index, text) in malformed.iter().enumerate() {
        let mut request = Request::new(get_shop("h1"));
        request
            .metadata_mut()
            .insert("traceparent", MetadataValue::try_from(text.as_str())?);
        gateway.shops.clone().get_shop(request).await?;
        let arrived = backend.nth(index + 1).await?;
        let sent = arrived.header("traceparent").to_owned();
        let parts: Vec<_> = sent.split('-').collect();
        assert!(
            matches!(parts.as_slice(), ["00", new, parent, "01"]
                if new.len() == 32 && new != trace && parent.len() == 16 && parent != span),
            "{text:?} became {sent:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a07_what_isnt_sampled_leaves_no_span_anywhere() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .start()
        .await?;
    let mut shops = suite.shops()?;
    let unsampled = Caller::unsampled();
    let get = |caller: &Caller| caller.request(get_shop("nowhere"));
    shops.get_shop(get(&unsampled)?).await.expect_err("there is none");
    // Processes export in order: when the later call is there, the earlier one would be.
    let sampled = Caller::new();
    shops.get_shop(get(&sampled)?).await.expect_err("there is none");
    sampled.trace(&collector, 4).await?;
    let spans = collector.trace(&unsampled.trace_id);
    assert!(spans.spans().is_empty(), "\n{spans}");
    drop(suite);

    let backend = answering().await?;
    let gateway = Gateway::before(&backend, &collector, &[]).await?;
    gateway.shops.clone().get_shop(get(&unsampled)?).await?;
    let arrived = backend.nth(1).await?;
    let traceparent = arrived.header("traceparent");
    assert!(
        traceparent.starts_with(&format!("00-{}-", unsampled.trace_id)) && traceparent.ends_with("-00"),
        "{traceparent}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a07_a_ratio_is_kept_and_traces_are_whole_or_not_there() -> anyhow::Result<()> {
    /// Calls, and of how many of them a trace is kept.
    const CALLS: usize = 400;
    const RATIO: f64 = 0.25;
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .variable("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
        .variable("OTEL_TRACES_SAMPLER_ARG", "0.25")
        .start()
        .await?;
    let mut shops = suite.shops()?;
    for _ in 0..CALLS {
        // Without a traceparent: the gateway draws the trace, and decides.
        shops
            .get_shop(get_shop("nowhere"))
            .await
            .expect_err("there is none");
    }
    // A caller's own decision stands, whatever the ratio; and the last is there when all are.
    let last = Caller::new();
    let refused = shops.get_shop(last.request(get_shop("nowhere"))?).await;
    refused.expect_err("there is none");
    last.trace(&collector, 4).await?;
    let roots: Vec<_> = collector
        .spans()
        .into_iter()
        .filter(|span| span.name == GET_SHOP && span.parent_id.is_none())
        .collect();
    let expected = CALLS as f64 * RATIO;
    // Six standard deviations: one run in 500 million fails without a cause.
    let most = 6.0 * (expected * (1.0 - RATIO)).sqrt();
    println!("{} of {CALLS} traces at a ratio of {RATIO}", roots.len());
    assert!(
        (roots.len() as f64 - expected).abs() < most,
        "{} of {CALLS} traces",
        roots.len()
    );
    for root in roots {
        let trace = collector.trace(&root.trace_id);
        assert_eq!(trace.spans().len(), 4, "\n{trace}");
    }
    Ok(())
}
