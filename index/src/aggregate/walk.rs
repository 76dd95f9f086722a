//! What the walk over all matches gives documents to.

use std::sync::Arc;

use tantivy::{DocId, Score, Searcher, SegmentReader};

use super::branch::{Armed, Around, Branch, Scored};
use super::budget::Budget;
use super::conclude::Conclusion;
use super::gathered::Gathered;
use super::node::Prepared;
use super::second_pass::Pass;
use crate::error::Error;
use crate::layout::Layout;
use crate::result::AggregationResult;
use crate::run::Run;

pub(crate) struct Walk<'a> {
    prepared: &'a Prepared,
    armed: Vec<Armed<'a>>,
    layout: &'a Layout,
    run: &'a Run,
    /// The score of all documents where scores don't differ.
    constant: Score,
    gathered: Vec<Gathered>,
    budget: Budget,
    /// Whether there is only one segment.
    alone: bool,
}

impl<'a> Walk<'a> {
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
            layout,
            run,
            constant,
            budget: Budget::new(run.allowance()),
            alone: searcher.segment_readers().len() == 1,
        })
    }

    /// Begins a segment; `None` without aggregations.
    pub(crate) fn segment(&mut self, reader: &SegmentReader) -> tantivy::Result<Option<SegmentWalk<'_>>> {
        if self.prepared.is_empty() {
            return Ok(None);
        }
        self.budget.segment();
        let around = Around {
            reader,
            layout: self.layout,
            run: self.run,
            scope: None,
            alone: true,
        };
        Ok(Some(SegmentWalk {
            branches: Branch::all(&self.armed, around, &mut self.budget)?,
            gathered: &mut self.gathered,
            pass: Pass {
                run: self.run,
                budget: &mut self.budget,
                layout: self.layout,
                constant: self.constant,
                alone: self.alone,
                visited: 0,
            },
            scored: Scored::default(),
            zeros: Vec::new(),
        }))
    }

    /// The answers.
    pub(crate) fn conclude(mut self) -> Result<Vec<(String, AggregationResult)>, Error> {
        let run = self.run;
        self.results().map_err(|error| run.reason("aggregating", error))
    }

    fn results(&mut self) -> tantivy::Result<Vec<(String, AggregationResult)>> {
        for (armed, gathered) in self.armed.iter().zip(&mut self.gathered) {
            let mut second = Pass {
                run: self.run,
                budget: &mut self.budget,
                layout: self.layout,
                constant: self.constant,
                alone: self.alone,
                visited: 0,
            };
            match gathered {
                Gathered::Groups(groups) => {
                    if let Some(candidates) = groups.candidates.take() {
                        candidates.settle(armed, groups, &mut second)?;
                    }
                }
                Gathered::Composite(pages) => pages.settle(armed, &mut second)?,
                _ => {}
            }
        }
        self.budget.segment();
        for (node, gathered) in self.prepared.nodes.iter().zip(&mut self.gathered) {
            gathered.sort(&self.budget.of(node, self.run))?;
        }
        let mut conclusion = Conclusion {
            budget: &mut self.budget,
            run: self.run,
            results: 0,
        };
        conclusion.all(&self.prepared.nodes, &self.gathered)
    }
}

pub(crate) struct SegmentWalk<'a> {
    branches: Vec<Branch<'a>>,
    gathered: &'a mut [Gathered],
    pass: Pass<'a>,
    /// All documents, where some aggregation goes through them again to compare scores that differ.
    scored: Scored,
    /// All documents are of group 0.
    zeros: Vec<u32>,
}

impl SegmentWalk<'_> {
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

    pub(crate) fn end(mut self) -> tantivy::Result<()> {
        let scored = Arc::new(self.scored);
        let mut context = self.pass.again(&scored);
        for (gathered, branch) in self.gathered.iter_mut().zip(self.branches) {
            gathered.add(branch, &[0], 1, &mut context)?;
        }
        let bytes = scored.bytes();
        if Arc::into_inner(scored).is_some() {
            self.pass.budget.release(bytes);
        }
        Ok(())
    }
}
