//! Removing what a dropped index or a deleted table left behind. Nobody reads or writes it any more.

use bytes::Bytes;
use souk_kv::{Direction, Mutation, Scan, Space};

use super::Step;
use crate::database::DatabaseState;
use crate::error::Result;
use crate::jobs::{Job, JobCursor, JobKind};
use crate::key;
use crate::limits::MAX_JOB_STEP_BYTES;

pub(super) async fn step<'a>(shared: &'a DatabaseState, job: &Job, rows: usize) -> Result<Step<'a>> {
    let mut step = Step::default();
    let mut ranges = ranges(job).into_iter().skip(usize::from(job.cursor.range));
    let Some((space, start, high)) = ranges.next() else {
        return Ok(step);
    };
    let scan = Scan {
        space,
        low: start.max(job.cursor.low.clone()),
        high,
        direction: Direction::Forward,
        entries: rows,
        bytes: MAX_JOB_STEP_BYTES,
    };
    let page = shared.kv.snapshot().await?.scan(scan).await?;
    step.handled = page.entries.len();
    let deletes = page
        .entries
        .into_iter()
        .map(|(key, _)| Mutation::Delete { space, key });
    step.mutations.extend(deletes);
    let range = job.cursor.range;
    let more = page.next.map(|low| JobCursor { range, low });
    let later = ranges.next().map(|_| JobCursor {
        range: range.saturating_add(1),
        low: Bytes::new(),
    });
    step.next = more.or(later);
    Ok(step)
}

fn ranges(job: &Job) -> Vec<(Space, Bytes, Bytes)> {
    if job.kind == JobKind::RemoveTable {
        return key::ranges_of_table(job.table);
    }
    let (low, high) = key::entries_of_index(job.table, job.index);
    vec![(Space::Index, low, high)]
}
