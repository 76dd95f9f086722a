//! A set of documents of one segment, a bit each.

use crate::error::AllowanceExceeded;
use tantivy::query::Scorer;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SeekDangerResult, TERMINATED};

use crate::allowance::{Allowance, Grant};
use crate::doc_walk::settles;
use crate::limits::MAX_BLOCK_DOCUMENTS;

#[derive(Debug)]
pub(crate) struct Bits {
    words: Vec<u64>,
    max_doc: DocId,
    /// The memory of a search, if it is one's.
    _held: Option<Grant>,
}

impl Bits {
    /// An empty set for documents below `max_doc`.
    pub(crate) fn new(max_doc: DocId) -> Self {
        Self {
            words: vec![0; (max_doc as usize).div_ceil(64)],
            max_doc,
            _held: None,
        }
    }

    /// An empty set in the memory of a search.
    pub(crate) fn within(max_doc: DocId, allowance: &Allowance) -> Result<Self, AllowanceExceeded> {
        let held = allowance.take((max_doc as usize).div_ceil(64) * size_of::<u64>())?;
        Ok(Self {
            _held: Some(held),
            ..Self::new(max_doc)
        })
    }

    /// Adds a document; one beyond the end is left out.
    pub(crate) fn insert(&mut self, doc: DocId) {
        if let Some(word) = self.words.get_mut((doc >> 6) as usize) {
            *word |= 1 << (doc & 63);
        }
    }

    pub(crate) fn contains(&self, doc: DocId) -> bool {
        let word = self.words.get((doc >> 6) as usize);
        word.is_some_and(|word| word & (1 << (doc & 63)) != 0)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    pub(crate) fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The first document from `doc` on, or [`TERMINATED`].
    pub(crate) fn next(&self, doc: DocId) -> DocId {
        self.next_below(doc, TERMINATED)
    }

    /// The first document from `doc` on that is below `end`, or [`TERMINATED`]. Looks at no word behind `end`.
    pub(crate) fn next_below(&self, doc: DocId, end: DocId) -> DocId {
        let words = self.words.get(..(end as usize).div_ceil(64));
        let words = words.unwrap_or(&self.words);
        let mut at = (doc >> 6) as usize;
        let mut mask = !0_u64 << (doc & 63);
        while let Some(word) = words.get(at) {
            let word = word & mask;
            if word != 0 {
                let next = (at as u32) * 64 + word.trailing_zeros();
                return if next < end { next } else { TERMINATED };
            }
            mask = !0;
            at += 1;
        }
        TERMINATED
    }

    /// Fills `block` with the documents from `doc` on, as many as are collected at a time; the document behind them, or
    /// [`TERMINATED`].
    pub(crate) fn block(&self, doc: DocId, block: &mut Vec<DocId>) -> DocId {
        block.clear();
        let mut next = self.next(doc);
        while next != TERMINATED && block.len() < COLLECT_BLOCK_BUFFER_LEN {
            block.push(next);
            next = self.next(next + 1);
        }
        next
    }

    /// Of parents in blocks (see [`crate::join`]): where the objects begin of the first parent from `doc` on. Looks back
    /// no further than a block is long, so it may be too low where nothing lies before.
    pub(crate) fn block_start(&self, doc: DocId) -> DocId {
        let doc = doc.min(self.max_doc);
        let lowest = doc.saturating_sub(MAX_BLOCK_DOCUMENTS as u32);
        let Some(last) = doc.checked_sub(1) else {
            return 0;
        };
        let mut mask = !0_u64 >> (63 - (last & 63));
        for at in ((lowest >> 6) as usize..=(last >> 6) as usize).rev() {
            let word = self.words.get(at).copied().unwrap_or_default() & mask;
            if word != 0 {
                return ((at as u32) * 64 + 64 - word.leading_zeros()).max(lowest);
            }
            mask = !0;
        }
        lowest
    }
}

/// Walks a [`Bits`].
pub(crate) struct BitsDocSet {
    bits: Bits,
    doc: DocId,
    len: u32,
    /// Of each document of the segment, where they differ.
    scores: Vec<Score>,
    /// The memory of the scores.
    _held: Option<Grant>,
}

impl BitsDocSet {
    pub(crate) fn new(bits: Bits) -> Self {
        let (doc, len) = (bits.next(0), bits.len());
        Self {
            bits,
            doc,
            len,
            scores: Vec::new(),
            _held: None,
        }
    }

    /// With a score for each document of the segment.
    pub(crate) fn scored(bits: Bits, scores: Vec<Score>, held: Grant) -> Self {
        Self {
            scores,
            _held: Some(held),
            ..Self::new(bits)
        }
    }

    fn settle(&mut self, target: DocId) -> DocId {
        self.doc = self.bits.next(target);
        self.doc
    }
}

impl DocSet for BitsDocSet {
    settles!();

    /// Doesn't look for the next document: the others of an intersection may be far ahead.
    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= TERMINATED {
            return SeekDangerResult::SeekLowerBound(target);
        }
        if !self.bits.contains(target) {
            // Behind the last document there is none: callers may go on from the bound one by one.
            let beyond = target >= self.bits.max_doc;
            return SeekDangerResult::SeekLowerBound(if beyond { TERMINATED } else { target + 1 });
        }
        self.doc = target;
        SeekDangerResult::Found
    }

    fn fill_buffer(&mut self, buffer: &mut [DocId; COLLECT_BLOCK_BUFFER_LEN]) -> usize {
        let mut filled = 0;
        let mut at = (self.doc >> 6) as usize;
        let mut mask = !0_u64 << (self.doc & 63);
        while let Some(word) = self.bits.words.get(at) {
            let mut word = word & mask;
            while word != 0 {
                let doc = (at as u32) * 64 + word.trailing_zeros();
                let Some(place) = buffer.get_mut(filled) else {
                    self.doc = doc;
                    return filled;
                };
                *place = doc;
                filled += 1;
                word &= word - 1;
            }
            mask = !0;
            at += 1;
        }
        self.doc = TERMINATED;
        filled
    }

    fn size_hint(&self) -> u32 {
        self.len
    }
}

impl Scorer for BitsDocSet {
    fn score(&mut self) -> Score {
        self.scores.get(self.doc as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_both_ways_over_word_borders() {
        let members = [0, 1, 63, 64, 127, 128, 190];
        let mut bits = Bits::new(191);
        members.iter().for_each(|doc| bits.insert(*doc));
        bits.insert(100_000);
        assert_eq!(bits.len(), members.len() as u32);
        for doc in 0..=300 {
            let next = members.iter().copied().find(|member| *member >= doc);
            let before = members.iter().copied().rev().find(|member| *member < doc);
            assert_eq!(bits.next(doc), next.unwrap_or(TERMINATED), "{doc}");
            assert_eq!(
                bits.block_start(doc),
                before.map_or(0, |before| before + 1),
                "{doc}"
            );
            assert_eq!(bits.contains(doc), members.contains(&doc), "{doc}");
            for end in 0..=300 {
                let below = next.filter(|next| *next < end).unwrap_or(TERMINATED);
                assert_eq!(bits.next_below(doc, end), below, "{doc}..{end}");
            }
        }
        let mut set = BitsDocSet::new(bits);
        let mut found = vec![set.doc()];
        while set.advance() != TERMINATED {
            found.push(set.doc());
        }
        assert_eq!(found, members);
        assert_eq!((set.advance(), set.seek(TERMINATED)), (TERMINATED, TERMINATED));
    }

    #[test]
    fn a_block_is_no_longer_than_documents_may_be() {
        let mut bits = Bits::new(1_000_000);
        bits.insert(3);
        for (doc, start) in [(4, 4), (4_000, 4), (900_000, 895_904), (TERMINATED, 995_904)] {
            assert_eq!(bits.block_start(doc), start, "{doc}");
        }
    }

    #[test]
    fn an_empty_segment_has_no_documents() {
        let bits = Bits::new(0);
        assert_eq!(
            (bits.next(0), bits.block_start(0), bits.block_start(5)),
            (TERMINATED, 0, 0)
        );
        assert_eq!(BitsDocSet::new(bits).doc(), TERMINATED);
    }
}
