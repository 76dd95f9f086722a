//! The best documents of a search, over all segments.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::{DocId, Score};

use super::leading::Leading;
use super::order::Order;
use super::rank::Rank;
use super::raw_value::{RawSortValue, RawSortValues};
use super::segment::{BEHIND_SCORE, SegmentOrder};
use super::top_k::TopK;
use crate::allowance::Grant;
use crate::plan::MinScore;
use crate::run::Run;

/// Documents of which the best are picked out before any is compared by more than the leading key.
pub(super) const OFFERED_TOGETHER: usize = 1024;

/// A document that made it.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) sort_values: RawSortValues,
    pub(crate) score: Score,
}

/// Keeps the first `size` documents of an order.
pub(crate) struct Top<'a> {
    /// Only documents behind this one count.
    after: Option<Vec<RawSortValue>>,
    top_k: TopK<'a>,
}

impl<'a> Top<'a> {
    pub(crate) fn new(order: &'a Order, size: usize, after: Option<Vec<RawSortValue>>) -> Self {
        Self {
            after,
            top_k: TopK::new(order, size),
        }
    }

    pub(crate) fn segment(&self, order: SegmentOrder<'a>) -> io::Result<SegmentTop<'a>> {
        let after = self
            .after
            .as_ref()
            .map(|after| order.ranks_of(after))
            .transpose()?;
        let last = self.top_k.last();
        let before = last.map(|last| order.ranks_of(last)).transpose()?;
        let size = self.top_k.size;
        let each = size_of::<Entry>() + order.rank_bytes();
        let held = order.run.allowance().take(order.at_most(size) * each)?;
        Ok(SegmentTop {
            order,
            size,
            _held: held,
            after,
            before,
            heap: BinaryHeap::new(),
            ranked: Vec::new(),
        })
    }

    /// Ends a segment: its best documents meet those of the others.
    pub(crate) fn take(&mut self, segment: SegmentTop<'a>) -> io::Result<()> {
        let SegmentTop { order, heap, .. } = segment;
        // What is left is held by the top_k. Sorted by numbers, so that strings are compared only with those of other segments.
        self.top_k.take(order, heap.into_sorted_vec())
    }

    /// The documents, in order.
    ///
    /// # Errors
    /// When their strings can't be read, or there are too many of them.
    pub(crate) fn into_winners(self) -> io::Result<Vec<Winner>> {
        self.top_k.into_winners()
    }
}

/// Keeps those of `ranked` that can be among the first `size` behind `after`. Whoever has its rank may stand before it.
fn keep_best(ranked: &mut Vec<(Rank, DocId)>, size: usize, after: Option<Rank>) {
    let unsure = after.map_or(0, |after| {
        ranked.iter().filter(|(rank, _)| *rank == after).count()
    });
    let enough = size.saturating_add(unsure);
    if enough == 0 || ranked.len() <= enough {
        return;
    }
    let (_, (last, _), _) = ranked.select_nth_unstable(enough - 1);
    let last = *last;
    ranked.retain(|(rank, _)| *rank <= last);
}

pub(super) struct Entry {
    pub(super) ranks: Vec<Rank>,
    pub(super) score: Score,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.ranks == other.ranks
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ranks.cmp(&other.ranks)
    }
}

pub(crate) struct SegmentTop<'a> {
    pub(super) order: SegmentOrder<'a>,
    pub(super) size: usize,
    /// Only documents behind these ranks count.
    after: Option<Vec<Rank>>,
    /// Only documents before these ranks count: enough are before them elsewhere.
    before: Option<Vec<Rank>>,
    /// The last of the best on top.
    heap: BinaryHeap<Entry>,
    /// Room for a block of documents.
    ranked: Vec<(Rank, DocId)>,
    _held: Grant,
}

impl SegmentTop<'_> {
    /// Whether no document of the segment can get in any more.
    pub(crate) fn beaten(&self) -> bool {
        let edge = self.order.leading.as_ref().and_then(Leading::edge);
        edge.zip(self.leading_limit())
            .is_some_and(|(edge, limit)| edge > limit)
    }

    /// Looks at documents of the same score; they come in ascending order.
    pub(crate) fn offer_all(&mut self, docs: &[DocId], score: Score) {
        if self.size == 0 {
            return;
        }
        if self.order.nearest.is_some() {
            self.offer_near(docs, f64::INFINITY, score);
            return;
        }
        let after = self.leading_after(score);
        // The best of many first: where documents lie by age, the newest of them keep all others out.
        let best_first = self.order.revisits();
        let mut ranked = std::mem::take(&mut self.ranked);
        for together in docs.chunks(OFFERED_TOGETHER) {
            let Some(leading) = &self.order.leading else {
                together.iter().for_each(|doc| self.offer(*doc, score));
                continue;
            };
            let mut limit = self.leading_limit();
            let counts = |rank: Rank, limit: Option<Rank>| {
                limit.is_none_or(|limit| rank <= limit) && after.is_none_or(|after| rank >= after)
            };
            ranked.clear();
            leading.rank_all(together, &mut ranked, |rank| counts(rank, limit));
            if best_first {
                keep_best(&mut ranked, self.size, after);
                ranked.sort_unstable();
            }
            for (rank, doc) in &ranked {
                if counts(*rank, limit) {
                    self.offer(*doc, score);
                    limit = self.leading_limit();
                } else if best_first {
                    // Those behind it count as little.
                    break;
                }
            }
        }
        self.ranked = ranked;
    }

    /// Documents behind this rank of the leading key can't get in.
    pub(super) fn leading_limit(&self) -> Option<Rank> {
        let nth = self.order.leading_key()?;
        self.last().and_then(|last| last.get(nth)).copied()
    }

    /// Documents before this rank of the leading key don't count.
    pub(super) fn leading_after(&mut self, score: Score) -> Option<Rank> {
        let after = self.after.as_ref()?;
        self.order.leading_of(after, score)
    }

    /// Which scores documents from `doc` on get in with, where the order begins with the best score. The one of the last
    /// that is kept is enough as long as a document with it may come that stands before that one.
    pub(crate) fn min_score(&self, doc: DocId, run: &Run) -> tantivy::Result<Option<MinScore>> {
        let Some(last) = self.last() else { return Ok(None) };
        let Some(value) = last.first().and_then(|rank| rank.value(true)) else {
            return Ok(None);
        };
        // It was a single-precision number before.
        let score = f64::from_u64(value) as Score;
        let edge = match &self.order.ties {
            Some(ties) => ties.edge_from(doc, run)?,
            None => None,
        };
        let ties_are_over = edge
            .zip(last.get(BEHIND_SCORE))
            .is_some_and(|(edge, last)| edge > *last);
        Ok(Some(if ties_are_over {
            MinScore::above(score)
        } else {
            MinScore::from(score)
        }))
    }

    /// Only documents before these ranks can get in.
    fn last(&self) -> Option<&[Rank]> {
        let full = self.heap.len() >= self.size;
        let worst = self.heap.peek().filter(|_| full);
        worst
            .map(|entry| entry.ranks.as_slice())
            .or(self.before.as_deref())
    }

    /// Looks at a document; they come in ascending order unless the order can go back.
    pub(crate) fn offer(&mut self, doc: DocId, score: Score) {
        if self.size == 0 {
            return;
        }
        self.order.stand_on(doc, score);
        let passed = self
            .after
            .as_ref()
            .is_some_and(|after| self.order.compare(after).is_le());
        if passed
            || self
                .before
                .as_ref()
                .is_some_and(|before| self.order.compare(before).is_ge())
        {
            return;
        }
        if self.heap.len() < self.size {
            self.heap.push(Entry {
                ranks: self.order.ranks().to_vec(),
                score,
            });
            return;
        }
        let Some(mut last) = self.heap.peek_mut() else {
            return;
        };
        if self.order.compare(&last.ranks).is_lt() {
            last.ranks.clear();
            last.ranks.extend_from_slice(self.order.ranks());
            last.score = score;
        }
    }
}
