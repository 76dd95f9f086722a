//! How large a query tree is.

use crate::query::Query;

/// The size of a query tree.
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
        match query {
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                ..
            } => {
                open.extend(
                    must.iter()
                        .chain(filter)
                        .chain(should)
                        .chain(must_not)
                        .map(|clause| (clause, depth + 1)),
                );
            }
            Query::Nested { query, .. }
            | Query::ConstScore { filter: query, .. }
            | Query::FunctionScore { query } => open.push((query, depth + 1)),
            Query::MatchAll
            | Query::Term { .. }
            | Query::Terms { .. }
            | Query::Range { .. }
            | Query::Prefix { .. }
            | Query::Suffix { .. }
            | Query::Wildcard { .. }
            | Query::Exists { .. }
            | Query::Match { .. }
            | Query::MatchPhrase { .. }
            | Query::MatchPhrasePrefix { .. }
            | Query::GeoDistance { .. }
            | Query::GeoBoundingBox { .. }
            | Query::GeoPolygon { .. } => {}
        }
    }
    shape
}
