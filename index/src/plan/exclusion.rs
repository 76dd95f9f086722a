//! Documents that a `must_not` excludes.
//!
//! The search library asks an excluded clause about each document in turn, also about documents before the clause's next
//! match, which its own phrase scorer isn't made for (it asserts the opposite). This stands between them, and answers
//! what it knows already by itself.

use std::fmt;

use tantivy::query::{AllScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, Term};

/// The documents of another query, without scores, to be excluded.
pub(super) struct ExclusionQuery(Box<dyn Query>);

impl ExclusionQuery {
    pub(super) fn new(query: Box<dyn Query>) -> Self {
        Self(query)
    }
}

impl Clone for ExclusionQuery {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl fmt::Debug for ExclusionQuery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Exclusion({:?})", self.0)
    }
}

impl Query for ExclusionQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let unscored = EnableScoring::Disabled {
            schema: scoring.schema(),
            searcher_opt: scoring.searcher(),
        };
        Ok(Box::new(ExclusionWeight(self.0.weight(unscored)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct ExclusionWeight(Box<dyn Weight>);

impl Weight for ExclusionWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.0.scorer(reader, boost)?;
        // These two are recognised, which saves looking at any document.
        if inner.is::<AllScorer>() || inner.is::<EmptyScorer>() {
            return Ok(inner);
        }
        let next = inner.doc();
        Ok(Box::new(ExclusionScorer { inner, next }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, doc)
    }
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
