//! Ends the process in the middle of its work, again and again, and looks at what is left.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use souk_storage::DatabaseOptions;
use souk_storage::kv::fjall::FjallKv;
use souk_storage::kv::{Error, Kv, Space};

use crate::commits::*;

/// Tells the writer where to work.
const DIRECTORY: &str = "SOUK_CRASH_DIRECTORY";
/// Begins a line of the writer that tells of an acknowledged commit.
const ACKNOWLEDGED: &str = "acknowledged ";
const ROUNDS: usize = 20;
const TASKS: usize = 8;
const KEYS: u8 = 200;
const PUT: u8 = b'p';
const DELETE: u8 = b'd';

/// Small memtables, so that flushes and compactions are interrupted, too.
fn options() -> DatabaseOptions {
    DatabaseOptions {
        memory_bytes: 16 << 20,
        ..DatabaseOptions::default()
    }
}

/// Entries of the log say what the commit did: `PUT` or `DELETE`, key, value. Each commit does it in two spaces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_no_acknowledged_commit_when_it_is_killed() {
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    let mut acknowledged = BTreeMap::new();
    for round in 0..ROUNDS {
        let until = random.usize(1..1500);
        acknowledged.extend(write_until_killed(directory.path(), until));
        let store = FjallKv::open(directory.path(), &options())
            .await
            .expect("a store");
        let last = verify(&store, &acknowledged).await;
        println!(
            "round {round}: {} acknowledged, {last} in the log",
            acknowledged.len()
        );
        // Every other round goes on from a crash alone.
        if round % 2 == 0 {
            store.close().await.expect("a close");
        }
    }
}

/// Runs the writer until it has acknowledged so many commits, then kills it. Gives all that were acknowledged.
fn write_until_killed(directory: &Path, until: usize) -> Vec<(u64, u8)> {
    let mut writer = Command::new(std::env::current_exe().expect("the path of this binary"))
        .args(["--exact", "crash::writer", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a writer");
    let mut lines = BufReader::new(writer.stdout.take().expect("its output"));
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    // The last line may have been cut off.
    while lines.read_line(&mut line).expect("a line") > 0 && line.ends_with('\n') {
        if let Some(rest) = line.trim_end().strip_prefix(ACKNOWLEDGED) {
            let (sequence, key) = rest.split_once(' ').expect("a sequence and a key");
            let sequence = sequence.parse().expect("a sequence");
            acknowledged.push((sequence, key.parse().expect("a key")));
            if acknowledged.len() == until {
                writer.kill().expect("a kill");
            }
        }
        line.clear();
    }
    let status = writer.wait().expect("an end");
    assert!(
        acknowledged.len() >= until,
        "the writer ended by itself: {status}"
    );
    acknowledged
}

/// Checks the whole store; gives its last sequence.
async fn verify(store: &FjallKv, acknowledged: &BTreeMap<u64, u8>) -> u64 {
    let snapshot = snapshot(store).await;
    let entries = log(&*snapshot).await;
    let last = snapshot.sequence();
    assert!(
        entries.iter().map(|(sequence, _)| *sequence).eq(1..=last),
        "the log has gaps"
    );
    let mut rows: BTreeMap<Bytes, (u64, Bytes)> = BTreeMap::new();
    for (sequence, entry) in &entries {
        let (kind, key, value) = (entry[0], entry.slice(1..2), entry.slice(2..));
        if let Some(expected) = acknowledged.get(sequence) {
            assert_eq!(
                key[0], *expected,
                "change {sequence} is another than was acknowledged"
            );
        }
        match kind {
            PUT => drop(rows.insert(key, (*sequence, value))),
            _ => drop(rows.remove(&key)),
        }
    }
    let newest = acknowledged.last_key_value().map_or(0, |(sequence, _)| *sequence);
    assert!(
        newest <= last,
        "change {newest} was acknowledged, but the log ends at {last}"
    );
    for space in [Space::Rows, Space::Index] {
        let found = scan(&*snapshot, all(space, &[], &END)).await.entries;
        let found = found.into_iter().map(|(key, value)| {
            let sequence = stamp(&value).0;
            (key, (sequence, value.slice(9..)))
        });
        assert!(found.eq(rows.clone()), "{space:?} is not what the log says");
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in the process that is killed"]
async fn writer() {
    let directory = std::env::var(DIRECTORY).expect("a directory to work in");
    let store = FjallKv::open(Path::new(&directory), &options())
        .await
        .expect("a store");
    let store = Arc::new(store);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(write_for_ever(store.clone(), task)))
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
}

async fn write_for_ever(store: Arc<FjallKv>, task: usize) {
    let mut random = fastrand::Rng::new();
    loop {
        let key = [random.u8(..KEYS)];
        let current = get(&*store, Space::Rows, &key).await;
        let check = match &current {
            None => absent(Space::Rows, &key),
            Some(value) => begins(Space::Rows, &key, prefix(stamp(value).0)),
        };
        let mut entry = vec![PUT, key[0]];
        let mutations = if current.is_some() && random.u8(..4) == 0 {
            entry[0] = DELETE;
            vec![delete(Space::Rows, &key), delete(Space::Index, &key)]
        } else {
            entry.resize(2 + random.usize(..3000), random.u8(..));
            let value = &entry[2..];
            vec![
                put_stamped(Space::Rows, &key, value),
                put_stamped(Space::Index, &key, value),
            ]
        };
        let change = checked(vec![check], logged(mutations, &entry));
        // The kernel survives, so both kinds of durability must.
        let change = if task.is_multiple_of(2) {
            change
        } else {
            buffered(change)
        };
        match store.commit(change).await {
            Ok(committed) => {
                let line = format!("{ACKNOWLEDGED}{} {}\n", committed.sequence, key[0]);
                std::io::stdout()
                    .write_all(line.as_bytes())
                    .expect("an acknowledgement");
            }
            Err(error) => assert!(matches!(error, Error::Conflict { .. }), "{error:?}"),
        }
        if random.u8(..50) == 0 {
            store.sync().await.expect("a sync");
        }
    }
}
