//! A snapshot with what a transaction has written on top.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use souk_kv::{self as kv, Direction, KvSnapshot, Scan, ScanPage, Space};

use crate::key;

/// What a transaction leaves at the keys it has written; `None` where it deletes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    rows: BTreeMap<Bytes, Option<Bytes>>,
    index: BTreeMap<Bytes, Option<Bytes>>,
}

impl Values {
    /// What was written at a key.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Option<&Option<Bytes>> {
        self.in_space(space)?.get(key)
    }

    /// Writes at a key of the rows or of the indexes; gives what was written there before.
    pub(crate) fn set(&mut self, space: Space, key: Bytes, value: Option<Bytes>) -> Option<Option<Bytes>> {
        match space {
            Space::Rows => self.rows.insert(key, value),
            Space::Index => self.index.insert(key, value),
            Space::Log | Space::Catalog => None,
        }
    }

    fn in_space(&self, space: Space) -> Option<&BTreeMap<Bytes, Option<Bytes>>> {
        match space {
            Space::Rows => Some(&self.rows),
            Space::Index => Some(&self.index),
            Space::Log | Space::Catalog => None,
        }
    }
}

/// The view of a transaction: its snapshot, under its staged writes.
#[derive(Debug)]
pub(crate) struct OwnWrites {
    below: Box<dyn KvSnapshot>,
    values: Arc<Values>,
}

impl OwnWrites {
    /// Lays staged values over a snapshot.
    pub(crate) fn new(below: Box<dyn KvSnapshot>, values: &Arc<Values>) -> Self {
        Self {
            below,
            values: Arc::clone(values),
        }
    }
}

/// Of no key it says that it is unwritten: what is staged isn't in any commit group.
#[async_trait]
impl KvSnapshot for OwnWrites {
    fn sequence(&self) -> u64 {
        self.below.sequence()
    }

    fn group(&self) -> u64 {
        self.below.group()
    }

    async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, kv::Error> {
        match self.values.get(space, key) {
            Some(own) => Ok(own.clone()),
            None => self.below.get(space, key).await,
        }
    }

    async fn multi_get_within(
        &self,
        space: Space,
        keys: Vec<Bytes>,
        bytes: usize,
    ) -> Result<Vec<Option<Bytes>>, kv::Error> {
        // The limit counts the stored values, not the staged ones in front of them: a transaction stages little.
        let mut found = self.below.multi_get_within(space, keys.clone(), bytes).await?;
        for (key, value) in keys.iter().zip(&mut found) {
            if let Some(own) = self.values.get(space, key) {
                value.clone_from(own);
            }
        }
        Ok(found)
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, kv::Error> {
        let Some(own) = self.values.in_space(scan.space).filter(|own| !own.is_empty()) else {
            return self.below.scan(scan).await;
        };
        let (mut low, mut high) = (scan.low.clone(), scan.high.clone());
        loop {
            let rest = Scan {
                low: low.clone(),
                high: high.clone(),
                ..scan.clone()
            };
            let page = self.below.scan(rest).await?;
            // What the page covers: up to the first entry that didn't fit.
            let (from, to) = match (&page.next, scan.direction) {
                (None, _) => (Bound::Included(&low), &high),
                (Some(next), Direction::Forward) => (Bound::Included(&low), next),
                (Some(next), Direction::Backward) => (Bound::Excluded(next), &high),
            };
            let merged = merge(page.entries, own, from, to);
            let next = page.next;
            let cut = fill(merged, next.clone(), &scan);
            match (cut.entries.is_empty(), next, scan.direction) {
                // The transaction has deleted all of the page, and there is more.
                (true, Some(next), Direction::Forward) => low = next,
                (true, Some(next), Direction::Backward) => high = key::just_after(&next),
                (true, None, _) | (false, _, _) => return Ok(cut),
            }
        }
    }
}

/// Overlays the entries of a page with the staged writes between its bounds.
fn merge(
    entries: Vec<(Bytes, Bytes)>,
    own: &BTreeMap<Bytes, Option<Bytes>>,
    from: Bound<&Bytes>,
    to: &Bytes,
) -> BTreeMap<Bytes, Bytes> {
    let mut merged: BTreeMap<Bytes, Bytes> = entries.into_iter().collect();
    let empty = match from {
        Bound::Included(from) | Bound::Excluded(from) => from >= to,
        Bound::Unbounded => false,
    };
    if empty {
        // `BTreeMap::range` panics for such a range.
        return merged;
    }
    for (key, value) in own.range::<Bytes, _>((from, Bound::Excluded(to))) {
        match value {
            Some(value) => merged.insert(key.clone(), value.clone()),
            None => merged.remove(key),
        };
    }
    merged
}

/// As many of the entries as fit the limits of the scan; `next` is the first entry behind them, if there is one.
fn fill(merged: BTreeMap<Bytes, Bytes>, next: Option<Bytes>, scan: &Scan) -> ScanPage {
    let mut page = ScanPage {
        entries: Vec::with_capacity(merged.len()),
        next,
    };
    let mut bytes = 0;
    let mut add = |(key, value): (Bytes, Bytes)| {
        bytes += key.len() + value.len();
        let full = page.entries.len() >= scan.entries.max(1) || bytes > scan.bytes;
        if full && !page.entries.is_empty() {
            page.next = Some(key);
            return false;
        }
        page.entries.push((key, value));
        true
    };
    match scan.direction {
        Direction::Forward => merged.into_iter().all(&mut add),
        Direction::Backward => merged.into_iter().rev().all(&mut add),
    };
    page
}
