//! The one thread that writes.
//!
//! It takes what waits, decides it in order against the present state, writes it as one batch with one sync, shows
//! it to readers, and answers. It never waits for a group to fill: while it syncs, the next one does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use tokio::sync::{oneshot, watch};

use super::failure::Failure;
use super::group::{Group, Pending};
use super::snapshot::Cut;
use super::store::Store;
use super::watermark::Watermark;
use crate::kv::{Error, Health};

/// What the committer is asked for.
pub(super) enum Request {
    Commit(Pending),
    Barrier(Barrier),
}

/// Asks for everything before it to be durable.
pub(super) struct Barrier {
    /// Whether the committer ends after it.
    pub(super) close: bool,
    pub(super) answer: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Barrier {
    fn answer(self, result: &Result<(), Failure>) {
        if let Some(answer) = self.answer {
            // Whoever stopped waiting doesn't need to know.
            let _ = answer.send(result.as_ref().map(drop).map_err(Failure::outcome_unknown));
        }
    }
}

/// What the committer shows.
pub(super) struct Shared {
    pub(super) store: Arc<Store>,
    pub(super) cut: RwLock<Arc<Cut>>,
    pub(super) sequence: watch::Sender<u64>,
    pub(super) health: watch::Sender<Health>,
    /// Set when it ended as it should; what it left in the queue was not taken.
    pub(super) ended: AtomicBool,
}

impl Shared {
    pub(super) fn new(store: Arc<Store>, sequence: u64) -> Self {
        Self {
            cut: RwLock::new(Arc::new(Cut::take(store.clone(), sequence))),
            store,
            sequence: watch::Sender::new(sequence),
            health: watch::Sender::new(Health::Serving),
            ended: AtomicBool::new(false),
        }
    }

    fn publish(&self, sequence: u64) {
        *self.cut.write() = Arc::new(Cut::take(self.store.clone(), sequence));
        self.sequence.send_if_modified(|shown| {
            let advanced = *shown != sequence;
            *shown = sequence;
            advanced
        });
    }

    fn fail(&self, failure: &Failure) {
        tracing::error!(
            reason = failure.reason,
            "the store failed and takes no more commits"
        );
        self.health.send_replace(Health::Failed {
            reason: failure.reason.clone(),
        });
    }
}

/// The state of the thread.
pub(super) struct Committer {
    pub(super) queue: flume::Receiver<Request>,
    pub(super) shared: Arc<Shared>,
    pub(super) watermark: Watermark,
    /// Last sequence assigned and written.
    pub(super) last: u64,
    /// Why nothing is written any more. A failed sync is never tried again: the kernel may have dropped the pages
    /// and would report success (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
    pub(super) failure: Option<Failure>,
}

impl Committer {
    /// Works until a barrier closes it.
    pub(super) fn run(mut self) {
        while let Ok(request) = self.queue.recv() {
            let Some(barrier) = self.take(request) else {
                continue;
            };
            if barrier.close {
                self.end(barrier);
                return;
            }
            let result = self.sync();
            barrier.answer(&result);
        }
    }

    /// Takes what waits until a group is full or a barrier comes, and commits it.
    fn take(&mut self, first: Request) -> Option<Barrier> {
        let mut group = Group::after(self.last);
        let mut barrier = None;
        let mut next = Some(first);
        while let Some(request) = next.take() {
            match (request, &self.failure) {
                (Request::Commit(pending), None) => group.add(pending, &self.shared.store),
                (Request::Commit(pending), Some(failure)) => {
                    let _ = pending.answer.send(Err(failure.unavailable()));
                }
                (Request::Barrier(found), _) => {
                    barrier = Some(found);
                    break;
                }
            }
            if !group.is_full() {
                next = self.queue.try_recv().ok();
            }
        }
        self.commit(group);
        barrier
    }

    fn commit(&mut self, mut group: Group) {
        if group.has_changes() {
            if let Err(failure) = group.write(&self.shared.store) {
                self.fail(&failure);
                group.fail(&failure);
                return;
            }
            self.last = group.last();
            self.shared.publish(self.last);
        }
        group.answer();
    }

    fn sync(&mut self) -> Result<(), Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let synced = match self.shared.store.persist() {
            Ok(()) => self
                .watermark
                .set(self.last)
                .map_err(|error| Failure::watermark(&error)),
            Err(error) => Err(Failure::writing(&error)),
        };
        synced.inspect_err(|failure| self.fail(failure))
    }

    fn fail(&mut self, failure: &Failure) {
        self.shared.fail(failure);
        self.failure = Some(failure.clone());
    }

    /// Finishes what waits, and ends.
    fn end(mut self, barrier: Barrier) {
        let mut barriers = vec![barrier];
        while let Ok(request) = self.queue.try_recv() {
            barriers.extend(self.take(request));
        }
        let result = self.sync();
        self.shared.ended.store(true, Ordering::Release);
        for barrier in barriers {
            barrier.answer(&result);
        }
    }
}

/// Whoever waits learns of a panic by its answer being dropped; whoever comes later, by this.
impl Drop for Committer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(&Failure::panicked());
        }
    }
}
