//! What the walk over all matches gives documents to.

use tantivy::{DocId, Score, Searcher, SegmentReader};

use super::AggregationResult;
use super::branch::{Armed, Around, Branch, Context};
use super::budget::Budget;
use super::conclude::Conclusion;
use super::gathered::Gathered;
use super::node::Prepared;
use crate::error::Error;
use crate::join::ParentCache;
use crate::layout::Layout;
use crate::limits::KEPT_SEGMENT_GROUPS;
use crate::run::Run;

/// The aggregations of one search.
pub(crate) struct Walk<'a> {
    prepared: &'a Prepared,
    armed: Vec<Armed<'a>>,
    layout: &'a Layout,
    parents: &'a ParentCache,
    run: &'a Run,
    /// The score of all documents where scores don't differ.
    constant: Score,
    gathered: Vec<Gathered>,
    budget: Budget,
    /// Segments that were not begun.
    segments: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        prepared: &'a Prepared,
        layout: &'a Layout,
        parents: &'a ParentCache,
        searcher: &Searcher,
        run: &'a Run,
        constant: Score,
    ) -> tantivy::Result<Self> {
        Ok(Self {
            armed: Armed::all(&prepared.nodes, layout, parents, run, searcher)?,
            gathered: Gathered::all(&prepared.nodes),
            prepared,
            layout,
            parents,
            run,
            constant,
            budget: Budget::default(),
            segments: searcher.segment_readers().len(),
        })
    }

    /// Begins a segment; `None` without aggregations.
    pub(crate) fn segment(&mut self, reader: &SegmentReader) -> tantivy::Result<Option<SegmentWalk<'_>>> {
        if self.prepared.is_empty() {
            return Ok(None);
        }
        self.budget.segment();
        self.segments = self.segments.saturating_sub(1);
        let others = self.segments * KEPT_SEGMENT_GROUPS;
        let around = Around {
            reader,
            layout: self.layout,
            parents: self.parents,
            run: self.run,
            scope: None,
            alone: true,
        };
        Ok(Some(SegmentWalk {
            branches: Branch::all(&self.armed, around)?,
            gathered: &mut self.gathered,
            budget: &mut self.budget,
            run: self.run,
            constant: self.constant,
            others,
            visited: 0,
            zeros: Vec::new(),
        }))
    }

    /// The answers.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`], [`Error::DeadlineExceeded`], [`Error::Cancelled`].
    pub(crate) fn conclude(mut self) -> Result<Vec<(String, AggregationResult)>, Error> {
        let mut conclusion = Conclusion {
            budget: &mut self.budget,
            run: self.run,
        };
        conclusion.all(&self.prepared.nodes, &self.gathered)
    }
}

/// The aggregations of one search on one segment.
pub(crate) struct SegmentWalk<'a> {
    branches: Vec<Branch<'a>>,
    gathered: &'a mut [Gathered],
    budget: &'a mut Budget,
    run: &'a Run,
    constant: Score,
    /// Groups that the segments to come may need.
    others: usize,
    visited: u32,
    /// All documents are of group 0.
    zeros: Vec<u32>,
}

impl SegmentWalk<'_> {
    /// Takes documents; they come in ascending order. `scores` is empty where scores don't differ.
    pub(crate) fn take(&mut self, docs: &[DocId], scores: &[Score]) -> tantivy::Result<()> {
        if docs.is_empty() {
            return Ok(());
        }
        self.zeros.resize(docs.len(), 0);
        let mut context = Context {
            run: self.run,
            budget: self.budget,
            docs,
            scores,
            constant: self.constant,
            room: 0,
            visited: &mut self.visited,
        };
        for branch in &mut self.branches {
            branch.take(docs, &self.zeros, 1, &mut context)?;
        }
        Ok(())
    }

    /// Ends the segment.
    pub(crate) fn end(mut self) -> tantivy::Result<()> {
        let room = self.budget.room(self.others);
        let mut context = Context {
            run: self.run,
            budget: self.budget,
            docs: &[],
            scores: &[],
            constant: self.constant,
            room,
            visited: &mut self.visited,
        };
        for (gathered, branch) in self.gathered.iter_mut().zip(self.branches) {
            gathered.add(branch, &[0], 1, &mut context)?;
        }
        Ok(())
    }
}
