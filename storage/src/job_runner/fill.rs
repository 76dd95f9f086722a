//! Filling an index with the rows from before it. Writers keep it at the same time; a row that one of them changes
//! after it was read here fails the step's check, and is read again.

use bytes::Bytes;
use souk_kv::{Direction, Mutation, Scan, Space};

use super::{LOCKED_ROWS, Step, table_of};
use crate::catalog::{Definition, ExpiryIndex, SecondaryIndexState, Table};
use crate::database::DatabaseState;
use crate::error::Result;
use crate::jobs::{Job, JobCursor};
use crate::key;
use crate::limits::MAX_JOB_STEP_BYTES;
use crate::plan::unchanged;
use crate::row::codec;
use crate::secondary;

/// Longest description of a row that can't stand in an index, characters.
const MAX_REASON_CHARS: usize = 400;

pub(super) async fn step<'a>(shared: &'a DatabaseState, job: &Job, rows: usize) -> Result<Step<'a>> {
    let mut step = Step::default();
    let Some(table) = table_of(shared, job) else {
        return Ok(step);
    };
    let definition = table.definition();
    let start = key::before_rows(job.table);
    let scan = Scan {
        space: Space::Rows,
        high: key::after(&start),
        low: start.max(job.cursor.low.clone()),
        direction: Direction::Forward,
        entries: rows,
        bytes: MAX_JOB_STEP_BYTES,
    };
    let page = shared.kv.snapshot().await?.scan(scan).await?;
    let mut found = page.entries;
    if rows <= LOCKED_ROWS {
        step.locks = Some(shared.locks.lock(found.iter().map(|(key, _)| key)).await);
        found = read_again(shared, found).await?;
    }
    for (key, value) in found {
        step.handled += 1;
        match standing(&table, &definition, job, &key, &value)? {
            Standing::Absent => {}
            Standing::Entry(entry, content) => {
                step.checks.push(unchanged(&key, Some(&value)));
                step.mutations.push(Mutation::Put {
                    space: Space::Index,
                    key: entry,
                    value: content,
                    stamp: false,
                });
            }
            Standing::Refused(reason) => {
                let mut failed = Step {
                    checks: vec![unchanged(&key, Some(&value))],
                    ..Step::default()
                };
                let state = SecondaryIndexState::Failed { reason };
                failed.outcome = Some((table, definition.with_state(job.index, &state), None));
                return Ok(failed);
            }
        }
    }
    match page.next {
        Some(low) => step.next = Some(JobCursor { range: 0, low }),
        None => step.outcome = Some(filled(table, &definition, job)),
    }
    Ok(step)
}

/// The values that these keys have now, without those that are gone.
async fn read_again(shared: &DatabaseState, found: Vec<(Bytes, Bytes)>) -> Result<Vec<(Bytes, Bytes)>> {
    let keys: Vec<Bytes> = found.into_iter().map(|(key, _)| key).collect();
    let snapshot = shared.kv.snapshot().await?;
    let values = snapshot.multi_get(Space::Rows, keys.clone()).await?;
    let present = |(key, value): (Bytes, Option<Bytes>)| value.map(|value| (key, value));
    Ok(keys.into_iter().zip(values).filter_map(present).collect())
}

/// How a row stands in an index.
enum Standing {
    /// It lacks one of the columns.
    Absent,
    /// With this key and value.
    Entry(Bytes, Vec<u8>),
    /// It can't, and why.
    Refused(String),
}

fn standing(
    table: &Table,
    definition: &Definition,
    job: &Job,
    key: &Bytes,
    value: &Bytes,
) -> Result<Standing> {
    let primary_key = key::primary_key_of_row(key)?;
    let row = codec::decode(primary_key, value)?;
    let entry = if job.is_of_expiry() {
        Ok(secondary::expiry_entry(table.id(), definition, &row))
    } else if let Some(index) = definition.numbered(job.index) {
        secondary::entry(table.id(), definition, index, &row)
    } else {
        Ok(None)
    };
    Ok(match entry {
        Ok(None) => Standing::Absent,
        Ok(Some((entry, content))) => Standing::Entry(entry, content),
        Err(error) => {
            let reason = format!("{error}, in row {:?}", row.key);
            Standing::Refused(reason.chars().take(MAX_REASON_CHARS).collect())
        }
    })
}

/// The table with the index of the job ready.
fn filled(table: Table, definition: &Definition, job: &Job) -> (Table, Definition, Option<u16>) {
    if job.is_of_expiry() {
        let mut changed = definition.clone();
        changed.expiry = ExpiryIndex::Ready;
        return (table, changed, None);
    }
    let changed = definition.with_state(job.index, &SecondaryIndexState::Ready);
    (table, changed, Some(job.index))
}
