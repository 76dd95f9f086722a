//! The engine on disk: fjall, one committer thread, a locked directory.
//!
//! - `directory`: the files of a store, its format and its lock.
//! - `options`: what a store is opened with.
//! - `nonce`: the secret number that a store's journals carry.
//! - `watermark`: the sequence up to which the log was durable, kept outside of the engine.
//! - `store`: the engine's database, its spaces, and where its log ends.
//! - `journal`: verifies the journals before the engine recovers from them.
//! - `manifest`: verifies the lists of sorted tables of the engine's LSM trees.
//! - `commit_group`: commits that share one write and one sync.
//! - `conflict_window`: the keys of the latest groups, which spares re-reading for checks.
//! - `committer`: the group committer, the one thread that writes.
//! - `requests`: the requests in the queues of committer and compactor.
//! - `published`: what the committer publishes to readers.
//! - `commit_delay`: how long a group waits for more commits.
//! - `completion`: completion batching, which cuts cross-thread wake-ups.
//! - `setup`: the split of the memory, and the options of spaces.
//! - `write_stall`: bounds the memory of memtables.
//! - `disk_guard`: the disk space guard, which refuses writes while the device is short of space.
//! - `compaction`: the compactor, a thread that flushes full memtables and quiesces an idle store.
//! - `internals`: the undocumented interface of fjall that is used here.
//! - `report`: statistics.
//! - `snapshot`: reading one state of the store.
//! - `failure`: translates errors of fjall.

mod commit_delay;
mod commit_group;
mod committer;
mod compaction;
mod completion;
mod conflict_window;
mod directory;
mod disk_guard;
mod failure;
mod internals;
mod journal;
mod manifest;
mod nonce;
mod options;
mod published;
mod report;
mod requests;
mod setup;
mod snapshot;
mod store;
mod watermark;
mod write_stall;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot, watch};

use self::commit_delay::CommitDelay;
use self::committer::Committer;
use self::compaction::Compactor;
use self::completion::Completion;
use self::directory::Directory;
use self::disk_guard::DiskSpaceGuard;
use self::failure::StoreFailure;
use self::journal::GroupMark;
pub use self::options::{FjallOptions, Recovery};
use self::published::Published;
use self::requests::{Barrier, CommitterRequest, CompactorRequest, QueuedCommit};
use self::setup::MemoryPlan;
use self::snapshot::FjallSnapshot;
use self::store::Store;
use self::watermark::Watermark;
use self::write_stall::WriteStall;
use crate::commit::{Commit, KvCommitted, validate};
use crate::engine::{Health, Kv, KvLimits, KvSnapshot};
use crate::error::{Error, OpenError};
use crate::limits::{COMMIT_QUEUE, COMMIT_QUEUE_BYTES, MAX_COMMIT_BYTES, MAX_KEY_BYTES};
use crate::statistics::Statistics;

/// Bytes that a permit of [`FjallKv::queue_permits`] stands for: a semaphore counts in 32 bits.
const BYTES_PER_PERMIT: usize = 1024;
/// Requests that may wait for the compactor; what doesn't fit is requested again.
const COMPACTOR_QUEUE: usize = 16;

/// A key-value store in a directory, which it keeps locked until it and its last snapshot are dropped. Dropping it
/// commits what is queued and syncs, on the dropping thread; [`Kv::close`] does so without blocking one.
pub struct FjallKv {
    queue: flume::Sender<CommitterRequest>,
    /// Bounds the bytes of the queued commits.
    queue_permits: Arc<Semaphore>,
    closing: AtomicBool,
    published: Arc<Published>,
    /// `None` once it was joined; the compactor likewise.
    committer: Mutex<Option<JoinHandle<()>>>,
    compactor: Mutex<Option<(flume::Sender<CompactorRequest>, JoinHandle<()>)>>,
    options: FjallOptions,
}

impl FjallKv {
    /// Opens the store in a directory, creating both if needed. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`OpenError::Locked`], [`OpenError::NotADatabase`], [`OpenError::UnsupportedFormat`];
    /// [`OpenError::LogShortened`] and, for a lost or damaged watermark, [`Error::Corrupt`] unless
    /// [`Recovery::AcceptShorterLog`] is set; [`Error::Corrupt`] when the engine can't read its files;
    /// [`OpenError::Io`]; [`OpenError::Invalid`] for the options.
    pub async fn open(directory: &Path, options: &FjallOptions) -> Result<Self, OpenError> {
        let path = directory.to_owned();
        let options = options.clone();
        let opened = tokio::task::spawn_blocking(move || Self::open_blocking(&path, &options)).await;
        opened.unwrap_or_else(|stopped| {
            Err(OpenError::Store(Error::Corrupt {
                what: format!("the engine stopped while it opened {directory:?}"),
                source: Some(Box::new(stopped)),
            }))
        })
    }

    fn open_blocking(path: &Path, options: &FjallOptions) -> Result<Self, OpenError> {
        let accept_loss = options.recovery == Recovery::AcceptShorterLog;
        let directory = Directory::open(path)?;
        let mut watermark = open_watermark(&directory, accept_loss)?;
        if !accept_loss && watermark.sequence() > 0 && !directory.has_data()? {
            return Err(OpenError::LogShortened {
                log_end: 0,
                watermark: watermark.sequence(),
            });
        }
        let last_journaled = if directory.has_data()? {
            manifest::check(&directory.data())?;
            journal::check(&directory.data(), directory.nonce(), accept_loss)?
        } else {
            None
        };
        let store = Store::open(directory, options)?;
        let log_end = store.log_end()?;
        let last_group = store.last_group()?;
        let last_journaled = last_journaled.unwrap_or(last_group);
        let mut mark = GroupMark {
            number: last_journaled,
            durable: last_journaled,
        };
        let expected = log_end.head.max(watermark.sequence());
        let lost = if log_end.found < expected {
            Some(OpenError::LogShortened {
                log_end: log_end.found,
                watermark: expected,
            })
        } else if log_end.found != log_end.head {
            // fjall's checksums don't cover its sequence numbers: a damaged one makes an older head the latest.
            let what = format!(
                "the log ends at {}, but its head is {}",
                log_end.found, log_end.head
            );
            Some(OpenError::corrupt(what))
        } else if last_journaled != last_group {
            let what =
                format!("the journal ends with group {last_journaled}, but the last one was {last_group}");
            Some(OpenError::corrupt(what))
        } else {
            None
        };
        if accept_loss {
            store.begin_history(log_end.found)?;
        }
        if let Some(error) = lost {
            if !accept_loss {
                return Err(error);
            }
            tracing::warn!(directory = ?path, "accepted a loss: {error}");
            mark.number += 1;
            store.set_head(log_end.found, mark)?;
        }
        if accept_loss && let Some(missing) = store.missing_before(log_end.found)? {
            tracing::warn!(directory = ?path, missing, "accepted a hole in the log, and gave up what is before it");
            store.give_up_log(missing)?;
        }
        // What was replayed from the journal may so far be in the kernel's page cache alone.
        store.persist().map_err(|error| failure::opening(path, error))?;
        watermark
            .set(log_end.found)
            .map_err(OpenError::io("write the watermark of", path))?;
        tracing::info!(directory = ?path, sequence = log_end.found, "opened the store");
        mark.durable = mark.number;
        Self::start(Arc::new(store), watermark, log_end.found, mark, options)
            .map_err(OpenError::io("start the committer of", path))
    }

    /// Starts the threads of the committer and the compactor, on a store whose log ends at `last`.
    fn start(
        store: Arc<Store>,
        watermark: Watermark,
        last: u64,
        mark: GroupMark,
        options: &FjallOptions,
    ) -> std::io::Result<Self> {
        let guard = DiskSpaceGuard::new(store.directory().to_owned(), options);
        let published = Arc::new(Published::new(store, last, mark.number));
        let (queue, requests) = flume::bounded(COMMIT_QUEUE);
        let (compactor_queue, compactor_requests) = flume::bounded(COMPACTOR_QUEUE);
        let committer = Committer {
            queue: requests,
            published: published.clone(),
            watermark,
            last_sequence: last,
            mark,
            failure: None,
            delay: CommitDelay::default(),
            stall: WriteStall::new(MemoryPlan::new(options), compactor_queue.clone()),
            guard,
            observer: options.observer.clone(),
        };
        let compactor = Compactor::new(published.clone(), options, compactor_requests, queue.clone());
        let committer = std::thread::Builder::new()
            .name("souk-committer".to_owned())
            .spawn(move || committer.run())?;
        let compactor = std::thread::Builder::new()
            .name("souk-compactor".to_owned())
            .spawn(move || compactor.run())?;
        Ok(Self {
            queue,
            queue_permits: Arc::new(Semaphore::new(COMMIT_QUEUE_BYTES / BYTES_PER_PERMIT)),
            closing: AtomicBool::new(false),
            published,
            committer: Mutex::new(Some(committer)),
            compactor: Mutex::new(Some((compactor_queue, compactor))),
            options: options.clone(),
        })
    }

    /// Refuses every call after a failure or [`Kv::close`].
    fn admit(&self) -> Result<(), Error> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        match &*self.published.health.borrow() {
            // The committer decides what is refused for want of disk space.
            Health::Serving | Health::Full { .. } => Ok(()),
            Health::Failed { reason } => Err(Error::Unavailable {
                reason: reason.clone(),
            }),
        }
    }

    /// The error of a request whose thread is gone.
    fn refused(&self) -> Error {
        self.admit().err().unwrap_or_else(Error::closed)
    }

    /// The error of a request whose completion was dropped: nothing was done if the committer ended as it should.
    fn dropped(&self) -> Error {
        if self.published.ended.load(Ordering::Acquire) {
            Error::closed()
        } else {
            StoreFailure::panicked().outcome_unknown()
        }
    }

    /// Waits until all that was queued before is committed and durable; with `close` it ends the committer.
    async fn barrier(&self, close: bool) -> Result<(), Error> {
        let (completion, completed) = oneshot::channel();
        let barrier = Barrier {
            close,
            completion: Some(completion),
        };
        self.queue
            .send_async(CommitterRequest::Barrier(barrier))
            .await
            .map_err(|_| self.dropped())?;
        completed.await.map_err(|_| self.dropped())?
    }

    /// Waits for the end of both threads, after a barrier has closed the committer.
    fn join(&self) {
        if let Some(committer) = self.committer.lock().take() {
            // A panic was reported by the committer's drop.
            let _ = committer.join();
        }
        if let Some((queue, compactor)) = self.compactor.lock().take() {
            // The compactor ends with the last sender of its queue.
            drop(queue);
            let _ = compactor.join();
        }
    }
}

/// Opens the watermark, or creates it with the database. With `accept_loss`, one that is missing or damaged is replaced.
fn open_watermark(directory: &Directory, accept_loss: bool) -> Result<Watermark, OpenError> {
    let lost = match Watermark::open(directory) {
        Ok(Some(watermark)) => return Ok(watermark),
        // It is created before the data.
        Ok(None) if !directory.has_data()? => return Watermark::create(directory, 0),
        Ok(None) => OpenError::corrupt(format!("{:?} is missing", directory.watermark())),
        Err(error) => error,
    };
    if !accept_loss {
        return Err(lost);
    }
    tracing::warn!(directory = ?directory.path(), "accepted the loss of the watermark: {lost}");
    Watermark::create(directory, 0)
}

impl std::fmt::Debug for FjallKv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FjallKv")
            .field("store", &self.published.store)
            .field("sequence", &*self.published.sequence.borrow())
            .field("health", &*self.published.health.borrow())
            .finish_non_exhaustive()
    }
}

impl Drop for FjallKv {
    fn drop(&mut self) {
        let barrier = Barrier {
            close: true,
            completion: None,
        };
        // Fails when the store was closed before: then there is nothing to end.
        let _ = self.queue.send(CommitterRequest::Barrier(barrier));
        self.join();
    }
}

#[async_trait]
impl Kv for FjallKv {
    fn limits(&self) -> KvLimits {
        KvLimits {
            key_bytes: MAX_KEY_BYTES,
            commit_bytes: MAX_COMMIT_BYTES,
        }
    }

    fn directory(&self) -> Option<&Path> {
        Some(self.published.store.directory())
    }

    async fn snapshot(&self) -> Result<Box<dyn KvSnapshot>, Error> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        Ok(Box::new(FjallSnapshot(self.published.snapshot.read().clone())))
    }

    async fn commit(&self, commit: Commit) -> Result<KvCommitted, Error> {
        let bytes = validate(&commit)?;
        self.admit()?;
        let permits = u32::try_from(bytes / BYTES_PER_PERMIT + 1).unwrap_or(u32::MAX);
        let permit = self.queue_permits.clone().acquire_many_owned(permits).await;
        let permit = permit.map_err(|_| Error::closed())?;
        let (completion, completed) = Completion::new();
        let queued = QueuedCommit {
            commit,
            bytes,
            permit,
            completion,
        };
        self.queue
            .send_async(CommitterRequest::Commit(queued))
            .await
            .map_err(|_| self.refused())?;
        completed.await.map_err(|_| self.dropped())?
    }

    fn sequence(&self) -> watch::Receiver<u64> {
        self.published.sequence.subscribe()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.published.health.subscribe()
    }

    async fn sync(&self) -> Result<(), Error> {
        self.admit()?;
        self.barrier(false).await
    }

    async fn quiesce(&self) -> Result<(), Error> {
        self.admit()?;
        let queue = self.compactor.lock().as_ref().map(|(queue, _)| queue.clone());
        let queue = queue.ok_or_else(Error::closed)?;
        let (done, quiesced) = oneshot::channel();
        queue
            .send_async(CompactorRequest::Quiesce(done))
            .await
            .map_err(|_| Error::closed())?;
        // The compactor ends with the last sender.
        drop(queue);
        quiesced.await.map_err(|_| self.refused())?
    }

    async fn statistics(&self) -> Result<Statistics, Error> {
        let published = self.published.clone();
        let options = self.options.clone();
        let waiting = self.queue.len();
        let reported =
            tokio::task::spawn_blocking(move || report::report(&published, &options, waiting)).await;
        reported.unwrap_or_else(|stopped| {
            Err(Error::Unavailable {
                reason: format!("the report was stopped: {stopped}"),
            })
        })
    }

    async fn close(&self) -> Result<(), Error> {
        self.closing.store(true, Ordering::Release);
        self.queue_permits.close();
        let result = self.barrier(true).await;
        // Blocks only for as long as the threads take to return.
        self.join();
        match (result, &*self.published.health.borrow()) {
            // It was closed before.
            (Err(Error::Unavailable { .. }), Health::Serving | Health::Full { .. }) => Ok(()),
            (Err(Error::Unavailable { .. }), Health::Failed { reason }) => Err(Error::OutcomeUnknown {
                reason: reason.clone(),
                disk_full: false,
            }),
            (result, _) => result,
        }
    }
}
