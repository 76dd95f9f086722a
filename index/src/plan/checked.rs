//! A clause that looks whether its search has to stop before it does anything for a segment.
//!
//! Collectors look while they walk over documents. A thousand clauses may take long before there is a first document.

use std::sync::Arc;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader, Term};

use crate::run::Run;

/// Clauses of a tree from which on each of them looks.
pub(super) const MANY_NODES: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct CheckedQuery {
    query: Arc<dyn Query>,
    run: Arc<Run>,
}

impl CheckedQuery {
    pub(super) fn new(query: Box<dyn Query>, run: &Arc<Run>) -> Self {
        Self {
            query: Arc::from(query),
            run: Arc::clone(run),
        }
    }
}

impl Query for CheckedQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        self.run.check_inside()?;
        Ok(Box::new(CheckedWeight {
            weight: self.query.weight(scoring)?,
            run: Arc::clone(&self.run),
        }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct CheckedWeight {
    weight: Box<dyn Weight>,
    run: Arc<Run>,
}

impl Weight for CheckedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.run.check_inside()?;
        self.weight.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.weight.explain(reader, doc)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.run.check_inside()?;
        self.weight.count(reader)
    }
}
