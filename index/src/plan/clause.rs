//! A planned clause, and how it scores.

use std::sync::Arc;

use tantivy::Score;
use tantivy::query::{BoostQuery, ConstScoreQuery, EmptyQuery, Query};

use super::selection::{Select, SelectionQuery};

#[derive(Clone, Debug)]
pub(super) struct Clause<T = Box<dyn Query>> {
    pub(super) query: T,
    /// What each document scores, if all score the same.
    pub(super) score: Option<Score>,
    /// The same documents as those that the query matches, where a column tells them.
    pub(super) select: Option<Arc<dyn Select>>,
}

impl<T> Clause<T> {
    /// The same with another form of its query.
    pub(super) fn with<U>(&self, query: U) -> Clause<U> {
        let (score, select) = (self.score, self.select.clone());
        Clause { query, score, select }
    }
}

impl Clause {
    /// What is selected, with the same score for each.
    pub(super) fn selecting(select: Arc<dyn Select>, score: Score) -> Self {
        let mut clause = Self::constant(Box::new(SelectionQuery(Arc::clone(&select))), score);
        clause.select = Some(select);
        clause
    }

    /// What `query` matches, with the same score for each.
    pub(super) fn constant(query: Box<dyn Query>, score: Score) -> Self {
        Self {
            query: Box::new(ConstScoreQuery::new(query, score)),
            score: Some(score),
            select: None,
        }
    }

    /// What `query` matches, with its score times `weight`.
    pub(super) fn scored(query: Box<dyn Query>, weight: Score) -> Self {
        if weight == 0.0 {
            return Self::constant(query, weight);
        }
        Self {
            query: if weight == 1.0 {
                query
            } else {
                Box::new(BoostQuery::new(query, weight))
            },
            score: None,
            select: None,
        }
    }

    pub(super) fn nothing() -> Self {
        Self::constant(Box::new(EmptyQuery), 0.0)
    }
}
