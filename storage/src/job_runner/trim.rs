//! Trimming versions that became too many because the table keeps fewer. They are invisible already, so that nothing
//! changes for readers: a trimmed row keeps its revision, and the log doesn't tell. The rows are locked meanwhile, for
//! a writer can't see from the revision that its row was trimmed.

use bytes::Bytes;
use souk_kv::{Check, Direction, Mutation, Scan, Space};

use super::{Step, table_of};
use crate::database::DatabaseState;
use crate::error::Result;
use crate::expiry::Expiry;
use crate::jobs::{Job, JobCursor};
use crate::key;
use crate::limits::MAX_JOB_STEP_BYTES;
use crate::row::{Row, codec};
use crate::secondary;

pub(super) async fn step<'a>(shared: &'a DatabaseState, job: &Job, rows: usize) -> Result<Step<'a>> {
    let mut step = Step::default();
    let Some(table) = table_of(shared, job) else {
        return Ok(step);
    };
    let visible = Expiry::new(&table, shared.options.clock.now());
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
    step.handled = page.entries.len();
    step.next = page.next.map(|low| JobCursor { range: 0, low });
    let mut keys = Vec::new();
    for (key, value) in page.entries {
        if visible.has_surplus(&decode(&key, &value)?) {
            keys.push(key);
        }
    }
    step.locks = Some(shared.locks.lock(keys.iter()).await);
    let values = shared
        .kv
        .snapshot()
        .await?
        .multi_get(Space::Rows, keys.clone())
        .await?;
    for (key, value) in keys.into_iter().zip(values) {
        let Some(value) = value else {
            continue;
        };
        let mut row = decode(&key, &value)?;
        let old = secondary::stored_entries(&table, &row);
        visible.drop_surplus(&mut row);
        let moves = secondary::moves(&old, secondary::fitting_entries(&table, &row));
        step.mutations.extend(moves);
        step.mutations.push(Mutation::Put {
            space: Space::Rows,
            key: key.clone(),
            value: codec::encode(&row),
            stamp: false,
        });
        step.checks.push(Check::Prefix {
            space: Space::Rows,
            key,
            prefix: value,
        });
    }
    Ok(step)
}

fn decode(key: &Bytes, value: &Bytes) -> Result<Row> {
    codec::decode(key::primary_key_of_row(key)?, value)
}
