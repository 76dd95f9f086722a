//! The best documents of a search, over all segments.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;

use tantivy::{DocId, Score};

use super::order::Order;
use super::rank::Rank;
use super::segment::SegmentOrder;
use super::standing::Standing;

/// A document that made it.
#[derive(Clone, Debug)]
pub(crate) struct Winner {
    pub(crate) standings: Vec<Standing>,
    pub(crate) score: Score,
}

/// Keeps the first `size` documents of an order.
pub(crate) struct Top<'a> {
    order: &'a Order,
    size: usize,
    /// Only documents behind this one count.
    after: Option<Vec<Standing>>,
    /// In order.
    winners: Vec<Winner>,
}

impl<'a> Top<'a> {
    pub(crate) fn new(order: &'a Order, size: usize, after: Option<Vec<Standing>>) -> Self {
        Self {
            order,
            size,
            after,
            winners: Vec::new(),
        }
    }

    /// Begins a segment.
    pub(crate) fn segment<'s>(&self, order: SegmentOrder<'s>) -> io::Result<SegmentTop<'s>> {
        let after = self
            .after
            .as_ref()
            .map(|after| order.ranks_of(after))
            .transpose()?;
        let full = self.winners.len() >= self.size;
        let last = self.winners.last().filter(|_| full);
        let before = last.map(|last| order.ranks_of(&last.standings)).transpose()?;
        Ok(SegmentTop {
            order,
            size: self.size,
            after,
            before,
            heap: BinaryHeap::new(),
        })
    }

    /// Ends a segment: its best documents meet those of the others.
    pub(crate) fn take(&mut self, segment: SegmentTop<'_>) -> io::Result<()> {
        let SegmentTop { order, heap, .. } = segment;
        if heap.is_empty() {
            return Ok(());
        }
        let entries = heap.into_vec();
        let ranks: Vec<&[Rank]> = entries.iter().map(|entry| entry.ranks.as_slice()).collect();
        let standings = order.standings(&ranks)?;
        let winners = standings.into_iter().zip(&entries);
        self.winners.extend(winners.map(|(standings, entry)| Winner {
            standings,
            score: entry.score,
        }));
        self.winners
            .sort_by(|one, other| self.order.compare(&one.standings, &other.standings));
        self.winners.truncate(self.size);
        Ok(())
    }

    /// The documents, in order.
    pub(crate) fn into_winners(self) -> Vec<Winner> {
        self.winners
    }
}

struct Entry {
    ranks: Vec<Rank>,
    score: Score,
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

/// The best documents of one segment.
pub(crate) struct SegmentTop<'a> {
    order: SegmentOrder<'a>,
    size: usize,
    /// Only documents behind these ranks count.
    after: Option<Vec<Rank>>,
    /// Only documents before these ranks count: enough are before them elsewhere.
    before: Option<Vec<Rank>>,
    /// The last of the best on top.
    heap: BinaryHeap<Entry>,
}

impl SegmentTop<'_> {
    /// Looks at a document; they come in ascending order.
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
