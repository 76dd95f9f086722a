//! Groups by the values of a column with very many of them.
//!
//! The documents of a segment are kept as a set of bits while the walk goes on. At its end a first pass over them counts
//! values, and a second one aggregates the documents of those that are kept: all while there is room, else the most
//! frequent ones, or the first ones where groups are ordered by key. What a value that was left out can have counted is
//! known, and summed over all segments: no count is lower than the true one by more. Where even the counts don't fit, the
//! rarest values are dropped as in Misra and Gries, "Finding repeated elements" (1982), which adds to that sum.

use rustc_hash::FxHashMap;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, SegmentReader, TERMINATED};

use super::branch::{Context, Groups, Scored};
use super::node::{Grouping, Node, Shape};
use super::slots::Slots;
use super::{GroupOrder, GroupOrderBy};
use crate::bits::Bits;
use crate::error::Error;
use crate::limits::{KEPT_SEGMENT_GROUPS, MAX_AGGREGATION_GROUPS};

/// Values of a column from which on it is one of these.
pub(super) const MANY: usize = 100_000;
/// Values that are counted at a time.
const MAX_COUNTED: usize = 1 << 20;

/// Groups of a segment that are chosen at its end.
pub(super) struct Frequent<'a> {
    groups: Groups<'a>,
    documents: Bits,
    scored: Scored,
}

/// What the first pass found.
#[derive(Default)]
struct Counts {
    counts: FxHashMap<u64, u64>,
    all: u64,
    /// How much lower than the true one a count may be.
    error: u64,
}

impl Counts {
    fn add(&mut self, values: &[u64]) {
        self.all += values.len() as u64;
        for value in values {
            *self.counts.entry(*value).or_default() += 1;
        }
        if self.counts.len() > MAX_COUNTED {
            self.drop_rarest();
        }
    }

    /// Takes the median away from every count.
    fn drop_rarest(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let half = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(half);
        let median = *median;
        self.error += median;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(median);
            *count > 0
        });
    }
}

/// The groups of a segment, how many documents are in groups that were left out, and how many at most in one of them.
pub(super) struct Settled<'a> {
    pub(super) groups: Groups<'a>,
    pub(super) left_out: u64,
    pub(super) error: u64,
}

impl<'a> Frequent<'a> {
    pub(super) fn new(groups: Groups<'a>, reader: &SegmentReader) -> Self {
        Self {
            groups,
            documents: Bits::new(reader.max_doc()),
            scored: Scored::default(),
        }
    }

    pub(super) fn take(&mut self, docs: &[DocId], context: &Context<'_>) {
        docs.iter().for_each(|doc| self.documents.insert(*doc));
        self.scored.add(context);
    }

    /// Chooses the groups and aggregates their documents.
    pub(super) fn settle(mut self, node: &Node, context: &mut Context<'_>) -> tantivy::Result<Settled<'a>> {
        let Shape::Groups(grouping) = &node.shape else {
            return Err(tantivy::TantivyError::InternalError(
                "a grouping lost its shape".to_owned(),
            ));
        };
        let mut counted = Counts::default();
        self.each(context, |groups, docs, _| {
            let zeros = [0; COLLECT_BLOCK_BUFFER_LEN];
            let slots = zeros.get(..docs.len()).unwrap_or_default();
            counted.add(groups.keys.read(docs, slots, &mut groups.room).values);
            Ok(())
        })?;
        let (kept, error) = keep(&counted, grouping, node, context)?;
        let mut slots = Slots::of_keys(&kept);
        let known = FxHashMap::from_iter(kept.iter().copied().zip(0_u32..));
        let mut in_kept = 0;
        let scored = std::mem::take(&mut self.scored);
        self.each(context, |groups, docs, context| {
            let zeros = [0; COLLECT_BLOCK_BUFFER_LEN];
            let around = zeros.get(..docs.len()).unwrap_or_default();
            let block = groups.keys.read(docs, around, &mut groups.room);
            let (mut own, mut numbers) = (Vec::new(), Vec::new());
            for (key, doc) in block.values.iter().zip(block.docs) {
                if let Some(slot) = known.get(key) {
                    own.push(*doc);
                    numbers.push(*slot);
                }
            }
            in_kept += own.len() as u64;
            slots.count(&numbers);
            let mut context = context.with(&scored);
            for branch in &mut groups.inside {
                branch.take(&own, &numbers, known.len(), &mut context)?;
            }
            Ok(())
        })?;
        self.groups.slots = slots;
        Ok(Settled {
            groups: self.groups,
            left_out: counted.all - in_kept,
            error,
        })
    }

    /// Gives all documents, a block at a time.
    fn each(
        &mut self,
        context: &mut Context<'_>,
        mut take: impl FnMut(&mut Groups<'a>, &[DocId], &mut Context<'_>) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        let mut next = self.documents.next(0);
        let mut block = Vec::with_capacity(COLLECT_BLOCK_BUFFER_LEN);
        while next != TERMINATED {
            block.clear();
            while next != TERMINATED && block.len() < COLLECT_BLOCK_BUFFER_LEN {
                block.push(next);
                next = self.documents.next(next + 1);
            }
            context.visit(block.len())?;
            take(&mut self.groups, &block, context)?;
        }
        Ok(())
    }
}

/// The keys that are kept, ascending, and how much one that isn't can have counted.
fn keep(
    counted: &Counts,
    grouping: &Grouping,
    node: &Node,
    context: &Context<'_>,
) -> tantivy::Result<(Vec<u64>, u64)> {
    let mut keys: Vec<(u64, u64)> = counted.counts.iter().map(|(key, count)| (*key, *count)).collect();
    if keys.len() <= context.room && counted.error == 0 {
        keys.sort_unstable();
        return Ok((keys.into_iter().map(|(key, _)| key).collect(), 0));
    }
    let error = match grouping.order.first() {
        Some(GroupOrder {
            by: GroupOrderBy::Count,
            descending: true,
        }) => {
            keys.sort_unstable_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
            let next = keys.get(KEPT_SEGMENT_GROUPS).map_or(0, |(_, count)| *count);
            next + counted.error
        }
        // None that is left out can be among the first: those that are kept are before it.
        Some(GroupOrder {
            by: GroupOrderBy::Key,
            descending,
        }) if grouping.min_doc_count <= 1 && counted.error == 0 => {
            keys.sort_unstable();
            if *descending {
                keys.reverse();
            }
            0
        }
        _ => {
            return Err(context.run.give_up(Error::LimitExceeded {
                path: node.path.clone(),
                limit: "MAX_AGGREGATION_GROUPS",
                max: MAX_AGGREGATION_GROUPS as u64,
                actual: keys.len() as u64,
                advice: "order the groups by count, highest first, narrow the query, or page through a composite",
            }));
        }
    };
    keys.truncate(KEPT_SEGMENT_GROUPS);
    keys.sort_unstable();
    Ok((keys.into_iter().map(|(key, _)| key).collect(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_within_their_error_when_the_rarest_are_dropped() {
        let mut counted = Counts::default();
        for from in 0..3_u64 {
            let rare: Vec<u64> = (0..600_000).map(|n| 1_000 + from * 600_000 + n).collect();
            counted.add(&rare);
            counted.add(&vec![7; 5_000]);
        }
        assert!(counted.counts.len() <= MAX_COUNTED && counted.error > 0);
        assert_eq!(counted.all, 1_815_000);
        let found = counted.counts.get(&7).copied().unwrap_or_default();
        assert!(
            found <= 15_000 && found + counted.error >= 15_000,
            "{found}, {}",
            counted.error
        );
    }
}
