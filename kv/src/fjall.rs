//! The key-value store on disk: the fjall engine, one committer thread, a locked directory.
//!
//! - `directory`: what lies in the directory of a database, whose it is, who has it open.
//! - `options`: what a store is opened with.
//! - `nonce`: the secret number of a store, which its journals carry.
//! - `watermark`: how far the log was durable once, kept outside of the engine.
//! - `store`: the engine's database, its spaces, and where its log ends.
//! - `journal`: telling an interrupted write from a damaged one, before the engine opens.
//! - `manifest`: the engine's lists of tables against their checksums.
//! - `group`: commits that share one write and one sync.
//! - `recent`: which keys were written lately, so that checks need not look.
//! - `committer`: the one thread that writes.
//! - `company`: how long a group waits for more commits.
//! - `answers`: telling those of a group who wait, in few wakes.
//! - `setup`: the engine's share of the memory, and what a space is created with.
//! - `pressure`: which memtable is flushed when, and when writers wait for it.
//! - `room`: who is refused while the device is short of room.
//! - `upkeep`: the thread that flushes and, when a store is idle, makes the disk hold little more than what is live.
//! - `engine`: what is asked of the engine beside its documented interface.
//! - `report`: what the store holds and does.
//! - `snapshot`: reading one state of the store.
//! - `failure`: what an error of the engine means to whoever asked.

mod answers;
mod committer;
mod company;
mod directory;
mod engine;
mod failure;
mod group;
mod journal;
mod manifest;
mod nonce;
mod options;
mod pressure;
mod recent;
mod report;
mod room;
mod setup;
mod snapshot;
mod store;
mod upkeep;
mod watermark;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot, watch};

use self::committer::{Barrier, Committer, Request, Shared};
use self::company::Company;
use self::directory::Directory;
use self::group::Pending;
use self::journal::GroupMark;
pub use self::options::{FjallOptions, Recovery};
use self::pressure::Pressure;
use self::recent::Recent;
use self::room::Room;
use self::setup::MemoryPlan;
use self::snapshot::FjallSnapshot;
use self::store::Store;
use self::upkeep::{Ask, Upkeep};
use self::watermark::Watermark;
use crate::commit::{Commit, KvCommitted, weigh};
use crate::engine::{Health, Kv, KvLimits, KvSnapshot};
use crate::error::{Error, OpenError};
use crate::limits::{COMMIT_QUEUE, COMMIT_QUEUE_BYTES, MAX_COMMIT_BYTES, MAX_KEY_BYTES};
use crate::statistics::Statistics;

/// The queue's bytes are counted in units of this many.
const QUEUE_UNIT: usize = 1024;
/// Asks that may wait for the upkeep; what doesn't fit is asked again.
const UPKEEP_QUEUE: usize = 16;

/// A key-value store in a directory, alone with it until the last handle and snapshot is dropped. Dropping it
/// finishes what waits and syncs, on the dropping thread; [`Kv::close`] does so without blocking one.
pub struct FjallKv {
    queue: flume::Sender<Request>,
    /// What may wait in the queue, in units.
    room: Arc<Semaphore>,
    closing: AtomicBool,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    upkeep: Mutex<Option<(flume::Sender<Ask>, JoinHandle<()>)>>,
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
        let accept = options.recovery == Recovery::AcceptShorterLog;
        let directory = Directory::open(path)?;
        let mut watermark = open_watermark(&directory, accept)?;
        if !accept && watermark.sequence() > 0 && !directory.has_data()? {
            return Err(OpenError::LogShortened {
                log_end: 0,
                watermark: watermark.sequence(),
            });
        }
        let journaled = if directory.has_data()? {
            manifest::check(&directory.data())?;
            journal::check(&directory.data(), directory.nonce(), accept)?
        } else {
            None
        };
        let store = Store::open(directory, options)?;
        let end = store.log_end()?;
        let group = store.last_group()?;
        let mark = GroupMark {
            number: journaled.unwrap_or(group),
            durable: journaled.unwrap_or(group),
        };
        let expected = end.head.max(watermark.sequence());
        let lost = if end.found < expected {
            Some(OpenError::LogShortened {
                log_end: end.found,
                watermark: expected,
            })
        } else if end.found != end.head {
            // The engine's checksums leave out the numbers that order its writes.
            let what = format!("the log ends at {}, but its head is {}", end.found, end.head);
            Some(OpenError::corrupt(what))
        } else if mark.number != group {
            let number = mark.number;
            let what = format!("the journal ends with group {number}, but the last one was {group}");
            Some(OpenError::corrupt(what))
        } else {
            None
        };
        if accept {
            store.begin_history(end.found)?;
        }
        let mark = match lost {
            Some(error) if !accept => return Err(error),
            Some(error) => {
                tracing::warn!(directory = ?path, "accepted a loss: {error}");
                let number = mark.number + 1;
                let mark = GroupMark { number, ..mark };
                store.set_head(end.found, mark)?;
                mark
            }
            None => mark,
        };
        if accept && let Some(missing) = store.missing_before(end.found)? {
            tracing::warn!(directory = ?path, missing, "accepted a hole in the log, and gave up what is before it");
            store.give_up_log(missing)?;
        }
        // What the engine found in its journal may be known to the kernel only.
        store.persist().map_err(|error| failure::opening(path, error))?;
        watermark
            .set(end.found)
            .map_err(OpenError::io("write the watermark of", path))?;
        tracing::info!(directory = ?path, sequence = end.found, "opened the store");
        let mark = GroupMark {
            durable: mark.number,
            ..mark
        };
        Self::start(Arc::new(store), watermark, end.found, mark, options)
            .map_err(OpenError::io("start the committer of", path))
    }

    fn start(
        store: Arc<Store>,
        watermark: Watermark,
        last: u64,
        mark: GroupMark,
        options: &FjallOptions,
    ) -> std::io::Result<Self> {
        let room = Room::new(store.directory().to_owned(), options);
        let shared = Arc::new(Shared::new(store, last));
        let (queue, requests) = flume::bounded(COMMIT_QUEUE);
        let (ask, asked) = flume::bounded(UPKEEP_QUEUE);
        let committer = Committer {
            queue: requests,
            shared: shared.clone(),
            watermark,
            last,
            mark,
            recent: Recent::new(),
            failure: None,
            company: Company::default(),
            pressure: Pressure::new(MemoryPlan::of(options), ask.clone()),
            room,
            observer: options.observer.clone(),
        };
        let upkeep = Upkeep::new(shared.clone(), options, asked, queue.clone());
        let thread = std::thread::Builder::new()
            .name("souk-committer".to_owned())
            .spawn(move || committer.run())?;
        let upkeep = std::thread::Builder::new()
            .name("souk-upkeep".to_owned())
            .spawn(move || upkeep.run())?;
        Ok(Self {
            queue,
            room: Arc::new(Semaphore::new(COMMIT_QUEUE_BYTES / QUEUE_UNIT)),
            closing: AtomicBool::new(false),
            shared,
            thread: Mutex::new(Some(thread)),
            upkeep: Mutex::new(Some((ask, upkeep))),
            options: options.clone(),
        })
    }

    /// Refuses everything after a failure or close.
    fn admit(&self) -> Result<(), Error> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        match &*self.shared.health.borrow() {
            // The committer tells who is refused for want of room.
            Health::Serving | Health::Full { .. } => Ok(()),
            Health::Failed { reason } => Err(Error::Unavailable {
                reason: reason.clone(),
            }),
        }
    }

    /// What a dropped answer means: nothing was done if the committer ended as it should.
    fn unanswered(&self) -> Error {
        if self.shared.ended.load(Ordering::Acquire) {
            Error::closed()
        } else {
            failure::Failure::panicked().outcome_unknown()
        }
    }

    async fn barrier(&self, close: bool) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let barrier = Barrier {
            close,
            answer: Some(answer),
        };
        self.queue
            .send_async(Request::Barrier(barrier))
            .await
            .map_err(|_| self.unanswered())?;
        answered.await.map_err(|_| self.unanswered())?
    }

    fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // A panic was reported by the committer's drop.
            let _ = thread.join();
        }
        if let Some((ask, thread)) = self.upkeep.lock().take() {
            // It ends when nobody can ask it any more.
            drop(ask);
            let _ = thread.join();
        }
    }
}

/// The watermark, created with the database.
fn open_watermark(directory: &Directory, accept: bool) -> Result<Watermark, OpenError> {
    let lost = match Watermark::open(directory) {
        Ok(Some(watermark)) => return Ok(watermark),
        // It is created before the data.
        Ok(None) if !directory.has_data()? => return Watermark::create(directory, 0),
        Ok(None) => OpenError::corrupt(format!("{:?} is missing", directory.watermark())),
        Err(error) => error,
    };
    if !accept {
        return Err(lost);
    }
    tracing::warn!(directory = ?directory.path(), "accepted the loss of the watermark: {lost}");
    Watermark::create(directory, 0)
}

impl std::fmt::Debug for FjallKv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FjallKv")
            .field("store", &self.shared.store)
            .field("sequence", &*self.shared.sequence.borrow())
            .field("health", &*self.shared.health.borrow())
            .finish_non_exhaustive()
    }
}

impl Drop for FjallKv {
    fn drop(&mut self) {
        let barrier = Barrier {
            close: true,
            answer: None,
        };
        // Fails when it was closed before.
        let _ = self.queue.send(Request::Barrier(barrier));
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
        Some(self.shared.store.directory())
    }

    async fn snapshot(&self) -> Result<Box<dyn KvSnapshot>, Error> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        Ok(Box::new(FjallSnapshot(self.shared.cut.read().clone())))
    }

    async fn commit(&self, commit: Commit) -> Result<KvCommitted, Error> {
        let bytes = weigh(&commit)?;
        self.admit()?;
        let units = u32::try_from(bytes / QUEUE_UNIT + 1).unwrap_or(u32::MAX);
        let share = self.room.clone().acquire_many_owned(units).await;
        let share = share.map_err(|_| Error::closed())?;
        let (answer, answered) = answers::answer();
        let pending = Pending {
            commit,
            bytes,
            share,
            answer,
        };
        self.queue
            .send_async(Request::Commit(pending))
            .await
            .map_err(|_| self.admit().err().unwrap_or_else(Error::closed))?;
        answered.await.map_err(|_| self.unanswered())?
    }

    fn sequence(&self) -> watch::Receiver<u64> {
        self.shared.sequence.subscribe()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    async fn sync(&self) -> Result<(), Error> {
        self.admit()?;
        self.barrier(false).await
    }

    async fn settle(&self) -> Result<(), Error> {
        self.admit()?;
        let ask = self
            .upkeep
            .lock()
            .as_ref()
            .map(|(ask, _)| ask.clone())
            .ok_or_else(Error::closed)?;
        let (answer, answered) = oneshot::channel();
        ask.send_async(Ask::Settle(answer))
            .await
            .map_err(|_| Error::closed())?;
        drop(ask);
        answered
            .await
            .map_err(|_| self.admit().err().unwrap_or_else(Error::closed))?
    }

    async fn statistics(&self) -> Result<Statistics, Error> {
        let shared = self.shared.clone();
        let options = self.options.clone();
        let waiting = self.queue.len();
        let reported = tokio::task::spawn_blocking(move || report::report(&shared, &options, waiting)).await;
        reported.unwrap_or_else(|stopped| {
            Err(Error::Unavailable {
                reason: format!("the report was stopped: {stopped}"),
            })
        })
    }

    async fn close(&self) -> Result<(), Error> {
        self.closing.store(true, Ordering::Release);
        self.room.close();
        let result = self.barrier(true).await;
        // It has nothing left to do but to end.
        self.join();
        match (result, &*self.shared.health.borrow()) {
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
