//! Documents that a `must_not` excludes.
//!
//! The search library asks an excluded clause about each document in turn, also about documents before the clause's next
//! match, which its own phrase scorer isn't made for (it asserts the opposite). This stands between them, and answers
//! what it knows already by itself.

use std::sync::Arc;

use super::filtered::unscored;
use crate::unexplained::unexplained;
use tantivy::query::{AllScorer, EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader};

/// The documents of another query, without scores, to be excluded.
#[derive(Clone, Debug)]
pub(super) struct Exclusion<T = Arc<dyn Query>>(pub(super) T);

impl Query for Exclusion {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(Exclusion(self.0.weight(unscored(&scoring))?)))
    }
}

impl Weight for Exclusion<Box<dyn Weight>> {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.0.scorer(reader, boost)?;
        // These two are recognised, which saves looking at any document.
        if inner.is::<AllScorer>() || inner.is::<EmptyScorer>() {
            return Ok(inner);
        }
        let next = inner.doc();
        Ok(Box::new(ExclusionScorer { inner, next }))
    }

    unexplained!();
}

struct ExclusionScorer {
    inner: Box<dyn Scorer>,
    /// No match that wasn't reported lies before this.
    next: DocId,
}

impl DocSet for ExclusionScorer {
    fn advance(&mut self) -> DocId {
        self.next = self.inner.advance();
        self.next
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.next = self.inner.seek(target);
        self.next
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target < self.next {
            return SeekDangerResult::SeekLowerBound(self.next);
        }
        let found = self.inner.seek_danger(target);
        self.next = match found {
            SeekDangerResult::Found => target,
            SeekDangerResult::SeekLowerBound(bound) => bound,
        };
        found
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    fn cost(&self) -> u64 {
        self.inner.cost()
    }
}

impl Scorer for ExclusionScorer {
    fn score(&mut self) -> Score {
        0.0
    }
}
