//! What is left to do after a table has changed: filling a new index, removing what a dropped index or table left
//! behind, trimming versions that became too many. A job is kept in the catalog with the place it has reached; each
//! step is one commit that also moves that place, so that a job goes on after a restart where it was. Steps run beside
//! writers: they check that the rows they read are still the same, and are made anew if not.

mod codec;
mod fill;
mod remove;
#[cfg(test)]
mod tests;
mod trim;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use souk_kv::{self as kv, Check, Commit, Durability, Health, Mutation, Space};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::catalog::{Definition, Table, TableId};
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::key;
use crate::limits::{MAX_JOB_STEP_ROWS, MAX_WRITE_ATTEMPTS};
use crate::secondary::EXPIRY_INDEX;
use crate::write::Locked;

/// Up to so many rows a step locks what it reads, so that no writer can come between.
const LOCKED_ROWS: usize = 16;
/// The longest pause after a step.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// What a background job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    /// Adds the entries of the rows that were there before an index.
    FillIndex,
    /// Removes the entries of an index that was dropped.
    RemoveIndex,
    /// Removes rows and entries of a table that was deleted.
    RemoveTable,
    /// Removes the versions that are too many since the table keeps fewer.
    TrimVersions,
}

/// A background job that isn't finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The table it is about, which may be deleted.
    pub table: TableId,
    /// What it does.
    pub kind: JobKind,
    /// Rows or entries it has handled so far.
    pub handled: u64,
    /// Number of the index it is about, else 0.
    pub(crate) index: u16,
    cursor: Cursor,
}

/// What tells jobs apart.
pub(crate) type JobKey = (TableId, JobKind, u16);

/// Where a job goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Cursor {
    /// Which of the ranges it walks.
    range: u8,
    /// The key it goes on at; empty at the beginning of the range.
    low: Bytes,
}

impl Job {
    /// A job at its beginning.
    pub(crate) fn new(table: TableId, kind: JobKind, index: u16) -> Self {
        Self {
            table,
            kind,
            handled: 0,
            index,
            cursor: Cursor::default(),
        }
    }

    pub(crate) fn key(&self) -> JobKey {
        (self.table, self.kind, self.index)
    }

    /// Writes where it is.
    pub(crate) fn put(&self) -> Mutation {
        Mutation::Put {
            space: Space::Catalog,
            key: stored_key(self.key()),
            value: codec::encode(self),
            stamp: false,
        }
    }

    /// The job of a key and value in the catalog.
    pub(crate) fn decode(key: &[u8], value: &Bytes) -> Result<Self> {
        codec::decode(key, value)
    }

    /// Whether the index is the hidden one.
    fn is_of_expiry(&self) -> bool {
        self.index == EXPIRY_INDEX
    }
}

/// Removes what is kept of a job.
pub(crate) fn delete(job: JobKey) -> Mutation {
    Mutation::Delete {
        space: Space::Catalog,
        key: stored_key(job),
    }
}

fn stored_key((table, kind, index): JobKey) -> Bytes {
    key::job(table, codec::kind(kind), index)
}

/// The jobs of a database, and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    all: Mutex<BTreeMap<JobKey, Job>>,
    /// Told when there is something to do.
    wake: Arc<Notify>,
    progress: watch::Sender<Progress>,
}

/// What those who wait for jobs see change.
#[derive(Debug, Default)]
struct Progress {
    closed: bool,
}

impl Jobs {
    pub(crate) fn new(jobs: impl IntoIterator<Item = Job>) -> Self {
        Self {
            all: Mutex::new(jobs.into_iter().map(|job| (job.key(), job)).collect()),
            ..Self::default()
        }
    }

    pub(crate) fn list(&self) -> Vec<Job> {
        self.all.lock().values().cloned().collect()
    }

    pub(crate) fn contains(&self, job: JobKey) -> bool {
        self.all.lock().contains_key(&job)
    }

    /// Adds a job unless it is there already.
    pub(crate) fn ensure(&self, job: Job) {
        self.all.lock().entry(job.key()).or_insert(job);
    }

    /// The jobs of a table.
    pub(crate) fn of_table(&self, table: TableId) -> Vec<JobKey> {
        let all = self.all.lock();
        all.keys().filter(|(id, ..)| *id == table).copied().collect()
    }

    /// Takes over what a change of a table has committed.
    pub(crate) fn replace(&self, cancelled: &[JobKey], started: Vec<Job>) {
        let mut all = self.all.lock();
        for job in cancelled {
            all.remove(job);
        }
        for job in started {
            all.insert(job.key(), job);
        }
        drop(all);
        self.told();
        self.wake.notify_one();
    }

    /// Lets those who wait know that no job goes on.
    pub(crate) fn close(&self) {
        self.progress.send_modify(|progress| progress.closed = true);
    }

    fn get(&self, job: JobKey) -> Option<Job> {
        self.all.lock().get(&job).cloned()
    }

    /// The job after this one, around to the first.
    fn after(&self, last: Option<JobKey>) -> Option<JobKey> {
        let all = self.all.lock();
        let later = last.and_then(|last| all.range((Bound::Excluded(last), Bound::Unbounded)).next());
        later.or_else(|| all.first_key_value()).map(|(key, _)| *key)
    }

    fn told(&self) {
        self.progress.send_modify(|_| {});
    }
}

/// Waits until `done` gives something, looking each time a job has made a step.
pub(crate) async fn wait<T>(shared: &Shared, done: impl Fn() -> Result<Option<T>>) -> Result<T> {
    let mut progress = shared.jobs.progress.subscribe();
    let mut health = shared.kv.health();
    loop {
        let closed = progress.borrow_and_update().closed;
        if let Some(done) = done()? {
            return Ok(done);
        }
        if let Health::Failed { reason } = &*health.borrow_and_update() {
            return Err(Error::Unavailable {
                reason: reason.clone(),
            });
        }
        if closed {
            let reason = "it is closed".to_owned();
            return Err(Error::Unavailable { reason });
        }
        tokio::select! {
            _ = progress.changed() => {}
            _ = health.changed() => {}
        }
    }
}

/// Runs the jobs until the database is dropped, closed, or fails.
pub(crate) fn start(shared: &Arc<Shared>) -> JoinHandle<()> {
    let interval = shared.options.maintenance_interval;
    let wake = Arc::clone(&shared.jobs.wake);
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        let mut last = None;
        let mut rows = MAX_JOB_STEP_ROWS;
        loop {
            // Only for a step, so that a database can be dropped before its jobs are done.
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let Some(job) = shared.jobs.after(last) else {
                drop(shared);
                wake.notified().await;
                continue;
            };
            let began = Instant::now();
            match step(&shared, job, rows).await {
                Ok(fitting) => {
                    drop(shared);
                    last = Some(job);
                    rows = (2 * fitting).min(MAX_JOB_STEP_ROWS);
                    // Half of the time is left to others.
                    tokio::time::sleep(began.elapsed().min(MAX_PAUSE)).await;
                }
                Err(error) => {
                    tracing::warn!(code = error.code(), "{job:?} of the database failed: {error}");
                    if let Health::Failed { .. } = &*shared.kv.health().borrow() {
                        return;
                    }
                    drop(shared);
                    last = Some(job);
                    tokio::select! {
                        () = tokio::time::sleep(interval) => {}
                        () = wake.notified() => {}
                    }
                }
            }
        }
    })
}

/// What one step of a job commits.
#[derive(Default)]
struct Step<'a> {
    /// Rows it read, held so that they stay the same.
    locks: Option<Locked<'a>>,
    checks: Vec<Check>,
    mutations: Vec<Mutation>,
    /// Rows or entries it handles.
    handled: usize,
    /// Where to go on; `None` when the job is done.
    next: Option<Cursor>,
    /// What the table becomes when the job is done, and the number of the index that is readable then.
    outcome: Option<(Table, Definition, Option<u16>)>,
}

/// Does at most `rows` rows or entries of a job, if it is still there; fewer when writers are in the way. Gives how
/// many it was.
async fn step(shared: &Shared, job: JobKey, mut rows: usize) -> Result<usize> {
    let _tables = shared.schema_lock.read().await;
    let Some(mut job) = shared.jobs.get(job) else {
        return Ok(rows);
    };
    for _ in 0..MAX_WRITE_ATTEMPTS {
        let step = match job.kind {
            JobKind::FillIndex => fill::step(shared, &job, rows).await?,
            JobKind::RemoveIndex | JobKind::RemoveTable => remove::step(shared, &job, rows).await?,
            JobKind::TrimVersions => trim::step(shared, &job, rows).await?,
        };
        let mut commit = Commit {
            checks: step.checks,
            mutations: step.mutations,
            log: None,
            validated_at: None,
            durability: Durability::Buffered,
        };
        let done = step.next.is_none();
        job.handled += step.handled as u64;
        job.cursor = step.next.unwrap_or_default();
        commit
            .mutations
            .push(if done { delete(job.key()) } else { job.put() });
        if let Some((table, definition, _)) = &step.outcome {
            commit.mutations.push(table.put(definition));
        }
        match shared.kv.commit(commit).await {
            Ok(_) => {}
            Err(kv::Error::Conflict { .. }) => {
                // Writers were faster on one of the rows; fewer are hit more seldom, and a few can be locked.
                rows = (rows / 4).max(1);
                let Some(unchanged) = shared.jobs.get(job.key()) else {
                    return Ok(rows);
                };
                job = unchanged;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if let Some((table, definition, readable)) = step.outcome {
            shared.catalog.write().define(&table, definition, readable);
        }
        let mut all = shared.jobs.all.lock();
        if done {
            all.remove(&job.key());
        } else {
            all.insert(job.key(), job);
        }
        drop(all);
        shared.jobs.told();
        return Ok(rows);
    }
    Err(Error::Contended {
        attempts: MAX_WRITE_ATTEMPTS,
    })
}

/// The table of a job; `None` when it is deleted.
fn table_of(shared: &Shared, job: &Job) -> Option<Table> {
    shared.catalog.read().by_id(job.table).cloned()
}
