//! Locks of partitions: a transaction holds one exclusively, writers outside of transactions share it, each from before
//! it reads until its commit is decided. Only partitions of tables with transactions are here, and only while they are
//! held.

pub(crate) mod staged;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use souk_kv::{self as kv, Commit, Kv, KvCommitted};
use tokio::sync::{Notify, OwnedRwLockReadGuard};

use self::staged::Staged;
use crate::batch::RowWrite;
use crate::catalog::Table;
use crate::clock::nanos;
use crate::error::{Error, Result};
use crate::id::TransactionId;
use crate::key;
use crate::limits;
use crate::value::KeyValue;

/// The partitions that are held, and the transactions that are open.
#[derive(Debug)]
pub(crate) struct Partitions(Mutex<State>);

#[derive(Debug)]
struct State {
    partitions: BTreeMap<Bytes, Partition>,
    open: BTreeMap<TransactionId, Open>,
    /// Bytes of memory of all open transactions.
    staged_bytes: usize,
    /// The upper half of ids: random at each opening of a database, so that no id outlives its transaction.
    epoch: u64,
    /// The lower half of the last id.
    last: u64,
}

#[derive(Debug, Default)]
struct Partition {
    /// Writers outside of transactions.
    writers: usize,
    /// The transaction that has it, or waits for the writers to end.
    holder: Option<TransactionId>,
    /// Told when the last writer has ended.
    drained: Arc<Notify>,
}

#[derive(Debug)]
struct Open {
    partition: Bytes,
    /// Whose share its memory counts against, where that is known.
    caller: Option<Arc<str>>,
    /// When it began, and when it was last called: nanoseconds.
    started: i64,
    used: i64,
    staged_bytes: usize,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Waits for the writers before it.
    Waiting,
    /// Somebody has its handle.
    Held,
    /// Nobody has its handle.
    Detached(Box<Staged>),
    /// Its commit is on its way.
    Committing,
}

impl Partitions {
    /// No partition is held, and no transaction is open.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            partitions: BTreeMap::new(),
            open: BTreeMap::new(),
            staged_bytes: 0,
            // Its keys are the system's random numbers.
            epoch: RandomState::new().hash_one(0),
            last: 0,
        })))
    }

    /// Opens a transaction that holds the partition against later writers and transactions until [`Partitions::end`]. Its memory
    /// counts against the share of `caller`.
    pub(crate) fn claim(
        &self,
        table: &Table,
        partition: &KeyValue,
        caller: Option<Arc<str>>,
        now: i64,
    ) -> Result<TransactionId> {
        let state = &mut *self.0.lock();
        let key = key::partition(table.id(), partition);
        if state.is_held(&key, now) {
            return Err(conflict(table, partition));
        }
        if state.open.len() >= limits::MAX_TRANSACTIONS {
            // Those whose time is up make room.
            state.sweep(now);
        }
        limits::check("MAX_TRANSACTIONS", limits::MAX_TRANSACTIONS, state.open.len() + 1)?;
        state.last += 1;
        let id = TransactionId((u128::from(state.epoch) << 64) | u128::from(state.last));
        state.partitions.entry(key.clone()).or_default().holder = Some(id);
        let open = Open {
            partition: key,
            caller,
            started: now,
            used: now,
            staged_bytes: 0,
            phase: Phase::Waiting,
        };
        state.open.insert(id, open);
        Ok(id)
    }

    /// Waits until the writers that were there before have ended.
    pub(crate) async fn drained(&self, id: TransactionId) {
        loop {
            let drained = {
                let state = self.0.lock();
                let open = state.open.get(&id);
                match open.and_then(|open| state.partitions.get(&open.partition)) {
                    Some(partition) if partition.writers > 0 => Arc::clone(&partition.drained),
                    Some(_) | None => return,
                }
            };
            drained.notified().await;
        }
    }

    /// Starts the time of a transaction, when the writers before it have ended.
    pub(crate) fn start(&self, id: TransactionId, now: i64) {
        if let Some(open) = self.0.lock().open.get_mut(&id) {
            (open.started, open.used, open.phase) = (now, now, Phase::Held);
        }
    }

    /// Prolongs a transaction.
    pub(crate) fn touch(&self, id: TransactionId, now: i64) -> Result<()> {
        self.0.lock().find(id, now)?.used = now;
        Ok(())
    }

    /// Says how many bytes of memory a transaction takes from here on.
    pub(crate) fn resize(&self, id: TransactionId, bytes: usize) -> Result<()> {
        let state = &mut *self.0.lock();
        let open = state.open.get(&id).ok_or(Error::TransactionNotFound { id })?;
        let all = state.staged_bytes - open.staged_bytes + bytes;
        limits::check("MAX_STAGED_BYTES", limits::MAX_STAGED_BYTES, all)?;
        if open.caller.is_some() {
            let of_caller = state.open.values().filter(|other| other.caller == open.caller);
            let staged: usize = of_caller.map(|other| other.staged_bytes).sum();
            limits::check(
                "MAX_STAGED_OF_CALLER_BYTES",
                limits::MAX_STAGED_OF_CALLER_BYTES,
                staged - open.staged_bytes + bytes,
            )?;
        }
        state.staged_bytes = all;
        if let Some(open) = state.open.get_mut(&id) {
            open.staged_bytes = bytes;
        }
        Ok(())
    }

    /// Marks a transaction as committing: its time can't run out any more.
    pub(crate) fn begin_commit(&self, id: TransactionId, now: i64) -> Result<()> {
        self.0.lock().find(id, now)?.phase = Phase::Committing;
        Ok(())
    }

    /// Keeps a transaction whose handle is given up.
    pub(crate) fn detach(&self, id: TransactionId, staged: Staged, now: i64) {
        if let Ok(open) = self.0.lock().find(id, now) {
            (open.used, open.phase) = (now, Phase::Detached(Box::new(staged)));
        }
    }

    /// Gives the handle of a transaction that was detached.
    pub(crate) fn resume(&self, id: TransactionId, now: i64) -> Result<Staged> {
        let mut state = self.0.lock();
        let open = state.find(id, now)?;
        match std::mem::replace(&mut open.phase, Phase::Held) {
            Phase::Detached(staged) => {
                open.used = now;
                Ok(*staged)
            }
            busy @ (Phase::Waiting | Phase::Held | Phase::Committing) => {
                open.phase = busy;
                Err(Error::TransactionBusy { id })
            }
        }
    }

    /// Whether a transaction is open; ends it when its time is up.
    pub(crate) fn is_open(&self, id: TransactionId, now: i64) -> bool {
        self.0.lock().find(id, now).is_ok()
    }

    /// Ends a transaction, if it is open.
    pub(crate) fn end(&self, id: TransactionId) {
        self.0.lock().end(id);
    }

    /// Ends the transactions whose time is up.
    pub(crate) fn sweep(&self, now: i64) {
        self.0.lock().sweep(now);
    }

    /// Ends the hold of a writer on partitions; the last one wakes a transaction that waits.
    fn leave(&self, held: &BTreeSet<Bytes>) {
        let state = &mut *self.0.lock();
        for key in held {
            let Some(partition) = state.partitions.get_mut(key) else {
                continue;
            };
            partition.writers = partition.writers.saturating_sub(1);
            if partition.writers == 0 {
                if partition.holder.is_some() {
                    partition.drained.notify_one();
                } else {
                    state.partitions.remove(key);
                }
            }
        }
    }
}

impl State {
    /// Whether a transaction holds the partition; one whose time is up doesn't.
    fn is_held(&mut self, partition: &Bytes, now: i64) -> bool {
        let holder = self.partitions.get(partition).and_then(|each| each.holder);
        let Some(id) = holder else {
            return false;
        };
        self.find(id, now).is_ok()
    }

    /// An open transaction; ends it when its time is up.
    fn find(&mut self, id: TransactionId, now: i64) -> Result<&mut Open> {
        if self.open.get_mut(&id).is_some_and(|open| open.is_over(now)) {
            self.end(id);
        }
        self.open.get_mut(&id).ok_or(Error::TransactionNotFound { id })
    }

    fn end(&mut self, id: TransactionId) {
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        self.staged_bytes -= open.staged_bytes;
        if let Some(partition) = self.partitions.get_mut(&open.partition) {
            partition.holder = None;
            if partition.writers == 0 {
                self.partitions.remove(&open.partition);
            }
        }
    }

    fn sweep(&mut self, now: i64) {
        let over = |(id, open): (&TransactionId, &mut Open)| open.is_over(now).then_some(*id);
        let over: Vec<_> = self.open.iter_mut().filter_map(over).collect();
        for id in over {
            self.end(id);
        }
    }
}

impl Open {
    /// Whether its time is up.
    fn is_over(&mut self, now: i64) -> bool {
        // A clock that steps back doesn't prolong it by more than a whole life.
        self.started = self.started.min(now);
        self.used = self.used.min(now);
        match self.phase {
            Phase::Waiting | Phase::Committing => false,
            Phase::Held | Phase::Detached(_) => {
                now - self.started >= nanos(limits::MAX_TRANSACTION_LIFE)
                    || now - self.used >= nanos(limits::MAX_TRANSACTION_IDLE)
            }
        }
    }
}

fn conflict(table: &Table, partition: &KeyValue) -> Error {
    Error::TransactionConflict {
        table: table.name().to_owned(),
        partition: format!("{partition:?}"),
    }
}

/// The partitions that one writer outside of transactions holds, shared with others of its kind, until it is dropped.
#[derive(Debug)]
pub(crate) struct WriterGuard {
    partitions: Arc<Partitions>,
    held: BTreeSet<Bytes>,
    /// Keeps the schemas of tables as they are: the guard of the schema lock.
    schemas: Option<OwnedRwLockReadGuard<()>>,
}

impl WriterGuard {
    /// Holds none yet.
    pub(crate) fn new(partitions: &Arc<Partitions>) -> Self {
        Self {
            partitions: Arc::clone(partitions),
            held: BTreeSet::new(),
            schemas: None,
        }
    }

    /// Keeps the schemas of tables as they are, too, until the outcome of the commit is known.
    pub(crate) fn with_schemas(mut self, schemas: OwnedRwLockReadGuard<()>) -> Self {
        self.schemas = Some(schemas);
        self
    }

    /// Holds the partition of a write; refused while a transaction has it.
    pub(crate) fn join(&mut self, write: &RowWrite, now: i64) -> Result<()> {
        match write.operation.partition() {
            Some(partition) => self.join_partition(&write.table, partition, now),
            None => Ok(()),
        }
    }

    /// Holds a partition; refused while a transaction has it.
    pub(crate) fn join_partition(&mut self, table: &Table, partition: &KeyValue, now: i64) -> Result<()> {
        if !table.schema().transactions {
            return Ok(());
        }
        let key = key::partition(table.id(), partition);
        if self.held.contains(&key) {
            return Ok(());
        }
        let mut state = self.partitions.0.lock();
        if state.is_held(&key, now) {
            return Err(conflict(table, partition));
        }
        state.partitions.entry(key.clone()).or_default().writers += 1;
        self.held.insert(key);
        Ok(())
    }

    /// Commits what was written; partitions and tables stay held until it is decided, even if the caller goes away.
    /// Without a partition the commits' queue sees to that: what a caller leaves there comes before any later change
    /// of a table.
    pub(crate) async fn commit(
        &mut self,
        kv: &Arc<dyn Kv>,
        commit: Commit,
    ) -> Result<KvCommitted, kv::Error> {
        if self.held.is_empty() {
            return kv.commit(commit).await;
        }
        let kv = Arc::clone(kv);
        let held = std::mem::replace(self, Self::new(&self.partitions));
        let task = tokio::spawn(async move {
            let done = kv.commit(commit).await;
            (held, done)
        });
        let (held, done) = task.await.map_err(|_| kv::Error::OutcomeUnknown {
            reason: "the runtime shut down during the commit".to_owned(),
            disk_full: false,
        })?;
        *self = held;
        done
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.partitions.leave(&self.held);
        }
    }
}
