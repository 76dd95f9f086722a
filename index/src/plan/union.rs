//! Clauses of which some have to match, whose scores make one.
//!
//! Like [`super::conjunction`], for documents that don't match all clauses. Where clauses match many documents, they are
//! walked one after the other through a window of documents (`window`, as Lucene's `BooleanScorer` does); else the clause
//! that stands on the first document goes on.

mod shared;
mod window;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::query::{BooleanQuery, EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Result, Score, SegmentReader, TERMINATED};

use super::clause::Clause;
use super::selection::Selected;
use crate::doc_walk::settles;
use crate::pace::Pace;
use crate::run::Run;
use crate::score::single;
use crate::unexplained::unexplained;
use window::{ClauseScorer, Scoring, WindowScorer};

/// What the scores of the matching clauses make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Together {
    /// Their sum.
    Sum,
    /// The best, and this part of the sum of the others: Lucene's `DisjunctionMaxQuery`.
    Best(f64),
}

impl Together {
    fn of(self, sum: f64, best: f64) -> Score {
        match self {
            Self::Sum => single(sum),
            Self::Best(part) => single(best + (sum - best) * part),
        }
    }
}

/// The documents that `needed` of the clauses match.
#[derive(Clone, Debug)]
pub(super) struct UnionQuery {
    clauses: Vec<Clause<Arc<dyn Query>>>,
    needed: usize,
    together: Together,
    run: Arc<Run>,
}

impl UnionQuery {
    /// `needed` is at least 1.
    pub(super) fn new(clauses: Vec<Clause>, needed: usize, together: Together, run: &Arc<Run>) -> Self {
        let clauses = clauses.into_iter().map(|clause| Clause {
            query: Arc::from(clause.query),
            score: clause.score,
            select: clause.select,
        });
        Self {
            clauses: clauses.collect(),
            needed,
            together,
            run: Arc::clone(run),
        }
    }
}

impl Query for UnionQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> Result<Box<dyn Weight>> {
        if self.needed == 1 && !scoring.is_scoring_enabled() {
            let clauses = self.clauses.iter().map(|clause| clause.query.box_clone());
            // The library's own, which knows bit sets.
            return BooleanQuery::union(clauses.collect()).weight(scoring);
        }
        let clauses = self.clauses.iter();
        let clauses = clauses.map(|clause| Ok(clause.with(clause.query.weight(scoring)?)));
        Ok(Box::new(UnionWeight {
            clauses: clauses.collect::<Result<_>>()?,
            needed: self.needed,
            together: scoring.is_scoring_enabled().then_some(self.together),
            run: Arc::clone(&self.run),
        }))
    }
}

impl Clause<Box<dyn Weight>> {
    /// What it matches of a segment, and about how many documents that are; `None` when it's none.
    fn open(
        &self,
        reader: &SegmentReader,
        boost: Score,
        scored: bool,
    ) -> Result<Option<(ClauseScorer, u64)>> {
        let score = if scored { self.score } else { Some(0.0) };
        if let (Some(score), Some(select)) = (score, &self.select) {
            let score = score * boost;
            return Ok(match select.open(reader)? {
                Selected::Nothing => None,
                Selected::Everything => Some((ClauseScorer::Everything(score), u64::from(reader.max_doc()))),
                Selected::Values(selection) => {
                    let matches = selection.estimate()?.0;
                    Some((ClauseScorer::column(selection, score), u64::from(matches)))
                }
                Selected::Documents(documents) => {
                    let matches = u64::from(documents.len());
                    let scorer = documents.into_scorer(score)?;
                    Some((ClauseScorer::constant(scorer, score), matches))
                }
            });
        }
        let scorer = self.query.scorer(reader, boost)?;
        if scorer.doc() == TERMINATED {
            return Ok(None);
        }
        let matches = u64::from(scorer.size_hint());
        Ok(Some(match score {
            Some(score) => (ClauseScorer::constant(scorer, score * boost), matches),
            None => (ClauseScorer::Scored(scorer), matches),
        }))
    }
}

struct UnionWeight {
    clauses: Vec<Clause<Box<dyn Weight>>>,
    needed: usize,
    /// `None` when nobody asks for scores.
    together: Option<Together>,
    run: Arc<Run>,
}

/// Windows are walked when the clauses' matches add up to at least one in so many of a segment's documents.
const DENSE_SHARE: u64 = 16;

impl Weight for UnionWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> Result<Box<dyn Scorer>> {
        let mut parts = Vec::with_capacity(self.clauses.len());
        let mut matches = 0_u64;
        for clause in &self.clauses {
            self.run.check_inside()?;
            if let Some((part, documents)) = clause.open(reader, boost, self.together.is_some())? {
                parts.push(part);
                matches = matches.saturating_add(documents);
            }
        }
        if parts.len() < self.needed {
            return Ok(Box::new(EmptyScorer));
        }
        let max_doc = reader.max_doc();
        if matches.saturating_mul(DENSE_SHARE) >= u64::from(max_doc) {
            let scoring = Scoring::of(&parts, self.together);
            let needed = u32::try_from(self.needed).unwrap_or(u32::MAX);
            let scorer = WindowScorer::new(parts, matches, needed, scoring, &self.run, max_doc);
            return Ok(Box::new(scorer));
        }
        let clauses = parts.into_iter().map(|part| part.into_scorer(max_doc));
        let clauses: Vec<_> = clauses.collect::<Result<_>>()?;
        let docs = clauses.iter().map(|scorer| scorer.doc()).enumerate();
        let mut scorer = UnionScorer {
            behind: docs
                .filter(|(_, doc)| *doc != TERMINATED)
                .map(|(nth, doc)| Reverse((doc, nth)))
                .collect(),
            clauses,
            here: Vec::new(),
            needed: self.needed,
            together: self.together.unwrap_or(Together::Sum),
            pace: Pace::new(Arc::clone(&self.run), STEPS_PER_CHECK),
            doc: 0,
        };
        scorer.settle(0);
        Ok(Box::new(scorer))
    }

    unexplained!();
}

const STEPS_PER_CHECK: u32 = 1_024;

struct UnionScorer {
    /// In their order.
    clauses: Vec<Box<dyn Scorer>>,
    /// Places of the clauses that stand on the document, in order.
    here: Vec<usize>,
    /// The documents of the other clauses, and their places: those first that come first.
    behind: BinaryHeap<Reverse<(DocId, usize)>>,
    needed: usize,
    together: Together,
    pace: Pace<Arc<Run>>,
    doc: DocId,
}

impl UnionScorer {
    /// Goes to the first document from `target` on that enough clauses have. A search that has to stop finds no more; its
    /// [`Run`] keeps the error.
    fn settle(&mut self, target: DocId) -> DocId {
        self.leave(target);
        self.follow(target);
        loop {
            self.doc = if self.pace.stops(1) {
                TERMINATED
            } else {
                self.gather()
            };
            if self.doc == TERMINATED || self.here.len() >= self.needed {
                return self.doc;
            }
            self.leave(self.doc + 1);
        }
    }

    /// Takes the clauses on the first document that one stands on; that document.
    fn gather(&mut self) -> DocId {
        let Some(Reverse((doc, _))) = self.behind.peek().copied() else {
            return TERMINATED;
        };
        while let Some(Reverse((at, nth))) = self.behind.peek().copied() {
            if at != doc {
                break;
            }
            self.behind.pop();
            // Equal documents come in the order of the clauses.
            self.here.push(nth);
        }
        doc
    }

    /// Those that stand on the document go on to `target` or behind it.
    fn leave(&mut self, target: DocId) {
        let next = target == self.doc + 1;
        for nth in self.here.drain(..) {
            if let Some(scorer) = self.clauses.get_mut(nth) {
                let doc = if next {
                    scorer.advance()
                } else {
                    scorer.seek(target)
                };
                if doc != TERMINATED {
                    self.behind.push(Reverse((doc, nth)));
                }
            }
        }
    }

    /// Those that stand before `target` go there or behind it.
    fn follow(&mut self, target: DocId) {
        while let Some(Reverse((doc, nth))) = self.behind.peek().copied() {
            if doc >= target {
                break;
            }
            self.behind.pop();
            if let Some(scorer) = self.clauses.get_mut(nth) {
                let doc = scorer.seek(target);
                if doc != TERMINATED {
                    self.behind.push(Reverse((doc, nth)));
                }
            }
        }
    }
}

impl DocSet for UnionScorer {
    settles!();

    fn size_hint(&self) -> u32 {
        let most = self.clauses.iter().map(|scorer| scorer.size_hint()).max();
        most.unwrap_or_default()
    }

    fn cost(&self) -> u64 {
        let costs = self.clauses.iter().map(|scorer| scorer.cost());
        costs.fold(0, u64::saturating_add)
    }
}

impl Scorer for UnionScorer {
    fn score(&mut self) -> Score {
        let (mut sum, mut best) = (0.0, 0.0);
        for nth in &self.here {
            if let Some(scorer) = self.clauses.get_mut(*nth) {
                let score = f64::from(scorer.score());
                sum += score;
                best = f64::max(best, score);
            }
        }
        self.together.of(sum, best)
    }
}
