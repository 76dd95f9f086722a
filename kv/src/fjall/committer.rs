//! The one thread that writes.
//!
//! It takes what waits, decides it in order against the present state, writes it as one batch with one sync, shows
//! it to readers, and answers. While it syncs, the next group fills; one among many waits a moment for its [company](super::company).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::{oneshot, watch};

use super::answers;
use super::company::Company;
use super::failure::Failure;
use super::group::{Group, Pending};
use super::journal::GroupMark;
use super::pressure::Pressure;
use super::recent::Recent;
use super::room::{self, Room};
use super::snapshot::Cut;
use super::store::Store;
use super::watermark::Watermark;
use crate::engine::Health;
use crate::error::Error;
use crate::observer::{GroupWrite, Observer};

/// What the committer is asked for.
pub(super) enum Request {
    Commit(Pending),
    Barrier(Barrier),
    /// For a snapshot behind everything the engine did; the answer is dropped when there will be none.
    Refresh(oneshot::Sender<()>),
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
    /// Groups written since the opening.
    pub(super) groups: AtomicU64,
    /// Times the store was settled, and spaces compacted as a whole, since the opening.
    pub(super) settled: AtomicU64,
    pub(super) compacted: AtomicU64,
}

impl Shared {
    pub(super) fn new(store: Arc<Store>, sequence: u64) -> Self {
        Self {
            cut: RwLock::new(Arc::new(Cut::take(store.clone(), sequence, 0))),
            store,
            sequence: watch::Sender::new(sequence),
            health: watch::Sender::new(Health::Serving),
            ended: AtomicBool::new(false),
            groups: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            compacted: AtomicU64::new(0),
        }
    }

    fn publish(&self, sequence: u64, moment: u64) {
        // The one before is let go by its last reader, or here, but not under the lock.
        let cut = Arc::new(Cut::take(self.store.clone(), sequence, moment));
        let mut shown = self.cut.write();
        // Under the lock of the cut: no reader sees a change above the sequence, and none waits for what is told to others.
        let mut advanced = false;
        self.sequence.send_if_modified(|shown| {
            advanced = *shown != sequence;
            *shown = sequence;
            false
        });
        let _before = std::mem::replace(&mut *shown, cut);
        drop(shown);
        self.sequence.send_if_modified(|_| advanced);
    }

    /// Tells that the store has failed; the first reason stays.
    pub(super) fn fail(&self, failure: &Failure) {
        self.health.send_if_modified(|health| {
            if matches!(health, Health::Failed { .. }) {
                return false;
            }
            tracing::error!(
                reason = failure.reason,
                "the store failed and takes no more commits"
            );
            *health = Health::Failed {
                reason: failure.reason.clone(),
            };
            true
        });
    }

    /// Tells whether there is room on the device: free bytes and reserve when there is not.
    fn show_room(&self, shortage: Option<(u64, u64)>) {
        self.health.send_if_modified(|health| {
            let now = match (&*health, shortage) {
                (Health::Serving, Some((free, reserve))) => {
                    let reason = room::reason(free, reserve);
                    tracing::warn!(reason, "writes are refused until there is room");
                    Health::Full { reason }
                }
                (Health::Full { .. }, None) => {
                    tracing::info!("there is room on the device; writes are taken again");
                    Health::Serving
                }
                _ => return false,
            };
            *health = now;
            true
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
    /// Number of the last group written, and of the last that is durable.
    pub(super) mark: GroupMark,
    /// What was written lately.
    pub(super) recent: Recent,
    /// Why nothing is written any more. A failed sync is never tried again: the kernel may have dropped the pages
    /// and would report success (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
    pub(super) failure: Option<Failure>,
    pub(super) company: Company,
    pub(super) pressure: Pressure,
    pub(super) room: Room,
    pub(super) observer: Arc<dyn Observer>,
}

/// How often a committer that refuses for want of room looks at the device while nobody writes.
const ROOM_TICK: Duration = Duration::from_secs(1);

impl Committer {
    /// Works until a barrier closes it.
    pub(super) fn run(mut self) {
        self.shared.show_room(self.room.shortage());
        while let Some(request) = self.next() {
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

    fn next(&mut self) -> Option<Request> {
        while self.room.is_short() {
            match self.queue.recv_timeout(ROOM_TICK) {
                Ok(request) => return Some(request),
                Err(flume::RecvTimeoutError::Timeout) => self.look_at_room(),
                Err(flume::RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.queue.recv().ok()
    }

    fn look_at_room(&mut self) {
        self.room.look();
        self.shared.show_room(self.room.shortage());
    }

    /// Takes what waits until a group is full or a barrier comes, and commits it.
    fn take(&mut self, first: Request) -> Option<Barrier> {
        if self.room.is_due() {
            self.look_at_room();
        }
        // The one that was taken, and those behind it; what doesn't write is answered sooner.
        if matches!(first, Request::Commit(_))
            && let Some(wait) = self.company.wait(1 + self.queue.len())
        {
            std::thread::sleep(wait);
        }
        let mut group = Group::after(self.last);
        let mut barrier = None;
        let mut refresh = None;
        let mut next = Some(first);
        while let Some(request) = next.take() {
            match (request, &self.failure) {
                (Request::Commit(pending), None) => match self.room.refuses(&pending.commit) {
                    None => group.add(pending, &self.shared.store, &mut self.recent),
                    Some(error) => {
                        answers::tell([(pending.answer, Err(error))]);
                    }
                },
                (Request::Commit(pending), Some(failure)) => {
                    answers::tell([(pending.answer, Err(failure.unavailable()))]);
                }
                (Request::Barrier(found), _) => {
                    barrier = Some(found);
                    break;
                }
                (Request::Refresh(answer), None) => {
                    refresh = Some(answer);
                    break;
                }
                // Its answer is dropped: there will be no fresh snapshot.
                (Request::Refresh(_), Some(_)) => {}
            }
            if !group.is_full() {
                next = self.queue.try_recv().ok();
            }
        }
        self.commit(group);
        if let Some(answer) = refresh {
            self.refresh(answer);
        }
        barrier
    }

    fn refresh(&mut self, answer: oneshot::Sender<()>) {
        if self.failure.is_some() {
            return;
        }
        match self.shared.store.beat() {
            Ok(()) => {
                self.shared.publish(self.last, self.recent.moment());
                // It ends when nobody waits for it any more.
                let _ = answer.send(());
            }
            Err(error) => self.fail(&Failure::writing(&error)),
        }
    }

    fn commit(&mut self, mut group: Group) {
        if group.has_changes() {
            let bytes = group.bytes();
            let relieved = self.pressure.relieve(&self.shared.store, bytes);
            self.mark.number += 1;
            let began = Instant::now();
            if let Err(failure) = relieved.and_then(|()| group.write(&self.shared.store, self.mark)) {
                let failure = failure.with_room(self.room.free());
                self.fail(&failure);
                group.fail(&failure);
                return;
            }
            let wrote = GroupWrite {
                commits: group.commits(),
                synced: group.syncs(),
                took: began.elapsed(),
            };
            self.company.wrote(wrote.commits, wrote.synced, wrote.took);
            self.observer.wrote(wrote);
            if group.syncs() {
                self.mark.durable = self.mark.number;
            }
            self.last = group.last();
            self.room.committed(bytes);
            self.recent.end_group();
            self.shared.publish(self.last, self.recent.moment());
            self.shared.groups.fetch_add(1, Ordering::Release);
        }
        group.answer();
    }

    fn sync(&mut self) -> Result<(), Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let began = Instant::now();
        let synced = match self.shared.store.persist() {
            Ok(()) => {
                self.observer.wrote(GroupWrite {
                    commits: 0,
                    synced: true,
                    took: began.elapsed(),
                });
                self.mark.durable = self.mark.number;
                self.watermark
                    .set(self.last)
                    .map_err(|error| Failure::watermark(&error))
            }
            Err(error) => Err(Failure::writing(&error)),
        };
        let synced = synced.map_err(|failure| failure.with_room(self.room.free()));
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
