//! The power fails at many moments of many traces; what was acknowledged as durable is found again each time.

use std::path::Path;

use souk_kv::{FjallKv, Kv};

use super::disk::{Disk, Loss, Names};
use super::shim::{self, Treated};
use super::workload::{self, COMMITS, DIRECTORY, History, VALUE, WRITER, options, verify};
use super::{rounds, trace};
use crate::commits::*;

/// Where the database is, below the folder that is watched: its own directory has to survive, too.
const BELOW: &str = "database";

/// A run of the writer, and at how many moments of it the power fails.
struct Plan {
    commits: usize,
    longest: usize,
    cuts: usize,
}

/// Small values: many syncs, flushes, compactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_what_was_durable_when_the_power_fails() {
    let mut random = random();
    for _ in 0..rounds(2, 12) {
        let plan = Plan {
            commits: random.usize(200..6000),
            longest: 3000,
            cuts: rounds(32, 90),
        };
        fail_often(&mut random, &plan, 2).await;
    }
}

/// Large values: one journal follows another, and is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_what_was_durable_when_the_power_fails_between_journals() {
    let mut random = random();
    for _ in 0..rounds(1, 2) {
        let plan = Plan {
            commits: 700,
            longest: 150_000,
            cuts: rounds(8, 60),
        };
        fail_often(&mut random, &plan, 1).await;
    }
}

/// The power fails after every call of the creation and of the first commits, and all that may be lost is lost: also
/// the name of the database's own directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_a_new_database_with_all_its_names() {
    let Some(library) = shim::library("power loss of a new database") else {
        return;
    };
    let folder = shim::fast_directory();
    let beside = shim::fast_directory();
    let mut disk = Disk::of(folder.path());
    let treated = Treated {
        library,
        folder: folder.path(),
        beside: beside.path(),
        rules: &[],
    };
    let environment = [
        (
            DIRECTORY,
            folder.path().join("new").join(BELOW).display().to_string(),
        ),
        (COMMITS, "8".to_owned()),
        (VALUE, "100".to_owned()),
        ("SOUK_SEED", "1".to_owned()),
    ];
    let ended = treated.run(WRITER, &environment, true);
    assert!(ended.marks.ends_with("closed\n"), "{}", ended.story());
    let mut history = History::default();
    let mut random = fastrand::Rng::with_seed(1);
    for (position, event) in trace::read(&treated.trace()).iter().enumerate() {
        disk.apply(event);
        match event {
            trace::Event::Mark { text } => history.hear_all(text),
            event if event.is_turn() => {}
            _ => continue,
        }
        println!("cut after {position}: {event:?}");
        let found = shim::fast_directory();
        disk.lose_power(&mut random, Loss::Everything, Names::Strict, found.path());
        recover(&found.path().join("new"), &history).await;
    }
}

/// Runs the writer, lets the power fail at moments of the run, and, from what is left, runs it again: so many
/// generations.
async fn fail_often(random: &mut fastrand::Rng, plan: &Plan, generations: usize) {
    let Some(library) = shim::library("power loss") else {
        return;
    };
    let mut history = History::default();
    let mut folder = shim::fast_directory();
    for _ in 0..generations {
        let beside = shim::fast_directory();
        let mut disk = Disk::of(folder.path());
        let treated = Treated {
            library,
            folder: folder.path(),
            beside: beside.path(),
            rules: &[],
        };
        let environment = [
            (DIRECTORY, folder.path().join(BELOW).display().to_string()),
            (COMMITS, plan.commits.to_string()),
            (VALUE, plan.longest.to_string()),
            ("SOUK_SEED", random.u64(..).to_string()),
        ];
        let ended = treated.run(WRITER, &environment, true);
        assert!(ended.marks.ends_with("closed\n"), "{}", ended.story());
        let events = trace::read(&treated.trace());
        let mut left = None;
        let mut applied = 0;
        for cut in trace::cuts(random, &events, plan.cuts) {
            for event in &events[applied..cut] {
                disk.apply(event);
                if let trace::Event::Mark { text } = event {
                    history.hear_all(text);
                }
            }
            applied = cut;
            let (loss, names) = (Loss::any(random), Names::any(random));
            println!(
                "cut at {cut} of {}: {loss:?} is lost, names are {names:?}; {} acknowledged, {} durable",
                events.len(),
                history.len(),
                history.durable()
            );
            let found = shim::fast_directory();
            disk.lose_power(random, loss, names, found.path());
            let last = recover(found.path(), &history).await;
            // Any of them, each with the same chance in the end.
            if left.is_none() || random.u8(..8) == 0 {
                let mut known = history.clone();
                known.forget_after(last);
                left = Some((found, known));
            }
        }
        let (next, known) = left.expect("a power loss");
        folder = next;
        history = known;
    }
}

/// Opens what is left, checks it, and goes on: gives the last sequence that was found, and is the store's still.
async fn recover(folder: &Path, history: &History) -> u64 {
    let directory = folder.join(BELOW);
    let store = FjallKv::open(&directory, &options())
        .await
        .unwrap_or_else(|error| panic!("{error:?}"));
    let last = verify(&store, history, history.durable()).await;
    drop(store);
    // What was found stays found.
    let store = FjallKv::open(&directory, &workload::options())
        .await
        .unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(snapshot(&store).await.sequence(), last);
    store.close().await.expect("a close");
    last
}
