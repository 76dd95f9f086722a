//! Calls to the disk fail, one or all of a kind. Nobody is told that something was written that was not; what was is
//! read on, and found again once the disk works.

use souk_kv::{FjallKv, Kv};

use super::shim::{self, Rule, Treated};
use super::workload::{
    CLOSED, COMMITS, DIRECTORY, FAILED, History, READS_GO_ON, VALUE, WRITER, options, verify,
};
use crate::commits::*;

const BELOW: &str = "database";
const JOURNAL: &str = "*/data/*.jnl";
const TABLE: &str = "*/data/keyspaces/*/tables/*";
const SMALL: usize = 3000;
const LARGE: usize = 150_000;

/// What a failure leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The store isn't opened.
    NotOpened,
    /// Writes are refused from now on, reads go on.
    Refuses,
    /// The same, and whoever wrote learns that the disk is full.
    RefusesAsFull,
    /// Nobody notices.
    Harmless,
}

struct Case {
    call: &'static str,
    pattern: &'static str,
    from: usize,
    /// 0: all from then on.
    count: usize,
    error: &'static str,
    outcome: Outcome,
    longest: usize,
}

const fn case(
    call: &'static str,
    pattern: &'static str,
    (from, count): (usize, usize),
    error: &'static str,
    outcome: Outcome,
) -> Case {
    Case {
        call,
        pattern,
        from,
        count,
        error,
        outcome,
        longest: SMALL,
    }
}

const fn large(case: Case) -> Case {
    Case {
        longest: LARGE,
        ..case
    }
}

const CASES: &[Case] = &[
    case("write", JOURNAL, (300, 1), "eio", Outcome::Refuses),
    case("write", JOURNAL, (300, 1), "enospc", Outcome::RefusesAsFull),
    case("write", JOURNAL, (300, 0), "enospc", Outcome::RefusesAsFull),
    // The next sync would work: it must not be believed.
    case("sync", JOURNAL, (100, 1), "eio", Outcome::Refuses),
    case("sync", JOURNAL, (100, 0), "eio", Outcome::Refuses),
    // Whether it hits a commit or a flush depends on how the threads meet.
    case("sync", JOURNAL, (100, 1), "enospc", Outcome::Refuses),
    case("write", "*/WATERMARK", (2, 1), "eio", Outcome::Refuses),
    case("sync", "*/WATERMARK", (2, 1), "eio", Outcome::Refuses),
    case("create", TABLE, (3, 0), "enospc", Outcome::Refuses),
    case("write", TABLE, (3, 1), "eio", Outcome::Refuses),
    case("write", TABLE, (3, 0), "enospc", Outcome::Refuses),
    case("sync", TABLE, (3, 1), "eio", Outcome::Refuses),
    case(
        "syncdir",
        "*/data/keyspaces/*/tables",
        (3, 1),
        "eio",
        Outcome::Refuses,
    ),
    case(
        "write",
        "*/data/keyspaces/*/v[0-9]*",
        (20, 0),
        "enospc",
        Outcome::Refuses,
    ),
    case(
        "rename",
        "*/data/keyspaces/*/current",
        (2, 1),
        "eio",
        Outcome::Refuses,
    ),
    case("unlink", TABLE, (1, 0), "eio", Outcome::Harmless),
    large(case("create", "*/data/1.jnl", (1, 0), "enospc", Outcome::Refuses)),
    large(case(
        "truncate",
        "*/data/1.jnl",
        (1, 0),
        "enospc",
        Outcome::Refuses,
    )),
    large(case("sync", "*/data/1.jnl", (1, 1), "eio", Outcome::Refuses)),
    large(case("syncdir", "*/data", (1, 1), "eio", Outcome::Refuses)),
    large(case("unlink", JOURNAL, (1, 0), "eio", Outcome::Refuses)),
    case("mkdir", BELOW, (1, 0), "enospc", Outcome::NotOpened),
    case("create", "*/LOCK", (1, 0), "eio", Outcome::NotOpened),
    case("write", "*/FORMAT.new", (1, 0), "enospc", Outcome::NotOpened),
    case("rename", "*/FORMAT", (1, 0), "eio", Outcome::NotOpened),
    case("sync", "*/WATERMARK.new", (1, 0), "eio", Outcome::NotOpened),
    case(
        "truncate",
        "*/data.new/0.jnl",
        (1, 0),
        "enospc",
        Outcome::NotOpened,
    ),
    case(
        "write",
        "*/data.new/keyspaces/*",
        (9, 0),
        "enospc",
        Outcome::NotOpened,
    ),
    case("rename", "*/data", (1, 0), "eio", Outcome::NotOpened),
    case("sync", "*/data/0.jnl", (1, 0), "eio", Outcome::NotOpened),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refuses_writes_and_goes_on_reading_when_the_disk_fails() {
    let Some(library) = shim::library("bad disks") else {
        return;
    };
    let mut random = random();
    for case in CASES {
        let rule = Rule {
            call: case.call,
            pattern: case.pattern,
            from: case.from,
            count: case.count,
            action: case.error,
            mark: "",
        };
        println!("{rule:?}");
        let folder = shim::fast_directory();
        let beside = shim::fast_directory();
        let treated = Treated {
            library,
            folder: folder.path(),
            beside: beside.path(),
            rules: &[rule],
        };
        std::fs::write(treated.control(), "").expect("a control file");
        let environment = [
            (DIRECTORY, folder.path().join(BELOW).display().to_string()),
            (COMMITS, "20000".to_owned()),
            (VALUE, case.longest.to_string()),
            ("SOUK_SEED", random.u64(..).to_string()),
        ];
        let ended = treated.run(WRITER, &environment, false);
        assert!(ended.output.status.success(), "{}", ended.story());
        let said = |begin: &str| ended.marks.lines().any(|line| line.starts_with(begin));
        let failed: Vec<_> = ended
            .marks
            .lines()
            .filter(|line| line.starts_with(FAILED))
            .collect();
        println!("{}", failed.first().unwrap_or(&"nothing failed"));
        match case.outcome {
            Outcome::Harmless => assert!(failed.is_empty() && said(CLOSED), "{failed:?}"),
            Outcome::NotOpened => assert!(said("failed opening: "), "{failed:?}"),
            Outcome::Refuses | Outcome::RefusesAsFull => {
                assert!(
                    !failed.is_empty(),
                    "the failure went unnoticed: {}",
                    ended.story()
                );
                assert!(said(READS_GO_ON), "{failed:?}");
                assert!(!said(CLOSED), "a store that failed claims that all is durable");
                let full = case.outcome == Outcome::RefusesAsFull;
                assert!(!full || failed.iter().any(|line| line.ends_with("disk_full: true }")));
            }
        }
        // The disk works again, and the process is started again.
        let mut history = History::default();
        history.hear_all(&ended.marks);
        let directory = folder.path().join(BELOW);
        let store = FjallKv::open(&directory, &options())
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
        let last = verify(&store, &history, history.newest()).await;
        let committed = store.commit(logged(vec![], b"")).await.expect("a commit");
        assert_eq!(committed.sequence, last + 1);
        store.close().await.expect("a close");
    }
}
