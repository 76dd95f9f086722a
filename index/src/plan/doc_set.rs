//! A doc set of one segment, built eagerly from postings in any order, with what its documents score.
//!
//! A list while they are few, then a bit and a score for each document of the segment: either way the memory is in proportion to
//! documents, however many lists they come from.

use tantivy::postings::TermInfo;
use tantivy::query::{ConstScorer, EmptyScorer, Scorer};
use tantivy::{DocId, DocSet, InvertedIndexReader, Score, TERMINATED};

use crate::allowance::{Allowance, Grant};
use crate::bits::{Bits, BitsDocSet};
use crate::doc_walk::each_list_block;
use crate::error::AllowanceExceeded;

/// What is added up of a document.
pub(crate) trait Summed: Copy + Default + Send + Sync + 'static {
    /// The part of a segment's documents up to which there is a list.
    const SPARSE: u32;

    fn add(&mut self, more: Self);
}

/// Nothing: it matches.
impl Summed for () {
    /// Up to here, sorting a list is quicker than going through a bit for each document.
    const SPARSE: u32 = 512;

    fn add(&mut self, (): ()) {}
}

impl Summed for Score {
    /// Up to here, a list takes no more memory than a number for each document, with what sorting it takes.
    const SPARSE: u32 = 4;

    fn add(&mut self, more: Self) {
        *self += more;
    }
}

/// Documents, as a list while there are few.
pub(crate) struct DocSetBuilder<T = ()> {
    max_doc: DocId,
    list: Vec<(DocId, T)>,
    each: Option<Each<T>>,
    allowance: Allowance,
    held: Grant,
    /// Why no more documents are taken; told at the end.
    exceeded: Option<AllowanceExceeded>,
}

/// A sum for each document of a segment.
struct Each<T> {
    docs: Bits,
    sums: Vec<T>,
}

impl<T: Summed> Each<T> {
    fn add(&mut self, doc: DocId, more: T) {
        if let Some(sum) = self.sums.get_mut(doc as usize) {
            sum.add(more);
            self.docs.insert(doc);
        }
    }
}

impl<T: Summed> DocSetBuilder<T> {
    pub(crate) fn new(max_doc: DocId, allowance: &Allowance) -> Self {
        Self {
            max_doc,
            list: Vec::new(),
            each: None,
            allowance: allowance.clone(),
            held: allowance.grant(),
            exceeded: None,
        }
    }

    /// Adds a document, or to what is known of it.
    pub(super) fn add(&mut self, doc: DocId, more: T) -> Result<(), AllowanceExceeded> {
        if let Some(each) = &mut self.each {
            each.add(doc, more);
            return Ok(());
        }
        self.held.push(&mut self.list, (doc, more))?;
        if self.list.len() > (self.max_doc / T::SPARSE) as usize {
            let docs = self.max_doc as usize;
            let bits = Bits::within(self.max_doc, &self.allowance)?;
            self.held.grow(docs * size_of::<T>())?;
            let mut each = Each {
                docs: bits,
                sums: vec![T::default(); docs],
            };
            let list = std::mem::take(&mut self.list);
            list.into_iter().for_each(|(doc, more)| each.add(doc, more));
            self.held.shrink_to(docs * size_of::<T>());
            self.each = Some(each);
        }
        Ok(())
    }

    /// The list in order, each document once.
    fn into_list(mut self) -> Result<ListDocSet<T>, AllowanceExceeded> {
        // Sorting keeps what one document has in the order in which it came: sums depend on it.
        self.held.grow(self.list.len() * size_of::<(DocId, T)>())?;
        self.list.sort_by_key(|(doc, _)| *doc);
        self.list.dedup_by(|(doc, more), (kept, sum)| {
            if doc == kept {
                sum.add(*more);
            }
            doc == kept
        });
        self.held
            .shrink_to(self.list.capacity() * size_of::<(DocId, T)>());
        Ok(ListDocSet {
            list: self.list,
            at: 0,
            _held: self.held,
        })
    }
}

impl DocSetBuilder {
    pub(crate) fn insert(&mut self, doc: DocId) {
        if let Some(each) = &mut self.each {
            each.docs.insert(doc);
        } else if self.exceeded.is_none() {
            self.exceeded = self.add(doc, ()).err();
        }
    }

    /// About how many documents there are: while they are few, one that was added twice counts twice.
    pub(super) fn len(&self) -> u32 {
        let listed = self.list.len() as u32;
        self.each.as_ref().map_or(listed, |each| each.docs.len())
    }

    /// Adds the documents of a term.
    pub(super) fn insert_term(
        &mut self,
        index: &InvertedIndexReader,
        term: &TermInfo,
    ) -> tantivy::Result<()> {
        each_list_block(index, term, &mut None, |docs| {
            docs.iter().for_each(|doc| self.insert(*doc));
        })
    }

    /// All of them in order, each with the same score.
    pub(crate) fn into_scorer(self, score: Score) -> Result<Box<dyn Scorer>, AllowanceExceeded> {
        if let Some(exceeded) = self.exceeded {
            return Err(exceeded);
        }
        if let Some(each) = self.each {
            return Ok(Box::new(ConstScorer::new(BitsDocSet::new(each.docs), score)));
        }
        if self.list.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(ConstScorer::new(self.into_list()?, score)))
    }
}

impl DocSetBuilder<Score> {
    /// The documents in order, each once, with the sum of what it scores.
    pub(super) fn into_scorer(self) -> Result<Box<dyn Scorer>, AllowanceExceeded> {
        if let Some(Each { docs, sums }) = self.each {
            return Ok(Box::new(BitsDocSet::scored(docs, sums, self.held)));
        }
        if self.list.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(self.into_list()?))
    }
}

/// Documents in order, each once, with what is known of each.
struct ListDocSet<T> {
    list: Vec<(DocId, T)>,
    at: usize,
    _held: Grant,
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

impl Scorer for ListDocSet<Score> {
    fn score(&mut self) -> Score {
        self.list.get(self.at).map_or(0.0, |(_, score)| *score)
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
        let none = DocSetBuilder::<()>::new(0, &Allowance::default()).into_scorer(1.0);
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

    fn scores(max_doc: DocId, scores: &[(DocId, Score)]) -> Box<dyn Scorer> {
        let mut sums = DocSetBuilder::<Score>::new(max_doc, &Allowance::default());
        for (doc, score) in scores {
            sums.add(*doc, *score).expect("there is room");
        }
        sums.into_scorer().expect("there is room")
    }

    #[test]
    fn scored_documents_come_in_order_with_their_sums() {
        // As a list, and as a number for each document.
        for max_doc in [1_000, 12] {
            let mut scorer = scores(max_doc, &[(7, 1.0), (3, 0.5), (7, 0.25), (9, 2.0)]);
            assert_eq!((scorer.doc(), scorer.score()), (3, 0.5));
            assert_eq!((scorer.advance(), scorer.score()), (7, 1.25));
            assert_eq!(scorer.seek(7), 7);
            assert_eq!(scorer.seek(8), 9);
            assert_eq!(scorer.score(), 2.0);
            assert_eq!((scorer.advance(), scorer.advance()), (TERMINATED, TERMINATED));
        }
        assert_eq!(scores(1_000, &[]).doc(), TERMINATED);
    }

    #[test]
    fn many_lists_of_the_same_documents_take_no_more_than_one() {
        let allowance = Allowance::default();
        let mut sums = DocSetBuilder::<Score>::new(1_000, &allowance);
        for nth in 0..100_000 {
            sums.add(nth % 1_000, 1.0).expect("there is room");
        }
        let mut scorer = sums.into_scorer().expect("there is room");
        assert_eq!((scorer.doc(), scorer.score()), (0, 100.0));
        assert!(allowance.peak() < 16_000, "{} bytes", allowance.peak());
        // A document that scores nothing matches all the same.
        let mut sums = DocSetBuilder::<Score>::new(4, &allowance);
        (0..4).for_each(|doc| sums.add(doc, 0.0).expect("there is room"));
        assert_eq!(
            sums.into_scorer()
                .expect("there is room")
                .count_including_deleted(),
            4
        );
    }
}
