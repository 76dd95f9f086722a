//! The process is killed at every step of its work that has a name; what it acknowledged is found again.

use souk_kv::{FjallKv, Kv};

use super::shim::{self, Rule, Treated};
use super::workload::{COMMITS, DIRECTORY, History, VALUE, WRITER, options, verify};
use crate::commits::*;

const BELOW: &str = "database";
const JOURNAL: &str = "*/data/*.jnl";
const TABLE: &str = "*/data/keyspaces/*/tables/*";
const VERSION: &str = "*/data/keyspaces/*/v[0-9]*";
const CURRENT: &str = "*/data/keyspaces/*/current";
const SPACE: &str = "*/data/keyspaces/[0-9]";

const BEFORE_AND_AFTER: &[&str] = &["kill-before", "kill-after"];
const WHENEVER: &[&str] = &["kill-before", "kill-half", "kill-after"];
/// Longest values where journals have to be filled, and elsewhere.
const LARGE: usize = 150_000;
const SMALL: usize = 3000;

/// A step: a call, and the how-manieth of its kind below a pattern.
struct Point {
    step: &'static str,
    call: &'static str,
    pattern: &'static str,
    nth: usize,
    actions: &'static [&'static str],
    longest: usize,
}

const fn point(
    step: &'static str,
    call: &'static str,
    pattern: &'static str,
    nth: usize,
    actions: &'static [&'static str],
) -> Point {
    Point {
        step,
        call,
        pattern,
        nth,
        actions,
        longest: SMALL,
    }
}

const fn large(point: Point) -> Point {
    Point {
        longest: LARGE,
        ..point
    }
}

const CREATION: &[Point] = &[
    point("directory", "mkdir", BELOW, 1, BEFORE_AND_AFTER),
    point("lock", "create", "*/LOCK", 1, BEFORE_AND_AFTER),
    point("format written", "write", "*/FORMAT.new", 1, WHENEVER),
    point("format synced", "sync", "*/FORMAT.new", 1, BEFORE_AND_AFTER),
    point("format named", "rename", "*/FORMAT", 1, BEFORE_AND_AFTER),
    point("format's name synced", "syncdir", BELOW, 1, BEFORE_AND_AFTER),
    point("watermark written", "write", "*/WATERMARK.new", 1, WHENEVER),
    point("watermark named", "rename", "*/WATERMARK", 1, BEFORE_AND_AFTER),
    point("data begun", "mkdir", "*/data.new", 1, BEFORE_AND_AFTER),
    point(
        "journal created",
        "create",
        "*/data.new/0.jnl",
        1,
        BEFORE_AND_AFTER,
    ),
    point(
        "journal reserved",
        "truncate",
        "*/data.new/0.jnl",
        1,
        BEFORE_AND_AFTER,
    ),
    point("version marker", "write", "*/data.new/version", 1, WHENEVER),
    point(
        "a space begun",
        "mkdir",
        "*/data.new/keyspaces/2",
        1,
        BEFORE_AND_AFTER,
    ),
    point(
        "a space described",
        "write",
        "*/data.new/keyspaces/0/tables/*",
        2,
        WHENEVER,
    ),
    point(
        "a space's first version",
        "rename",
        "*/data.new/keyspaces/3/current",
        1,
        BEFORE_AND_AFTER,
    ),
    point(
        "spaces' names synced",
        "syncdir",
        "*/data.new/keyspaces",
        2,
        BEFORE_AND_AFTER,
    ),
    point("data named", "rename", "*/data", 1, BEFORE_AND_AFTER),
    point("data's name synced", "syncdir", BELOW, 3, BEFORE_AND_AFTER),
];

const COMMIT: &[Point] = &[
    point("first journal write", "write", JOURNAL, 1, WHENEVER),
    point("journal write", "write", JOURNAL, 250, WHENEVER),
    point("first journal sync", "sync", "*/data/0.jnl", 2, BEFORE_AND_AFTER),
    point("journal sync", "sync", JOURNAL, 120, BEFORE_AND_AFTER),
    point("watermark moved", "write", "*/WATERMARK", 2, WHENEVER),
    point("watermark synced", "sync", "*/WATERMARK", 2, BEFORE_AND_AFTER),
    point("watermark at the close", "write", "*/WATERMARK", 5, WHENEVER),
];

const FLUSH: &[Point] = &[
    point("table created", "create", TABLE, 2, BEFORE_AND_AFTER),
    point("table written", "write", TABLE, 2, WHENEVER),
    point("table synced", "sync", TABLE, 2, BEFORE_AND_AFTER),
    point(
        "table's name synced",
        "syncdir",
        "*/data/keyspaces/*/tables",
        2,
        BEFORE_AND_AFTER,
    ),
    point("version created", "create", VERSION, 2, BEFORE_AND_AFTER),
    point("version written", "write", VERSION, 2, WHENEVER),
    point("version synced", "sync", VERSION, 2, BEFORE_AND_AFTER),
    point("version's name synced", "syncdir", SPACE, 2, BEFORE_AND_AFTER),
    point("version made current", "rename", CURRENT, 2, BEFORE_AND_AFTER),
    point("current's name synced", "syncdir", SPACE, 4, BEFORE_AND_AFTER),
];

/// Which table is of a compaction depends on how the threads meet: some of the later ones are.
const COMPACTION: &[Point] = &[
    point("tenth table written", "create", TABLE, 10, BEFORE_AND_AFTER),
    point("fifteenth table synced", "sync", TABLE, 15, BEFORE_AND_AFTER),
    point("twentieth table written", "write", TABLE, 400, WHENEVER),
    point(
        "twentieth version made current",
        "rename",
        CURRENT,
        20,
        BEFORE_AND_AFTER,
    ),
    point("old version deleted", "unlink", VERSION, 2, BEFORE_AND_AFTER),
    point("first old table deleted", "unlink", TABLE, 1, BEFORE_AND_AFTER),
    point("second old table deleted", "unlink", TABLE, 2, BEFORE_AND_AFTER),
    point("a version after it written", "write", VERSION, 300, WHENEVER),
];

const JOURNALS: &[Point] = &[
    large(point(
        "next journal created",
        "create",
        "*/data/1.jnl",
        1,
        BEFORE_AND_AFTER,
    )),
    large(point(
        "next journal reserved",
        "truncate",
        "*/data/1.jnl",
        1,
        BEFORE_AND_AFTER,
    )),
    large(point(
        "next journal synced",
        "sync",
        "*/data/1.jnl",
        1,
        BEFORE_AND_AFTER,
    )),
    large(point(
        "next journal's name synced",
        "syncdir",
        "*/data",
        1,
        BEFORE_AND_AFTER,
    )),
    large(point(
        "old journal deleted",
        "unlink",
        "*/data/0.jnl",
        1,
        BEFORE_AND_AFTER,
    )),
];

/// After a kill in the middle of a write to the journal: the steps of the next opening.
const RECOVERY: &[Point] = &[
    point("journal cut", "truncate", "*/data/0.jnl", 1, BEFORE_AND_AFTER),
    point("cut synced", "sync", "*/data/0.jnl", 1, BEFORE_AND_AFTER),
    point(
        "found journal synced",
        "sync",
        "*/data/0.jnl",
        2,
        BEFORE_AND_AFTER,
    ),
    point(
        "watermark moved to what was found",
        "write",
        "*/WATERMARK",
        1,
        WHENEVER,
    ),
    point("watermark synced", "sync", "*/WATERMARK", 1, BEFORE_AND_AFTER),
    point("first write after", "write", "*/data/0.jnl", 1, WHENEVER),
];

const TORN: Rule = Rule {
    call: "write",
    pattern: JOURNAL,
    from: 400,
    count: 1,
    action: "kill-half",
    mark: "",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_during_its_creation() {
    kill_at_all(CREATION, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_during_a_commit() {
    kill_at_all(COMMIT, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_during_a_flush() {
    kill_at_all(FLUSH, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_during_a_compaction() {
    kill_at_all(COMPACTION, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_between_two_journals() {
    kill_at_all(JOURNALS, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_during_the_recovery_from_a_kill() {
    kill_at_all(RECOVERY, &[TORN]).await;
}

/// Kills at each point once, before that at `first`; then goes on from what is left.
async fn kill_at_all(points: &[Point], first: &[Rule]) {
    let Some(library) = shim::library("crash points") else {
        return;
    };
    let mut random = random();
    for point in points {
        for action in point.actions {
            println!("{}: {action}", point.step);
            let folder = shim::fast_directory();
            let mut history = History::default();
            let rule = Rule {
                call: point.call,
                pattern: point.pattern,
                from: point.nth,
                count: 1,
                action,
                mark: "",
            };
            for rule in first.iter().chain([&rule]) {
                let beside = shim::fast_directory();
                let treated = Treated {
                    library,
                    folder: folder.path(),
                    beside: beside.path(),
                    rules: std::slice::from_ref(rule),
                };
                let environment = [
                    (DIRECTORY, folder.path().join(BELOW).display().to_string()),
                    (COMMITS, "20000".to_owned()),
                    (VALUE, point.longest.to_string()),
                    ("SOUK_SEED", random.u64(..).to_string()),
                ];
                let ended = treated.run(WRITER, &environment, false);
                assert!(ended.was_killed(), "{rule:?} was not reached: {}", ended.story());
                history.hear_all(&ended.marks);
            }
            let directory = folder.path().join(BELOW);
            let store = FjallKv::open(&directory, &options())
                .await
                .unwrap_or_else(|error| panic!("{error:?}"));
            let last = verify(&store, &history, history.newest()).await;
            let more = logged(vec![], b"");
            let committed = store.commit(buffered(more)).await.expect("a commit");
            assert_eq!(committed.sequence, last + 1);
            store.close().await.expect("a close");
            drop(store);
            let store = FjallKv::open(&directory, &options()).await.expect("a store");
            assert_eq!(snapshot(&store).await.sequence(), last + 1);
        }
    }
}
