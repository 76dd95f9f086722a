//! Chaos: everything goes wrong, one thing after the other, while four writers and four searchers go on and two others read slowly;
//! a model beside them knows what has to be there. Processes are killed, the disk is full and is freed again, fsyncs fail, clocks
//! jump, indexes are designed anew, backups are taken and checked.
//!
//! While it lasts, each search sees all that was acknowledged before it began, a repeated request gets its first answer, and no
//! service is SERVING while its index stands still. At the end nothing that was acknowledged is lost, nothing is invented, each
//! index equals a rebuilt one, and `souk check` finds all stores and backups whole.
//!
//! By `--ignored` alone each event happens once; `SOUK_CHAOS_SECONDS=1800` goes on for so long, and `SOUK_CHAOS_ROWS` makes the tables
//! larger. `SOUK_SEED` repeats a schedule.

mod calls;
mod health;
mod judge;
mod model;
mod operator;
mod reader;
mod schedule;
mod searcher;
mod tables;
mod verdict;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;

use self::calls::Calls;
use self::judge::Judge;
use self::model::Model;
use self::operator::Operator;
use self::reader::Reader;
use self::schedule::Schedule;
use self::searcher::Searcher;
use self::tables::TABLES;
use self::writer::Writer;
use crate::{rounds, seed};

/// Each has rows of its own. Behind them come those of nobody, for each table.
const WRITERS: usize = 4;
const SEARCHERS: u64 = 4;
const READERS: u64 = 2;

/// What all who take part share.
struct Run {
    model: Model,
    judge: Judge,
    calls: Calls,
    channel: Channel,
    ended: AtomicBool,
}

impl Run {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// A suite that was started again as a whole has another address.
    fn connect(&mut self, channel: Channel) -> anyhow::Result<()> {
        self.calls = Calls::new(channel.clone())?;
        self.channel = channel;
        Ok(())
    }
}

/// How an owner of rows is called in them.
fn name(owner: usize) -> String {
    format!("owner-{owner}")
}

/// Those who take part, until the run has ended.
fn begin(run: &Arc<Run>, seed: u64) -> JoinSet<anyhow::Result<()>> {
    let mut all = JoinSet::new();
    for owner in 0..WRITERS {
        all.spawn(Writer::new(Arc::clone(run), owner, seed).write());
    }
    for number in 0..SEARCHERS {
        let searcher = Searcher::new(Arc::clone(run), seed ^ (number + 100));
        all.spawn(async move {
            searcher.search().await;
            Ok(())
        });
    }
    for number in 0..READERS {
        all.spawn(Reader::new(Arc::clone(run), seed ^ (number + 200)).read());
    }
    let watched = Arc::clone(run);
    all.spawn(async move {
        health::watch(watched).await;
        Ok(())
    });
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes of most of two cores, by flag: see docs/RELIABILITY.md"]
async fn nothing_is_lost_and_nothing_is_hidden_whatever_goes_wrong() -> anyhow::Result<()> {
    let seed = seed("chaos");
    let lasts = Duration::from_secs(rounds("SOUK_CHAOS_SECONDS", 0) as u64);
    let rows = rounds("SOUK_CHAOS_ROWS", 400);
    let mut operator = Operator::start().await?;
    let channel = operator.suite.channel()?;
    let mut run = Arc::new(Run {
        model: Model::new(WRITERS + TABLES.len()),
        judge: Judge::new(),
        calls: Calls::new(channel.clone())?,
        channel,
        ended: AtomicBool::new(false),
    });
    for owner in WRITERS..WRITERS + TABLES.len() {
        Writer::new(Arc::clone(&run), owner, seed).load(rows).await?;
    }
    let began = Instant::now();
    let mut all = begin(&run, seed);
    let mut schedule = Schedule::new(seed, operator.means());
    while schedule.rounds == 0 || began.elapsed() < lasts {
        let turn = schedule.next();
        tokio::time::sleep(turn.after).await;
        operator.play(&run, turn.event, turn.lasts).await?;
    }
    operator.calm(&run).await?;
    run.ended.store(true, Ordering::Relaxed);
    while let Some(ended) = all.join_next().await {
        ended??;
    }
    run.judge.say("all have ended; what is left is compared");
    let alone = Arc::get_mut(&mut run).ok_or_else(|| anyhow::anyhow!("somebody goes on"))?;
    if let Err(error) = verdict::pronounce(alone, &mut operator).await {
        alone.judge.wrong(format_args!("{error:#}"));
    }
    let verdict = run.judge.verdict();
    if verdict.is_err() {
        // Of calls that failed the run itself tells.
        let lines = operator.log.lines().into_iter();
        for line in lines.filter(|line| line.level == "ERROR" && line.message != "call failed") {
            println!("{}: {} {:?}", line.process, line.message, line.fields);
        }
    }
    verdict
}
