//! The search library's weights, in the memory of a search, and its scorers that may look at many candidates before they find a match, walked one candidate at a time:
//! so the search can stop in between.

use std::sync::Arc;

use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED};

use crate::allowance::Grant;
use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::unexplained;

/// Candidates between two looks at the deadline: each may have thousands of positions.
const CANDIDATES_PER_CHECK: u32 = 64;

/// A weight whose scorers look at the deadline between candidates.
pub(super) struct PacedWeight {
    inner: Box<dyn Weight>,
    run: Arc<Run>,
    _held: Grant,
}

impl PacedWeight {
    /// `inner` checks single documents by `seek_danger`; its scorers hold as much as `held` grants.
    pub(super) fn new(inner: Box<dyn Weight>, run: &Arc<Run>, held: Grant) -> Self {
        Self {
            inner,
            run: Arc::clone(run),
            _held: held,
        }
    }
}

/// A weight whose scorers hold as much as a grant.
pub(super) struct HeldWeight {
    inner: Box<dyn Weight>,
    _held: Grant,
}

impl HeldWeight {
    pub(super) fn new(inner: Box<dyn Weight>, held: Grant) -> Self {
        Self { inner, _held: held }
    }
}

impl Weight for HeldWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.inner.scorer(reader, boost)
    }

    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        self.inner.scorer_danger(reader, target, boost)
    }

    unexplained!();

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.inner.count(reader)
    }
}

impl Weight for PacedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let (found, inner) = self.inner.scorer_danger(reader, 0, boost)?;
        let mut scorer = PacedScorer {
            inner,
            doc: 0,
            pace: Pace::new(Arc::clone(&self.run), CANDIDATES_PER_CHECK),
        };
        if let SeekDangerResult::SeekLowerBound(bound) = found {
            scorer.find(bound);
        }
        Ok(Box::new(scorer))
    }

    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        let (found, inner) = self.inner.scorer_danger(reader, target, boost)?;
        let scorer = PacedScorer {
            inner,
            doc: target,
            pace: Pace::new(Arc::clone(&self.run), CANDIDATES_PER_CHECK),
        };
        Ok((found, Box::new(scorer)))
    }

    unexplained!();
}

struct PacedScorer {
    inner: Box<dyn Scorer>,
    doc: DocId,
    pace: Pace<Arc<Run>>,
}

impl PacedScorer {
    /// Goes to the first match from `target` on. A search that has to stop finds no more: it will be told.
    fn find(&mut self, mut target: DocId) -> DocId {
        self.doc = loop {
            if target >= TERMINATED || self.pace.stops(1) {
                break TERMINATED;
            }
            match self.inner.seek_danger(target) {
                SeekDangerResult::Found => break target,
                SeekDangerResult::SeekLowerBound(bound) => target = bound,
            }
        };
        self.doc
    }
}

impl DocSet for PacedScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.find(self.doc + 1)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        self.find(target)
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= TERMINATED || self.pace.stops(1) {
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        let found = self.inner.seek_danger(target);
        if found == SeekDangerResult::Found {
            self.doc = target;
        }
        found
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    fn cost(&self) -> u64 {
        self.inner.cost()
    }
}

impl Scorer for PacedScorer {
    fn score(&mut self) -> Score {
        self.inner.score()
    }
}
