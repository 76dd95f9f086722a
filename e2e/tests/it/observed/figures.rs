//! Metrics by RPC (`souk.figures.v1`), without a metrics endpoint and without a collector.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use anyhow::Context as _;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::figures::v1::figure_value::Kind;
use souk_proto::figures::v1::figures_service_client::FiguresServiceClient;
use souk_proto::figures::v1::{Figure, GetFiguresRequest, GetFiguresResponse};
use souk_proto::shop::v1::CreateShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::transport::Channel;

use crate::SOUK;

const WAIT_MAX: Duration = Duration::from_secs(60);

const CALLS: &str = "rpc.server.call.duration";
const DOCUMENTS: &str = "souk.index.documents";

/// Creates the shops with these numbers.
async fn create(shops: &mut ShopServiceClient<Channel>, numbers: Range<u64>) -> anyhow::Result<()> {
    let mut random = SeededRandom::new(7);
    for number in numbers {
        let request = CreateShopRequest {
            shop: Some(data::shop(number, &mut random)),
            ..Default::default()
        };
        shops.create_shop(request).await?;
    }
    Ok(())
}

async fn ask(suite: &Suite, names: &[&str]) -> anyhow::Result<GetFiguresResponse> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let mut figures = FiguresServiceClient::new(suite.channel()?);
    let answer = figures.get_figures(GetFiguresRequest { names }).await?;
    Ok(answer.into_inner())
}

/// How often `method` was called in `service`, by its buckets.
fn calls(answer: &GetFiguresResponse, service: &str, method: &str) -> i64 {
    let figure = |figure: &&Figure| figure.name == CALLS && figure.service == service;
    let values = answer
        .figures
        .iter()
        .filter(figure)
        .flat_map(|figure| &figure.values);
    let called = values.filter(|value| {
        value
            .attributes
            .get("rpc.method")
            .is_some_and(|name| name == method)
    });
    called
        .map(|value| match &value.kind {
            Some(Kind::Buckets(buckets)) => {
                assert_eq!(buckets.counts.iter().sum::<i64>(), buckets.count);
                buckets.count
            }
            other => panic!("{other:?} isn't sorted into buckets"),
        })
        .sum()
}

/// Polls the figures until `holds`, for at most [`WAIT_MAX`].
async fn wait_for(
    suite: &Suite,
    names: &[&str],
    holds: impl Fn(&GetFiguresResponse) -> bool,
) -> anyhow::Result<GetFiguresResponse> {
    let wait = async {
        loop {
            let answer = ask(suite, names).await?;
            if holds(&answer) {
                return anyhow::Ok(answer);
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_MAX, wait)
        .await
        .context("the figures don't come")?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_told_of_all_services_in_a_process_without_a_collector() -> anyhow::Result<()> {
    const WRITES: u64 = 20;
    let suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let mut shops = ShopServiceClient::new(suite.channel()?);
    // Nobody has asked yet: these aren't sorted into buckets.
    create(&mut shops, 0..3).await?;
    let first = ask(&suite, &[]).await?;
    let create_shop = "souk.shop.v1.ShopService/CreateShop";
    assert_eq!(calls(&first, "souk-shop", create_shop), 0);
    let services: BTreeSet<_> = first
        .figures
        .iter()
        .map(|figure| figure.service.as_str())
        .collect();
    for service in [
        "souk-gateway",
        "souk-order",
        "souk-shop",
        "souk-media",
        "souk-table",
    ] {
        assert!(services.contains(service), "{service} isn't among {services:?}");
    }
    let wrote = i64::try_from(WRITES)?;
    create(&mut shops, 3..3 + WRITES).await?;
    let names = [CALLS, DOCUMENTS];
    let answer = wait_for(&suite, &names, |answer| {
        let found = answer.figures.iter().filter(|figure| figure.name == DOCUMENTS);
        let shops = found.flat_map(|figure| &figure.values).find(|value| {
            value
                .attributes
                .get("db.collection.name")
                .is_some_and(|name| name == "shops")
        });
        let all = shops.is_some_and(|shops| shops.kind == Some(Kind::Number((3 + WRITES) as f64)));
        all && calls(answer, "souk-gateway", create_shop) == wrote
    })
    .await?;
    assert_eq!(calls(&answer, "souk-shop", create_shop), wrote);
    assert!(answer.time.is_some());
    assert!(
        answer
            .figures
            .iter()
            .all(|figure| names.contains(&figure.name.as_str()))
    );
    let figure = answer.figures.iter().find(|figure| figure.name == CALLS);
    let figure = figure.context("calls are measured")?;
    assert_eq!(figure.unit, "s");
    assert_eq!(figure.bounds, souk_chassis::telemetry::instrument::CALL_SECONDS);
    assert_eq!(ask(&suite, &["souk.unknown"]).await?.figures, []);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_tells_its_own_figures_of_calls_to_services_elsewhere() -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, Layout::SeveralProcesses).await?;
    ask(&suite, &[]).await?;
    let mut shops = ShopServiceClient::new(suite.channel()?);
    create(&mut shops, 0..5).await?;
    let create_shop = "souk.shop.v1.ShopService/CreateShop";
    let answer = wait_for(&suite, &[], |answer| {
        calls(answer, "souk-gateway", create_shop) == 5
    })
    .await?;
    let own = answer
        .figures
        .iter()
        .all(|figure| figure.service == "souk-gateway");
    assert!(own, "{:?}", answer.figures);
    Ok(())
}
