//! All who mean harm, strangers and callers of low roles, against `souk serve` with keys, while eight good callers work: none of
//! theirs fails, each attack is refused as it has to be, and the process grows by no more than it may.
//!
//! Each attack alone, then all of them at once. Short by default: a second each, and some of all. `SOUK_LONG=1` goes on with all at
//! once for ten minutes, and asserts also how long good callers' calls take; its table is that of docs/SECURITY.md. It is for a
//! release build, and a machine that has nothing else to do.

mod attacks;
mod bodies;
#[path = "../../../gateway/tests/it/abuse/elsewhere.rs"]
mod elsewhere;
mod good;
mod ground;
mod insiders;
mod ledger;
mod outcome;
mod raid;
mod strangers;
mod verdict;
mod wire;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use self::attacks::ATTACKS;
use self::ground::Ground;
use self::ledger::Ledger;
use self::raid::Attack;
use self::verdict::{RunPhase, Verdict};

fn is_long() -> bool {
    std::env::var_os("SOUK_LONG").is_some()
}

/// How long each phase of a run takes, the phases of attacks at least.
struct Times {
    /// Before the first attack. As long as all of them at once: good callers alone fill buffers and caches for minutes.
    before: Duration,
    alone: Duration,
    together: Duration,
    afterwards: Duration,
}

const SHORT: Times = Times {
    before: Duration::from_secs(2),
    alone: Duration::from_millis(500),
    together: Duration::from_secs(4),
    afterwards: Duration::from_secs(2),
};
const LONG: Times = Times {
    before: Duration::from_secs(600),
    alone: Duration::from_secs(10),
    together: Duration::from_secs(600),
    afterwards: Duration::from_secs(120),
};

/// Lets good callers alone.
async fn quiet(ground: &Ground, ledger: &Ledger, lasts: Duration) -> anyhow::Result<RunPhase> {
    let process = ground.suite.gateway()?;
    drop(ledger.turn());
    process.forget_peak()?;
    tokio::time::sleep(lasts).await;
    Ok(RunPhase::quiet(lasts, ledger.turn(), process.peak()?))
}

/// These attacks at once, for so long at least.
async fn attacked(
    ground: &Ground,
    ledger: &Ledger,
    attacks: &'static [Attack],
    lasts: Duration,
) -> anyhow::Result<RunPhase> {
    let process = ground.suite.gateway()?;
    let over = CancellationToken::new();
    let raids: Vec<_> = attacks
        .iter()
        .map(|attack| attack.raid(&ground.target, &over))
        .collect();
    drop(ledger.turn());
    process.forget_peak()?;
    let began = Instant::now();
    let goes = attacks
        .iter()
        .zip(&raids)
        .map(|(attack, raid)| attack.go(Arc::clone(raid)));
    let attack = async {
        join_all(goes).await;
    };
    let until = async {
        tokio::time::sleep(lasts).await;
        over.cancel();
    };
    elsewhere::attack(attack, until);
    let tallies = attacks.iter().zip(raids).collect();
    Ok(RunPhase::attacked(
        began.elapsed(),
        ledger.turn(),
        process.peak()?,
        tallies,
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn good_callers_are_served_whoever_attacks() -> anyhow::Result<()> {
    let times = if is_long() { LONG } else { SHORT };
    let mut ground = Ground::start().await?;
    let (ledger, over) = (Arc::new(Ledger::default()), CancellationToken::new());
    let mut good = good::begin(&ground.target, &ledger, &over)?;

    let mut verdict = Verdict::new(quiet(&ground, &ledger, times.before).await?);
    for attack in ATTACKS {
        let phase = attacked(&ground, &ledger, std::slice::from_ref(attack), times.alone).await?;
        verdict.alone(phase);
    }
    verdict.together(attacked(&ground, &ledger, ATTACKS, times.together).await?);
    verdict.afterwards(quiet(&ground, &ledger, times.afterwards).await?);

    over.cancel();
    while let Some(ended) = good.join_next().await {
        ended??;
    }
    let recorded = |span: &souk_e2e::spans::Span| span.trace_id.starts_with(strangers::TRACE);
    verdict.recorded(
        ground
            .collector
            .spans()
            .iter()
            .filter(|span| recorded(span))
            .count(),
    );
    ground.suite.stop().await?;
    verdict.pronounce()
}
