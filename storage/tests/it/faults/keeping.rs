//! A database that trims its log, forgets requests and creates tables is killed in the middle of it, or its power
//! fails: no row, no kept change and no table that was acknowledged is missing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use souk_kv::{FjallKv, FjallOptions, Kv, Space};
use souk_storage::{
    Condition, Database, DatabaseOptions, KeyKind, ManualClock, PrimaryKey, RequestRecord, RowOperation,
    SecondaryIndexSchema, Table, TableSchema, Value, WriteBatch,
};

use super::disk::{Disk, Loss, Names};
use super::shim::{self, Rule, Treated};
use super::{rounds, trace};
use crate::commits::*;

/// Tells the process where to work.
const DIRECTORY: &str = "SOUK_KEEPER_DIRECTORY";
const KEEPER: &str = "faults::keeping::keeper";
const BELOW: &str = "database";
const JOURNAL: &str = "*/data/*.jnl";
const HOUR: Duration = Duration::from_secs(3600);
const ROWS: i64 = 40;
const CYCLES: i64 = 4;
const WRITES: i64 = 120;

/// Small memtables and few journals, so that flushes and compactions are interrupted, too.
fn fjall_options() -> FjallOptions {
    FjallOptions {
        memory_bytes: 16 << 20,
        journal_bytes: 64 << 20,
        ..FjallOptions::default()
    }
}

fn options(clock: Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock,
        retention: HOUR,
        request_retention: HOUR,
        maintenance_interval: 1000 * HOUR,
        fjall: fjall_options(),
    }
}

fn schema(name: String) -> TableSchema {
    TableSchema::new(name)
        .key("id", KeyKind::Integer)
        .index(SecondaryIndexSchema::new("by_count", ["count"]))
}

/// Writes; then the time passes, and what is old goes; again and again, each time with a table more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a process that is killed or cut off"]
async fn keeper() {
    let directory = std::env::var(DIRECTORY).expect("a directory");
    let voice = shim::Voice::find();
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
    let database = Database::open(Path::new(&directory), options(clock.clone()))
        .await
        .expect("a database");
    for cycle in 0..CYCLES {
        voice.say("creating");
        let table = database.ensure_table(schema(format!("t{cycle}"))).await;
        let table = table.expect("a table");
        voice.say(&format!("created {cycle}"));
        for count in 0..WRITES {
            let sequence = put(&database, &table, cycle, count).await;
            voice.say(&format!("written {cycle} {count} {sequence}"));
        }
        clock.advance(2 * HOUR);
        let sequence = put(&database, &table, cycle, WRITES).await;
        voice.say(&format!("written {cycle} {WRITES} {sequence}"));
        voice.say("maintaining");
        database.maintain().await.expect("maintenance");
        voice.say("maintained");
    }
    voice.say("closing");
    database.close().await.expect("a close");
    voice.say("closed");
}

async fn put(database: &Database, table: &Table, cycle: i64, count: i64) -> u64 {
    let put = RowOperation::Put {
        key: PrimaryKey::integer(count % ROWS),
        columns: vec![
            ("count".into(), Value::Integer(count)),
            ("filling".into(), "x".repeat(1000).into()),
        ],
    };
    let mut batch = WriteBatch::of(table, put, Condition::none());
    batch.request = Some(RequestRecord {
        id: (((cycle as u128) << 64) | count as u128).to_be_bytes(),
        fingerprint: 1,
        reply: Bytes::from_static(b"reply"),
    });
    database.write(batch).await.expect("a write").sequence
}

/// What was acknowledged: the last count written in each cycle, and the last sequence.
#[derive(Debug, Default)]
struct Kept {
    counts: Vec<Option<i64>>,
    sequence: u64,
}

impl Kept {
    fn hear_all(&mut self, text: &str) {
        for line in text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
        {
            let numbers: Vec<i64> = line
                .split(' ')
                .skip(1)
                .map(|word| word.parse().expect("a number"))
                .collect();
            match (line.split(' ').next(), numbers[..].as_ref()) {
                (Some("created"), [_]) => self.counts.push(None),
                (Some("written"), [cycle, count, sequence]) => {
                    self.counts[*cycle as usize] = Some(*count);
                    self.sequence = *sequence as u64;
                }
                _ => {}
            }
        }
    }
}

async fn verify(directory: &Path, kept: &Kept) {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
    let database = Database::open(directory, options(clock))
        .await
        .unwrap_or_else(|error| panic!("{error:?}"));
    let last = database.last_sequence();
    assert!(last >= kept.sequence, "{last} is before {}", kept.sequence);
    let snapshot = database.snapshot().await.expect("a snapshot");
    let oldest = snapshot.oldest_change().await.expect("a sequence");
    let changes = snapshot.changes(oldest - 1, 10_000).await.expect("changes");
    assert!(
        changes.iter().map(|change| change.sequence).eq(oldest..=last),
        "the log has a hole"
    );
    let mut rows = 0;
    for cycle in 0..CYCLES {
        let Some(table) = database.table(&format!("t{cycle}")) else {
            assert!(cycle as usize >= kept.counts.len(), "table {cycle} is gone");
            continue;
        };
        let written = kept.counts.get(cycle as usize).copied().flatten();
        for id in 0..ROWS {
            let key = PrimaryKey::integer(id);
            let row = snapshot.get(&table, &key).await.expect("a read");
            let found = row.as_ref().map(|row| match row.get("count") {
                Some(Value::Integer(count)) => *count,
                other => panic!("row {id} of {cycle} holds {other:?}"),
            });
            rows += usize::from(found.is_some());
            // The last acknowledged count of this row, or that of the write that was under way.
            let newest = |to: i64| (0..=to).rev().find(|count| count % ROWS == id);
            let expected = written.and_then(newest);
            let under_way = newest(written.map_or(0, |count| count + 1));
            assert!(
                found == expected || found == under_way,
                "row {id} of {cycle} holds {found:?}"
            );
        }
    }
    drop(snapshot);
    database.close().await.expect("a close");
    drop(database);
    // Each row has one entry in its index, and no entry has lost its row.
    let store = FjallKv::open(directory, &fjall_options()).await.expect("a store");
    let cut = crate::commits::snapshot(&store).await;
    for space in [Space::Rows, Space::Index] {
        let found = scan(&*cut, all(space, &[], &END)).await.entries.len();
        assert_eq!(found, rows, "{space:?}");
    }
    drop(cut);
    store.close().await.expect("a close");
}

fn environment(folder: &Path) -> [(&'static str, String); 1] {
    [(DIRECTORY, folder.join(BELOW).display().to_string())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_kill_while_it_trims_sweeps_and_creates_tables() {
    let Some(library) = shim::library("kills of maintenance") else {
        return;
    };
    for mark in ["creating", "written 1 ", "maintaining", "closing"] {
        for (call, actions) in [
            ("write", &["kill-before", "kill-half", "kill-after"][..]),
            ("sync", &["kill-before", "kill-after"][..]),
        ] {
            for (from, action) in (1..=2).flat_map(|from| actions.iter().map(move |action| (from, action))) {
                if mark == "closing" && (call, from) != ("sync", 1) {
                    continue;
                }
                println!("{call} {from} {action} after {mark}");
                let folder = shim::fast_directory();
                let beside = shim::fast_directory();
                let rule = Rule {
                    call,
                    pattern: JOURNAL,
                    from,
                    count: 1,
                    action,
                    mark: mark.trim_end(),
                };
                let treated = Treated {
                    library,
                    folder: folder.path(),
                    beside: beside.path(),
                    rules: &[rule],
                };
                let ended = treated.run(KEEPER, &environment(folder.path()), false);
                assert!(ended.was_killed(), "{rule:?} was not reached: {}", ended.story());
                let mut kept = Kept::default();
                kept.hear_all(&ended.marks);
                verify(&folder.path().join(BELOW), &kept).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_power_loss_while_it_trims_sweeps_and_creates_tables() {
    let Some(library) = shim::library("power loss during maintenance") else {
        return;
    };
    let mut random = random();
    let folder = shim::fast_directory();
    let beside = shim::fast_directory();
    let mut disk = Disk::of(folder.path());
    let treated = Treated {
        library,
        folder: folder.path(),
        beside: beside.path(),
        rules: &[],
    };
    let ended = treated.run(KEEPER, &environment(folder.path()), true);
    assert!(ended.marks.ends_with("closed\n"), "{}", ended.story());
    let events = trace::read(&treated.trace());
    let cuts = trace::cuts(&mut random, &events, rounds(40, 600));
    let mut kept = Kept::default();
    let mut applied = 0;
    for cut in cuts {
        for event in &events[applied..cut] {
            disk.apply(event);
            if let trace::Event::Mark { text } = event {
                kept.hear_all(text);
            }
        }
        applied = cut;
        let (loss, names) = (Loss::any(&mut random), Names::any(&mut random));
        println!(
            "cut at {cut} of {}: {loss:?} is lost, names are {names:?}",
            events.len()
        );
        let found = shim::fast_directory();
        disk.lose_power(&mut random, loss, names, found.path());
        verify(&found.path().join(BELOW), &kept).await;
    }
}
