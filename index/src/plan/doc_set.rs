//! A doc set of one segment, built eagerly from postings in any order.

use crate::error::AllowanceExceeded;
use tantivy::postings::TermInfo;
use tantivy::query::{ConstScorer, EmptyScorer, Scorer};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, Score, TERMINATED};

use crate::allowance::{Allowance, Grant};
use crate::bits::{Bits, BitsDocSet};

/// The part of a segment's documents up to which sorting a list is quicker than going through a bit for each document.
const SPARSE: u32 = 512;

/// Documents, as a list while there are few.
pub(crate) struct DocSetBuilder {
    max_doc: DocId,
    list: Vec<(DocId, ())>,
    bits: Option<Bits>,
    allowance: Allowance,
    held: Grant,
    /// Why no more documents are taken; told at the end.
    exceeded: Option<AllowanceExceeded>,
}

impl DocSetBuilder {
    pub(crate) fn new(max_doc: DocId, allowance: &Allowance) -> Self {
        Self {
            max_doc,
            list: Vec::new(),
            bits: None,
            allowance: allowance.clone(),
            held: allowance.grant(),
            exceeded: None,
        }
    }

    pub(crate) fn insert(&mut self, doc: DocId) {
        if let Some(bits) = &mut self.bits {
            bits.insert(doc);
        } else if self.exceeded.is_none() {
            self.exceeded = self.list(doc).err();
        }
    }

    fn list(&mut self, doc: DocId) -> Result<(), AllowanceExceeded> {
        self.held.push(&mut self.list, (doc, ()))?;
        if self.list.len() > (self.max_doc / SPARSE) as usize {
            let mut bits = Bits::within(self.max_doc, &self.allowance)?;
            let list = std::mem::take(&mut self.list);
            list.into_iter().for_each(|(doc, ())| bits.insert(doc));
            self.held.shrink_to(0);
            self.bits = Some(bits);
        }
        Ok(())
    }

    /// About how many documents there are: while they are few, one that was added twice counts twice.
    pub(super) fn len(&self) -> u32 {
        let listed = self.list.len() as u32;
        self.bits.as_ref().map_or(listed, Bits::len)
    }

    /// Adds the documents of a term that pass the check.
    pub(crate) fn insert_term(
        &mut self,
        index: &InvertedIndexReader,
        term: &TermInfo,
        mut check: impl FnMut(DocId) -> bool,
    ) -> tantivy::Result<()> {
        let mut postings = index.read_block_postings_from_terminfo(term, IndexRecordOption::Basic)?;
        while !postings.docs().is_empty() {
            for doc in postings.docs() {
                if check(*doc) {
                    self.insert(*doc);
                }
            }
            postings.advance();
        }
        Ok(())
    }

    /// All of them in order, each with the same score.
    ///
    /// # Errors
    /// [`AllowanceExceeded`] when there wasn't room for all.
    pub(crate) fn into_scorer(mut self, score: Score) -> Result<Box<dyn Scorer>, AllowanceExceeded> {
        if let Some(exceeded) = self.exceeded {
            return Err(exceeded);
        }
        if let Some(bits) = self.bits {
            return Ok(Box::new(ConstScorer::new(BitsDocSet::new(bits), score)));
        }
        self.list.sort_unstable();
        self.list.dedup();
        if self.list.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(ConstScorer::new(
            ListDocSet {
                list: self.list,
                at: 0,
                _held: self.held,
            },
            score,
        )))
    }
}

/// Documents in order, each once, with what is known of each.
pub(super) struct ListDocSet<T> {
    pub(super) list: Vec<(DocId, T)>,
    pub(super) at: usize,
    pub(super) _held: Grant,
}

impl<T: Send> DocSet for ListDocSet<T> {
    fn advance(&mut self) -> DocId {
        self.at = (self.at + 1).min(self.list.len());
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.list.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|(doc, _)| *doc < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.list.get(self.at).map_or(TERMINATED, |(doc, _)| *doc)
    }

    fn size_hint(&self) -> u32 {
        self.list.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_bits_walk_alike() {
        let docs: Vec<DocId> = [900, 3, 3, 77, 512, 0, 77, 999].to_vec();
        let mut sorted = docs.clone();
        sorted.sort_unstable();
        sorted.dedup();
        for max_doc in [1_000, 31_000_000 / 1_000 * 33] {
            for target in [0, 4, 77, 513, 999] {
                let mut gathered = DocSetBuilder::new(max_doc, &Allowance::default());
                docs.iter().for_each(|doc| gathered.insert(*doc));
                let mut scorer = gathered.into_scorer(0.5).expect("there is room");
                assert_eq!((scorer.doc(), scorer.score(), scorer.size_hint()), (0, 0.5, 6));
                let expected = sorted.iter().copied().find(|doc| *doc >= target);
                assert_eq!(scorer.seek(target), expected.unwrap_or(TERMINATED));
                while scorer.doc() != TERMINATED {
                    assert!(sorted.contains(&scorer.doc()));
                    scorer.advance();
                }
                assert_eq!(
                    (scorer.advance(), scorer.seek(TERMINATED)),
                    (TERMINATED, TERMINATED)
                );
            }
        }
        let none = DocSetBuilder::new(0, &Allowance::default()).into_scorer(1.0);
        assert_eq!(none.expect("there is room").doc(), TERMINATED);
    }

    #[test]
    fn documents_without_room_are_an_error_and_never_left_out() {
        for max_doc in [1_000, 1_000_000] {
            let allowance = Allowance::default();
            let all = allowance
                .take(crate::limits::MAX_SEARCH_BYTES - 200)
                .expect("all but a little");
            let mut gathered = DocSetBuilder::new(max_doc, &allowance);
            (0..1_000).for_each(|doc| gathered.insert(doc));
            assert_eq!(gathered.into_scorer(1.0).is_err(), max_doc > 1_000);
            drop(all);
        }
    }
}
