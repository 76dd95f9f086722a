//! Clauses of which some have to match, whose scores make one.
//!
//! Like [`super::conjunction`], for documents that don't match all clauses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use super::no_match;

/// What the scores of the matching clauses make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Together {
    /// Their sum.
    Sum,
    /// The best, and this part of the sum of the others: Lucene's `DisjunctionMaxQuery`.
    Best(f64),
}

/// The documents that `needed` of the clauses match.
#[derive(Clone)]
pub(super) struct UnionQuery {
    clauses: Vec<Arc<dyn Query>>,
    needed: usize,
    together: Together,
    /// The same without scores.
    unscored: Arc<dyn Query>,
}

impl UnionQuery {
    /// `needed` is at least 1. `unscored` matches the same.
    pub(super) fn new(
        clauses: Vec<Box<dyn Query>>,
        needed: usize,
        together: Together,
        unscored: Box<dyn Query>,
    ) -> Self {
        Self {
            clauses: clauses.into_iter().map(Arc::from).collect(),
            needed,
            together,
            unscored: Arc::from(unscored),
        }
    }
}

impl fmt::Debug for UnionQuery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Union({} of {:?}, {:?})",
            self.needed, self.clauses, self.together
        )
    }
}

impl Query for UnionQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        if !scoring.is_scoring_enabled() {
            return self.unscored.weight(scoring);
        }
        let clauses = self.clauses.iter().map(|clause| clause.weight(scoring));
        Ok(Box::new(UnionWeight {
            clauses: clauses.collect::<tantivy::Result<_>>()?,
            needed: self.needed,
            together: self.together,
        }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.clauses.iter().for_each(|clause| clause.query_terms(visitor));
    }
}

struct UnionWeight {
    clauses: Vec<Box<dyn Weight>>,
    needed: usize,
    together: Together,
}

impl Weight for UnionWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut clauses = Vec::with_capacity(self.clauses.len());
        for weight in &self.clauses {
            let scorer = weight.scorer(reader, boost)?;
            if scorer.doc() != TERMINATED {
                clauses.push(scorer);
            }
        }
        if clauses.len() < self.needed {
            return Ok(Box::new(EmptyScorer));
        }
        let behind = clauses
            .iter()
            .enumerate()
            .map(|(nth, scorer)| Reverse((scorer.doc(), nth)));
        let mut scorer = UnionScorer {
            behind: behind.collect(),
            clauses,
            here: Vec::new(),
            needed: self.needed,
            together: self.together,
            doc: 0,
        };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(no_match(doc));
        }
        Ok(Explanation::new("some clauses", scorer.score()))
    }
}

struct UnionScorer {
    /// In their order.
    clauses: Vec<Box<dyn Scorer>>,
    /// Places of the clauses that stand on the document, in order.
    here: Vec<usize>,
    /// The others with their documents.
    behind: BinaryHeap<Reverse<(DocId, usize)>>,
    needed: usize,
    together: Together,
    doc: DocId,
}

impl UnionScorer {
    /// Goes to the next document that enough clauses have. None stands on one.
    fn settle(&mut self) -> DocId {
        loop {
            let Some(Reverse((doc, _))) = self.behind.peek().copied() else {
                self.doc = TERMINATED;
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
            self.doc = doc;
            if self.here.len() >= self.needed {
                return doc;
            }
            self.leave(doc + 1);
        }
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
}

impl DocSet for UnionScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.leave(self.doc + 1);
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        self.leave(target);
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
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.doc
    }

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
        match self.together {
            Together::Sum => sum as Score,
            Together::Best(part) => (best + (sum - best) * part) as Score,
        }
    }
}
