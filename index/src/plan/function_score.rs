//! `function_score`: documents of a query, scored by functions.
//!
//! The scorer goes from document to document as the query's does; columns and filters are looked at only when a score is
//! asked for. With `min_score` the score decides a match: it is computed, also where scores aren't wanted, for the
//! documents that the rest of the search leaves over.

mod combine;
mod decay;
mod factor;
mod random;

use std::fmt;
use std::sync::Arc;

use tantivy::query::{EmptyScorer, EnableScoring, Query as PhysicalQuery, Scorer, Weight};
use tantivy::{DocId, DocSet, Result, Score, SeekDangerResult, SegmentReader, TERMINATED, TantivyError};

use self::combine::Combine;
use self::decay::Falloff;
use self::factor::Factor;
use super::Planner;
use super::clause::Clause;
use crate::doc_walk::go_to;
use crate::error::{Checker, Reason, every};
use crate::limits::limit;
use crate::pace::Pace;
use crate::request::{Function, FunctionScore, ScoreFunction};
use crate::run::Run;
use crate::score::single;
use crate::unexplained::{Standing, unexplained};

/// Values of functions that are computed between two checks of the deadline.
const VALUES_PER_CHECK: u32 = 1_024;

/// The value of a document of one segment; `None` where the function doesn't count for it.
type Value = Box<dyn FnMut(DocId) -> Option<f64> + Send>;

/// What a function computes, on any segment.
trait Formula: fmt::Debug + Send + Sync + 'static {
    fn open(&self, reader: &SegmentReader) -> Result<Value>;
}

/// 1 for every document.
#[derive(Debug)]
struct One;

impl Formula for One {
    fn open(&self, _: &SegmentReader) -> Result<Value> {
        Ok(Box::new(|_| Some(1.0)))
    }
}

/// A checked function. Its filter is a query, then a weight, then a scorer; its value a formula, then open on a segment.
#[derive(Clone, Debug)]
struct PlannedFunction<V = Arc<dyn Formula>, F = Arc<dyn PhysicalQuery>> {
    value: V,
    weight: f64,
    filter: Option<F>,
}

impl Planner<'_> {
    pub(super) fn function_score(&mut self, at: &str, scored: &FunctionScore) -> Option<Clause> {
        let count = scored.functions.len();
        let advice = "leave functions out, or put some into a function_score inside this one";
        let functions_at = format!("{at}.functions");
        self.at_most(functions_at, limit!(MAX_SCORE_FUNCTIONS), count, advice)?;
        let min = self.score_end(at, "min_score", scored.min_score);
        let max = self.score_end(at, "max_score", scored.max_score);
        // The score that is computed is finite, and only that is multiplied by the weights around.
        let computes = count > 0 || scored.min_score.is_some();
        let weights = if computes { 1.0 } else { self.weights };
        let query = self.within(weights, |inside| {
            inside.clause(&scored.query, &format!("{at}.query"))
        });
        let functions = scored.functions.iter().enumerate();
        let functions = every(
            functions.map(|(nth, function)| self.function(&format!("{at}.functions[{nth}]"), function)),
        );
        let (min_score, max_score, query, functions) = (min?, max?, query?, functions?);
        if !computes {
            return Some(query);
        }
        let query = FunctionScored {
            query: Arc::from(query.query),
            functions,
            combine: Combine {
                score_mode: scored.score_mode,
                combine_mode: scored.combine_mode,
                max_score: max_score.unwrap_or(f64::INFINITY),
            },
            min_score,
            run: Arc::clone(self.run),
        };
        Some(Clause::scored(Box::new(query), 1.0))
    }

    /// An end of the scores. The outer `None` comes with a violation.
    fn score_end(&mut self, at: &str, name: &str, bound: Option<f64>) -> Option<Option<f64>> {
        let advice = "scores are never negative: give a number from 0, or leave it out";
        bound.map_or(Some(None), |bound| {
            self.number_from_zero(at, name, bound, advice).map(Some)
        })
    }

    fn function(&mut self, at: &str, function: &ScoreFunction) -> Option<PlannedFunction> {
        let advice = "give a number from 0, or leave it out";
        let weight = self.number_from_zero(at, "weight", function.weight, advice);
        let weight = weight.filter(|weight| self.weights_fit(at, *weight));
        let formula: Option<Arc<dyn Formula>> = match &function.function {
            Function::One => Some(Arc::new(One)),
            Function::FieldValueFactor {
                field,
                factor,
                modifier,
                missing,
            } => {
                let at = format!("{at}.field_value_factor");
                Factor::plan(self, &at, field, *factor, *modifier, *missing)
                    .map(|factor| Arc::new(factor) as Arc<dyn Formula>)
            }
            Function::Decay(decay) => Falloff::plan(self, &format!("{at}.decay"), decay)
                .map(|falloff| Arc::new(falloff) as Arc<dyn Formula>),
            Function::Random { seed } => Some(Arc::new(random::Random {
                seed: *seed,
                keys: self.layout.key_path.clone(),
            })),
        };
        let filter = match &function.filter {
            Some(filter) => self
                .within(1.0, |inside| inside.clause(filter, &format!("{at}.filter")))
                .map(|clause| Some(Arc::from(clause.query))),
            None => Some(None),
        };
        Some(PlannedFunction {
            value: formula?,
            weight: weight?,
            filter: filter?,
        })
    }

    /// A number that can't be below 0.
    fn number_from_zero(&mut self, at: &str, name: &str, number: f64, advice: &str) -> Option<f64> {
        if number.is_finite() && number >= 0.0 {
            return Some(number + 0.0);
        }
        let message = format!("{number} is not a finite number from 0");
        self.refuse(format!("{at}.{name}"), Reason::OutOfRange, message, advice)
    }
}

/// The documents of `query` with computed scores.
#[derive(Clone, Debug)]
struct FunctionScored<Q = Arc<dyn PhysicalQuery>> {
    query: Q,
    functions: Vec<PlannedFunction<Arc<dyn Formula>, Q>>,
    combine: Combine,
    min_score: Option<f64>,
    run: Arc<Run>,
}

impl PhysicalQuery for FunctionScored {
    fn weight(&self, scoring: EnableScoring<'_>) -> Result<Box<dyn Weight>> {
        if self.min_score.is_none() && !scoring.is_scoring_enabled() {
            return self.query.weight(scoring);
        }
        let Some(searcher) = scoring.searcher() else {
            let message = "scores that decide about matches need a searcher";
            return Err(TantivyError::InvalidArgument(message.to_owned()));
        };
        let enabled = match scoring {
            enabled @ EnableScoring::Enabled { .. } => enabled,
            EnableScoring::Disabled { .. } => EnableScoring::enabled_from_searcher(searcher),
        };
        let functions = self.functions.iter().map(|function| {
            let unscored = EnableScoring::disabled_from_searcher(searcher);
            let filter = function.filter.as_ref().map(|filter| filter.weight(unscored));
            Ok(PlannedFunction {
                value: Arc::clone(&function.value),
                weight: function.weight,
                filter: filter.transpose()?,
            })
        });
        Ok(Box::new(FunctionScored {
            functions: functions.collect::<Result<_>>()?,
            query: self.query.weight(enabled)?,
            combine: self.combine,
            min_score: self.min_score,
            run: Arc::clone(&self.run),
        }))
    }
}

impl FunctionScored<Box<dyn Weight>> {
    fn over(&self, inner: Box<dyn Scorer>, reader: &SegmentReader, boost: Score) -> Result<FunctionScorer> {
        let functions = self.functions.iter().map(|function| {
            let filter = function.filter.as_ref().map(|filter| filter.scorer(reader, 1.0));
            Ok(PlannedFunction {
                value: function.value.open(reader)?,
                weight: function.weight,
                filter: filter.transpose()?,
            })
        });
        Ok(FunctionScorer {
            inner,
            functions: functions.collect::<Result<_>>()?,
            combine: self.combine,
            min_score: self.min_score,
            settled: 0,
            boost,
            pace: Pace::new(Arc::clone(&self.run), VALUES_PER_CHECK),
        })
    }
}

impl Weight for FunctionScored<Box<dyn Weight>> {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> Result<Box<dyn Scorer>> {
        // The boost is of the computed score, not of the query's.
        let inner = self.query.scorer(reader, 1.0)?;
        let mut scorer = self.over(inner, reader, boost)?;
        scorer.settle();
        Ok(Box::new(scorer))
    }

    /// Doesn't look for a first match: the other clauses of an intersection may be far ahead.
    fn scorer_danger(&self, reader: &SegmentReader, target: DocId, boost: Score) -> Standing {
        let (found, inner) = self.query.scorer_danger(reader, target, 1.0)?;
        let mut scorer = self.over(inner, reader, boost)?;
        Ok((scorer.verified(found, target), Box::new(scorer)))
    }

    unexplained!();
}

type OpenFunction = PlannedFunction<Value, Box<dyn Scorer>>;

impl OpenFunction {
    /// The value times the weight, and the weight; `None` where the function doesn't count. Documents come in ascending order.
    fn weighted_value(&mut self, doc: DocId) -> Option<(f64, f64)> {
        if let Some(filter) = &mut self.filter
            && go_to(filter, doc) != doc
        {
            return None;
        }
        // NaN counts as 0 too, and so does an infinite value of no weight.
        let value = (self.value)(doc)?.max(0.0);
        Some(((value * self.weight).max(0.0), self.weight))
    }
}

struct FunctionScorer {
    inner: Box<dyn Scorer>,
    functions: Vec<OpenFunction>,
    combine: Combine,
    min_score: Option<f64>,
    /// The last document that was asked about. The functions' filters have passed those before it, so none of them may be scored again.
    settled: DocId,
    boost: Score,
    pace: Pace<Arc<Run>>,
}

impl FunctionScorer {
    fn computed(&mut self) -> f64 {
        let (doc, score) = (self.inner.doc(), f64::from(self.inner.score()));
        if self.functions.is_empty() {
            return score;
        }
        let values = self
            .functions
            .iter_mut()
            .filter_map(|function| function.weighted_value(doc));
        self.combine.score(score, values)
    }

    /// Whether the score of the document that the scorer stands on reaches `min_score`.
    fn passes(&mut self) -> bool {
        self.min_score.is_none_or(|least| self.computed() >= least)
    }

    /// Counts the values of a document, and the document; whether the search has to stop. Callers count documents alone.
    fn stops(&mut self) -> bool {
        self.pace.stops(1 + self.functions.len() as u32)
    }

    /// Goes on to a document that passes, if this one doesn't. A search that has to stop finds no more; [`Run::outcome`] says why.
    fn settle(&mut self) -> DocId {
        while self.inner.doc() != TERMINATED {
            if self.stops() {
                self.inner = Box::new(EmptyScorer);
            } else if self.passes() {
                break;
            } else {
                self.inner.advance();
            }
        }
        self.settled = self.inner.doc();
        self.settled
    }

    /// What [`DocSet::seek_danger`] answers of `target`, given what the query `found`: the score has to pass, too.
    fn verified(&mut self, found: SeekDangerResult, target: DocId) -> SeekDangerResult {
        self.settled = target;
        match found {
            SeekDangerResult::Found if self.stops() => SeekDangerResult::SeekLowerBound(TERMINATED),
            SeekDangerResult::Found if !self.passes() => SeekDangerResult::SeekLowerBound(target + 1),
            found => found,
        }
    }
}

impl DocSet for FunctionScorer {
    fn advance(&mut self) -> DocId {
        self.inner.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.inner.doc() >= target {
            return self.inner.doc();
        }
        self.inner.seek(target);
        self.settle()
    }

    /// Computes the score of `target` alone, which cheaper clauses of an intersection match; `seek` would look for the next match.
    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target < self.settled {
            // The query may go back to it.
            return SeekDangerResult::SeekLowerBound(self.settled);
        }
        let found = self.inner.seek_danger(target);
        self.verified(found, target)
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    /// Dearer than walking to a document, so that cheaper clauses lead.
    fn cost(&self) -> u64 {
        let dearness = if self.min_score.is_some() { 8 } else { 1 };
        self.inner.cost().saturating_mul(dearness)
    }
}

impl Scorer for FunctionScorer {
    fn score(&mut self) -> Score {
        // Finite before it is weighed, as what the functions are inside of.
        single(self.computed().min(f64::from(Score::MAX)) * f64::from(self.boost))
    }
}
