//! Memory of memtables: who is flushed when, and when writers wait for it.
//!
//! The engine waits by itself, but in steps of a tenth of a second, and for ever when its background threads have
//! died. So the committer waits before the engine would, and notices.

use std::time::{Duration, Instant};

use super::engine;
use super::failure::Failure;
use super::setup::MemoryPlan;
use super::store::Store;
use super::upkeep::Ask;
use crate::space::Space;

/// Memtables of one space that may wait for their flush; at 4 the engine stops writers.
const MAX_SEALED: usize = 2;
/// Runs of the first level of one space before writers wait; from 20 on the engine slows them, at 30 it stops them.
const MAX_FIRST_LEVEL_RUNS: usize = 24;
/// The memory is looked at each time this share of it was written.
const LOOKS_PER_LIMIT: u64 = 128;
/// Pause between two looks of a committer that waits.
const PAUSE: Duration = Duration::from_millis(1);
/// Looks after which a waiting committer asks again, and checks that the engine lives.
const LOOKS_PER_CHECK: u32 = 100;
/// How long nothing may move before the background work counts as dead.
const STALLED: Duration = Duration::from_secs(60);

/// What the committer knows of the memory.
pub(super) struct Pressure {
    plan: MemoryPlan,
    /// Bytes committed since the last look.
    unseen: u64,
    upkeep: flume::Sender<Ask>,
}

impl Pressure {
    pub(super) fn new(plan: MemoryPlan, upkeep: flume::Sender<Ask>) -> Self {
        Self {
            plan,
            // What the journals held may be more than a memtable takes.
            unseen: u64::MAX,
            upkeep,
        }
    }

    /// Before so many bytes are written: asks for the flush of full memtables, and waits while there are too many.
    pub(super) fn relieve(&mut self, store: &Store, bytes: usize) -> Result<(), Failure> {
        self.unseen = self.unseen.saturating_add(bytes as u64);
        if self.unseen < self.plan.limit / LOOKS_PER_LIMIT {
            return Ok(());
        }
        self.unseen = 0;
        self.ask(store);
        let bytes = bytes as u64;
        if self.is_bearable(store, bytes) {
            return Ok(());
        }
        let mut moved = (Instant::now(), self.waiting(store));
        for look in 1u32.. {
            std::thread::sleep(PAUSE);
            if self.is_bearable(store, bytes) {
                break;
            }
            if look % LOOKS_PER_CHECK == 0 {
                store.probe().map_err(|error| Failure::writing(&error))?;
                self.ask(store);
                let waiting = self.waiting(store);
                if waiting != moved.1 {
                    moved = (Instant::now(), waiting);
                } else if moved.0.elapsed() > STALLED {
                    return Err(Failure::stalled(STALLED));
                }
            }
        }
        Ok(())
    }

    fn ask(&self, store: &Store) {
        if self.has_full(store) {
            // When the queue is full, it has been asked before.
            let _ = self.upkeep.try_send(Ask::Relieve);
        }
    }

    /// Whether a memtable is above its share.
    fn has_full(&self, store: &Store) -> bool {
        let full = |space| engine::memtable_bytes(store.keyspace(space)) > self.plan.active(space);
        Space::ALL.into_iter().any(full)
    }

    /// Whether so many bytes may be written now: they fit, or all that can be flushed is.
    fn is_bearable(&self, store: &Store, bytes: u64) -> bool {
        let mut waits = false;
        for space in Space::ALL {
            let keyspace = store.keyspace(space);
            let sealed = engine::sealed_memtables(keyspace);
            if sealed > MAX_SEALED || engine::first_level_runs(keyspace) > MAX_FIRST_LEVEL_RUNS {
                return false;
            }
            waits |= sealed > 0;
        }
        let all = engine::all_memtables_bytes(store.database()).saturating_add(bytes);
        all <= self.plan.memtables() || !(waits || self.has_full(store))
    }

    /// What moves while the engine works.
    fn waiting(&self, store: &Store) -> Vec<(usize, usize, usize)> {
        let numbers = |space| {
            let keyspace = store.keyspace(space);
            let tables = keyspace.table_count();
            (
                engine::sealed_memtables(keyspace),
                engine::first_level_runs(keyspace),
                tables,
            )
        };
        Space::ALL.into_iter().map(numbers).collect()
    }
}
