//! What the processes do that are killed, starved and cut off, and what must be left of it.
//!
//! Each commit does the same in two spaces, and its log entry says what: `PUT` or `DELETE`, key, value. So the log
//! tells what the spaces have to hold. Every acknowledgement is told to the outside before the next commit of its task.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use souk_kv::{Error, FjallKv, FjallOptions, Health, Kv, Space};

use super::shim::Voice;
use crate::commits::*;

/// The ignored test that is the process.
pub(crate) const WRITER: &str = "faults::workload::writer";
/// Tells the writer where to work.
pub(crate) const DIRECTORY: &str = "SOUK_WRITER_DIRECTORY";
/// After how many commits it closes the store and ends; without, it goes on until it is killed.
pub(crate) const COMMITS: &str = "SOUK_WRITER_COMMITS";
/// Longest value it writes.
pub(crate) const VALUE: &str = "SOUK_WRITER_VALUE";

/// Begins the line of an acknowledged commit: then come its sequence, its key, and `disk` or `buffered`.
pub(crate) const ACKNOWLEDGED: &str = "acknowledged ";
/// Begins the line of a sync that worked: then comes the last sequence before it.
const SYNCED: &str = "synced ";
/// Begins the line of a commit or sync that failed: then comes how.
pub(super) const FAILED: &str = "failed ";
/// The line after the store was asked to close, and did.
pub(super) const CLOSED: &str = "closed";
/// The line after reads went on although writes had failed.
pub(super) const READS_GO_ON: &str = "reads go on";

const TASKS: usize = 8;
const KEYS: u8 = 200;
const PUT: u8 = b'p';
const DELETE: u8 = b'd';

/// Small memtables and few journals, so that flushes and compactions are interrupted, too.
pub(crate) fn options() -> FjallOptions {
    FjallOptions {
        memory_bytes: 16 << 20,
        journal_bytes: 64 << 20,
        ..FjallOptions::default()
    }
}

/// What was acknowledged.
#[derive(Debug, Default, Clone)]
pub(crate) struct History {
    /// The keys of commits by their sequences.
    commits: BTreeMap<u64, u8>,
    /// The last sequence that survives the loss of power.
    durable: u64,
}

impl History {
    /// Takes a line the writer has said; others are ignored.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix(ACKNOWLEDGED) {
            let mut words = rest.split(' ');
            let mut word = || words.next().expect("a word");
            let (sequence, key, durability) = (word(), word(), word());
            let sequence = sequence.parse().expect("a sequence");
            self.commits.insert(sequence, key.parse().expect("a key"));
            if durability == "disk" {
                self.durable = self.durable.max(sequence);
            }
        } else if let Some(sequence) = line.strip_prefix(SYNCED) {
            self.durable = self.durable.max(sequence.parse().expect("a sequence"));
        }
    }

    /// Takes all lines; the last may have been cut off.
    pub(crate) fn hear_all(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            if let Some(line) = line.strip_suffix('\n') {
                self.hear(line);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.commits.len()
    }

    /// The last sequence that was acknowledged: survives the death of the process.
    pub(crate) fn newest(&self) -> u64 {
        self.commits.last_key_value().map_or(0, |(sequence, _)| *sequence)
    }

    /// The last sequence that was acknowledged as durable: survives the loss of power.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// Forgets what came after: it is lost, and its sequences are given anew.
    pub(crate) fn forget_after(&mut self, sequence: u64) {
        self.commits.retain(|known, _| *known <= sequence);
    }
}

/// Checks the whole store against what was acknowledged, of which nothing up to `kept` may be missing; gives its last
/// sequence.
pub(crate) async fn verify(store: &FjallKv, history: &History, kept: u64) -> u64 {
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
        if let Some(expected) = history.commits.get(sequence) {
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
    assert!(
        kept <= last,
        "change {kept} was acknowledged, but the log ends at {last}"
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

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().expect("a number"))
}

struct Writer {
    store: FjallKv,
    voice: Voice,
    left: AtomicU64,
    longest: usize,
    seed: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a process that is killed, starved or cut off"]
async fn writer() {
    let directory = std::env::var(DIRECTORY).expect("a directory to work in");
    let voice = Voice::find();
    let store = match FjallKv::open(Path::new(&directory), &options()).await {
        Ok(store) => store,
        Err(error) => {
            return voice.say(&format!("{FAILED}opening: {error}"));
        }
    };
    let writer = Arc::new(Writer {
        store,
        voice,
        left: AtomicU64::new(number(COMMITS).unwrap_or(u64::MAX)),
        longest: number(VALUE).unwrap_or(3000) as usize,
        seed: random().u64(..),
    });
    writer.voice.say("opened");
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(writer.clone().write(task as u64)))
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    if *writer.store.health().borrow() != Health::Serving {
        writer.read_on().await;
    }
    writer.voice.say("closing");
    match writer.store.close().await {
        Ok(()) => writer.voice.say(CLOSED),
        Err(error) => writer.voice.say(&format!("{FAILED}closing: {error:?}")),
    }
}

impl Writer {
    /// Writes until its share is done or something fails.
    async fn write(self: Arc<Self>, task: u64) {
        let mut random = fastrand::Rng::with_seed(self.seed ^ task);
        let less_one = |left: u64| left.checked_sub(1);
        while self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one)
            .is_ok()
        {
            let key = [random.u8(..KEYS)];
            let current = get(&self.store, Space::Rows, &key).await;
            let check = match &current {
                None => absent(Space::Rows, &key),
                Some(value) => has_prefix(Space::Rows, &key, prefix(stamp(value).0)),
            };
            let mut entry = vec![PUT, key[0]];
            let mutations = if current.is_some() && random.u8(..4) == 0 {
                entry[0] = DELETE;
                vec![delete(Space::Rows, &key), delete(Space::Index, &key)]
            } else {
                entry.resize(2 + random.usize(..self.longest), 0);
                // Journals are compressed.
                random.fill(&mut entry[2..]);
                let value = &entry[2..];
                vec![
                    put_stamped(Space::Rows, &key, value),
                    put_stamped(Space::Index, &key, value),
                ]
            };
            let change = checked(vec![check], logged(mutations, &entry));
            let (change, durability) = if task.is_multiple_of(2) {
                (change, "disk")
            } else {
                (buffered(change), "buffered")
            };
            match self.store.commit(change).await {
                Ok(committed) => {
                    let sequence = committed.sequence;
                    self.voice
                        .say(&format!("{ACKNOWLEDGED}{sequence} {} {durability}", key[0]));
                }
                Err(Error::Conflict { .. }) => {}
                Err(error) => return self.voice.say(&format!("{FAILED}commit: {error:?}")),
            }
            if random.u8(..50) == 0 {
                let sequence = *self.store.sequence().borrow();
                match self.store.sync().await {
                    Ok(()) => self.voice.say(&format!("{SYNCED}{sequence}")),
                    Err(error) => return self.voice.say(&format!("{FAILED}sync: {error:?}")),
                }
            }
        }
    }

    /// After a failure: nothing is written any more, everything that was acknowledged is read.
    async fn read_on(&self) {
        verify(&self.store, &History::default(), 0).await;
        let refused = self.store.commit(logged(vec![], b"")).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        self.voice.say(READS_GO_ON);
    }
}
