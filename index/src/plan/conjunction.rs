//! Clauses that all have to match, whose scores add up.
//!
//! The library adds scores in single precision in the order of its own choice, which depends on how many documents each
//! clause has in a segment. Here they are added in double precision in the order of the clauses, and rounded once.

use std::sync::Arc;

use tantivy::query::{EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED};

use crate::doc_walk::go_to;
use crate::pace::Pace;
use crate::run::Run;
use crate::score::single;
use crate::unexplained::unexplained;

const STEPS_PER_CHECK: u32 = 4_096;

/// How a clause occurs: Lucene's `Occur`, whose exclusions are around the conjunction here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClauseOccur {
    /// It has to match, and scores.
    Must,
    /// It has to match.
    Filter,
    /// It scores where it matches.
    Should,
}

/// The documents that all clauses match but for the optional ones.
#[derive(Clone, Debug)]
pub(super) struct ConjunctionQuery {
    /// At least one isn't optional.
    pub(super) clauses: Vec<(ClauseOccur, Arc<dyn Query>)>,
    /// The same without scores.
    pub(super) unscored: Arc<dyn Query>,
    pub(super) run: Arc<Run>,
}

impl Query for ConjunctionQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let EnableScoring::Enabled { searcher, .. } = scoring else {
            return self.unscored.weight(scoring);
        };
        let weights = self.clauses.iter().map(|(occur, clause)| {
            let scoring = match occur {
                ClauseOccur::Filter => EnableScoring::disabled_from_searcher(searcher),
                ClauseOccur::Must | ClauseOccur::Should => scoring,
            };
            Ok((*occur, clause.weight(scoring)?))
        });
        Ok(Box::new(ConjunctionWeight {
            clauses: weights.collect::<tantivy::Result<_>>()?,
            run: Arc::clone(&self.run),
        }))
    }
}

struct ConjunctionWeight {
    clauses: Vec<(ClauseOccur, Box<dyn Weight>)>,
    run: Arc<Run>,
}

impl Weight for ConjunctionWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        let mut candidate = 0;
        for (occur, weight) in &self.clauses {
            let scores = *occur != ClauseOccur::Filter;
            if *occur == ClauseOccur::Should {
                optional.push(weight);
                continue;
            }
            // Clauses that have to look for their first match begin where the others are.
            let (found, scorer) = weight.scorer_danger(reader, candidate, boost)?;
            let at = match found {
                SeekDangerResult::Found => Some(candidate),
                SeekDangerResult::SeekLowerBound(bound) => {
                    candidate = bound;
                    None
                }
            };
            if candidate >= TERMINATED {
                return Ok(Box::new(EmptyScorer));
            }
            required.push(RequiredClause { scores, scorer, at });
        }
        let optional = optional.into_iter().map(|weight| weight.scorer(reader, boost));
        let optional = optional.collect::<tantivy::Result<_>>()?;
        let mut order: Vec<usize> = (0..required.len()).collect();
        order.sort_by_key(|nth| required.get(*nth).map(|clause| clause.scorer.cost()));
        let mut scorer = ConjunctionScorer {
            required,
            optional,
            order,
            doc: candidate,
            pace: Pace::new(Arc::clone(&self.run), STEPS_PER_CHECK),
        };
        scorer.align(candidate);
        Ok(Box::new(scorer))
    }

    unexplained!();
}

/// A clause that has to match.
struct RequiredClause {
    scores: bool,
    scorer: Box<dyn Scorer>,
    /// The document that it was found on last; if it was asked for another since, only that tells where it is.
    at: Option<DocId>,
}

struct ConjunctionScorer {
    required: Vec<RequiredClause>,
    optional: Vec<Box<dyn Scorer>>,
    /// Places among those that have to match, the cheapest first.
    order: Vec<usize>,
    doc: DocId,
    pace: Pace<Arc<Run>>,
}

impl ConjunctionScorer {
    /// Goes to the first document from `candidate` on that all have. Clauses are asked for growing documents only. A
    /// search that has to stop finds no more: it will be told.
    fn align(&mut self, mut candidate: DocId) -> DocId {
        'candidates: while candidate < TERMINATED {
            if self.pace.stops(1) {
                candidate = TERMINATED;
                break;
            }
            for nth in &self.order {
                let Some(clause) = self.required.get_mut(*nth) else {
                    continue;
                };
                if clause.at == Some(candidate) {
                    continue;
                }
                if let SeekDangerResult::SeekLowerBound(bound) = clause.scorer.seek_danger(candidate) {
                    clause.at = None;
                    candidate = bound;
                    continue 'candidates;
                }
                clause.at = Some(candidate);
            }
            break;
        }
        self.doc = candidate.min(TERMINATED);
        self.doc
    }
}

impl DocSet for ConjunctionScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        let cheapest = self.order.first().and_then(|nth| self.required.get_mut(*nth));
        let next = cheapest.map_or(TERMINATED, |clause| {
            // All stand on the document: this one isn't lost.
            let next = clause.scorer.advance();
            clause.at = Some(next);
            next
        });
        self.align(next)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        self.align(target)
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        let least = self.required.iter().map(|clause| clause.scorer.size_hint()).min();
        least.unwrap_or_default()
    }

    fn cost(&self) -> u64 {
        let least = self.required.iter().map(|clause| clause.scorer.cost()).min();
        least.unwrap_or_default()
    }
}

impl Scorer for ConjunctionScorer {
    fn score(&mut self) -> Score {
        let required = self.required.iter_mut().filter(|clause| clause.scores);
        let mut sum: f64 = required.map(|clause| f64::from(clause.scorer.score())).sum();
        for scorer in &mut self.optional {
            if go_to(scorer, self.doc) == self.doc {
                sum += f64::from(scorer.score());
            }
        }
        single(sum)
    }
}
