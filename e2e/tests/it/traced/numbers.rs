//! 11 and 15: metrics count what spans show, and their series don't grow with what clients send.

use std::collections::BTreeSet;

use souk_e2e::collector::{Collector, DataPoint, Series};
use souk_e2e::spans::SpanKind;
use souk_e2e::suite::{Layout, Plan};
use souk_proto::shop::v1::{GetShopRequest, GetShopResponse};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use super::{GET_SHOP, get_shop};
use crate::{SOUK, rounds};

const DURATION: &str = "rpc.server.call.duration";

fn of(series: &Series, service: &str, method: &str) -> bool {
    series.service == service && series.label("rpc.method") == method
}

/// Waits until a service has counted so many calls of a method.
async fn counted(
    collector: &Collector,
    service: &str,
    method: &str,
    calls: u64,
) -> anyhow::Result<Vec<(Series, DataPoint)>> {
    collector
        .wait_for("", |collector| {
            let mut found = collector.metric(DURATION);
            found.retain(|(series, _)| of(series, service, method));
            let count: u64 = found.iter().filter_map(|(_, point)| point.count).sum();
            (count >= calls).then_some(found)
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a11_histograms_count_what_was_called_and_what_spans_show() -> anyhow::Result<()> {
    const CALLS: u64 = 50;
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .start()
        .await?;
    let mut shops = suite.shops()?;
    for _ in 0..CALLS {
        shops
            .get_shop(get_shop("nowhere"))
            .await
            .expect_err("there is none");
    }
    for service in ["souk-gateway", "souk-shop"] {
        let series = counted(&collector, service, GET_SHOP, CALLS).await?;
        let [(series, point)] = series.as_slice() else {
            panic!("one series of one outcome: {series:?}");
        };
        assert_eq!(series.label("rpc.status_code"), "NOT_FOUND");
        assert_eq!(point.count, Some(CALLS), "{service}");
        assert!(point.value > 0.0, "{point:?}");
        let spans = || {
            let all = collector.spans().into_iter();
            all.filter(|span| {
                span.service == service && span.kind == SpanKind::Server && span.name == GET_SHOP
            })
        };
        let wanted = usize::try_from(CALLS)?;
        collector
            .wait_for("", |_| (spans().count() >= wanted).then_some(()))
            .await?;
        assert_eq!(spans().count(), wanted, "{service}");
        // Where there are exemplars, they lead to traces that are there.
        let traces: BTreeSet<_> = spans().map(|span| span.trace_id).collect();
        for trace in &point.exemplar_traces {
            assert!(traces.contains(trace), "{trace} of {service}");
        }
    }
    Ok(())
}

/// Calls what isn't there.
async fn call(grpc: &mut Grpc<tonic::transport::Channel>, path: &str) -> anyhow::Result<Status> {
    grpc.ready().await?;
    let path: PathAndQuery = path.parse()?;
    let codec = ProstCodec::<GetShopRequest, GetShopResponse>::default();
    let request = tonic::Request::new(get_shop("x"));
    let answer = grpc.unary(request, path, codec).await;
    Ok(answer.err().unwrap_or_else(|| Status::ok("it is there")))
}

/// 10,000 random ids and methods with `SOUK_SERIES_CALLS=10000`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a15_series_dont_grow_with_ids_or_methods() -> anyhow::Result<()> {
    let calls = rounds("SOUK_SERIES_CALLS", 1_000);
    let mut random = souk_seeds::random();
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .variable("OTEL_TRACES_SAMPLER", "always_off")
        .start()
        .await?;
    let mut shops = suite.shops()?;
    let mut grpc = Grpc::new(suite.channel()?);
    let mut round = async |number: u64| {
        let id = format!("{number:x}");
        shops.get_shop(get_shop(&id)).await.expect_err("there is none");
        for path in [
            format!("/souk.shop.v1.ShopService/Get{id}"),
            format!("/souk.shop.v1.Service{id}/GetShop"),
        ] {
            let status = call(&mut grpc, &path).await?;
            assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
        }
        anyhow::Ok(())
    };
    let gateway = "souk-gateway";
    round(random.u64(..)).await?;
    counted(&collector, gateway, "_OTHER", 2).await?;
    counted(&collector, "souk-shop", GET_SHOP, 1).await?;
    // May come with a later export than the call before it.
    counted(&collector, "souk-shop", "_OTHER", 1).await?;
    let of_calls = |series: &Series| series.metric.starts_with("rpc.");
    let before: BTreeSet<_> = collector.series().into_iter().filter(of_calls).collect();
    for _ in 0..calls {
        round(random.u64(..)).await?;
    }
    let all = u64::try_from(calls)? + 1;
    counted(&collector, gateway, "_OTHER", 2 * all).await?;
    counted(&collector, "souk-shop", GET_SHOP, all).await?;
    let after: BTreeSet<_> = collector.series().into_iter().filter(of_calls).collect();
    let new: Vec<_> = after.difference(&before).collect();
    assert!(new.is_empty(), "{} more series: {new:#?}", new.len());
    Ok(())
}
