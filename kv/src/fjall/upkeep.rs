//! The thread that keeps memory and disk small: it flushes full memtables for the committer, and settles a store that
//! is idle.
//!
//! The engine removes obsolete files only when a memtable is sealed, and keeps those that a snapshot may read; the
//! committer holds one, of its last group. So a store that nobody writes to would keep them. Settling is: flush all,
//! let the engine compact, take a fresh snapshot behind a write that changes nothing, and seal once more. A space
//! that may be full of garbage is compacted as a whole then, too, on a thread of its own, for it may take minutes;
//! closing the store doesn't wait for it, only its directory stays locked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::committer::{Request, Shared};
use super::engine;
use super::failure::{self, Failure};
use super::options::FjallOptions;
use super::setup::MemoryPlan;
use crate::error::Error;
use crate::free_space::FreeSpace;
use crate::space::Space;

/// Garbage below this many bytes is left to the engine.
const MIN_GARBAGE_BYTES: u64 = 8 << 20;
/// Garbage below this part of a space is left to the engine: so a settled space takes less than a fourth more than what
/// is live, with the engine's own overhead.
const MIN_GARBAGE_PART: u64 = 6;
/// A store that is never idle is settled after this many times of [`FjallOptions::settle_after`].
const BUSY_FACTOR: u32 = 30;
/// Most time between two looks at the store.
const MAX_TICK: Duration = Duration::from_secs(1);
/// Time between two looks while someone waits for the store to settle, and while the committer is asked for a snapshot.
const EAGER_TICK: Duration = Duration::from_millis(5);
/// Looks at which the engine must have nothing to do before it counts as done.
const CALM_LOOKS: u32 = 3;
/// The same, while the first level is full: a compaction is due then that no counter of the engine tells of before it
/// runs. The engine may drop it all the same (its queue is bounded), until the next flush.
const CALM_LOOKS_IF_DUE: u32 = 200;

/// What the thread is asked for.
pub(super) enum Ask {
    /// To flush what is above its share of the memory.
    Relieve,
    /// To settle now, and to say when that is done.
    Settle(oneshot::Sender<Result<(), Error>>),
}

/// How far it is with settling.
enum State {
    /// Nothing was written since.
    Settled,
    /// There are writes that it hasn't settled: the first and the last time it saw one.
    Dirty { first: Instant, last: Instant },
    /// All is being flushed and compacted: looks at which there was nothing to do, and compactions seen.
    Working { calm: u32, compactions: usize },
    /// The committer is asked for a fresh snapshot. It may be waiting for a flush of this thread, which goes on
    /// answering: blocking here would be a deadlock.
    Refreshing(oneshot::Receiver<()>),
    /// A space is being compacted as a whole.
    Compacting(JoinHandle<()>),
}

/// The state of the thread.
pub(super) struct Upkeep {
    shared: Arc<Shared>,
    plan: MemoryPlan,
    asked: flume::Receiver<Ask>,
    committer: flume::Sender<Request>,
    settle_after: Duration,
    free_space: Arc<dyn FreeSpace>,
    reserve: u64,
    state: State,
    /// Groups committed when it last looked, and when it began to settle.
    groups: u64,
    begun_at: u64,
    /// Spaces that were compacted as a whole since the last write it settled.
    compacted: Vec<Space>,
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
}

impl Upkeep {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: &FjallOptions,
        asked: flume::Receiver<Ask>,
        committer: flume::Sender<Request>,
    ) -> Self {
        let now = Instant::now();
        Self {
            shared,
            plan: MemoryPlan::of(options),
            asked,
            committer,
            settle_after: options.settle_after,
            free_space: options.free_space.clone(),
            reserve: options.reserve_bytes,
            // What was left unsettled when the process ended.
            state: State::Dirty {
                first: now,
                last: now,
            },
            groups: 0,
            begun_at: 0,
            compacted: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Works until the committer and the store have gone.
    pub(super) fn run(mut self) {
        let mut looked = Instant::now();
        loop {
            // By a deadline, so that a committer that keeps asking for flushes doesn't put off the looks.
            let result = match self.asked.recv_deadline(looked + self.pause()) {
                Ok(Ask::Relieve) => self.relieve(),
                Ok(Ask::Settle(answer)) => {
                    self.waiting.push(answer);
                    self.begin()
                }
                Err(flume::RecvTimeoutError::Timeout) => {
                    looked = Instant::now();
                    self.tick()
                }
                Err(flume::RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = result {
                let free = self.free_space.free_bytes(self.shared.store.directory()).ok();
                self.fail(&Failure::writing(&error).with_room(free));
                return;
            }
        }
    }

    /// Time between two looks.
    fn pause(&self) -> Duration {
        match self.state {
            State::Refreshing(_) => EAGER_TICK,
            _ if !self.waiting.is_empty() => EAGER_TICK,
            _ => (self.settle_after / 4).clamp(EAGER_TICK, MAX_TICK),
        }
    }

    fn fail(&mut self, failure: &Failure) {
        self.shared.fail(failure);
        for answer in self.waiting.drain(..) {
            let _ = answer.send(Err(failure.unavailable()));
        }
    }

    /// Seals the memtables that are above their share.
    fn relieve(&self) -> Result<(), ::fjall::Error> {
        for space in Space::ALL {
            let keyspace = self.shared.store.keyspace(space);
            if engine::memtable_bytes(keyspace) > self.plan.active(space) {
                engine::rotate(keyspace)?;
            }
        }
        Ok(())
    }

    /// Seals all memtables, and waits for the engine from then on.
    fn begin(&mut self) -> Result<(), ::fjall::Error> {
        self.groups = self.shared.groups.load(Ordering::Acquire);
        self.begun_at = self.groups;
        for space in Space::ALL {
            engine::rotate(self.shared.store.keyspace(space))?;
        }
        self.compacted.clear();
        self.state = self.working();
        Ok(())
    }

    fn working(&self) -> State {
        State::Working {
            calm: 0,
            compactions: engine::compactions(self.shared.store.database()),
        }
    }

    fn tick(&mut self) -> Result<(), ::fjall::Error> {
        // Whoever writes next would notice that the engine has failed in the background; this does if nobody writes.
        self.shared.store.probe()?;
        let groups = self.shared.groups.load(Ordering::Acquire);
        let written = groups != self.groups;
        self.groups = groups;
        let now = Instant::now();
        match std::mem::replace(&mut self.state, State::Settled) {
            State::Settled if written => {
                self.state = State::Dirty {
                    first: now,
                    last: now,
                }
            }
            State::Settled => {}
            State::Dirty { first, last } => {
                let last = if written { now } else { last };
                let idle = now.duration_since(last) >= self.settle_after;
                self.state = State::Dirty { first, last };
                if idle || now.duration_since(first) >= self.settle_after * BUSY_FACTOR {
                    self.begin()?;
                }
            }
            // A store under load settles as far as it goes; the rest follows when it is idle.
            State::Working { calm, compactions } => {
                let database = self.shared.store.database();
                let seen = engine::compactions(database);
                let sealed = |space| engine::sealed_memtables(self.shared.store.keyspace(space)) > 0;
                let busy = engine::is_busy(database) || Space::ALL.into_iter().any(sealed);
                let due = |space| engine::compaction_is_due(self.shared.store.keyspace(space));
                let enough = match Space::ALL.into_iter().any(due) {
                    true => CALM_LOOKS_IF_DUE,
                    false => CALM_LOOKS,
                };
                let calm = if busy || seen != compactions { 0 } else { calm + 1 };
                self.state = State::Working {
                    calm,
                    compactions: seen,
                };
                if calm >= enough || (written && !busy) {
                    self.refresh();
                }
            }
            State::Refreshing(mut refreshed) => match refreshed.try_recv() {
                Ok(()) => self.clean()?,
                Err(oneshot::error::TryRecvError::Empty) => self.state = State::Refreshing(refreshed),
                Err(oneshot::error::TryRecvError::Closed) => self.give_up(),
            },
            State::Compacting(thread) if thread.is_finished() => {
                // A panic was printed; the engine goes on with the tables as they were.
                let _ = thread.join();
                self.state = self.working();
            }
            compacting @ State::Compacting(_) => self.state = compacting,
        }
        Ok(())
    }

    /// Asks the committer for a snapshot behind everything the engine did. If its queue is full, the next look does.
    fn refresh(&mut self) {
        let (done, refreshed) = oneshot::channel();
        match self.committer.try_send(Request::Refresh(done)) {
            Ok(()) => self.state = State::Refreshing(refreshed),
            Err(flume::TrySendError::Full(_)) => {}
            Err(flume::TrySendError::Disconnected(_)) => self.give_up(),
        }
    }

    /// The committer ends or has failed: nobody waits any longer for what won't happen.
    fn give_up(&mut self) {
        self.state = State::Settled;
        self.waiting.clear();
    }

    /// Removes obsolete files; then compacts a space, or is done.
    fn clean(&mut self) -> Result<(), ::fjall::Error> {
        engine::rotate(self.shared.store.keyspace(Space::Catalog))?;
        if let Some(space) = self.full_of_garbage() {
            self.compacted.push(space);
            self.state = State::Compacting(self.compact(space)?);
            return Ok(());
        }
        self.shared.settled.fetch_add(1, Ordering::AcqRel);
        if self.groups != self.begun_at {
            let now = Instant::now();
            self.state = State::Dirty {
                first: now,
                last: now,
            };
        }
        for answer in self.waiting.drain(..) {
            let _ = answer.send(Ok(()));
        }
        Ok(())
    }

    /// A space worth compacting as a whole, if there is room for its second copy.
    fn full_of_garbage(&self) -> Option<Space> {
        let free = self.free_space.free_bytes(self.shared.store.directory());
        Space::ALL.into_iter().find(|space| {
            let keyspace = self.shared.store.keyspace(*space);
            let (garbage, all) = (engine::garbage_bytes(keyspace), keyspace.disk_space());
            let fits = free
                .as_ref()
                .is_ok_and(|free| *free >= all.saturating_add(self.reserve));
            let worth = garbage >= MIN_GARBAGE_BYTES && garbage >= all / MIN_GARBAGE_PART;
            worth && fits && !self.compacted.contains(space)
        })
    }

    fn compact(&self, space: Space) -> Result<JoinHandle<()>, ::fjall::Error> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("souk-compaction".to_owned());
        Ok(thread.spawn(move || {
            let begun = Instant::now();
            let keyspace = shared.store.keyspace(space);
            let before = keyspace.disk_space();
            match engine::compact(keyspace) {
                Ok(()) => {
                    shared.compacted.fetch_add(1, Ordering::AcqRel);
                    let (after, took) = (keyspace.disk_space(), begun.elapsed());
                    tracing::info!(?space, before, after, ?took, "compacted a space as a whole");
                }
                // Its new tables are removed again; what was there before stays.
                Err(error) => tracing::warn!(?space, "compacting a space failed: {}", failure::words(&error)),
            }
        })?)
    }
}

/// Whoever waits learns of a panic by its answer being dropped; whoever comes later, by this.
impl Drop for Upkeep {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(&Failure::panicked());
        }
    }
}
