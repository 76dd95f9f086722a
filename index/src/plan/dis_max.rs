//! `dis_max`: documents of any of several queries, by the best of their scores. And the weight of queries without one.

use tantivy::query::BooleanQuery;

use super::Planner;
use super::clause::Clause;
use super::union::{Together, UnionQuery};
use crate::error::{Checker, Reason};
use crate::request::Query;

impl Planner<'_> {
    pub(super) fn dis_max(
        &mut self,
        at: &str,
        queries: &[Query],
        tie_breaker: f64,
        weight: f32,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let fine = (0.0..=1.0).contains(&tie_breaker);
        if !fine {
            let message = format!("{tie_breaker} is not a number from 0 to 1");
            let advice = "give 0 for the best score alone, 1 for the sum of all";
            self.note(format!("{at}.tie_breaker"), Reason::OutOfRange, message, advice);
        }
        if queries.is_empty() {
            let message = "there are no queries";
            let advice = "give at least one query";
            return self.refuse(format!("{at}.queries"), Reason::Missing, message, advice);
        }
        let at = format!("{at}.queries");
        let clauses = self.weighing(weighed, |inside| inside.clauses(queries, &at))?;
        let weight = weighed.filter(|_| fine)?;
        let any = || {
            let queries = clauses.iter().map(|clause| clause.query.box_clone());
            Box::new(BooleanQuery::union(queries.collect()))
        };
        if clauses.iter().all(|clause| clause.score == Some(0.0)) {
            return Some(Clause::constant(any(), 0.0));
        }
        if let [only] = clauses.as_slice()
            && let Some(score) = only.score
        {
            return Some(Clause::constant(any(), score * weight));
        }
        let union = UnionQuery::new(clauses, 1, Together::Best(tie_breaker), self.run);
        Some(Clause::scored(Box::new(union), weight))
    }

    pub(super) fn weighted(&mut self, at: &str, query: &Query, weight: f32) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let clause = self.weighing(weighed, |inside| inside.clause(query, at))?;
        let weight = weighed?;
        Some(match clause.score {
            Some(score) => Clause {
                select: clause.select,
                ..Clause::constant(clause.query, score * weight)
            },
            None => Clause::scored(clause.query, weight),
        })
    }
}
