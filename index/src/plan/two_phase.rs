//! Documents of another query that pass a check. The check, which is expensive, sees only what the rest of the search
//! leaves over: the scorer tells the intersection that it is in that it can be asked about single documents.

use std::fmt;
use std::sync::Arc;

use tantivy::query::{EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED};

use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::unexplained;

const CHECKS_PER_LOOK: u32 = 1_024;

/// Whether a document of one segment passes.
pub(super) type Check = Box<dyn FnMut(DocId) -> bool + Send>;

/// Makes the check of a segment.
pub(super) trait SecondPhase: fmt::Debug + Send + Sync + 'static {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Check>;
}

/// Documents that match `approximation` and pass `second_phase`.
#[derive(Clone, Debug)]
pub(super) struct TwoPhaseQuery {
    approximation: Arc<dyn Query>,
    second_phase: Arc<dyn SecondPhase>,
    run: Arc<Run>,
}

impl TwoPhaseQuery {
    pub(super) fn new(
        approximation: Arc<dyn Query>,
        second_phase: Arc<dyn SecondPhase>,
        run: &Arc<Run>,
    ) -> Self {
        Self {
            approximation,
            second_phase,
            run: Arc::clone(run),
        }
    }
}

impl Query for TwoPhaseQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let approximation = self.approximation.weight(scoring)?;
        Ok(Box::new(TwoPhaseWeight {
            approximation,
            second_phase: Arc::clone(&self.second_phase),
            run: Arc::clone(&self.run),
        }))
    }
}

struct TwoPhaseWeight {
    approximation: Box<dyn Weight>,
    second_phase: Arc<dyn SecondPhase>,
    run: Arc<Run>,
}

impl TwoPhaseWeight {
    fn over(&self, inner: Box<dyn Scorer>, reader: &SegmentReader) -> tantivy::Result<Tested<Check>> {
        Ok(Tested {
            inner,
            test: self.second_phase.open(reader)?,
            pace: Pace::new(Arc::clone(&self.run), CHECKS_PER_LOOK),
        })
    }
}

impl Weight for TwoPhaseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.approximation.scorer(reader, boost)?;
        Ok(self.over(inner, reader)?.settled())
    }

    /// Doesn't look for a first match: the other clauses of an intersection may be far ahead.
    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        let (found, inner) = self.approximation.scorer_danger(reader, target, boost)?;
        Ok(self.over(inner, reader)?.standing(found, target))
    }

    unexplained!();
}

/// What the matches of a scorer have to pass.
pub(super) trait Test: Send + 'static {
    /// Whether the document passes, on which the scorer stands.
    fn passes(&mut self, doc: DocId, scorer: &mut dyn Scorer) -> bool;

    fn score(&mut self, scorer: &mut dyn Scorer) -> Score {
        scorer.score()
    }

    /// Steps of work that a document takes.
    fn steps(&self) -> u32;

    /// How many times dearer a document is than walking to it, so that cheaper clauses lead.
    fn dearness(&self) -> u64;
}

impl Test for Check {
    fn passes(&mut self, doc: DocId, _: &mut dyn Scorer) -> bool {
        self(doc)
    }

    fn steps(&self) -> u32 {
        1
    }

    fn dearness(&self) -> u64 {
        4
    }
}

/// The matches of a scorer that pass a test.
pub(super) struct Tested<T> {
    pub(super) inner: Box<dyn Scorer>,
    pub(super) test: T,
    pub(super) pace: Pace<Arc<Run>>,
}

impl<T: Test> Tested<T> {
    /// Standing on the first match.
    pub(super) fn settled(mut self) -> Box<dyn Scorer> {
        self.settle();
        Box::new(self)
    }

    /// Asked about one document.
    pub(super) fn standing(
        mut self,
        found: SeekDangerResult,
        target: DocId,
    ) -> (SeekDangerResult, Box<dyn Scorer>) {
        (self.verified(found, target), Box::new(self))
    }

    /// Goes on to a document that passes, if this one doesn't. A search that has to stop finds no more: it will be told.
    fn settle(&mut self) -> DocId {
        while self.inner.doc() != TERMINATED && !self.test.passes(self.inner.doc(), &mut *self.inner) {
            if self.pace.stops(self.test.steps()) {
                self.inner = Box::new(EmptyScorer);
                break;
            }
            self.inner.advance();
        }
        self.inner.doc()
    }

    fn verified(&mut self, found: SeekDangerResult, target: DocId) -> SeekDangerResult {
        if found == SeekDangerResult::Found && !self.test.passes(target, &mut *self.inner) {
            let stops = self.pace.stops(self.test.steps());
            return SeekDangerResult::SeekLowerBound(if stops { TERMINATED } else { target + 1 });
        }
        found
    }
}

impl<T: Test> DocSet for Tested<T> {
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

    fn cost(&self) -> u64 {
        self.inner.cost().saturating_mul(self.test.dearness())
    }
}

impl<T: Test> Scorer for Tested<T> {
    fn score(&mut self) -> Score {
        self.test.score(&mut *self.inner)
    }
}
