//! The top k documents over several segments.
//!
//! What an order compares last is the document's key, a string, which has to be read from a segment's dictionary. It decides
//! only between documents that are equal up to there. So the keys of an order up to its first string are compared before any
//! string is read. Strings are read of documents that are equal so far, and in the end of the winners.

use std::io;
use std::ops::Range;

use tantivy::Score;

use super::order::Order;
use super::rank::Rank;
use super::raw_value::{RawSortValue, RawSortValues};
use super::segment::{RANKS_PER_CHECK, SegmentOrder};
use super::top::{HeapEntry, SegmentTopCollector, Winner};
use crate::allowance::Grant;
use crate::pace::Pace;

/// One of the best documents of the segments so far.
struct Candidate {
    /// The place of its segment among those taken.
    segment: usize,
    /// Within its segment.
    ranks: Vec<Rank>,
    score: Score,
    /// Under the keys before the first string; under all, once its strings are read.
    sort_values: RawSortValues,
}

/// Collects the first `size` documents of an order behind `after`, a segment at a time.
pub(crate) struct TopCollector<'a> {
    /// Sort values of the last document of the page before.
    pub(super) after: Option<Vec<RawSortValue>>,
    order: &'a Order,
    pub(super) size: usize,
    segments: Vec<SegmentOrder<'a>>,
    kept: Vec<Candidate>,
    /// The memory of `kept` but for what their sort_values hold themselves.
    held: Option<Grant>,
}

impl<'a> TopCollector<'a> {
    pub(crate) fn new(order: &'a Order, size: usize, after: Option<Vec<RawSortValue>>) -> Self {
        Self {
            after,
            order,
            size,
            segments: Vec::new(),
            kept: Vec::new(),
            held: None,
        }
    }

    /// Sort values of the last document, as far as they were read, once there are `size`: further ones have to come before it.
    pub(super) fn last(&self) -> Option<&[RawSortValue]> {
        let full = self.kept.len() >= self.size;
        let last = self.kept.last().filter(|_| full);
        last.map(|last| &*last.sort_values)
    }

    /// Ends a segment: merges its best documents with those of the segments before.
    pub(crate) fn take(&mut self, segment: SegmentTopCollector<'a>) -> io::Result<()> {
        let SegmentTopCollector {
            order: segment,
            mut heap,
            ..
        } = segment;
        if heap.is_empty() {
            return Ok(());
        }
        // Sorted by ranks here, so that strings are read only to compare them with those of other segments.
        let _moved = segment
            .run
            .allowance()
            .take(heap.len() * size_of::<HeapEntry>())?;
        let mut best = Vec::with_capacity(heap.len());
        let mut pace = Pace::new(segment.run, RANKS_PER_CHECK);
        while let Some(last) = heap.pop() {
            pace.step(1).map_err(io::Error::other)?;
            best.push(last);
        }
        best.reverse();
        let each = size_of::<Candidate>() + segment.rank_bytes();
        let held = self.held.get_or_insert_with(|| segment.run.allowance().grant());
        held.grow(best.len() * each)?;
        let ranks: Vec<&[Rank]> = best.iter().map(|entry| entry.ranks.as_slice()).collect();
        let number_keys = self.order.number_keys();
        let numbers = segment.sort_values_of(0..number_keys, &ranks)?;
        let led_by_number = segment.leading_key().is_some_and(|nth| nth < number_keys);
        let nth = self.segments.len();
        self.segments.push(segment);
        let best = best.into_iter().zip(numbers);
        let top_k = best.map(|(entry, sort_values)| Candidate {
            segment: nth,
            score: entry.score(),
            ranks: entry.ranks,
            sort_values,
        });
        self.kept.extend(top_k);
        let tied = self.sort()?;
        self.kept.truncate(self.size);
        if let Some(held) = &mut self.held {
            held.shrink_to(self.kept.len() * each);
        }
        // The next segment turns the sort values of the last document into ranks of its own: strings, too, where numbers leave ties.
        let kept = self.kept.len();
        if kept >= self.size && (tied || !led_by_number) {
            self.read_strings(kept.saturating_sub(1)..kept)?;
        }
        Ok(())
    }

    /// The documents behind the first `skip`, in order.
    pub(crate) fn into_winners(mut self, skip: usize) -> io::Result<Vec<Winner>> {
        self.read_strings(skip..self.kept.len())?;
        let kept = self.kept.into_iter().skip(skip);
        Ok(kept
            .map(|each| Winner::new((each.sort_values, each.score)))
            .collect())
    }

    /// Brings them into order, as far as that matters for the first `size`; whether numbers leave the last of those equal to another.
    fn sort(&mut self) -> io::Result<bool> {
        let (order, number_keys) = (self.order, self.order.number_keys());
        let by_numbers = |one: &Candidate, other: &Candidate| {
            let one = one.sort_values.get(..number_keys).unwrap_or_default();
            let other = other.sort_values.get(..number_keys).unwrap_or_default();
            order.compare(one, other)
        };
        // It is stable: those of one segment stay in their order.
        self.kept.sort_by(by_numbers);
        let equal = self.kept.chunk_by(|one, other| by_numbers(one, other).is_eq());
        let lengths: Vec<(usize, bool)> = equal
            .map(|ties| {
                let first = ties.first().map(|each| each.segment);
                (ties.len(), ties.iter().all(|each| Some(each.segment) == first))
            })
            .collect();
        let (mut begin, mut tied) = (0, false);
        for (length, of_one_segment) in lengths {
            if begin >= self.size {
                break;
            }
            let ties = begin..begin + length;
            (begin, tied) = (ties.end, length > 1);
            if of_one_segment {
                continue;
            }
            self.read_strings(ties.clone())?;
            if let Some(ties) = self.kept.get_mut(ties) {
                ties.sort_by(|one, other| order.compare(&one.sort_values, &other.sort_values));
            }
        }
        Ok(tied)
    }

    /// Reads the strings of those at `places` that have none yet.
    fn read_strings(&mut self, places: Range<usize>) -> io::Result<()> {
        let keys = self.order.number_keys()..self.order.keys.len();
        for (nth, segment) in self.segments.iter().enumerate() {
            let unread = |each: &&Candidate| each.segment == nth && each.sort_values.len() < keys.end;
            let among = self.kept.get(places.clone()).unwrap_or_default();
            let ranks = among.iter().filter(unread).map(|each| each.ranks.as_slice());
            let ranks: Vec<&[Rank]> = ranks.collect();
            if ranks.is_empty() {
                continue;
            }
            let strings = segment.sort_values_of(keys.clone(), &ranks)?;
            let among = self.kept.get_mut(places.clone()).unwrap_or_default();
            let among = among.iter_mut().filter(|each| unread(&&**each));
            for (each, strings) in among.zip(strings) {
                each.sort_values.extend(strings);
            }
        }
        Ok(())
    }
}
