//! Each fault by its name: begun, seen by clients, and found out from telemetry alone, with whose it is.

use std::time::{Duration, Instant};

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::faults::Fault;
use souk_e2e::faults::diagnosis::{Evidence, Finding, diagnose};
use souk_e2e::log::Log;
use souk_e2e::spans::Span;
use souk_e2e::suite::{Faulty, Layout, Plan, Suite};
use souk_proto::media::v1::GetMediaRequest;
use souk_proto::shop::v1::{CreateShopRequest, GetShopRequest};

use crate::SOUK;

/// Reads while it lasts.
const READS: u64 = 24;
/// Writes while it lasts.
const WRITES: u64 = 3;
/// Time that each call has.
const CALL_MAX: Duration = Duration::from_secs(1);

/// Whose a method is.
fn service_of(method: &str) -> String {
    let package = method.split('.').nth(1).unwrap_or_default();
    format!("souk-{package}")
}

/// Calls the shops as clients do; what becomes of it is telemetry's to tell.
async fn call_shops(suite: &Suite, first: u64) -> anyhow::Result<()> {
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(first);
    for number in first..first + WRITES {
        let mut create = Caller::new().request(CreateShopRequest {
            shop: Some(data::shop(number, &mut random)),
            ..Default::default()
        })?;
        create.set_timeout(CALL_MAX);
        let _ = shops.create_shop(create).await;
    }
    for _ in 0..READS {
        let mut get = Caller::new().request(GetShopRequest {
            shop_id: format!("h{:08}", 0),
            min_sequence: 0,
        })?;
        get.set_timeout(CALL_MAX);
        let _ = shops.get_shop(get).await;
    }
    Ok(())
}

/// Waits until what the gateway, and the shops if they live, had to export is there.
async fn settled(suite: &Suite, collector: &Collector) -> anyhow::Result<()> {
    let last = Caller::new();
    let get = last.request(GetMediaRequest {
        media_id: "nothing".to_owned(),
        min_sequence: 0,
    })?;
    suite.media()?.get_media(get).await.expect_err("there is none");
    last.trace(collector, 4).await?;
    // Whoever lives has sent its spans after three exports of metrics of everybody else.
    for _ in 0..3 {
        let moment = Instant::now();
        let others = |collector: &Collector| {
            let heard = collector.heard_since(moment);
            let others = ["souk-gateway", "souk-media"];
            others
                .iter()
                .all(|name| heard.iter().any(|heard| heard == name))
                .then_some(())
        };
        collector.wait_for("", others).await?;
    }
    Ok(())
}

async fn is_found_out(fault: Fault) -> anyhow::Result<()> {
    let (collector, log) = (Collector::start().await?, Log::default());
    let plan = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .heard(&log);
    let Some(mut faulty) = Faulty::start(plan, "shop", fault).await? else {
        return Ok(());
    };
    call_shops(&faulty.suite, 0).await?;
    settled(&faulty.suite, &collector).await?;
    let well = Evidence {
        spans: collector.spans(),
        lines: log.lines(),
        exporting: collector.heard_since(Instant::now() - Duration::from_secs(60)),
    };
    assert_eq!(diagnose(&well, service_of), None, "nothing is wrong yet");

    faulty.begin().await?;
    call_shops(&faulty.suite, 1_000).await?;
    let moment = Instant::now();
    settled(&faulty.suite, &collector).await?;
    let known = |span: &Span| well.spans.iter().any(|old| old.span_id == span.span_id);
    let mut spans = collector.spans();
    spans.retain(|span| !known(span));
    let ill = Evidence {
        spans,
        lines: log.lines().split_off(well.lines.len()),
        exporting: collector.heard_since(moment),
    };
    let found = diagnose(&ill, service_of);
    let service = "souk-shop".to_owned();
    assert_eq!(found, Some(Finding { fault, service }), "{ill:#?}");

    faulty.end().await?;
    faulty.suite.wait_until_serving().await?;
    let mut shops = faulty.suite.shops()?;
    let get = GetShopRequest {
        shop_id: format!("h{:08}", 0),
        min_sequence: 0,
    };
    shops.get_shop(get).await?;
    Ok(())
}

macro_rules! faults {
    ($($test:ident: $fault:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                is_found_out(Fault::$fault).await
            }
        )*

        #[test]
        fn every_fault_has_its_test() {
            let tested = [$(Fault::$fault),*];
            assert_eq!(tested, Fault::ALL);
            for fault in tested {
                assert_eq!(fault.name().parse::<Fault>().ok(), Some(fault));
            }
        }
    };
}

faults! {
    delay_is_found_out: Delay,
    loss_is_found_out: Loss,
    drop_is_found_out: Drop,
    reset_is_found_out: Reset,
    silence_is_found_out: Silence,
    kill_is_found_out: Kill,
    pause_is_found_out: Pause,
    full_disk_is_found_out: FullDisk,
    slow_sync_is_found_out: SlowSync,
    clock_jump_is_found_out: ClockJump,
}
