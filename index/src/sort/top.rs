//! Collects the best documents of a segment.

use std::collections::BinaryHeap;
use std::io;

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::{DocId, Score};

use super::leading::Leading;
use super::rank::Rank;
use super::raw_value::RawSortValues;
use super::segment::{SegmentOrder, TIE_KEY};
use super::top_k::TopCollector;
use crate::allowance::Grant;
use crate::plan::MinScore;
use crate::run::Run;

/// Documents that are ranked together by the leading key, before the best of them are compared by all keys.
pub(crate) const OFFERED_TOGETHER: usize = 1024;

/// Documents that a heap has room for from the first on, if it may have as many: it is seldom made larger then.
const FIRST_ROOM: usize = 32;

/// One of the best documents of a search.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) sort_values: RawSortValues,
    pub(crate) score: Score,
}

impl Winner {
    pub(crate) fn new((sort_values, score): (RawSortValues, Score)) -> Self {
        Self { sort_values, score }
    }
}

impl<'a> TopCollector<'a> {
    /// Begins a segment, given the order on it.
    pub(crate) fn segment(&self, order: SegmentOrder<'a>) -> io::Result<SegmentTopCollector<'a>> {
        let after = self.after.as_ref();
        let after = after.map(|after| order.ranks_of(after)).transpose()?;
        let before = self.last().map(|last| order.ranks_of(last)).transpose()?;
        let entry_bytes = size_of::<HeapEntry>() + order.rank_bytes();
        let capacity = order.capacity(self.size);
        let held = order.run.allowance().take(capacity * entry_bytes)?;
        Ok(SegmentTopCollector {
            order,
            size: self.size,
            _held: held,
            after,
            before,
            heap: BinaryHeap::with_capacity(capacity.min(FIRST_ROOM)),
            ranked: Vec::new(),
        })
    }
}

/// Keeps those of `ranked` that can be among the first `size` behind `after`, a rank of the leading key.
fn keep_best(ranked: &mut Vec<(Rank, DocId)>, size: usize, after: Option<Rank>) {
    // Documents with the very rank of `after` may stand before it by their further keys, and then take no place.
    let ties = ranked.iter().filter(|(rank, _)| Some(*rank) == after).count();
    let enough = size.saturating_add(ties);
    if enough == 0 || ranked.len() <= enough {
        return;
    }
    let (last, _) = *ranked.select_nth_unstable(enough - 1).1;
    ranked.retain(|(rank, _)| *rank <= last);
}

/// A document in a heap, whose top is the last one in the order; no two have the same ranks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HeapEntry {
    pub(super) ranks: Vec<Rank>,
    score_bits: u32,
}

impl HeapEntry {
    pub(super) fn score(&self) -> Score {
        Score::from_bits(self.score_bits)
    }
}

/// Puts the document that the order stands on among the first `size`, if it is one; whether there is one more now.
pub(super) fn keep(
    heap: &mut BinaryHeap<HeapEntry>,
    order: &mut SegmentOrder<'_>,
    size: usize,
    score: Score,
) -> bool {
    let score_bits = score.to_bits();
    if heap.len() < size {
        let ranks = order.ranks().to_vec();
        heap.push(HeapEntry { ranks, score_bits });
        return true;
    }
    if let Some(mut last) = heap.peek_mut()
        && order.compare(&last.ranks).is_lt()
    {
        last.ranks.clear();
        last.ranks.extend_from_slice(order.ranks());
        last.score_bits = score_bits;
    }
    false
}

/// Collects the first `size` documents of a segment that lie between `after` and `before`.
pub(crate) struct SegmentTopCollector<'a> {
    pub(super) order: SegmentOrder<'a>,
    pub(super) size: usize,
    /// Ranks of the last document of the page before, exclusive.
    after: Option<Vec<Rank>>,
    /// Ranks of the last of the best documents of the segments before, under the first keys at least; `None` while there are too few.
    before: Option<Vec<Rank>>,
    pub(super) heap: BinaryHeap<HeapEntry>,
    /// A buffer for the documents that are ranked together.
    ranked: Vec<(Rank, DocId)>,
    /// The memory of the heap.
    _held: Grant,
}

impl SegmentTopCollector<'_> {
    /// Whether no further document of the segment can be among the best: its best leading value isn't.
    pub(crate) fn beaten(&self) -> bool {
        let best = self.order.leading.as_ref().and_then(Leading::edge);
        let limited = best.zip(self.leading_limit());
        limited.is_some_and(|(best, limit)| best > limit)
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
        let best_first = self.order.is_random_access();
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
            ranked.reserve(together.len());
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
        self.order.leading_rank_of(after, score)
    }

    /// The minimum competitive score of documents from `doc` on, where the order begins with the best score. The score of
    /// the limit itself is competitive as long as a document may follow that wins the tie by the second key.
    pub(crate) fn min_score(&self, doc: DocId, run: &Run) -> tantivy::Result<Option<MinScore>> {
        let limit = self.limit().unwrap_or_default();
        let Some(value) = limit.first().and_then(|rank| rank.value(true)) else {
            return Ok(None);
        };
        // Exact: ranks hold scores widened to double precision.
        let score = f64::from_u64(value) as Score;
        let best_tie = match &self.order.ties {
            Some(ties) => ties.edge_from(doc, run)?,
            None => None,
        };
        let ties = best_tie.zip(limit.get(TIE_KEY));
        let ties_are_over = ties.is_some_and(|(best, limit)| best > *limit);
        Ok(Some(MinScore::new(score, !ties_are_over)))
    }

    /// Only documents before these ranks are competitive; `None` while all are.
    fn limit(&self) -> Option<&[Rank]> {
        let full = self.heap.len() >= self.size;
        let last = self.heap.peek().filter(|_| full);
        last.map(|last| last.ranks.as_slice()).or(self.before.as_deref())
    }

    /// Offers a document; they come in ascending order unless [`SegmentOrder::is_random_access`].
    pub(crate) fn offer(&mut self, doc: DocId, score: Score) {
        if self.size == 0 {
            return;
        }
        self.order.move_to(doc, score);
        let order = &mut self.order;
        let (after, before) = (self.after.as_ref(), self.before.as_ref());
        if after.is_some_and(|after| order.compare(after).is_le())
            || before.is_some_and(|before| order.compare(before).is_gt())
        {
            return;
        }
        keep(&mut self.heap, order, self.size, score);
    }
}
