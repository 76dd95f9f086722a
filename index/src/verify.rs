//! Two-phase matching: a cheap query proposes documents, a predicate on columns decides.
//!
//! tantivy's own predicate query looks for its first match when it is built, from document 0 on; this one only ever looks
//! at what the approximation, and whatever it is intersected with, propose.

use std::fmt;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED, TantivyError, Term};

/// Decides on documents of one segment.
pub(crate) type Predicate = Box<dyn FnMut(DocId) -> bool + Send>;

/// Makes the predicate for a segment.
pub(crate) type PredicateFactory = dyn Fn(&SegmentReader) -> tantivy::Result<Predicate> + Send + Sync;

/// The documents of `approximation` that the predicate accepts, with the approximation's scores.
#[derive(Clone)]
pub(crate) struct VerifyQuery {
    approximation: Arc<dyn Query>,
    predicate: Arc<PredicateFactory>,
}

impl VerifyQuery {
    pub(crate) fn new(
        approximation: Box<dyn Query>,
        predicate: impl Fn(&SegmentReader) -> tantivy::Result<Predicate> + Send + Sync + 'static,
    ) -> Self {
        Self { approximation: Arc::from(approximation), predicate: Arc::new(predicate) }
    }
}

impl fmt::Debug for VerifyQuery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Verify({:?})", self.approximation)
    }
}

impl Query for VerifyQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let approximation = self.approximation.weight(scoring)?;
        Ok(Box::new(VerifyWeight { approximation, predicate: Arc::clone(&self.predicate) }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.approximation.query_terms(visitor);
    }
}

struct VerifyWeight {
    approximation: Box<dyn Weight>,
    predicate: Arc<PredicateFactory>,
}

impl Weight for VerifyWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let approximation = self.approximation.scorer(reader, boost)?;
        let mut scorer = VerifyScorer { approximation, predicate: (self.predicate)(reader)? };
        let doc = scorer.approximation.doc();
        scorer.settle(doc);
        Ok(Box::new(scorer))
    }

    /// In an intersection: nothing is verified before the others have proposed `target`.
    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        let (found, approximation) = self.approximation.scorer_danger(reader, target, boost)?;
        let mut scorer = VerifyScorer { approximation, predicate: (self.predicate)(reader)? };
        let found = scorer.decide(target, found);
        Ok((found, Box::new(scorer)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(TantivyError::InvalidArgument(format!("document {doc} does not match")));
        }
        Ok(Explanation::new("verified", scorer.score()))
    }
}

struct VerifyScorer {
    approximation: Box<dyn Scorer>,
    predicate: Predicate,
}

impl VerifyScorer {
    /// From `doc` on to the first accepted document.
    fn settle(&mut self, mut doc: DocId) -> DocId {
        while doc != TERMINATED && !(self.predicate)(doc) {
            doc = self.approximation.advance();
        }
        doc
    }

    fn decide(&mut self, target: DocId, found: SeekDangerResult) -> SeekDangerResult {
        match found {
            SeekDangerResult::Found if !(self.predicate)(target) => SeekDangerResult::SeekLowerBound(target + 1),
            SeekDangerResult::Found | SeekDangerResult::SeekLowerBound(_) => found,
        }
    }
}

impl DocSet for VerifyScorer {
    fn advance(&mut self) -> DocId {
        let doc = self.approximation.advance();
        self.settle(doc)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let doc = self.approximation.seek(target);
        self.settle(doc)
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        let found = self.approximation.seek_danger(target);
        self.decide(target, found)
    }

    fn doc(&self) -> DocId {
        self.approximation.doc()
    }

    fn size_hint(&self) -> u32 {
        self.approximation.size_hint()
    }

    fn cost(&self) -> u64 {
        // Verifying is dearer than a posting: intersections should lead with something else.
        self.approximation.cost().saturating_mul(4)
    }
}

impl Scorer for VerifyScorer {
    fn score(&mut self) -> Score {
        self.approximation.score()
    }
}
