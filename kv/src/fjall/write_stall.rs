//! Write stalls: bounds the memory of memtables. Full ones are flushed, and the committer waits while too many aren't yet.
//!
//! The engine waits by itself, but in steps of a tenth of a second, and for ever when its background threads have
//! died. So the committer waits before the engine would, and notices.

use std::time::{Duration, Instant};

use super::failure::StoreFailure;
use super::internals;
use super::requests::CompactorRequest;
use super::setup::MemoryPlan;
use super::store::Store;
use crate::space::Space;

/// Memtables of one space that may wait for their flush; at 4 the engine stops writers.
const MAX_SEALED: usize = 2;
/// Runs of the first level of one space before writers wait; from 20 on the engine slows them, at 30 it stops them.
const MAX_FIRST_LEVEL_RUNS: usize = 24;
/// The memory is polled each time this share of it was written.
const POLLS_PER_LIMIT: u64 = 128;
/// Time between two polls of a stalled committer.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Polls after which a stalled committer asks again, and checks that the engine lives.
const POLLS_PER_CHECK: u32 = 100;
/// Time without progress after which the background work counts as dead.
const STALL_MAX: Duration = Duration::from_secs(60);

/// Stalls the committer while memtables take too much memory.
pub(super) struct WriteStall {
    plan: MemoryPlan,
    /// Bytes committed since the last poll.
    unpolled: u64,
    compactor: flume::Sender<CompactorRequest>,
}

impl WriteStall {
    pub(super) fn new(plan: MemoryPlan, compactor: flume::Sender<CompactorRequest>) -> Self {
        Self {
            plan,
            // What the journals held may be more than a memtable takes.
            unpolled: u64::MAX,
            compactor,
        }
    }

    /// Before `bytes` are written: requests the flush of full memtables, and waits while there are too many.
    pub(super) fn wait(&mut self, store: &Store, bytes: usize) -> Result<(), StoreFailure> {
        self.unpolled = self.unpolled.saturating_add(bytes as u64);
        if self.unpolled < self.plan.limit / POLLS_PER_LIMIT {
            return Ok(());
        }
        self.unpolled = 0;
        self.request_flush(store);
        let bytes = bytes as u64;
        if self.has_capacity(store, bytes) {
            return Ok(());
        }
        let mut progress = (Instant::now(), self.progress(store));
        for poll in 1u32.. {
            std::thread::sleep(POLL_INTERVAL);
            if self.has_capacity(store, bytes) {
                break;
            }
            if poll % POLLS_PER_CHECK == 0 {
                store.probe().map_err(|error| StoreFailure::writing(&error))?;
                self.request_flush(store);
                let now = self.progress(store);
                if now != progress.1 {
                    progress = (Instant::now(), now);
                } else if progress.0.elapsed() > STALL_MAX {
                    return Err(StoreFailure::stalled(STALL_MAX));
                }
            }
        }
        Ok(())
    }

    fn request_flush(&self, store: &Store) {
        if self.has_full(store) {
            // When the queue is full, it has been requested before.
            let _ = self.compactor.try_send(CompactorRequest::Flush);
        }
    }

    /// Whether a memtable is above its share.
    fn has_full(&self, store: &Store) -> bool {
        let full = |space| internals::memtable_bytes(store.keyspace(space)) > self.plan.active(space);
        Space::ALL.into_iter().any(full)
    }

    /// Whether `bytes` may be written now: they fit, or everything that can be flushed is flushed.
    fn has_capacity(&self, store: &Store, bytes: u64) -> bool {
        let mut waits = false;
        for space in Space::ALL {
            let keyspace = store.keyspace(space);
            let sealed = internals::sealed_memtables(keyspace);
            if sealed > MAX_SEALED || internals::first_level_runs(keyspace) > MAX_FIRST_LEVEL_RUNS {
                return false;
            }
            waits |= sealed > 0;
        }
        let all = internals::all_memtables_bytes(store.database()).saturating_add(bytes);
        all <= self.plan.memtables() || !(waits || self.has_full(store))
    }

    /// Numbers that change while the engine flushes and compacts.
    fn progress(&self, store: &Store) -> Vec<(usize, usize, usize)> {
        let numbers = |space| {
            let keyspace = store.keyspace(space);
            let tables = keyspace.table_count();
            (
                internals::sealed_memtables(keyspace),
                internals::first_level_runs(keyspace),
                tables,
            )
        };
        Space::ALL.into_iter().map(numbers).collect()
    }
}
