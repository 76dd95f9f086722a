//! Reading ranges of rows.

use bytes::Bytes;

use super::rows::Projection;
use crate::catalog::Table;
use crate::error::Result;
use crate::key;
use crate::kv::{Direction, Scan, Space};
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};
use crate::read::{KeyBound, RangePage, RangeRequest, Snapshot};

/// Fewest rows that are read at a time when some of them may not be returned.
const SIFTED_ROWS: usize = 50;

/// A page of a range; see [`Snapshot::range`].
pub(super) async fn page(snapshot: &Snapshot, table: &Table, request: &RangeRequest) -> Result<RangePage> {
    let projection = Projection::new(snapshot, table, &request.columns, request.filter.as_ref())?;
    let start = cut(table, &request.start)?;
    let end = cut(table, &request.end)?;
    let (mut low, mut high) = match request.direction {
        Direction::Forward => (start, end),
        Direction::Backward => (end, start),
    };
    let limit = bounded(request.limit, MAX_SCANNED_ROWS);
    let mut bytes = bounded(request.bytes, MAX_SCANNED_BYTES);
    let mut rows_left = MAX_SCANNED_ROWS;
    let mut page = RangePage::default();
    loop {
        let wanted = limit - page.rows.len();
        let rows = if projection.takes_all(table) {
            wanted
        } else {
            wanted.max(SIFTED_ROWS)
        };
        let scan = Scan {
            space: Space::Rows,
            low: low.clone(),
            high: high.clone(),
            direction: request.direction,
            rows: rows.min(rows_left),
            bytes,
        };
        let scanned = snapshot.kv.scan(scan).await?;
        for (key, value) in scanned.entries {
            let primary_key = key::primary_key_of_row(&key)?;
            if page.rows.len() == limit {
                page.next = Some(primary_key);
                return Ok(page);
            }
            rows_left = rows_left.saturating_sub(1);
            bytes = bytes.saturating_sub(key.len() + value.len());
            page.rows.extend(projection.row(primary_key, &value)?);
        }
        let Some(next) = scanned.next else {
            return Ok(page);
        };
        if page.rows.len() == limit || rows_left == 0 || bytes == 0 {
            page.next = Some(key::primary_key_of_row(&next)?);
            return Ok(page);
        }
        match request.direction {
            Direction::Forward => low = next,
            Direction::Backward => high = key::just_after(&next),
        }
    }
}

/// What `given` stands for: 0 and anything larger mean the most.
pub(super) fn bounded(given: usize, most: usize) -> usize {
    if given == 0 { most } else { given.min(most) }
}

/// The place of a cut among the stored keys.
fn cut(table: &Table, bound: &KeyBound) -> Result<Bytes> {
    let before = key::before_rows(table.id());
    Ok(match bound {
        KeyBound::Min => before,
        KeyBound::Max => key::after(&before),
        KeyBound::Before(primary_key) => {
            table.schema().check_key_prefix(primary_key)?;
            key::row(table.id(), primary_key)
        }
        KeyBound::After(primary_key) => {
            table.schema().check_key_prefix(primary_key)?;
            key::after(&key::row(table.id(), primary_key))
        }
    })
}
