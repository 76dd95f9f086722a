//! Runs background jobs: filling a new index, removing what a dropped index or table left behind, trimming versions
//! that became too many. Each step is one commit that also moves the job's place. Steps run next to
//! writers: they check that the rows they read are still the same, and are made anew if not.

mod fill;
mod remove;
#[cfg(test)]
mod tests;
mod trim;

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_kv::{self as kv, Check, Commit, Durability, Health, Mutation};
use tokio::task::JoinHandle;

use crate::catalog::{Definition, Table};
use crate::database::DatabaseState;
use crate::error::{Error, Result};
use crate::jobs::{Job, JobCursor, JobKey, JobKind, delete};
use crate::limits::{MAX_JOB_STEP_ROWS, MAX_WRITE_ATTEMPTS};
use crate::row_locks::Locked;

/// Up to so many rows a step locks what it reads, so that no writer can come between.
const LOCKED_ROWS: usize = 16;
/// The longest pause after a step.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// Waits until `done` gives something, looking each time a job has made a step.
pub(crate) async fn wait<T>(shared: &DatabaseState, done: impl Fn() -> Result<Option<T>>) -> Result<T> {
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
pub(crate) fn start(shared: &Arc<DatabaseState>) -> JoinHandle<()> {
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
    next: Option<JobCursor>,
    /// What the table becomes when the job is done, and the number of the index that is readable then.
    outcome: Option<(Table, Definition, Option<u16>)>,
}

/// Does at most `rows` rows or entries of a job, if it is still there; fewer when writers are in the way. Gives how
/// many it was.
async fn step(shared: &DatabaseState, job: JobKey, mut rows: usize) -> Result<usize> {
    let _schemas = shared.schema_lock.read().await;
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
fn table_of(shared: &DatabaseState, job: &Job) -> Option<Table> {
    shared.catalog.read().by_id(job.table).cloned()
}
