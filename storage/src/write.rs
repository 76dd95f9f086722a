//! The way of a batch: validate, lock its rows in this process, read them in one snapshot, decide, commit with checks
//! that they are still what was read. The locks make conflicts rare; the checks make them harmless.

mod rows;

use std::sync::Arc;

use bytes::Bytes;
use souk_kv::{self as kv, Check, Commit, Durability, KvSnapshot, Mutation, Space};
use tokio::task::yield_now;

use crate::batch::{Committed, RequestRecord, WriteBatch, WrittenRow};
use crate::database::{Database, DatabaseState};
use crate::error::{Error, Result};
use crate::feed::Acknowledgement;
use crate::key;
use crate::limits::{self, MAX_WRITE_ATTEMPTS};
use crate::partitions::WriterGuard;
use crate::plan::numbers::Numbers;
use crate::plan::{CommitPlan, decide, target, validate};
use crate::replay;
use crate::undisturbed::undisturbed;

impl Database {
    /// Writes a batch: all of it or nothing, with one sequence and one change. Dropping the future doesn't undo the
    /// write: it may still happen.
    ///
    /// # Errors
    /// Nothing is written: [`Error::Invalid`], [`Error::LimitExceeded`], [`Error::ConditionFailed`],
    /// [`Error::RequestIdReused`], [`Error::TableNotFound`], [`Error::Contended`], [`Error::Unavailable`],
    /// [`Error::DiskFull`], [`Error::Corrupt`]. Not known: [`Error::OutcomeUnknown`].
    pub async fn write(&self, batch: WriteBatch) -> Result<Committed> {
        write(&self.shared, batch, None).await
    }

    /// [`Database::write`] of a batch, and with it the acknowledgement of what was read of a feed: both happen or neither.
    ///
    /// # Errors
    /// As there, and as [`crate::Feed::acknowledge`]; [`Error::FeedTokenStale`] also of the token that was acknowledged last.
    pub async fn write_acknowledging(
        &self,
        batch: WriteBatch,
        acknowledgement: Acknowledgement,
    ) -> Result<Committed> {
        write(&self.shared, batch, Some(acknowledgement)).await
    }

    /// What a batch with this request gives if one was written before; for whoever can't make the batch again
    /// because it depends on rows that may be gone. The reply in `request` is of no account.
    ///
    /// # Errors
    /// [`Error::RequestIdReused`], [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn replayed(&self, request: &RequestRecord) -> Result<Option<Committed>> {
        replayed(&self.shared, request, Durability::Disk).await
    }

    /// Writes the rows of a batch one by one instead of together: each is written or refused by itself, in as few
    /// commits, and changes, as they fit in. What became of each is given in their order.
    ///
    /// # Errors
    /// Of the call: [`Error::Invalid`] and [`Error::LimitExceeded`] for an argument of any row,
    /// [`Error::TableNotFound`]; no row is written. Of a row: as [`Database::write`].
    pub async fn write_rows(&self, batch: WriteBatch) -> Result<Vec<Result<WrittenRow>>> {
        rows::write(&self.shared, batch).await
    }
}

/// Writes a batch, with what it acknowledges.
async fn write(
    shared: &Arc<DatabaseState>,
    batch: WriteBatch,
    acknowledgement: Option<Acknowledgement>,
) -> Result<Committed> {
    let batch = Arc::new(batch);
    let applied = match acknowledgement {
        None => apply(shared, &batch, None).await,
        Some(acknowledgement) => {
            check_of(shared, &acknowledgement)?;
            let (shared, batch) = (Arc::clone(shared), Arc::clone(&batch));
            // To its end: the feed stands in memory where it stands on the disk.
            undisturbed(async move {
                let taken = acknowledgement.take_once().await?;
                let committed = apply(&shared, &batch, Some(taken.mutation())).await?;
                if committed.replayed.is_none() {
                    taken.done();
                }
                Ok(committed)
            })
            .await
        }
    };
    match (applied, &batch.request) {
        // What was right the first time may be refused by now: the clock goes on, tables change, transactions hold partitions.
        (Err(refused), Some(request)) => match replayed(shared, request, batch.durability).await {
            Ok(Some(first)) => Ok(first),
            Ok(None) | Err(_) => Err(refused),
        },
        (result, _) => result,
    }
}

/// Refuses what acknowledges a feed of another database.
pub(crate) fn check_of(shared: &Arc<DatabaseState>, acknowledgement: &Acknowledgement) -> Result<()> {
    match acknowledgement.is_of(shared) {
        true => Ok(()),
        false => Err(Error::invalid("the feed of a write", "is of another database")),
    }
}

/// Writes a batch unless it was written before, and `besides` with it.
async fn apply(
    shared: &Arc<DatabaseState>,
    batch: &WriteBatch,
    besides: Option<Mutation>,
) -> Result<Committed> {
    // Until the commit: so no write misses an index that is created, or keeps one that is dropped.
    let schemas = Arc::clone(&shared.schema_lock).read_owned().await;
    let now = shared.options.clock.now();
    let locations = validate::batch(&shared.catalog.read(), batch, now)?.locations;
    let mut guard = WriterGuard::new(&shared.partitions).with_schemas(schemas);
    for write in &batch.writes {
        guard.join(write, now)?;
    }
    let request_key = batch.request.as_ref().map(|request| key::request(request.id));
    let locks = locations
        .iter()
        .map(target::WriteLocation::lock)
        .chain(&request_key);
    let _locked = shared.locks.lock(locks).await;
    for _ in 0..MAX_WRITE_ATTEMPTS {
        let snapshot = shared.kv.snapshot().await?;
        if let (Some(request), Some(key)) = (&batch.request, &request_key)
            && let Some(replayed) = replay(shared, &*snapshot, request, key, batch.durability).await?
        {
            return Ok(replayed);
        }
        let mut numbers = Numbers::default();
        let writes = batch.writes.iter().zip(&locations).enumerate();
        let writes = writes.map(|(position, (write, location))| (position, write, location));
        let targets = target::find(&*snapshot, writes, &mut numbers, shared.options.clock.now()).await?;
        let (sequence, group) = (snapshot.sequence(), snapshot.group());
        // Old data isn't kept while the commit waits.
        drop(snapshot);
        let now = shared.options.clock.now();
        let mut plan = CommitPlan::new(batch.durability).validated_at(group);
        let (mut rows, mut matched) = (Vec::with_capacity(targets.len()), 0);
        for target in &targets {
            if target.write.condition.matches_text() {
                yield_now().await;
            }
            plan.expect_target(target);
            let (changed, written) = decide::row(target, now, &mut matched)?;
            if let Some(changed) = changed {
                plan.change(changed);
            }
            rows.push(written);
        }
        let returned = rows.iter().map(WrittenRow::size).sum();
        match batch.shown {
            true => limits::check("MAX_SHOWN_BYTES", limits::MAX_SHOWN_BYTES, returned)?,
            false => limits::check("MAX_RETURNED_BYTES", limits::MAX_RETURNED_BYTES, returned)?,
        }
        let mut commit = plan.finish(batch.trace.as_deref(), now)?;
        numbers.keep(&mut commit);
        let unlogged = commit.log.is_none();
        commit.mutations.extend(besides.clone());
        if let Some(request) = &batch.request {
            remember(&mut commit, request, sequence, &rows, now);
        } else if unlogged && besides.is_none() {
            return Ok(Committed::new(sequence, rows));
        }
        match guard.commit(&shared.kv, commit).await {
            Ok(done) => {
                let sequence = if unlogged { sequence } else { done.sequence };
                return Ok(Committed::new(sequence, rows));
            }
            Err(kv::Error::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Contended {
        attempts: MAX_WRITE_ATTEMPTS,
    })
}

/// The answer of the first request with this id, if it was written.
pub(crate) async fn replayed(
    shared: &DatabaseState,
    request: &RequestRecord,
    durability: Durability,
) -> Result<Option<Committed>> {
    let snapshot = shared.kv.snapshot().await?;
    let key = key::request(request.id);
    replay(shared, &*snapshot, request, &key, durability).await
}

/// Keeps the request with its batch.
fn remember(commit: &mut Commit, request: &RequestRecord, sequence: u64, rows: &[WrittenRow], now: i64) {
    let space = Space::Catalog;
    let key = key::request(request.id);
    commit.checks.push(Check::Absent {
        space,
        key: key.clone(),
    });
    commit.mutations.push(Mutation::Put {
        space,
        key,
        value: replay::encode(sequence, commit.durability, rows, request),
        stamp: commit.log.is_some(),
    });
    commit.mutations.push(Mutation::Put {
        space,
        key: key::request_age(now, request.id),
        value: Vec::new(),
        stamp: false,
    });
}

/// The answer of the first request with this id.
async fn replay(
    shared: &DatabaseState,
    snapshot: &dyn KvSnapshot,
    request: &RequestRecord,
    key: &Bytes,
    durability: Durability,
) -> Result<Option<Committed>> {
    let Some(bytes) = snapshot.get(Space::Catalog, key).await? else {
        return Ok(None);
    };
    let first = replay::decode(&bytes)?;
    if first.fingerprint != request.fingerprint {
        return Err(Error::RequestIdReused {
            sequence: first.sequence,
        });
    }
    // Whoever repeats it may ask for more than whoever was first.
    if (first.durability, durability) == (Durability::Buffered, Durability::Disk) {
        shared.kv.sync().await?;
    }
    Ok(Some(Committed {
        replayed: Some(first.reply),
        ..Committed::new(first.sequence, first.rows)
    }))
}
