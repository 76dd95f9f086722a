//! `bool`: clauses combined.

use std::sync::Arc;

use tantivy::query::{BooleanQuery, Occur, Query as PhysicalQuery};

use super::Planner;
use super::clause::Clause;
use super::conjunction::{ClauseOccur, ConjunctionQuery};
use super::filtered::{Filtered, Unscored};
use super::union::{Together, UnionQuery};
use crate::error::{Checker, Reason, every};
use crate::request::Query;
use crate::run::Run;
use crate::score::single;

impl Planner<'_> {
    /// Of clauses that must match, filter, should match and must not.
    pub(super) fn boolean(
        &mut self,
        at: &str,
        [must, filter, should, must_not]: [&[Query]; 4],
        minimum: Option<u32>,
    ) -> Option<Clause> {
        let (count, required) = (should.len(), !must.is_empty() || !filter.is_empty());
        let must = self.clauses(must, &format!("{at}.must"));
        let filter = self.clauses(filter, &format!("{at}.filter"));
        let should = self.clauses(should, &format!("{at}.should"));
        let must_not = self.clauses(must_not, &format!("{at}.must_not"));
        let minimum = self.minimum(at, minimum, count, required);
        let (must, filter, should, must_not, minimum) = (must?, filter?, should?, must_not?, minimum?);
        if must.is_empty() && filter.is_empty() && should.is_empty() && must_not.is_empty() {
            return Some(self.everything(1.0));
        }
        let parts = Planned {
            must,
            filter,
            should,
            must_not,
            minimum,
            everything: self.everything(0.0).query,
            run: Arc::clone(self.run),
        };
        Some(match constant_score(&parts.must, &parts.should, minimum) {
            Some(score) => Clause::constant(parts.unscored(), score),
            None => Clause::scored(parts.scored(), 1.0),
        })
    }

    pub(super) fn clauses(&mut self, queries: &[Query], at: &str) -> Option<Vec<Clause>> {
        let queries = queries.iter().enumerate();
        every(queries.map(|(nth, query)| self.clause(query, &format!("{at}[{nth}]"))))
    }

    /// How many of `should`, so many as `count`, have to match.
    fn minimum(&mut self, at: &str, minimum: Option<u32>, count: usize, required: bool) -> Option<usize> {
        let Some(minimum) = minimum else {
            return Some(usize::from(!required && count > 0));
        };
        if minimum as usize > count {
            let message = format!("{minimum} clauses of `should` are to match, but there are {count}");
            let advice = "lower minimum_should_match, leave it out, or add clauses to should";
            let at = format!("{at}.minimum_should_match");
            return self.refuse(at, Reason::OutOfRange, message, advice);
        }
        Some(minimum as usize)
    }
}

struct Planned {
    must: Vec<Clause>,
    filter: Vec<Clause>,
    should: Vec<Clause>,
    must_not: Vec<Clause>,
    minimum: usize,
    /// What matches when no clause has to.
    everything: Box<dyn PhysicalQuery>,
    run: Arc<Run>,
}

impl Planned {
    /// What matches, without scores. Clauses that columns tell are taken out of the others.
    fn unscored(&self) -> Box<dyn PhysicalQuery> {
        let required = || self.must.iter().chain(&self.filter);
        let selects: Vec<_> = required().filter_map(|clause| clause.select.clone()).collect();
        let others = required().filter(|clause| clause.select.is_none());
        let others = others.map(|clause| (Occur::Must, clause.query.box_clone()));
        let mut clauses: Vec<(Occur, Box<dyn PhysicalQuery>)> = others.collect();
        if clauses.is_empty() && self.minimum == 0 {
            if !selects.is_empty() && self.must_not.is_empty() {
                return Box::new(Filtered { query: None, selects });
            }
            clauses.push((Occur::Must, self.everything.box_clone()));
        }
        // Clauses that may match or not only score.
        let mut either = 0;
        if self.minimum == 1 || self.minimum == self.should.len() {
            either = self.minimum;
            let should = self.should.iter();
            clauses.extend(should.map(|clause| (Occur::Should, clause.query.box_clone())));
        } else if self.minimum > 0 {
            let again = |clause: &Clause| clause.with(clause.query.box_clone());
            let should = self.should.iter().map(again).collect();
            clauses.push((Occur::Must, self.some_of(should)));
        }
        clauses.extend(self.excluded());
        let query: Box<dyn PhysicalQuery> =
            Box::new(BooleanQuery::with_minimum_required_clauses(clauses, either));
        if selects.is_empty() {
            return query;
        }
        let query = Some(Arc::from(query));
        Box::new(Filtered { query, selects })
    }

    /// What as many of `should` match as have to.
    fn some_of(&self, should: Vec<Clause>) -> Box<dyn PhysicalQuery> {
        Box::new(UnionQuery::new(should, self.minimum, Together::Sum, &self.run))
    }

    fn excluded(&self) -> Vec<(Occur, Box<dyn PhysicalQuery>)> {
        let excluded = self.must_not.iter().map(|clause| {
            let query: Box<dyn PhysicalQuery> = Box::new(Unscored(Arc::from(clause.query.box_clone())));
            (Occur::MustNot, query)
        });
        excluded.collect()
    }

    /// What matches, with the sum of its clauses' scores.
    fn scored(mut self) -> Box<dyn PhysicalQuery> {
        let (unscored, excluded) = (self.unscored(), self.excluded());
        let occur =
            |occur, clauses: Vec<Clause>| clauses.into_iter().map(move |clause| (occur, clause.query));
        let should: Vec<(ClauseOccur, Box<dyn PhysicalQuery>)> = match self.minimum {
            0 => occur(ClauseOccur::Should, self.should).collect(),
            minimum if minimum == self.should.len() => occur(ClauseOccur::Must, self.should).collect(),
            _ => {
                let should = std::mem::take(&mut self.should);
                vec![(ClauseOccur::Must, self.some_of(should))]
            }
        };
        let mut clauses: Vec<_> = occur(ClauseOccur::Must, self.must).collect();
        clauses.extend(occur(ClauseOccur::Filter, self.filter));
        if clauses.is_empty() && self.minimum == 0 {
            clauses.push((ClauseOccur::Filter, self.everything));
        }
        clauses.extend(should);
        let included: Box<dyn PhysicalQuery> = match clauses.pop() {
            Some((ClauseOccur::Must, only)) if clauses.is_empty() => only,
            last => {
                clauses.extend(last);
                let clauses = clauses
                    .into_iter()
                    .map(|(occur, query)| (occur, Arc::from(query)));
                Box::new(ConjunctionQuery {
                    clauses: clauses.collect(),
                    unscored: Arc::from(unscored),
                    run: self.run,
                })
            }
        };
        if excluded.is_empty() {
            return included;
        }
        let clauses = std::iter::once((Occur::Must, included)).chain(excluded);
        Box::new(BooleanQuery::new(clauses.collect()))
    }
}

/// What every match scores, if that is the same for all.
fn constant_score(must: &[Clause], should: &[Clause], minimum: usize) -> Option<f32> {
    let optional_score = should.iter().any(|clause| clause.score != Some(0.0));
    if minimum != should.len() && optional_score {
        return None;
    }
    let mut scores = must.iter().chain(should).map(|clause| clause.score);
    let sum = scores.try_fold(0.0, |sum, score| Some(sum + f64::from(score?)));
    sum.map(single)
}
