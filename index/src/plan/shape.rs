//! How large a query tree is, and what running it again costs.

use std::ops::Bound;

use crate::request::{Query, QueryValue};
use crate::schema::{FieldKind, Schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Queries, the outermost included.
    pub(super) nodes: usize,
    /// Levels: 1 for a query without clauses.
    pub(super) depth: usize,
}

/// Measures without recursion: the depth isn't known to be bounded yet.
pub(super) fn measure(query: &Query) -> Shape {
    let mut shape = Shape { nodes: 0, depth: 0 };
    let mut open = vec![(query, 1)];
    while let Some((query, depth)) = open.pop() {
        shape.nodes += 1;
        shape.depth = shape.depth.max(depth);
        open.extend(query.clauses().into_iter().map(|query| (query, depth + 1)));
    }
    shape
}

/// Whether a query's matches begin without work done up front, so that beginning anew costs next to nothing: none of its
/// clauses gathers many documents, or walks a dictionary, before its first match. What a pattern on a KEYWORD matches is
/// found once a search. Areas are passed over with `areas`.
pub(super) fn begins_at_once(query: &Query, schema: &Schema, areas: bool) -> bool {
    let begins = |query: &Query| begins_at_once(query, schema, areas);
    let is_keyword = |field: &str| {
        let field = schema.resolve(field);
        field.is_some_and(|field| matches!(field.kind, FieldKind::Keyword | FieldKind::Attributes))
    };
    let number = |bound: &Bound<QueryValue>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => !matches!(value, QueryValue::String(_)),
        Bound::Unbounded => true,
    };
    match query {
        Query::MatchAll | Query::Term { .. } | Query::Exists { .. } | Query::Match { .. } => true,
        Query::Range { field, lower, upper } => (number(lower) && number(upper)) || is_keyword(field),
        Query::Prefix { field, .. } | Query::Suffix { field, .. } | Query::Wildcard { field, .. } => {
            is_keyword(field)
        }
        Query::Bool { .. }
        | Query::ConstScore { .. }
        | Query::Nested { .. }
        | Query::Weighted { .. }
        | Query::DisMax { .. } => query.clauses().into_iter().all(begins),
        Query::GeoDistance { .. } | Query::GeoBoundingBox { .. } | Query::GeoPolygon { .. } => areas,
        _ => false,
    }
}

/// Whether a query's matches can be counted by cells, if no documents are wanted.
pub(super) fn counts_by_cells(query: &Query) -> bool {
    match query {
        Query::GeoDistance { .. } | Query::GeoBoundingBox { .. } | Query::GeoPolygon { .. } => true,
        Query::ConstScore { filter, .. } => counts_by_cells(filter),
        _ => false,
    }
}

/// Whether the library counts a query's matches quicker than they can be walked: from the length of one list.
pub(super) fn counts_at_once(query: &Query) -> bool {
    match query {
        Query::MatchAll | Query::Term { .. } => true,
        Query::ConstScore { filter, .. } => counts_at_once(filter),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Analyzer, Field};

    #[test]
    fn what_gathers_before_its_first_match_does_not_begin_at_once() {
        let schema = Schema::new(vec![
            Field::keyword("f"),
            Field::text("t", Analyzer::single_word()),
        ])
        .unwrap_or_else(|error| panic!("{error}"));
        let begins = |query: &Query| begins_at_once(query, &schema, false);
        let at =
            |field: &str, value: QueryValue| Query::range(field, Bound::Included(value), Bound::Unbounded);
        let term = || Query::term("f", "x");
        assert!(begins(&Query::all(vec![
            Query::MatchAll,
            at("f", QueryValue::Integer(1)),
            at("f", QueryValue::from("a")),
            Query::prefix("f", "x"),
            Query::wildcard("f", "*x*"),
        ])));
        assert!(begins(&Query::nested("items", term())));
        for gathers in [
            at("t", QueryValue::from("a")),
            Query::prefix("t", "x"),
            Query::suffix("t", "x"),
            Query::terms("f", ["x"]),
        ] {
            assert!(!begins(&gathers));
            assert!(!begins(&Query::all(vec![term(), gathers])));
        }
        assert!(counts_at_once(&Query::MatchAll) && counts_at_once(&term()));
        assert!(!counts_at_once(&Query::all(vec![term(), term()])));
    }
}
