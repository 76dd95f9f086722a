//! The second pass over documents: once it is known over all segments which groups are shown, only theirs take what is inside.
//!
//! What a search holds, and is refused for, so depends on the groups it shows, however its documents lie in segments. The
//! documents of a segment are kept as a set of bits, from the first pass to the second.

use std::sync::Arc;

use tantivy::{DocId, Score, SegmentReader};

use super::branch::{AggregationContext, Around, Scored};
use super::budget::Budget;
use super::node::Node;
use crate::bits::Bits;
use crate::layout::Layout;
use crate::run::Run;

/// What is kept of a segment.
pub(super) struct KeptSegment {
    pub(super) reader: SegmentReader,
    pub(super) documents: Bits,
    /// Where something inside compares scores.
    pub(super) scored: Arc<Scored>,
}

impl KeptSegment {
    pub(super) fn new(
        reader: SegmentReader,
        documents: Bits,
        node: &Node,
        context: &AggregationContext<'_>,
    ) -> Self {
        let scored = context.scored.filter(|_| node.wants_scores());
        Self {
            reader,
            documents,
            scored: scored.map(Arc::clone).unwrap_or_default(),
        }
    }
}

/// What a pass over documents takes, be it the first or the second.
pub(super) struct AggregationPass<'a> {
    pub(super) run: &'a Run,
    pub(super) budget: Budget,
    pub(super) layout: &'a Layout,
    /// The score of all documents where scores don't differ.
    pub(super) constant: Score,
    /// Whether there is only one segment.
    pub(super) alone: bool,
    pub(super) visited: u32,
}

impl<'a> AggregationPass<'a> {
    /// For documents in ascending order, whose scores are nothing where they don't differ.
    pub(super) fn context<'c>(
        &'c mut self,
        docs: &'c [DocId],
        scores: &'c [Score],
    ) -> AggregationContext<'c> {
        AggregationContext {
            run: self.run,
            budget: &mut self.budget,
            docs,
            scores,
            scored: None,
            constant: self.constant,
            alone: self.alone,
            visited: &mut self.visited,
        }
    }

    /// For the documents of a segment, when all of them are known.
    pub(super) fn again<'c>(&'c mut self, scored: &'c Arc<Scored>) -> AggregationContext<'c> {
        let context = self.context(&scored.docs, &scored.scores);
        let scored = Some(scored);
        AggregationContext { scored, ..context }
    }

    /// Where what is inside an aggregation stands.
    pub(super) fn around<'s>(&self, node: &'s Node, segment: &'s KeptSegment) -> Around<'s>
    where
        'a: 's,
    {
        Around {
            scope: node.scope.as_deref(),
            alone: false,
            ..self.outside(&segment.reader)
        }
    }

    /// Where aggregations at the first level stand.
    pub(super) fn outside<'s>(&self, reader: &'s SegmentReader) -> Around<'s>
    where
        'a: 's,
    {
        Around {
            reader,
            layout: self.layout,
            run: self.run,
            scope: None,
            alone: true,
        }
    }

    /// Gives back the memory of a segment's scores, if nothing else has them.
    pub(super) fn let_go(&mut self, scored: Arc<Scored>) {
        let bytes = scored.bytes();
        if Arc::into_inner(scored).is_some() {
            self.budget.release(bytes);
        }
    }
}
