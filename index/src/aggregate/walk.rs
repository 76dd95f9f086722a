//! What the walk over all matches gives documents to.

use std::sync::Arc;

use tantivy::{DocId, Score, Searcher, SegmentReader};

use super::branch::{Armed, Branch, Scored};
use super::budget::Budget;
use super::conclude::Conclusion;
use super::gathered::Gathered;
use super::node::Prepared;
use super::second_pass::AggregationPass;
use crate::error::Error;
use crate::layout::Layout;
use crate::result::AggregationResult;
use crate::run::Run;

pub(crate) struct AggregationWalk<'a> {
    prepared: &'a Prepared,
    armed: Vec<Armed<'a>>,
    gathered: Vec<Gathered>,
    pass: AggregationPass<'a>,
}

impl<'a> AggregationWalk<'a> {
    pub(crate) fn new(
        prepared: &'a Prepared,
        layout: &'a Layout,
        searcher: &Searcher,
        run: &'a Run,
        constant: Score,
    ) -> tantivy::Result<Self> {
        let armed = Armed::all(&prepared.nodes, layout, run, searcher)?;
        let armed = armed.into_iter().map(|own| own.at_first_level(run, searcher));
        Ok(Self {
            armed: armed.collect::<tantivy::Result<_>>()?,
            gathered: Gathered::all(&prepared.nodes, true),
            prepared,
            pass: AggregationPass {
                run,
                budget: Budget::new(run.allowance()),
                layout,
                constant,
                alone: searcher.segment_readers().len() == 1,
                visited: 0,
            },
        })
    }

    /// Begins a segment; `None` without aggregations.
    pub(crate) fn segment(&mut self, reader: &SegmentReader) -> tantivy::Result<Option<SegmentWalk<'_, 'a>>> {
        if self.prepared.is_empty() {
            return Ok(None);
        }
        self.pass.budget.segment();
        let around = self.pass.outside(reader);
        Ok(Some(SegmentWalk {
            branches: Branch::all(&self.armed, around, &mut self.pass.budget)?,
            gathered: &mut self.gathered,
            pass: &mut self.pass,
            scored: Scored::default(),
            zeros: Vec::new(),
        }))
    }

    /// The answers.
    pub(crate) fn conclude(mut self) -> Result<Vec<(String, AggregationResult)>, Error> {
        let run = self.pass.run;
        self.results().map_err(|error| run.reason("aggregating", error))
    }

    fn results(&mut self) -> tantivy::Result<Vec<(String, AggregationResult)>> {
        let second = &mut self.pass;
        for (armed, gathered) in self.armed.iter().zip(&mut self.gathered) {
            match gathered {
                Gathered::Groups(groups) => {
                    if let Some(candidates) = groups.candidates.take() {
                        candidates.settle(armed, groups, second)?;
                    }
                }
                Gathered::Composite(pages) => pages.settle(armed, second)?,
                _ => {}
            }
        }
        let (run, budget) = (second.run, &mut second.budget);
        budget.segment();
        for (node, gathered) in self.prepared.nodes.iter().zip(&mut self.gathered) {
            gathered.sort(&budget.of(node, run))?;
        }
        let results = 0;
        Conclusion { budget, run, results }.all(&self.prepared.nodes, &self.gathered)
    }
}

pub(crate) struct SegmentWalk<'s, 'a> {
    branches: Vec<Branch<'s>>,
    gathered: &'s mut [Gathered],
    pass: &'s mut AggregationPass<'a>,
    /// All documents, where some aggregation goes through them again to compare scores that differ.
    scored: Scored,
    /// All documents are of group 0.
    zeros: Vec<u32>,
}

impl SegmentWalk<'_, '_> {
    /// Takes documents; they come in ascending order. `scores` is empty where scores don't differ.
    pub(crate) fn take(&mut self, docs: &[DocId], scores: &[Score]) -> tantivy::Result<()> {
        if docs.is_empty() {
            return Ok(());
        }
        let mut again = self.branches.iter().filter(|branch| branch.goes_again());
        if let Some(again) = again.find(|branch| !scores.is_empty() && branch.node.wants_scores()) {
            let account = &mut self.pass.budget.of(again.node, self.pass.run);
            self.scored.extend(docs, scores, account)?;
        }
        self.zeros.resize(docs.len(), 0);
        let mut context = self.pass.context(docs, scores);
        for branch in &mut self.branches {
            branch.take(docs, &self.zeros, 1, &mut context)?;
        }
        Ok(())
    }

    pub(crate) fn end(self) -> tantivy::Result<()> {
        let scored = Arc::new(self.scored);
        let mut context = self.pass.again(&scored);
        for (gathered, branch) in self.gathered.iter_mut().zip(self.branches) {
            gathered.add(branch, &[0], 1, &mut context)?;
        }
        self.pass.let_go(scored);
        Ok(())
    }
}
