//! 16 and 17: a collector that is away, silent or slow, and what telemetry costs.

use std::time::{Duration, Instant};

use souk_e2e::collector::Collector;
use souk_e2e::faults::link::{Link, LinkCondition};
use souk_e2e::suite::{Layout, Plan, Suite};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::transport::Channel;

use super::get_shop;
use crate::SOUK;

/// Calls in a row whose times are compared.
const CALLS: usize = 100;
/// How often that is done, first with the one, then with the other.
const ROUNDS: usize = 5;
/// A process ends in this time, whatever the collector does: it drains, and gives its last export five seconds.
const END_MAX: Duration = Duration::from_secs(10);

/// The middle of the times of calls, one after the other.
async fn median(shops: &mut ShopServiceClient<Channel>) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        shops
            .get_shop(get_shop("nowhere"))
            .await
            .expect_err("there is none");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// The best of several medians of both, taken in turns: what else the machine does concerns them alike.
async fn compared(one: &Suite, other: &Suite) -> anyhow::Result<[Duration; 2]> {
    let (mut shops, mut others) = (one.shops()?, other.shops()?);
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        best[0] = best[0].min(median(&mut shops).await?);
        best[1] = best[1].min(median(&mut others).await?);
    }
    Ok(best)
}

fn plan() -> Plan {
    Plan::new(SOUK, Layout::OneProcess)
}

/// Half as much again, and what a busy machine adds.
fn assert_alike(what: &str, [with, without]: [Duration; 2]) {
    println!("{what}: {with:?} at the median, {without:?} without telemetry");
    let most = without * 3 / 2 + Duration::from_millis(1);
    assert!(with <= most, "{what}: {with:?}, and {without:?} without");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a16_a_collector_that_is_away_or_silent_holds_nobody_up() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let without = plan().start().await?;
    for condition in [
        LinkCondition::Reset,
        LinkCondition::Silent,
        LinkCondition::Delayed(Duration::from_secs(2)),
    ] {
        let link = Link::bind().await?;
        link.lead_to(collector.address());
        link.set(condition);
        let mut with = plan()
            .exporting_to(&format!("http://{}", link.address()))
            // More spans than are kept: those that don't fit are dropped, not waited for.
            .variable("OTEL_BSP_MAX_QUEUE_SIZE", "64")
            .variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32")
            .start()
            .await?;
        assert_alike(&format!("{condition:?}"), compared(&with, &without).await?);
        let began = Instant::now();
        with.stop().await?;
        let took = began.elapsed();
        println!("{condition:?}: it ends in {took:?}");
        assert!(took < END_MAX, "{condition:?}: {took:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a17_traces_of_all_calls_cost_little() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let (with, without) = (plan().traced(&collector).start().await?, plan().start().await?);
    assert_alike("every call traced", compared(&with, &without).await?);
    Ok(())
}
