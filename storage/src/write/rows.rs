//! Writes that stand side by side instead of together: each row is written or refused by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use souk_kv as kv;
use tokio::task::yield_now;

use crate::batch::{WriteBatch, WrittenRow};
use crate::database::DatabaseState;
use crate::error::{Error, Result};
use crate::limits::{self, MAX_ROWS_COMMIT_BYTES, MAX_WRITE_ATTEMPTS};
use crate::partitions::WriterGuard;
use crate::plan::numbers::Numbers;
use crate::plan::target::{self, WriteLocation};
use crate::plan::{CommitPlan, decide, validate};

/// Writes the rows of a batch, in as few commits as they fit in; what became of each, in their order.
pub(crate) async fn write(shared: &Arc<DatabaseState>, batch: WriteBatch) -> Result<Vec<Result<WrittenRow>>> {
    if batch.request.is_some() {
        return Err(Error::invalid(
            "request id",
            "makes a batch repeatable that happens as a whole; these rows are written one by one",
        ));
    }
    // Until the last commit: so no write misses an index that is created, or keeps one that is dropped.
    let schemas = Arc::clone(&shared.schema_lock).read_owned().await;
    let now = shared.options.clock.now();
    let locations = validate::batch(&shared.catalog.read(), &batch, now)?.locations;
    let mut guard = WriterGuard::new(&shared.partitions).with_schemas(schemas);
    let mut results = BTreeMap::new();
    let mut pending = Vec::with_capacity(batch.writes.len());
    for (position, write) in batch.writes.iter().enumerate() {
        match guard.join(write, now) {
            Ok(()) => pending.push(position),
            Err(error) => {
                results.insert(position, Err(error));
            }
        }
    }
    let waits = pending.iter().filter_map(|position| locations.get(*position));
    let _locked = shared.locks.lock(waits.map(WriteLocation::lock)).await;
    let (mut attempts, mut spent) = (0, Spent::default());
    while !pending.is_empty() {
        attempts += 1;
        let step = match step(shared, &batch, &locations, &pending, spent).await {
            Ok(step) => step,
            Err(error) => {
                refuse(&mut results, pending, || clone_error(&error));
                break;
            }
        };
        let sequence = step.sequence;
        results.extend(
            step.refused
                .into_iter()
                .map(|(position, error)| (position, Err(error))),
        );
        let unlogged = step.commit.log.is_none();
        let done = if unlogged && step.commit.mutations.is_empty() {
            Ok(sequence)
        } else {
            let done = guard.commit(&shared.kv, step.commit).await;
            done.map(|done| if unlogged { sequence } else { done.sequence })
        };
        match done {
            Ok(sequence) => {
                results.extend(step.written.into_iter().map(|(position, mut row)| {
                    row.stamp(sequence);
                    (position, Ok(row))
                }));
                pending = step.later;
                spent = step.spent;
                attempts = 0;
            }
            Err(kv::Error::Conflict { .. }) => {
                pending = step.written.into_iter().map(|(position, _)| position).collect();
                pending.extend(step.later);
                if attempts == MAX_WRITE_ATTEMPTS {
                    refuse(&mut results, pending, || Error::Contended { attempts });
                    break;
                }
            }
            Err(error) => {
                let error = Error::from(error);
                pending = step.written.into_iter().map(|(position, _)| position).collect();
                pending.extend(step.later);
                refuse(&mut results, pending, || clone_error(&error));
                break;
            }
        }
    }
    Ok(results.into_values().collect())
}

/// One commit of some of the rows.
struct Step {
    commit: kv::Commit,
    /// The last sequence seen.
    sequence: u64,
    written: Vec<(usize, WrittenRow)>,
    refused: Vec<(usize, Error)>,
    /// The rows that had no room in the commit.
    later: Vec<usize>,
    /// By this commit and those before.
    spent: Spent,
}

/// What a call has spent of what it may.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    /// Bytes of rows given back.
    returned: usize,
    /// Bytes of text that patterns have looked at.
    matched: usize,
}

/// The next commit; `spent` is by those before.
async fn step(
    shared: &DatabaseState,
    batch: &WriteBatch,
    locations: &[WriteLocation],
    pending: &[usize],
    mut spent: Spent,
) -> Result<Step> {
    let snapshot = shared.kv.snapshot().await?;
    let mut numbers = Numbers::default();
    let writes = pending.iter().filter_map(|position| {
        let write = batch.writes.get(*position)?;
        Some((*position, write, locations.get(*position)?))
    });
    let targets = target::find(&*snapshot, writes, &mut numbers, shared.options.clock.now()).await?;
    let (sequence, group) = (snapshot.sequence(), snapshot.group());
    drop(snapshot);
    let now = shared.options.clock.now();
    let mut plan = CommitPlan::new(batch.durability).validated_at(group);
    let (mut written, mut refused, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for target in &targets {
        if plan.bytes() > MAX_ROWS_COMMIT_BYTES {
            later.push(target.position);
            continue;
        }
        if target.write.condition.matches_text() {
            yield_now().await;
        }
        let decided = decide::row(target, now, &mut spent.matched).and_then(|(changed, row)| {
            let bytes = spent.returned + row.size();
            limits::check("MAX_SHOWN_BYTES", limits::MAX_SHOWN_BYTES, bytes)?;
            Ok((changed, row))
        });
        match decided {
            Ok((changed, row)) => {
                plan.expect_target(target);
                if let Some(changed) = changed {
                    plan.change(changed);
                }
                spent.returned += row.size();
                written.push((target.position, row));
            }
            Err(error) => refused.push((target.position, error)),
        }
    }
    let mut commit = plan.finish(batch.trace.as_deref(), now)?;
    if commit.log.is_some() {
        numbers.keep(&mut commit);
    }
    Ok(Step {
        commit,
        sequence,
        written,
        refused,
        later,
        spent,
    })
}

/// Answers the writes at these positions with an error.
fn refuse(
    results: &mut BTreeMap<usize, Result<WrittenRow>>,
    positions: Vec<usize>,
    error: impl Fn() -> Error,
) {
    results.extend(positions.into_iter().map(|position| (position, Err(error()))));
}

/// The same error for another row, without its source. What neither a snapshot nor a commit can answer becomes `Unavailable`.
fn clone_error(error: &Error) -> Error {
    match error {
        Error::LimitExceeded { limit, max, actual } => Error::LimitExceeded {
            limit,
            max: *max,
            actual: *actual,
        },
        Error::Unavailable { reason } => Error::Unavailable {
            reason: reason.clone(),
        },
        Error::OutcomeUnknown { reason } => Error::OutcomeUnknown {
            reason: reason.clone(),
        },
        Error::DiskFull { reason } => Error::DiskFull {
            reason: reason.clone(),
        },
        Error::Invalid { subject, problem } => Error::invalid(subject, problem),
        Error::Corrupt { what, .. } => Error::corrupt(what),
        other => Error::Unavailable {
            reason: other.to_string(),
        },
    }
}
