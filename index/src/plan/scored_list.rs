//! Documents of one segment that were gathered with their scores.
//!
//! A list while they are few, then a number for each document of the segment: either way the memory is in proportion to
//! documents, however many lists they come from.

use crate::error::AllowanceExceeded;
use tantivy::query::{EmptyScorer, Scorer};
use tantivy::{DocId, DocSet, Score};

use super::doc_set::ListDocSet;
use crate::allowance::{Allowance, Grant};
use crate::bits::{Bits, BitsDocSet};

/// The part of a segment's documents up to which a list takes no more memory than a number for each of them, with what
/// sorting it takes.
const SPARSE: u32 = 4;

/// Adds up the scores of documents, which come in any order.
pub(super) struct ScoreSums {
    max_doc: DocId,
    list: Vec<(DocId, Score)>,
    each: Option<EachScore>,
    allowance: Allowance,
    held: Grant,
}

/// A score for each document of a segment.
struct EachScore {
    docs: Bits,
    scores: Vec<Score>,
}

impl EachScore {
    fn add(&mut self, doc: DocId, score: Score) {
        if let Some(sum) = self.scores.get_mut(doc as usize) {
            *sum += score;
            self.docs.insert(doc);
        }
    }
}

impl ScoreSums {
    pub(super) fn new(max_doc: DocId, allowance: &Allowance) -> Self {
        Self {
            max_doc,
            list: Vec::new(),
            each: None,
            allowance: allowance.clone(),
            held: allowance.grant(),
        }
    }

    /// Adds to the score of a document.
    pub(super) fn add(&mut self, doc: DocId, score: Score) -> Result<(), AllowanceExceeded> {
        if let Some(each) = &mut self.each {
            each.add(doc, score);
            return Ok(());
        }
        self.held.push(&mut self.list, (doc, score))?;
        if self.list.len() > (self.max_doc / SPARSE) as usize {
            let docs = self.max_doc as usize;
            let bytes = docs * size_of::<Score>();
            let bits = Bits::within(self.max_doc, &self.allowance)?;
            self.held.grow(bytes)?;
            let mut each = EachScore {
                docs: bits,
                scores: vec![0.0; docs],
            };
            let list = std::mem::take(&mut self.list);
            list.into_iter().for_each(|(doc, score)| each.add(doc, score));
            self.held.shrink_to(bytes);
            self.each = Some(each);
        }
        Ok(())
    }

    /// The documents in order, each once, with what it scores.
    pub(super) fn into_scorer(mut self) -> Result<Box<dyn Scorer>, AllowanceExceeded> {
        if let Some(EachScore { docs, scores }) = self.each {
            return Ok(Box::new(EachScoreScorer {
                docs: BitsDocSet::new(docs),
                scores,
                _held: self.held,
            }));
        }
        // Sorting keeps what one document scores in the order in which it came: sums depend on it.
        self.held.grow(self.list.len() * size_of::<(DocId, Score)>())?;
        self.list.sort_by_key(|(doc, _)| *doc);
        self.list.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        self.held
            .shrink_to(self.list.capacity() * size_of::<(DocId, Score)>());
        if self.list.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(ListDocSet {
            list: self.list,
            at: 0,
            _held: self.held,
        }))
    }
}

impl Scorer for ListDocSet<Score> {
    fn score(&mut self) -> Score {
        self.list.get(self.at).map_or(0.0, |(_, score)| *score)
    }
}

/// Walks documents with a score for each document of the segment.
struct EachScoreScorer {
    docs: BitsDocSet,
    scores: Vec<Score>,
    _held: Grant,
}

impl DocSet for EachScoreScorer {
    fn advance(&mut self) -> DocId {
        self.docs.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.docs.seek(target)
    }

    fn doc(&self) -> DocId {
        self.docs.doc()
    }

    fn size_hint(&self) -> u32 {
        self.docs.size_hint()
    }
}

impl Scorer for EachScoreScorer {
    fn score(&mut self) -> Score {
        let score = self.scores.get(self.docs.doc() as usize);
        score.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use tantivy::TERMINATED;

    use super::*;

    fn scorer(max_doc: DocId, scores: &[(DocId, Score)]) -> Box<dyn Scorer> {
        let mut sums = ScoreSums::new(max_doc, &Allowance::default());
        for (doc, score) in scores {
            sums.add(*doc, *score).expect("there is room");
        }
        sums.into_scorer().expect("there is room")
    }

    #[test]
    fn documents_come_in_order_with_their_sums() {
        // As a list, and as a number for each document.
        for max_doc in [1_000, 12] {
            let mut scorer = scorer(max_doc, &[(7, 1.0), (3, 0.5), (7, 0.25), (9, 2.0)]);
            assert_eq!((scorer.doc(), scorer.score()), (3, 0.5));
            assert_eq!((scorer.advance(), scorer.score()), (7, 1.25));
            assert_eq!(scorer.seek(7), 7);
            assert_eq!(scorer.seek(8), 9);
            assert_eq!(scorer.score(), 2.0);
            assert_eq!((scorer.advance(), scorer.advance()), (TERMINATED, TERMINATED));
        }
        assert_eq!(scorer(1_000, &[]).doc(), TERMINATED);
    }

    #[test]
    fn many_lists_of_the_same_documents_take_no_more_than_one() {
        let allowance = Allowance::default();
        let mut sums = ScoreSums::new(1_000, &allowance);
        for nth in 0..100_000 {
            sums.add(nth % 1_000, 1.0).expect("there is room");
        }
        let mut scorer = sums.into_scorer().expect("there is room");
        assert_eq!((scorer.doc(), scorer.score()), (0, 100.0));
        assert!(allowance.peak() < 16_000, "{} bytes", allowance.peak());
        // A document that scores nothing matches all the same.
        let mut sums = ScoreSums::new(4, &allowance);
        (0..4).for_each(|doc| sums.add(doc, 0.0).expect("there is room"));
        assert_eq!(
            sums.into_scorer()
                .expect("there is room")
                .count_including_deleted(),
            4
        );
    }
}
