//! Parts of a table of about the same size, for readers that share the work.

use souk_kv::{Direction, Scan, Space};

use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::key;
use crate::limits::{self, MAX_SCANNED_BYTES, MAX_SCANNED_ROWS, MAX_SPLITS};
use crate::metering::CapacityUnits;
use crate::read::{KeyBound, RangeRequest, Snapshot};
use crate::row::{EACH_BYTES, key_in_message};

/// One part of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Where it begins.
    pub start: KeyBound,
    /// Where it ends: where the next one begins.
    pub end: KeyBound,
    /// Rows stored in it, expired ones that aren't removed yet among them.
    pub rows: usize,
    /// Bytes of their keys and values as they are stored, before compression.
    pub bytes: usize,
}

impl Split {
    /// Reads the part, forward.
    pub fn range(&self) -> RangeRequest {
        RangeRequest {
            start: self.start.clone(),
            end: self.end.clone(),
            ..RangeRequest::default()
        }
    }
}

/// A table in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splits {
    /// The parts in the order of their keys; together the whole table. Never empty.
    pub splits: Vec<Split>,
    /// What it cost: one unit a part.
    pub consumed: CapacityUnits,
}

/// Splits a table; see [`Snapshot::split_points`].
pub(super) async fn points(snapshot: &Snapshot, table: &Table, bytes: usize) -> Result<Splits> {
    snapshot.check_owned(table)?;
    if bytes == 0 {
        return Err(Error::invalid("split size", "is 0 bytes"));
    }
    let mut low = key::before_rows(table.id());
    let high = key::after(&low);
    let (mut splits, mut keys) = (Vec::new(), 0);
    let mut split = Split {
        start: KeyBound::Min,
        end: KeyBound::Max,
        rows: 0,
        bytes: 0,
    };
    loop {
        let scan = Scan {
            space: Space::Rows,
            low,
            high: high.clone(),
            direction: Direction::Forward,
            entries: MAX_SCANNED_ROWS,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = snapshot.kv.scan(scan).await?;
        for (stored, value) in page.entries {
            if split.bytes >= bytes {
                let key = key::primary_key_of_row(&stored)?;
                // The end of one and the beginning of the next, and what each has besides.
                keys += 2 * (key_in_message(&key) + EACH_BYTES);
                limits::check("MAX_SPLITS_BYTES", limits::MAX_SPLITS_BYTES, keys)?;
                let cut = KeyBound::Before(key);
                split.end = cut.clone();
                let next = Split {
                    start: cut,
                    end: KeyBound::Max,
                    rows: 0,
                    bytes: 0,
                };
                splits.push(std::mem::replace(&mut split, next));
                limits::check("MAX_SPLITS", MAX_SPLITS, splits.len() + 1)?;
            }
            split.rows += 1;
            split.bytes += stored.len() + value.len();
        }
        let Some(next) = page.next else { break };
        low = next;
    }
    splits.push(split);
    let read = u64::try_from(splits.len()).unwrap_or(u64::MAX);
    Ok(Splits {
        splits,
        consumed: CapacityUnits { read, write: 0 },
    })
}
