//! The group committer: the one thread that writes.
//!
//! It evaluates the checks of queued commits in order, each on top of those before it, writes them as one batch with one
//! sync, publishes the result to readers, and completes them. While it syncs, the next group queues up; after a large
//! group there is a [commit delay](super::commit_delay).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::commit_delay::CommitDelay;
use super::commit_group::PendingGroup;
use super::completion::complete;
use super::disk_guard::DiskSpaceGuard;
use super::failure::StoreFailure;
use super::journal::GroupMark;
use super::published::Published;
use super::requests::{Barrier, CommitterRequest, QueuedCommit};
use super::watermark::Watermark;
use super::write_stall::WriteStall;
use crate::observer::{CommitGroup, Observer};

/// Owned by the committer thread, which does nothing but [`Committer::run`].
pub(super) struct Committer {
    pub(super) queue: flume::Receiver<CommitterRequest>,
    pub(super) published: Arc<Published>,
    pub(super) watermark: Watermark,
    /// Last sequence assigned and written.
    pub(super) last_sequence: u64,
    /// Number of the last group written, and of the last that is durable.
    pub(super) mark: GroupMark,
    /// Why nothing is written any more. A failed sync is never retried: the kernel may have dropped the dirty pages,
    /// and would report success (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
    pub(super) failure: Option<StoreFailure>,
    pub(super) delay: CommitDelay,
    pub(super) stall: WriteStall,
    pub(super) guard: DiskSpaceGuard,
    pub(super) observer: Arc<dyn Observer>,
}

/// How often the device is polled while it is short of space and nobody writes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Committer {
    /// Serves the queue until a barrier closes the store, or all senders are gone.
    pub(super) fn run(mut self) {
        self.published.set_shortage(self.guard.shortage());
        while let Some(request) = self.next_request() {
            let Some(barrier) = self.commit_queued(request) else {
                continue;
            };
            if barrier.close {
                self.close(barrier);
                return;
            }
            let result = self.sync();
            barrier.complete(&result);
        }
    }

    /// Waits for a request; meanwhile a device that is short of space is polled, so that writes are taken again.
    fn next_request(&mut self) -> Option<CommitterRequest> {
        while self.guard.is_short() {
            match self.queue.recv_timeout(POLL_INTERVAL) {
                Ok(request) => return Some(request),
                Err(flume::RecvTimeoutError::Timeout) => self.poll_device(),
                Err(flume::RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.queue.recv().ok()
    }

    fn poll_device(&mut self) {
        self.guard.poll();
        self.published.set_shortage(self.guard.shortage());
    }

    /// Collects queued commits into a group, until it is full or another request comes, and commits it. Serves a refresh
    /// that ended the group; gives the barrier that did.
    fn commit_queued(&mut self, first: CommitterRequest) -> Option<Barrier> {
        if self.guard.is_poll_due() {
            self.poll_device();
        }
        // `first` has left the queue, and counts too. Only commits are worth waiting for.
        if matches!(first, CommitterRequest::Commit(_))
            && let Some(delay) = self.delay.before_group(1 + self.queue.len())
        {
            std::thread::sleep(delay);
        }
        let mut group = PendingGroup::new(self.mark.number + 1, self.last_sequence);
        let mut barrier = None;
        let mut refresh = None;
        let mut next = Some(first);
        while let Some(request) = next.take() {
            match request {
                CommitterRequest::Commit(queued) => self.admit(queued, &mut group),
                CommitterRequest::Barrier(found) => {
                    barrier = Some(found);
                    break;
                }
                CommitterRequest::Refresh(done) => {
                    refresh = Some(done);
                    break;
                }
            }
            if !group.is_full() {
                next = self.queue.try_recv().ok();
            }
        }
        self.commit(group);
        if let Some(done) = refresh {
            self.refresh(done);
        }
        barrier
    }

    /// Adds a commit to the group, or refuses it.
    fn admit(&mut self, queued: QueuedCommit, group: &mut PendingGroup) {
        let admitted = match &self.failure {
            Some(failure) => Err(failure.unavailable()),
            None => self.guard.admit(&queued.commit),
        };
        match admitted {
            Ok(()) => group.add(queued, &self.published.store, &self.published.conflicts),
            Err(error) => complete([(queued.completion, Err(error))]),
        }
    }

    /// Publishes a snapshot that includes everything the engine did. After a failure there will be none: `done` is dropped.
    fn refresh(&mut self, done: oneshot::Sender<()>) {
        if self.failure.is_some() {
            return;
        }
        match self.published.store.write_no_op() {
            Ok(()) => {
                self.published.publish(self.last_sequence, self.mark.number);
                // The compactor may have ended.
                let _ = done.send(());
            }
            Err(error) => self.fail(&StoreFailure::writing(&error)),
        }
    }

    fn commit(&mut self, mut group: PendingGroup) {
        if group.has_changes() {
            let bytes = group.bytes();
            let stalled = self.stall.wait(&self.published.store, bytes);
            self.mark.number += 1;
            let began = Instant::now();
            if let Err(failure) = stalled.and_then(|()| group.write(&self.published.store, self.mark)) {
                let failure = failure.with_free_space(self.guard.free());
                self.fail(&failure);
                group.fail(&failure);
                return;
            }
            let written = CommitGroup {
                commits: group.commits(),
                synced: group.syncs(),
                took: began.elapsed(),
            };
            self.delay.record(written.commits, written.synced, written.took);
            self.observer.committed(written);
            if group.syncs() {
                self.mark.durable = self.mark.number;
            }
            self.last_sequence = group.last();
            self.guard.record(bytes);
            self.published.publish(self.last_sequence, self.mark.number);
            self.published.groups.fetch_add(1, Ordering::Release);
        }
        group.complete();
    }

    fn sync(&mut self) -> Result<(), StoreFailure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let began = Instant::now();
        let synced = match self.published.store.persist() {
            Ok(()) => {
                self.observer.committed(CommitGroup {
                    commits: 0,
                    synced: true,
                    took: began.elapsed(),
                });
                self.mark.durable = self.mark.number;
                self.watermark
                    .set(self.last_sequence)
                    .map_err(|error| StoreFailure::watermark(&error))
            }
            Err(error) => Err(StoreFailure::writing(&error)),
        };
        let synced = synced.map_err(|failure| failure.with_free_space(self.guard.free()));
        synced.inspect_err(|failure| self.fail(failure))
    }

    fn fail(&mut self, failure: &StoreFailure) {
        self.published.fail(failure);
        self.failure = Some(failure.clone());
    }

    /// Commits what is queued, and makes everything durable.
    fn close(mut self, barrier: Barrier) {
        let mut barriers = vec![barrier];
        while let Ok(request) = self.queue.try_recv() {
            barriers.extend(self.commit_queued(request));
        }
        let result = self.sync();
        self.published.ended.store(true, Ordering::Release);
        for barrier in barriers {
            barrier.complete(&result);
        }
    }
}

/// After a panic, callers that wait see their completions dropped; later ones see the failure published here.
impl Drop for Committer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.published.fail(&StoreFailure::panicked());
        }
    }
}
