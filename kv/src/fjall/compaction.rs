//! Flushes and compaction: a thread that flushes full memtables for the committer, and quiesces a store that is idle.
//!
//! The engine removes obsolete files only when a memtable is sealed, and keeps those that a snapshot may read; the
//! committer holds one, of its last group. So a store that nobody writes to would keep them. Quiescing is: flush all,
//! let the engine compact, take a fresh snapshot behind a write that changes nothing, and seal once more. A space
//! that may be full of garbage gets a major compaction then, too, on another thread, for it may take minutes;
//! closing the store doesn't wait for it, only its directory stays locked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::failure::{self, StoreFailure};
use super::internals;
use super::options::FjallOptions;
use super::published::Published;
use super::requests::{CommitterRequest, CompactorRequest};
use super::setup::MemoryPlan;
use crate::error::Error;
use crate::free_space::FreeSpace;
use crate::space::Space;

/// Garbage below this many bytes is left to the engine.
const MIN_GARBAGE_BYTES: u64 = 8 << 20;
/// Garbage below this part of a space is left to the engine: so a quiesced space takes less than a fourth more than what
/// is live, with the engine's own overhead.
const MIN_GARBAGE_PART: u64 = 6;
/// A store that is never idle is quiesced after this many times of [`FjallOptions::quiesce_after`].
const BUSY_FACTOR: u32 = 30;
/// Most time between two ticks.
const MAX_TICK: Duration = Duration::from_secs(1);
/// Time between two ticks while a caller waits for the store to be quiesced, and while the committer is asked for a snapshot.
const EAGER_TICK: Duration = Duration::from_millis(5);
/// Ticks at which the engine must have nothing to do before it counts as idle.
const IDLE_TICKS: u32 = 3;
/// The same, while the first level is full: fjall then queues a compaction without exposing it. It may drop it all the
/// same (its queue is bounded), until the next flush.
const IDLE_TICKS_IF_DUE: u32 = 200;

/// How far it is with quiescing.
enum State {
    /// Nothing was written since.
    Quiescent,
    /// There are writes since: the first and the last time it saw one.
    Dirty { first: Instant, last: Instant },
    /// All is being flushed and compacted: ticks at which the engine was idle, and compactions seen.
    Draining { idle_ticks: u32, compactions: usize },
    /// The committer is asked for a fresh snapshot. It may be waiting for a flush of this thread, which goes on
    /// serving requests: blocking here would be a deadlock.
    Refreshing(oneshot::Receiver<()>),
    /// A space is under a major compaction.
    Compacting(JoinHandle<()>),
}

/// The state of the compactor thread.
pub(super) struct Compactor {
    published: Arc<Published>,
    plan: MemoryPlan,
    requests: flume::Receiver<CompactorRequest>,
    committer: flume::Sender<CommitterRequest>,
    quiesce_after: Duration,
    free_space: Arc<dyn FreeSpace>,
    reserve: u64,
    state: State,
    /// Groups committed at the last tick.
    groups: u64,
    /// Groups committed when quiescing began.
    begun_at: u64,
    /// Spaces that had a major compaction since then.
    compacted: Vec<Space>,
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
}

impl Compactor {
    pub(super) fn new(
        published: Arc<Published>,
        options: &FjallOptions,
        requests: flume::Receiver<CompactorRequest>,
        committer: flume::Sender<CommitterRequest>,
    ) -> Self {
        let now = Instant::now();
        Self {
            published,
            plan: MemoryPlan::new(options),
            requests,
            committer,
            quiesce_after: options.quiesce_after,
            free_space: options.free_space.clone(),
            reserve: options.reserve_bytes,
            // What was left when the process ended.
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
        let mut ticked = Instant::now();
        loop {
            // By a deadline, so that a committer that keeps requesting flushes doesn't put off the ticks.
            let result = match self.requests.recv_deadline(ticked + self.tick_interval()) {
                Ok(CompactorRequest::Flush) => self.flush_full(),
                Ok(CompactorRequest::Quiesce(done)) => {
                    self.waiting.push(done);
                    self.begin()
                }
                Err(flume::RecvTimeoutError::Timeout) => {
                    ticked = Instant::now();
                    self.tick()
                }
                Err(flume::RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = result {
                let free = self.free_space.free_bytes(self.published.store.directory()).ok();
                self.fail(&StoreFailure::writing(&error).with_free_space(free));
                return;
            }
        }
    }

    fn tick_interval(&self) -> Duration {
        match self.state {
            State::Refreshing(_) => EAGER_TICK,
            _ if !self.waiting.is_empty() => EAGER_TICK,
            _ => (self.quiesce_after / 4).clamp(EAGER_TICK, MAX_TICK),
        }
    }

    fn fail(&mut self, failure: &StoreFailure) {
        self.published.fail(failure);
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Err(failure.unavailable()));
        }
    }

    /// Seals the memtables that are above their share, which flushes them.
    fn flush_full(&self) -> Result<(), ::fjall::Error> {
        for space in Space::ALL {
            let keyspace = self.published.store.keyspace(space);
            if internals::memtable_bytes(keyspace) > self.plan.active(space) {
                internals::rotate(keyspace)?;
            }
        }
        Ok(())
    }

    /// Begins to quiesce: seals all memtables, and waits for the engine from then on, or first for the major compaction
    /// that runs.
    fn begin(&mut self) -> Result<(), ::fjall::Error> {
        self.groups = self.published.groups.load(Ordering::Acquire);
        self.begun_at = self.groups;
        for space in Space::ALL {
            internals::rotate(self.published.store.keyspace(space))?;
        }
        self.compacted.clear();
        // The engine doesn't count a major compaction as work. Until its end, the garbage is still there, and the space would be
        // rewritten once more behind it.
        if !matches!(self.state, State::Compacting(_)) {
            self.state = self.draining();
        }
        Ok(())
    }

    fn draining(&self) -> State {
        State::Draining {
            idle_ticks: 0,
            compactions: internals::compactions(self.published.store.database()),
        }
    }

    fn tick(&mut self) -> Result<(), ::fjall::Error> {
        // The next write would notice that the engine has failed in the background; this does without one.
        self.published.store.probe()?;
        let groups = self.published.groups.load(Ordering::Acquire);
        let written = groups != self.groups;
        self.groups = groups;
        let now = Instant::now();
        match std::mem::replace(&mut self.state, State::Quiescent) {
            State::Quiescent if written => {
                self.state = State::Dirty {
                    first: now,
                    last: now,
                }
            }
            State::Quiescent => {}
            State::Dirty { first, last } => {
                let last = if written { now } else { last };
                let idle = now.duration_since(last) >= self.quiesce_after;
                self.state = State::Dirty { first, last };
                if idle || now.duration_since(first) >= self.quiesce_after * BUSY_FACTOR {
                    self.begin()?;
                }
            }
            // Under load the engine may never be idle for so many ticks: then the first at which nothing runs is enough, and
            // the next quiescing does the rest.
            State::Draining {
                idle_ticks,
                compactions,
            } => {
                let database = self.published.store.database();
                let seen = internals::compactions(database);
                let sealed = |space| internals::sealed_memtables(self.published.store.keyspace(space)) > 0;
                let busy = internals::is_busy(database) || Space::ALL.into_iter().any(sealed);
                let due = |space| internals::compaction_is_due(self.published.store.keyspace(space));
                let enough = match Space::ALL.into_iter().any(due) {
                    true => IDLE_TICKS_IF_DUE,
                    false => IDLE_TICKS,
                };
                let idle_ticks = if busy || seen != compactions {
                    0
                } else {
                    idle_ticks + 1
                };
                self.state = State::Draining {
                    idle_ticks,
                    compactions: seen,
                };
                if idle_ticks >= enough || (written && !busy) {
                    self.refresh();
                }
            }
            State::Refreshing(mut refreshed) => match refreshed.try_recv() {
                Ok(()) => self.remove_obsolete()?,
                Err(oneshot::error::TryRecvError::Empty) => self.state = State::Refreshing(refreshed),
                Err(oneshot::error::TryRecvError::Closed) => self.give_up(),
            },
            State::Compacting(thread) if thread.is_finished() => {
                // Its panic was printed, and left the tables as they were.
                let _ = thread.join();
                self.state = self.draining();
            }
            compacting @ State::Compacting(_) => self.state = compacting,
        }
        Ok(())
    }

    /// Asks the committer for a snapshot behind everything the engine did. If its queue is full, the next tick does.
    fn refresh(&mut self) {
        let (done, refreshed) = oneshot::channel();
        match self.committer.try_send(CommitterRequest::Refresh(done)) {
            Ok(()) => self.state = State::Refreshing(refreshed),
            Err(flume::TrySendError::Full(_)) => {}
            Err(flume::TrySendError::Disconnected(_)) => self.give_up(),
        }
    }

    /// Gives up on quiescing: the committer ends or has failed.
    fn give_up(&mut self) {
        self.state = State::Quiescent;
        self.waiting.clear();
    }

    /// Removes obsolete files; then begins a major compaction, or is done.
    fn remove_obsolete(&mut self) -> Result<(), ::fjall::Error> {
        internals::rotate(self.published.store.keyspace(Space::Catalog))?;
        if let Some(space) = self.full_of_garbage() {
            self.compacted.push(space);
            self.state = State::Compacting(self.compact(space)?);
            return Ok(());
        }
        self.published.quiesced.fetch_add(1, Ordering::AcqRel);
        if self.groups != self.begun_at {
            let now = Instant::now();
            self.state = State::Dirty {
                first: now,
                last: now,
            };
        }
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(()));
        }
        Ok(())
    }

    /// A space worth a major compaction, if the device has space for its second copy.
    fn full_of_garbage(&self) -> Option<Space> {
        let free = self.free_space.free_bytes(self.published.store.directory());
        Space::ALL.into_iter().find(|space| {
            let keyspace = self.published.store.keyspace(*space);
            let (garbage, all) = (internals::garbage_bytes(keyspace), keyspace.disk_space());
            let fits = free
                .as_ref()
                .is_ok_and(|free| *free >= all.saturating_add(self.reserve));
            let worth = garbage >= MIN_GARBAGE_BYTES && garbage >= all / MIN_GARBAGE_PART;
            worth && fits && !self.compacted.contains(space)
        })
    }

    fn compact(&self, space: Space) -> Result<JoinHandle<()>, ::fjall::Error> {
        let published = Arc::clone(&self.published);
        let thread = std::thread::Builder::new().name("souk-compaction".to_owned());
        Ok(thread.spawn(move || {
            let begun = Instant::now();
            let keyspace = published.store.keyspace(space);
            let before = keyspace.disk_space();
            match internals::compact(keyspace) {
                Ok(()) => {
                    published.major_compactions.fetch_add(1, Ordering::AcqRel);
                    let (after, took) = (keyspace.disk_space(), begun.elapsed());
                    tracing::info!(?space, before, after, ?took, "compacted a space as a whole");
                }
                // Its new tables are removed again; what was there before stays.
                Err(error) => {
                    tracing::warn!(?space, "compacting a space failed: {}", failure::describe(&error))
                }
            }
        })?)
    }
}

/// Waiting callers learn of a panic by their senders being dropped; later ones by this.
impl Drop for Compactor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.published.fail(&StoreFailure::panicked());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fjall::directory::Directory;
    use crate::fjall::store::Store;

    /// Longest time until the compactor goes on.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_request_waits_for_the_major_compaction_that_runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = FjallOptions {
            memory_bytes: 16 << 20,
            ..FjallOptions::default()
        };
        let locked = Directory::open(directory.path()).expect("a directory");
        let store = Arc::new(Store::open(locked, &options).expect("a store"));
        let (_queue, requests) = flume::bounded(1);
        let (committer, refreshes) = flume::bounded(1);
        let published = Arc::new(Published::new(store.clone(), 0, 0));
        let mut compactor = Compactor::new(published, &options, requests, committer);
        let (release, released) = flume::bounded::<()>(1);
        compactor.state = State::Compacting(std::thread::spawn(move || {
            let _ = released.recv();
        }));

        let rows = store.keyspace(Space::Rows);
        rows.insert("row", "value").expect("a write");
        compactor.begin().expect("begun");
        assert_eq!(
            internals::memtable_bytes(rows),
            0,
            "what was written before is flushed meanwhile"
        );
        compactor.tick().expect("a tick");
        assert!(matches!(compactor.state, State::Compacting(_)));

        drop(release);
        let end = Instant::now() + PATIENCE;
        while refreshes.is_empty() {
            assert!(Instant::now() < end, "it goes on after the compaction");
            compactor.tick().expect("a tick");
            std::thread::yield_now();
        }
        assert!(matches!(compactor.state, State::Refreshing(_)));
    }
}
