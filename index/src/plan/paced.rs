//! The search library's weights, in the memory of a search.

use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, Score, SeekDangerResult, SegmentReader};

use crate::allowance::Grant;
use crate::unexplained::unexplained;

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
