//! Documents of another query that pass a check. The check, which is expensive, sees only what the rest of the search
//! leaves over: the scorer tells the intersection that it is in that it can be asked about single documents.

use std::fmt;
use std::sync::Arc;

use tantivy::query::{EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED};

use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::unexplained;

/// Checks between two looks at the deadline.
const CHECKS_PER_LOOK: u32 = 1_024;

/// Whether a document of one segment passes.
pub(super) type Check = Box<dyn FnMut(DocId) -> bool + Send>;

/// Makes the check of a segment.
pub(super) trait Verify: fmt::Debug + Send + Sync + 'static {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Check>;
}

/// Documents that match `approximation` and pass `verify`.
#[derive(Clone, Debug)]
pub(super) struct VerifyQuery {
    approximation: Arc<dyn Query>,
    verify: Arc<dyn Verify>,
    run: Arc<Run>,
}

impl VerifyQuery {
    pub(super) fn new(approximation: Arc<dyn Query>, verify: Arc<dyn Verify>, run: &Arc<Run>) -> Self {
        Self {
            approximation,
            verify,
            run: Arc::clone(run),
        }
    }
}

impl Query for VerifyQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let approximation = self.approximation.weight(scoring)?;
        Ok(Box::new(VerifyWeight {
            approximation,
            verify: Arc::clone(&self.verify),
            run: Arc::clone(&self.run),
        }))
    }
}

struct VerifyWeight {
    approximation: Box<dyn Weight>,
    verify: Arc<dyn Verify>,
    run: Arc<Run>,
}

impl VerifyWeight {
    fn over(&self, inner: Box<dyn Scorer>, reader: &SegmentReader) -> tantivy::Result<VerifyScorer> {
        Ok(VerifyScorer {
            inner,
            check: self.verify.open(reader)?,
            pace: Pace::new(Arc::clone(&self.run), CHECKS_PER_LOOK),
        })
    }
}

impl Weight for VerifyWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.approximation.scorer(reader, boost)?;
        let mut scorer = self.over(inner, reader)?;
        scorer.settle();
        Ok(Box::new(scorer))
    }

    /// Doesn't look for a first match: the other clauses of an intersection may be far ahead.
    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        let (found, inner) = self.approximation.scorer_danger(reader, target, boost)?;
        let mut scorer = self.over(inner, reader)?;
        let found = scorer.verified(found, target);
        Ok((found, Box::new(scorer)))
    }

    unexplained!();
}

struct VerifyScorer {
    inner: Box<dyn Scorer>,
    check: Check,
    pace: Pace<Arc<Run>>,
}

impl VerifyScorer {
    /// Goes on to a document that passes, if this one doesn't. A search that has to stop finds no more: it will be told.
    fn settle(&mut self) -> DocId {
        while self.inner.doc() != TERMINATED && !(self.check)(self.inner.doc()) {
            if self.pace.stops(1) {
                self.inner = Box::new(EmptyScorer);
                break;
            }
            self.inner.advance();
        }
        self.inner.doc()
    }

    fn verified(&mut self, found: SeekDangerResult, target: DocId) -> SeekDangerResult {
        if found == SeekDangerResult::Found && !(self.check)(target) {
            let bound = if self.pace.stops(1) {
                TERMINATED
            } else {
                target + 1
            };
            return SeekDangerResult::SeekLowerBound(bound);
        }
        found
    }
}

impl DocSet for VerifyScorer {
    fn advance(&mut self) -> DocId {
        self.inner.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.inner.doc() >= target {
            return self.inner.doc();
        }
        self.inner.seek(target);
        self.settle()
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        let found = self.inner.seek_danger(target);
        self.verified(found, target)
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    /// Checking is dearer than walking, so that cheaper clauses lead.
    fn cost(&self) -> u64 {
        self.inner.cost().saturating_mul(4)
    }
}

impl Scorer for VerifyScorer {
    fn score(&mut self) -> Score {
        self.inner.score()
    }
}
