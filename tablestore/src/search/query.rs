//! Decodes the tree of queries of a search. A `Query` has a type, and the encoded message of that type, which may hold further ones.

use super::SearchBudget;
use crate::error::Reason;
use crate::messages::{
    BoolQuery, ConstScoreQuery, DisMaxQuery, ExistsQuery, FunctionScoreQuery, FunctionsScoreQuery,
    GeoBoundingBoxQuery, GeoDistanceQuery, GeoPolygonQuery, KnnVectorQuery, MatchPhraseQuery, MatchQuery,
    NestedQuery, PrefixQuery, Query, QueryType, RangeQuery, SuffixQuery, TermQuery, TermsQuery,
    WildcardQuery,
};

/// A node of the query tree. The queries inside of it are nodes, too, and are taken out of its message, the `body`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the messages have the comments")]
pub enum QueryNode {
    MatchAll,
    Match(MatchQuery),
    MatchPhrase(MatchPhraseQuery),
    Term(TermQuery),
    Terms(TermsQuery),
    Range(RangeQuery),
    Prefix(PrefixQuery),
    Suffix(SuffixQuery),
    Wildcard(WildcardQuery),
    Exists(ExistsQuery),
    GeoBoundingBox(GeoBoundingBoxQuery),
    GeoDistance(GeoDistanceQuery),
    GeoPolygon(GeoPolygonQuery),
    Bool {
        must: Vec<QueryNode>,
        must_not: Vec<QueryNode>,
        filter: Vec<QueryNode>,
        should: Vec<QueryNode>,
        body: BoolQuery,
    },
    Nested {
        query: Box<QueryNode>,
        body: NestedQuery,
    },
    ConstScore {
        filter: Box<QueryNode>,
    },
    FunctionScore {
        query: Box<QueryNode>,
        body: FunctionScoreQuery,
    },
    FunctionsScore {
        query: Box<QueryNode>,
        /// The filters of the functions of `body`, in their order; `None` where a function has none.
        filters: Vec<Option<QueryNode>>,
        body: FunctionsScoreQuery,
    },
    KnnVector {
        filter: Option<Box<QueryNode>>,
        body: KnnVectorQuery,
    },
    DisMax {
        queries: Vec<QueryNode>,
        body: DisMaxQuery,
    },
}

impl QueryNode {
    /// Decodes a query tree of at most [`limits::MAX_SEARCH_NODES`](crate::limits::MAX_SEARCH_NODES) nodes and
    /// [`limits::MAX_SEARCH_DEPTH`](crate::limits::MAX_SEARCH_DEPTH) levels.
    ///
    /// # Errors
    /// A message that can't be decoded, an unknown type, a query that is missing inside of another, too many nodes, levels or fields.
    pub fn decode(query: Query) -> Result<Self, Reason> {
        node(query, 1, &mut SearchBudget::default())
    }
}

/// Decodes a query at a depth, from 1, with those inside of it. The `budget` counts nodes.
pub(super) fn node(query: Query, depth: usize, budget: &mut SearchBudget) -> Result<QueryNode, Reason> {
    budget.node(depth)?;
    // No type has the number 0.
    let kind = query.r#type.unwrap_or_default();
    let invalid = || Reason::InvalidSearchType {
        part: "query".into(),
        kind,
    };
    let bytes = query.query;
    Ok(match QueryType::try_from(kind).map_err(|_| invalid())? {
        // Its message has no fields.
        QueryType::MatchAll => QueryNode::MatchAll,
        QueryType::Match => QueryNode::Match(budget.body(bytes, "match query")?),
        QueryType::MatchPhrase => QueryNode::MatchPhrase(budget.body(bytes, "match phrase query")?),
        QueryType::Term => QueryNode::Term(budget.body(bytes, "term query")?),
        QueryType::Terms => QueryNode::Terms(budget.body(bytes, "terms query")?),
        QueryType::Range => QueryNode::Range(budget.body(bytes, "range query")?),
        QueryType::Prefix => QueryNode::Prefix(budget.body(bytes, "prefix query")?),
        QueryType::Suffix => QueryNode::Suffix(budget.body(bytes, "suffix query")?),
        QueryType::Wildcard => QueryNode::Wildcard(budget.body(bytes, "wildcard query")?),
        QueryType::Exists => QueryNode::Exists(budget.body(bytes, "exists query")?),
        QueryType::GeoBoundingBox => QueryNode::GeoBoundingBox(budget.body(bytes, "geo bounding box query")?),
        QueryType::GeoDistance => QueryNode::GeoDistance(budget.body(bytes, "geo distance query")?),
        QueryType::GeoPolygon => QueryNode::GeoPolygon(budget.body(bytes, "geo polygon query")?),
        QueryType::Bool => {
            let mut body: BoolQuery = budget.body(bytes, "bool query")?;
            QueryNode::Bool {
                must: nodes(std::mem::take(&mut body.must_queries), depth, budget)?,
                must_not: nodes(std::mem::take(&mut body.must_not_queries), depth, budget)?,
                filter: nodes(std::mem::take(&mut body.filter_queries), depth, budget)?,
                should: nodes(std::mem::take(&mut body.should_queries), depth, budget)?,
                body,
            }
        }
        QueryType::Nested => {
            let mut body: NestedQuery = budget.body(bytes, "nested query")?;
            QueryNode::Nested {
                query: inner(body.query.take(), "the query of a nested query", depth, budget)?,
                body,
            }
        }
        QueryType::ConstScore => {
            let body: ConstScoreQuery = budget.body(bytes, "const score query")?;
            QueryNode::ConstScore {
                filter: inner(body.filter, "the filter of a const score query", depth, budget)?,
            }
        }
        QueryType::FunctionScore => {
            let mut body: FunctionScoreQuery = budget.body(bytes, "function score query")?;
            QueryNode::FunctionScore {
                query: inner(
                    body.query.take(),
                    "the query of a function score query",
                    depth,
                    budget,
                )?,
                body,
            }
        }
        QueryType::FunctionsScore => {
            let mut body: FunctionsScoreQuery = budget.body(bytes, "functions score query")?;
            let query = inner(
                body.query.take(),
                "the query of a functions score query",
                depth,
                budget,
            )?;
            let mut filters = Vec::new();
            for function in &mut body.functions {
                let filter = function.filter.take();
                filters.push(filter.map(|filter| node(filter, depth + 1, budget)).transpose()?);
            }
            QueryNode::FunctionsScore { query, filters, body }
        }
        QueryType::KnnVector => {
            let mut body: KnnVectorQuery = budget.body(bytes, "knn vector query")?;
            let filter = body.filter.take();
            let filter = filter.map(|filter| node(filter, depth + 1, budget)).transpose()?;
            QueryNode::KnnVector {
                filter: filter.map(Box::new),
                body,
            }
        }
        QueryType::DisMax => {
            let mut body: DisMaxQuery = budget.body(bytes, "dis max query")?;
            QueryNode::DisMax {
                queries: nodes(std::mem::take(&mut body.queries), depth, budget)?,
                body,
            }
        }
    })
}

/// Decodes the queries inside of a node at `depth`.
pub(super) fn nodes(
    queries: Vec<Query>,
    depth: usize,
    budget: &mut SearchBudget,
) -> Result<Vec<QueryNode>, Reason> {
    queries
        .into_iter()
        .map(|query| node(query, depth + 1, budget))
        .collect()
}

/// Decodes the one query inside of a node at `depth`; `part` is what the error calls it when it is missing.
fn inner(
    query: Option<Query>,
    part: &str,
    depth: usize,
    budget: &mut SearchBudget,
) -> Result<Box<QueryNode>, Reason> {
    let query = query.ok_or_else(|| Reason::SearchPartMissing { part: part.into() })?;
    node(query, depth + 1, budget).map(Box::new)
}
