//! Collects the best documents of a search: [`SegmentTopCollector`] those of a segment, [`TopCollector`] those of all.

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

/// Documents that are ranked together by the leading key, before the best of them are compared by all keys.
pub(super) const OFFERED_TOGETHER: usize = 1024;

/// One of the best documents of a search.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) sort_values: RawSortValues,
    pub(crate) score: Score,
}

/// Collects the first `size` documents of an order behind `after`, a segment at a time.
pub(crate) struct TopCollector<'a> {
    /// Sort values of the last document of the page before.
    after: Option<Vec<RawSortValue>>,
    top_k: TopK<'a>,
}

impl<'a> TopCollector<'a> {
    pub(crate) fn new(order: &'a Order, size: usize, after: Option<Vec<RawSortValue>>) -> Self {
        Self {
            after,
            top_k: TopK::new(order, size),
        }
    }

    /// Begins a segment, given the order on it.
    ///
    /// # Errors
    /// When the strings of `after` can't be looked up, or the search has no memory left for its documents.
    pub(crate) fn segment(&self, order: SegmentOrder<'a>) -> io::Result<SegmentTopCollector<'a>> {
        let after = self.after.as_ref();
        let after = after.map(|after| order.ranks_of(after)).transpose()?;
        let last = self.top_k.last();
        let before = last.map(|last| order.ranks_of(last)).transpose()?;
        let size = self.top_k.size;
        let entry_bytes = size_of::<HeapEntry>() + order.rank_bytes();
        let held = order.run.allowance().take(order.at_most(size) * entry_bytes)?;
        Ok(SegmentTopCollector {
            order,
            size,
            _held: held,
            after,
            before,
            heap: BinaryHeap::new(),
            ranked: Vec::new(),
        })
    }

    /// Ends a segment: merges its best documents with those of the segments before.
    ///
    /// # Errors
    /// As [`TopK::take`].
    pub(crate) fn take(&mut self, segment: SegmentTopCollector<'a>) -> io::Result<()> {
        let SegmentTopCollector { order, heap, .. } = segment;
        // Sorted by ranks here, so that strings are read only to compare them with those of other segments.
        self.top_k.take(order, heap.into_sorted_vec())
    }

    /// The best documents, in order.
    ///
    /// # Errors
    /// When their strings can't be read, or the search has no memory left for them.
    pub(crate) fn into_winners(self) -> io::Result<Vec<Winner>> {
        self.top_k.into_winners()
    }
}

/// Keeps those of `ranked` that can be among the first `size` behind `after`, a rank of the leading key.
fn keep_best(ranked: &mut Vec<(Rank, DocId)>, size: usize, after: Option<Rank>) {
    // Documents with the very rank of `after` may stand before it by their further keys, and then take no place.
    let ties = after.map_or(0, |after| {
        ranked.iter().filter(|(rank, _)| *rank == after).count()
    });
    let enough = size.saturating_add(ties);
    if enough == 0 || ranked.len() <= enough {
        return;
    }
    let (_, (last, _), _) = ranked.select_nth_unstable(enough - 1);
    let last = *last;
    ranked.retain(|(rank, _)| *rank <= last);
}

/// A document in a heap, whose top is the last one in the order.
pub(super) struct HeapEntry {
    pub(super) ranks: Vec<Rank>,
    pub(super) score: Score,
}

impl PartialEq for HeapEntry {
    fn eq(&self, other: &Self) -> bool {
        self.ranks == other.ranks
    }
}

impl Eq for HeapEntry {}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeapEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ranks.cmp(&other.ranks)
    }
}

/// Collects the first `size` documents of a segment that lie between `after` and `before`.
pub(crate) struct SegmentTopCollector<'a> {
    pub(super) order: SegmentOrder<'a>,
    pub(super) size: usize,
    /// Ranks of the last document of the page before, exclusive.
    after: Option<Vec<Rank>>,
    /// Ranks of the last of the best documents of the segments before, exclusive; `None` while there are too few.
    before: Option<Vec<Rank>>,
    heap: BinaryHeap<HeapEntry>,
    /// A buffer for the documents that are ranked together.
    ranked: Vec<(Rank, DocId)>,
    /// The memory of the heap.
    _held: Grant,
}

impl SegmentTopCollector<'_> {
    /// Whether no further document of the segment can be among the best: its best leading value isn't.
    pub(crate) fn beaten(&self) -> bool {
        let best = self.order.leading.as_ref().and_then(Leading::edge);
        best.zip(self.leading_limit())
            .is_some_and(|(best, limit)| best > limit)
    }

    /// Offers documents, in ascending order, that have the same score.
    pub(crate) fn offer_all(&mut self, docs: &[DocId], score: Score) {
        if self.size == 0 {
            return;
        }
        if self.order.nearest.is_some() {
            self.offer_near(docs, f64::INFINITY, score);
            return;
        }
        let after = self.leading_after(score);
        // Where documents are stored by age and wanted newest first, each would displace the one before it.
        let best_first = self.order.revisits();
        let mut ranked = std::mem::take(&mut self.ranked);
        for together in docs.chunks(OFFERED_TOGETHER) {
            let Some(leading) = &self.order.leading else {
                together.iter().for_each(|doc| self.offer(*doc, score));
                continue;
            };
            let mut limit = self.leading_limit();
            let competitive = |rank: Rank, limit: Option<Rank>| {
                limit.is_none_or(|limit| rank <= limit) && after.is_none_or(|after| rank >= after)
            };
            ranked.clear();
            leading.rank_all(together, &mut ranked, |rank| competitive(rank, limit));
            if best_first {
                keep_best(&mut ranked, self.size, after);
                ranked.sort_unstable();
            }
            for (rank, doc) in &ranked {
                if competitive(*rank, limit) {
                    self.offer(*doc, score);
                    limit = self.leading_limit();
                } else if best_first {
                    // The ranks behind it are worse.
                    break;
                }
            }
        }
        self.ranked = ranked;
    }

    /// The worst competitive rank of the leading key; `None` while every document is competitive.
    pub(super) fn leading_limit(&self) -> Option<Rank> {
        let nth = self.order.leading_key()?;
        self.limit().and_then(|limit| limit.get(nth)).copied()
    }

    /// The rank of `after` under the leading key: documents before it belong to the pages before.
    pub(super) fn leading_after(&mut self, score: Score) -> Option<Rank> {
        let after = self.after.as_ref()?;
        self.order.leading_of(after, score)
    }

    /// The minimum competitive score of documents from `doc` on, where the order begins with the best score. The score of
    /// the limit itself is competitive as long as a document may follow that wins the tie by the second key.
    pub(crate) fn min_score(&self, doc: DocId, run: &Run) -> tantivy::Result<Option<MinScore>> {
        let Some(limit) = self.limit() else {
            return Ok(None);
        };
        let Some(value) = limit.first().and_then(|rank| rank.value(true)) else {
            return Ok(None);
        };
        // Exact: ranks hold scores widened to double precision.
        let score = f64::from_u64(value) as Score;
        let best_tie = match &self.order.ties {
            Some(ties) => ties.edge_from(doc, run)?,
            None => None,
        };
        let ties_are_over = best_tie
            .zip(limit.get(BEHIND_SCORE))
            .is_some_and(|(best, limit)| best > *limit);
        Ok(Some(if ties_are_over {
            MinScore::above(score)
        } else {
            MinScore::from(score)
        }))
    }

    /// Only documents before these ranks are competitive; `None` while all are.
    fn limit(&self) -> Option<&[Rank]> {
        let full = self.heap.len() >= self.size;
        let last = self.heap.peek().filter(|_| full);
        last.map(|last| last.ranks.as_slice()).or(self.before.as_deref())
    }

    /// Offers a document; they come in ascending order unless [`SegmentOrder::revisits`].
    pub(crate) fn offer(&mut self, doc: DocId, score: Score) {
        if self.size == 0 {
            return;
        }
        self.order.stand_on(doc, score);
        if let Some(after) = &self.after
            && self.order.compare(after).is_le()
        {
            return;
        }
        if let Some(before) = &self.before
            && self.order.compare(before).is_ge()
        {
            return;
        }
        if self.heap.len() < self.size {
            self.heap.push(HeapEntry {
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
