//! `bool`: clauses combined.

use std::sync::Arc;

use tantivy::query::{BooleanQuery, Occur, Query as PhysicalQuery};

use super::Planner;
use super::clause::{Clause, ClauseScore};
use super::exclusion::ExclusionQuery;
use super::filtered::FilteredQuery;
use super::selection::Select;
use crate::error::Reason;
use crate::query::Query;

/// The clauses of a `bool`.
pub(super) struct Parts<'a> {
    pub(super) must: &'a [Query],
    pub(super) filter: &'a [Query],
    pub(super) should: &'a [Query],
    pub(super) must_not: &'a [Query],
    pub(super) minimum: Option<u32>,
}

impl Planner<'_> {
    pub(super) fn boolean(&mut self, at: &str, scope: Option<&str>, parts: &Parts<'_>) -> Option<Clause> {
        let must = self.clauses(parts.must, scope, &format!("{at}.must"));
        let filter = self.clauses(parts.filter, scope, &format!("{at}.filter"));
        let should = self.clauses(parts.should, scope, &format!("{at}.should"));
        let must_not = self.clauses(parts.must_not, scope, &format!("{at}.must_not"));
        let minimum = self.minimum(at, parts);
        let (must, filter, should, must_not, minimum) = (must?, filter?, should?, must_not?, minimum?);
        if must.is_empty() && filter.is_empty() && should.is_empty() && must_not.is_empty() {
            return Some(self.everything(scope, 1.0));
        }
        // Without a clause that has to match, everything does, and scores nothing for that.
        let mut base =
            (must.is_empty() && filter.is_empty() && minimum == 0).then(|| self.everything(scope, 0.0));
        let constant = constant_score(&must, &should, minimum);
        let (must, filter, selects) = match constant {
            Some(_) => without_selections(must, filter),
            None => (must, filter, Vec::new()),
        };
        let only_selected = !selects.is_empty() && must.is_empty() && filter.is_empty() && minimum == 0;
        if only_selected && must_not.is_empty() {
            // Clauses of `should` that are left neither have to match nor score.
            let query = Box::new(FilteredQuery::new(None, selects));
            return constant.map(|score| Clause::constant(query, score));
        }
        if only_selected {
            base = Some(self.everything(scope, 0.0));
        }
        let scored =
            |clauses: Vec<Clause>, occur| clauses.into_iter().map(move |clause| (occur, clause.query));
        let clauses: Vec<(Occur, Box<dyn PhysicalQuery>)> = scored(must, Occur::Must)
            .chain(filter.into_iter().map(|clause| (Occur::Must, clause.unscored())))
            .chain(scored(base.into_iter().collect(), Occur::Must))
            .chain(scored(should, Occur::Should))
            .chain(
                must_not
                    .into_iter()
                    .map(|clause| (Occur::MustNot, excluded(clause))),
            )
            .collect();
        let query: Box<dyn PhysicalQuery> =
            Box::new(BooleanQuery::with_minimum_required_clauses(clauses, minimum));
        let query = if selects.is_empty() {
            query
        } else {
            Box::new(FilteredQuery::new(Some(query), selects))
        };
        Some(match constant {
            Some(score) => Clause::constant(query, score),
            None => Clause::scored(query, 1.0),
        })
    }

    /// Plans all, so that all violations are found.
    fn clauses(&mut self, queries: &[Query], scope: Option<&str>, at: &str) -> Option<Vec<Clause>> {
        let planned: Vec<Option<Clause>> = queries
            .iter()
            .enumerate()
            .map(|(nth, query)| self.clause(query, scope, &format!("{at}[{nth}]")))
            .collect();
        planned.into_iter().collect()
    }

    /// How many of `should` have to match.
    fn minimum(&mut self, at: &str, parts: &Parts<'_>) -> Option<usize> {
        let count = parts.should.len();
        let required = !parts.must.is_empty() || !parts.filter.is_empty();
        let Some(minimum) = parts.minimum else {
            return Some(usize::from(!required && count > 0));
        };
        if minimum as usize > count {
            let message = format!("{minimum} clauses of `should` are to match, but there are {count}");
            let advice = "lower minimum_should_match, leave it out, or add clauses to should";
            self.violate(
                format!("{at}.minimum_should_match"),
                Reason::OutOfRange,
                message,
                advice,
            );
            return None;
        }
        Some(minimum as usize)
    }
}

/// Takes those of the required clauses out that columns tell.
fn without_selections(
    must: Vec<Clause>,
    filter: Vec<Clause>,
) -> (Vec<Clause>, Vec<Clause>, Vec<Arc<dyn Select>>) {
    let mut selects = Vec::new();
    let mut rest = |clauses: Vec<Clause>| {
        let others = clauses.into_iter().filter_map(|clause| match clause.select {
            Some(select) => {
                selects.push(select);
                None
            }
            None => Some(clause),
        });
        others.collect()
    };
    let (must, filter) = (rest(must), rest(filter));
    (must, filter, selects)
}

fn excluded(clause: Clause) -> Box<dyn PhysicalQuery> {
    Box::new(ExclusionQuery::new(clause.query))
}

/// What every match scores, if that is the same for all.
fn constant_score(must: &[Clause], should: &[Clause], minimum: usize) -> Option<f32> {
    let all_required = minimum == should.len();
    let optional_score = should
        .iter()
        .any(|clause| clause.score != ClauseScore::Constant(0.0));
    if !all_required && optional_score {
        return None;
    }
    must.iter()
        .chain(should)
        .try_fold(0.0, |sum, clause| match clause.score {
            ClauseScore::Constant(score) => Some(sum + score),
            ClauseScore::Varies => None,
        })
}
