//! 16: a collector that is away, silent or slow.

use std::time::Duration;

use anyhow::Context as _;
use souk_e2e::collector::Collector;
use souk_e2e::faults::link::{Link, LinkCondition};
use souk_e2e::log::Log;
use souk_e2e::suite::{Layout, Plan};
use tokio::time::timeout;
use tonic::Code;

use super::get_shop;
use crate::SOUK;

/// Calls one after the other, of many more spans than are kept.
const CALLS: usize = 500;
/// A call that waited for one export alone would take ten seconds.
const CALLS_MAX: Duration = Duration::from_secs(60);
/// A process gives its last export five seconds; without an end its exports to a silent collector take ten each.
const END_MAX: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a16_a_collector_that_is_away_or_silent_holds_nobody_up() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    for (condition, drops) in [
        (LinkCondition::Reset, false),
        (LinkCondition::Silent, true),
        (LinkCondition::Delayed(Duration::from_secs(2)), true),
    ] {
        let (link, log) = (Link::bind().await?, Log::default());
        link.lead_to(collector.address());
        link.set(condition);
        let mut suite = Plan::new(SOUK, Layout::OneProcess)
            .exporting_to(&format!("http://{}", link.address()))
            .variable("OTEL_BSP_MAX_QUEUE_SIZE", "64")
            .variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32")
            .heard(&log)
            .start()
            .await?;
        let mut shops = suite.shops()?;
        let calls = async {
            for _ in 0..CALLS {
                let answer = shops.get_shop(get_shop("nowhere")).await;
                let refused = answer.expect_err("there is none");
                assert_eq!(refused.code(), Code::NotFound, "{condition:?}: {refused}");
            }
        };
        let called = timeout(CALLS_MAX, calls).await;
        called.with_context(|| format!("{condition:?}: calls wait for the collector"))?;
        if drops {
            // Spans that don't fit are dropped, not waited for.
            let told = log.wait_for(|line| line.message.contains("dropped a Span"));
            told.await.with_context(|| format!("{condition:?}"))?;
        }
        let ended = timeout(END_MAX, suite.stop()).await;
        ended.with_context(|| format!("{condition:?}: it doesn't end"))??;
    }
    Ok(())
}
