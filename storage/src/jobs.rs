//! Background jobs: what is left to do after a table has changed. A job is kept in the catalog with the place it has
//! reached, so that it goes on after a restart where it was.

mod codec;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use souk_kv::{Mutation, Space};
use tokio::sync::{Notify, watch};

use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::secondary::EXPIRY_INDEX;

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
    pub(crate) cursor: JobCursor,
}

/// What tells jobs apart.
pub(crate) type JobKey = (TableId, JobKind, u16);

/// Where a job goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct JobCursor {
    /// Which of the ranges it walks.
    pub(crate) range: u8,
    /// The key it goes on at; empty at the beginning of the range.
    pub(crate) low: Bytes,
}

impl Job {
    /// A job at its beginning.
    pub(crate) fn new(table: TableId, kind: JobKind, index: u16) -> Self {
        Self {
            table,
            kind,
            handled: 0,
            index,
            cursor: JobCursor::default(),
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
    pub(crate) fn is_of_expiry(&self) -> bool {
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
    key::job(table, kind.number(), index)
}

/// The jobs of a database, and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) all: Mutex<BTreeMap<JobKey, Job>>,
    /// Told when there is something to do.
    pub(crate) wake: Arc<Notify>,
    pub(crate) progress: watch::Sender<Progress>,
}

/// What those who wait for jobs see change.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) closed: bool,
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

    pub(crate) fn get(&self, job: JobKey) -> Option<Job> {
        self.all.lock().get(&job).cloned()
    }

    /// The job after this one, around to the first.
    pub(crate) fn after(&self, last: Option<JobKey>) -> Option<JobKey> {
        let all = self.all.lock();
        let later = last.and_then(|last| all.range((Bound::Excluded(last), Bound::Unbounded)).next());
        later.or_else(|| all.first_key_value()).map(|(key, _)| *key)
    }

    pub(crate) fn told(&self) {
        self.progress.send_modify(|_| {});
    }
}
