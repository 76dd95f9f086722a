//! The searches of all concepts.

use std::ops::Bound;

use souk_index::{Query, QueryValue, SearchRequest, TotalRequest};

use super::{aggregations, clauses, objects, orders, texts};

/// What has to come of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// It is done in time.
    Done,
    /// This limit refuses it, if the deadline of the long form doesn't come first.
    Refused(&'static str),
    /// It is done in time, or refused by this limit: which depends on the size of the index.
    Either(&'static str),
    /// As [`Expected::Either`], and the deadline may end it: a short one in the short form.
    Slow(&'static str),
}

/// Name, search, and what has to come of it.
pub(super) type Bomb = (&'static str, SearchRequest, Expected);

pub(super) fn any_of(should: Vec<Query>) -> Query {
    Query::Bool {
        must: Vec::new(),
        filter: Vec::new(),
        should,
        must_not: Vec::new(),
        minimum_should_match: None,
    }
}

pub(super) fn from(n: i64) -> Query {
    Query::range("n", Bound::Included(QueryValue::Integer(n)), Bound::Unbounded)
}

pub(super) fn counted(query: Query) -> SearchRequest {
    SearchRequest::new(query).total(TotalRequest::Exact)
}

pub(super) fn all() -> Vec<Bomb> {
    [
        clauses::trees(),
        clauses::patterns(),
        clauses::constants(),
        texts::phrases(),
        texts::misspelled(),
        clauses::functions(),
        clauses::places(),
        orders::orders(),
        orders::groups(),
        objects::objects(),
        aggregations::values(),
        aggregations::ranges(),
        aggregations::figures(),
        aggregations::composites(),
        aggregations::beyond(),
    ]
    .concat()
}
