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
        let mut scorer = UnionScorer {
            behind: Behind::new(&clauses, reader.max_doc()),
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

/// One of so many clauses has to match a document on average for all of them to be looked at for each document.
const DENSE_SHARE: u64 = 16;

/// Where the clauses stand that don't stand on the document.
enum Behind {
    /// Their documents, those first that come first.
    Heap(BinaryHeap<Reverse<(DocId, usize)>>),
    /// The documents of all clauses, in the order of the clauses: where many match each document, looking at all of
    /// them costs less than putting each into its place again.
    Row(Vec<DocId>),
}

impl Behind {
    fn new(clauses: &[Box<dyn Scorer>], max_doc: DocId) -> Self {
        let matches = clauses
            .iter()
            .map(|scorer| u64::from(scorer.size_hint()))
            .sum::<u64>();
        let looks = u64::from(max_doc).saturating_mul(clauses.len() as u64);
        let docs = clauses.iter().map(|scorer| scorer.doc());
        if matches.saturating_mul(DENSE_SHARE) >= looks {
            Self::Row(docs.collect())
        } else {
            Self::Heap(docs.enumerate().map(|(nth, doc)| Reverse((doc, nth))).collect())
        }
    }

    /// A clause stands on this document now.
    fn put(&mut self, nth: usize, doc: DocId) {
        match self {
            Self::Heap(heap) if doc != TERMINATED => heap.push(Reverse((doc, nth))),
            Self::Heap(_) => {}
            Self::Row(docs) => {
                if let Some(place) = docs.get_mut(nth) {
                    *place = doc;
                }
            }
        }
    }

    /// The first document that a clause stands on, and the places of the clauses there, in order.
    fn next(&mut self, here: &mut Vec<usize>) -> DocId {
        match self {
            Self::Heap(heap) => {
                let Some(Reverse((doc, _))) = heap.peek().copied() else {
                    return TERMINATED;
                };
                while let Some(Reverse((at, nth))) = heap.peek().copied() {
                    if at != doc {
                        break;
                    }
                    heap.pop();
                    // Equal documents come in the order of the clauses.
                    here.push(nth);
                }
                doc
            }
            Self::Row(docs) => {
                let doc = docs.iter().copied().min().unwrap_or(TERMINATED);
                if doc != TERMINATED {
                    let there = docs.iter().enumerate().filter(|(_, at)| **at == doc);
                    here.extend(there.map(|(nth, _)| nth));
                }
                doc
            }
        }
    }

    /// Clauses that stand before `target` go there or behind it.
    fn seek(&mut self, target: DocId, clauses: &mut [Box<dyn Scorer>]) {
        match self {
            Self::Heap(heap) => {
                while let Some(Reverse((doc, nth))) = heap.peek().copied() {
                    if doc >= target {
                        break;
                    }
                    heap.pop();
                    if let Some(scorer) = clauses.get_mut(nth) {
                        let doc = scorer.seek(target);
                        if doc != TERMINATED {
                            heap.push(Reverse((doc, nth)));
                        }
                    }
                }
            }
            Self::Row(docs) => {
                for (doc, scorer) in docs.iter_mut().zip(clauses) {
                    if *doc < target {
                        *doc = scorer.seek(target);
                    }
                }
            }
        }
    }
}

struct UnionScorer {
    /// In their order.
    clauses: Vec<Box<dyn Scorer>>,
    /// Places of the clauses that stand on the document, in order.
    here: Vec<usize>,
    behind: Behind,
    needed: usize,
    together: Together,
    doc: DocId,
}

impl UnionScorer {
    /// Goes to the next document that enough clauses have. None stands on one.
    fn settle(&mut self) -> DocId {
        loop {
            self.doc = self.behind.next(&mut self.here);
            if self.doc == TERMINATED || self.here.len() >= self.needed {
                return self.doc;
            }
            self.leave(self.doc + 1);
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
                self.behind.put(nth, doc);
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
        self.behind.seek(target, &mut self.clauses);
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
