//! The engine in memory: the model of the seam, for tests. It keeps each key's versions as long as a snapshot can see
//! them (multi-version concurrency control).

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::commit::{Check, Commit, KvCommitted, Mutation, validate, write_stamp};
use crate::engine::{Health, Kv, KvLimits, KvSnapshot, values_within};
use crate::error::Error;
use crate::keys;
use crate::limits::{MAX_COMMIT_BYTES, MAX_KEY_BYTES};
use crate::scan::{Direction, Scan, ScanPage};
use crate::space::Space;
use crate::statistics::{SpaceStatistics, Statistics};

/// A store in memory; nothing is kept when it is dropped.
#[derive(Debug)]
pub struct MemoryKv {
    shared: Arc<Shared>,
    sequence: watch::Sender<u64>,
    health: watch::Sender<Health>,
}

#[derive(Debug, Default)]
struct Shared {
    state: RwLock<State>,
    /// Number of live snapshots by the commit that they read at. Locked after `state`, never before.
    snapshots: Mutex<BTreeMap<u64, usize>>,
}

/// The values of a key, by the number of the commit that wrote them.
type Versions = Vec<(u64, Option<Bytes>)>;

#[derive(Debug, Default)]
struct State {
    spaces: BTreeMap<Space, BTreeMap<Bytes, Versions>>,
    /// Keys with versions that no later snapshot will see, by the commit that made them so.
    outdated: VecDeque<(u64, Space, Bytes)>,
    /// Number of the last commit, logged or not.
    commits: u64,
    /// Last sequence assigned.
    sequence: u64,
    closed: bool,
}

impl State {
    fn get(&self, space: Space, key: &[u8], at: u64) -> Option<&Bytes> {
        visible(self.spaces.get(&space)?.get(key)?, at)
    }

    fn set(&mut self, space: Space, key: Bytes, value: Option<Bytes>) {
        let versions = self
            .spaces
            .entry(space)
            .or_default()
            .entry(key.clone())
            .or_default();
        if !versions.is_empty() || value.is_none() {
            self.outdated.push_back((self.commits, space, key));
        }
        versions.push((self.commits, value));
    }

    /// Forgets what no snapshot at `oldest` or later can see.
    fn forget(&mut self, oldest: u64) {
        while let Some((_, space, key)) = self.outdated.pop_front_if(|(commit, ..)| *commit <= oldest) {
            let Some(keys) = self.spaces.get_mut(&space) else {
                continue;
            };
            let Some(versions) = keys.get_mut(&key) else {
                continue;
            };
            let newest = versions.iter().rposition(|(commit, _)| *commit <= oldest);
            versions.drain(..newest.unwrap_or(0));
            if versions
                .iter()
                .all(|(commit, value)| *commit <= oldest && value.is_none())
            {
                keys.remove(&key);
            }
        }
    }
}

fn visible(versions: &[(u64, Option<Bytes>)], at: u64) -> Option<&Bytes> {
    let (_, value) = versions.iter().rev().find(|(commit, _)| *commit <= at)?;
    value.as_ref()
}

impl MemoryKv {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            shared: Arc::default(),
            sequence: watch::Sender::new(0),
            health: watch::Sender::new(Health::Serving),
        }
    }
}

impl Default for MemoryKv {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Kv for MemoryKv {
    fn limits(&self) -> KvLimits {
        KvLimits {
            key_bytes: MAX_KEY_BYTES,
            commit_bytes: MAX_COMMIT_BYTES,
        }
    }

    async fn snapshot(&self) -> Result<Box<dyn KvSnapshot>, Error> {
        let state = self.shared.state.read();
        if state.closed {
            return Err(Error::closed());
        }
        *self.shared.snapshots.lock().entry(state.commits).or_default() += 1;
        Ok(Box::new(MemorySnapshot {
            shared: Arc::clone(&self.shared),
            commit: state.commits,
            sequence: state.sequence,
        }))
    }

    async fn commit(&self, commit: Commit) -> Result<KvCommitted, Error> {
        validate(&commit)?;
        let mut state = self.shared.state.write();
        if state.closed {
            return Err(Error::closed());
        }
        for (position, check) in commit.checks.iter().enumerate() {
            let holds = match check {
                Check::Absent { space, key } => state.get(*space, key, u64::MAX).is_none(),
                Check::Prefix { space, key, prefix } => state
                    .get(*space, key, u64::MAX)
                    .is_some_and(|value| value.starts_with(prefix)),
            };
            if !holds {
                return Err(Error::Conflict { check: position });
            }
        }
        state.commits += 1;
        if let Some(mut entry) = commit.log {
            state.sequence += 1;
            let sequence = state.sequence;
            write_stamp(&mut entry, sequence);
            state.set(Space::Log, keys::log(sequence), Some(entry.into()));
        }
        let sequence = state.sequence;
        for mutation in commit.mutations {
            match mutation {
                Mutation::Put {
                    space,
                    key,
                    mut value,
                    stamp,
                } => {
                    if stamp {
                        write_stamp(&mut value, sequence);
                    }
                    state.set(space, key, Some(value.into()));
                }
                Mutation::Delete { space, key } => state.set(space, key, None),
            }
        }
        let oldest = self
            .shared
            .snapshots
            .lock()
            .first_key_value()
            .map(|(commit, _)| *commit);
        let last = state.commits;
        state.forget(oldest.unwrap_or(last));
        // Inside the lock, so that sequences are published in order.
        self.sequence.send_if_modified(|last| {
            let moved = *last != sequence;
            *last = sequence;
            moved
        });
        Ok(KvCommitted { sequence })
    }

    fn sequence(&self) -> watch::Receiver<u64> {
        self.sequence.subscribe()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn sync(&self) -> Result<(), Error> {
        if self.shared.state.read().closed {
            return Err(Error::closed());
        }
        Ok(())
    }

    async fn quiesce(&self) -> Result<(), Error> {
        self.sync().await
    }

    async fn statistics(&self) -> Result<Statistics, Error> {
        let state = self.shared.state.read();
        let spaces = Space::ALL.into_iter().map(|space| SpaceStatistics {
            entries: state.spaces.get(&space).map_or(0, |keys| keys.len() as u64),
            ..SpaceStatistics::empty(space)
        });
        Ok(Statistics {
            spaces: spaces.collect(),
            ..Statistics::default()
        })
    }

    async fn close(&self) -> Result<(), Error> {
        self.shared.state.write().closed = true;
        Ok(())
    }
}

/// The state after one commit.
#[derive(Debug)]
struct MemorySnapshot {
    shared: Arc<Shared>,
    commit: u64,
    sequence: u64,
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut snapshots = self.shared.snapshots.lock();
        if let Some(count) = snapshots.get_mut(&self.commit) {
            *count -= 1;
            if *count == 0 {
                snapshots.remove(&self.commit);
            }
        }
    }
}

#[async_trait]
impl KvSnapshot for MemorySnapshot {
    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn group(&self) -> u64 {
        self.commit
    }

    fn is_unwritten_since(&self, group: u64, space: Space, key: &[u8]) -> bool {
        let state = self.shared.state.read();
        let versions = state.spaces.get(&space).and_then(|keys| keys.get(key));
        // A key that isn't there may have been deleted, and forgotten.
        let last = versions.and_then(|versions| versions.last());
        last.is_some_and(|(commit, _)| *commit <= group)
    }

    async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(self.shared.state.read().get(space, key, self.commit).cloned())
    }

    async fn multi_get_within(
        &self,
        space: Space,
        keys: Vec<Bytes>,
        bytes: usize,
    ) -> Result<Vec<Option<Bytes>>, Error> {
        let state = self.shared.state.read();
        values_within(&keys, bytes, |key| {
            Ok(state.get(space, key, self.commit).cloned())
        })
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        let mut page = ScanPage::default();
        if scan.low >= scan.high {
            return Ok(page);
        }
        let state = self.shared.state.read();
        let Some(keys) = state.spaces.get(&scan.space) else {
            return Ok(page);
        };
        let mut range = keys.range::<Bytes, _>((Bound::Included(&scan.low), Bound::Excluded(&scan.high)));
        let mut bytes = 0;
        loop {
            let found = match scan.direction {
                Direction::Forward => range.next(),
                Direction::Backward => range.next_back(),
            };
            let Some((key, versions)) = found else {
                return Ok(page);
            };
            let Some(value) = visible(versions, self.commit) else {
                continue;
            };
            bytes += key.len() + value.len();
            let full = page.entries.len() >= scan.entries.max(1) || bytes > scan.bytes;
            if full && !page.entries.is_empty() {
                page.next = Some(key.clone());
                return Ok(page);
            }
            page.entries.push((key.clone(), value.clone()));
        }
    }
}
