//! What reading a search has found out so far.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::limits::{MAX_QUERY_DEPTH, MAX_QUERY_NODES};
use souk_index::query::DEFAULT_WEIGHT;
use souk_index::{Query, Schema};
use souk_proto::search::v1 as pb;

use super::inner_hits::InnerSorts;
use crate::error::Error;
use crate::wire::checked;

/// The parts of requests that are of the language of queries: what is wrong with them makes an invalid query.
const QUERY_PARTS: [&str; 5] = ["query", "sort", "best_by", "aggregations", "highlight"];

/// Reads one search, and gathers what is wrong with it.
pub(super) struct Reader<'a> {
    pub(super) schema: &'a Schema,
    pub(super) violations: Violations,
    /// The order of each list of inner hits so far.
    pub(super) inner_sorts: InnerSorts,
    /// Whether a rule is broken in a part of the language of queries, or what was read up to [`Reader::end_of_query`] has
    /// violations.
    query_is_wrong: bool,
    /// How many rules are broken.
    broken_rules: usize,
    /// Nodes of all query trees so far.
    nodes: usize,
    /// Whether a tree passed a bound: said once, and nothing more is read then.
    out_of_bounds: bool,
}

impl<'a> Reader<'a> {
    /// Reads a request of which `violations` are known: the rules that it breaks. What it asks for stands at `root`.
    pub(super) fn new(schema: &'a Schema, violations: Violations, root: &FieldPath) -> Self {
        let query_is_wrong = violations.paths().any(|path| is_of_query(path, root));
        Self {
            schema,
            broken_rules: violations.len(),
            violations,
            inner_sorts: InnerSorts::new(),
            query_is_wrong,
            nodes: 0,
            out_of_bounds: false,
        }
    }

    /// Marks the end of query and sort: their violations make the search an invalid query.
    pub(super) fn end_of_query(&mut self) {
        self.query_is_wrong |= self.violations.len() > self.broken_rules;
    }

    /// What was read, or what is wrong.
    pub(super) fn finish<T>(self, read: Option<T>) -> Result<T, Error> {
        if self.query_is_wrong {
            return Err(Error::InvalidQuery(self.violations));
        }
        checked(read, self.violations)
    }

    /// Reads the query tree that stands at `root`.
    pub(super) fn tree(&mut self, query: &pb::Query, root: &FieldPath) -> Option<Query> {
        if self.enter(query, 1, root) {
            self.query(query, root)
        } else {
            None
        }
    }

    /// Counts the nodes below `query`, before anything is built of them. Goes no deeper than the limit.
    fn enter(&mut self, query: &pb::Query, depth: usize, root: &FieldPath) -> bool {
        use pb::query::Kind;

        self.nodes += 1;
        if depth > MAX_QUERY_DEPTH {
            self.bound(root, "MAX_QUERY_DEPTH", MAX_QUERY_DEPTH, depth);
        } else if self.nodes > MAX_QUERY_NODES {
            self.bound(root, "MAX_QUERY_NODES", MAX_QUERY_NODES, self.nodes);
        }
        if self.out_of_bounds {
            return false;
        }
        match &query.kind {
            Some(Kind::Bool(all)) => [&all.must, &all.filter, &all.should, &all.must_not]
                .into_iter()
                .flatten()
                .all(|clause| self.enter(clause, depth + 1, root)),
            Some(Kind::Nested(nested)) => self.enter_below(nested.query.as_deref(), depth, root),
            Some(Kind::ConstScore(constant)) => self.enter_below(constant.filter.as_deref(), depth, root),
            Some(Kind::FunctionScore(scored)) => {
                let mut filters = scored
                    .functions
                    .iter()
                    .filter_map(|function| function.filter.as_ref());
                self.enter_below(scored.query.as_deref(), depth, root)
                    && filters.all(|filter| self.enter(filter, depth + 1, root))
            }
            Some(Kind::DisMax(best)) => {
                let mut queries = best.queries.iter();
                queries.all(|query| self.enter(query, depth + 1, root))
            }
            Some(
                Kind::MatchAll(_)
                | Kind::Term(_)
                | Kind::Terms(_)
                | Kind::Range(_)
                | Kind::Prefix(_)
                | Kind::Suffix(_)
                | Kind::Wildcard(_)
                | Kind::Exists(_)
                | Kind::Match(_)
                | Kind::MatchPhrase(_)
                | Kind::MatchPhrasePrefix(_)
                | Kind::GeoDistance(_)
                | Kind::GeoBoundingBox(_)
                | Kind::GeoPolygon(_),
            )
            | None => true,
        }
    }

    fn enter_below(&mut self, query: Option<&pb::Query>, depth: usize, root: &FieldPath) -> bool {
        query.is_none_or(|query| self.enter(query, depth + 1, root))
    }

    fn bound(&mut self, root: &FieldPath, limit: &'static str, max: usize, actual: usize) {
        if !self.out_of_bounds {
            self.limit(root.clone(), limit, max, actual);
        }
        self.out_of_bounds = true;
    }

    /// Notes that a limit was passed.
    pub(super) fn limit(&mut self, path: FieldPath, limit: &'static str, max: usize, actual: usize) {
        let message = format!("is {actual}, above the limit {limit} of {max}; stay within it");
        self.violations.push(path, "LIMIT_EXCEEDED", message);
    }

    /// The weight of a clause, as the 32 bits that scores have; `None` when it isn't positive.
    pub(super) fn weight(weight: Option<f64>) -> Option<f32> {
        let Some(weight) = weight else {
            return Some(DEFAULT_WEIGHT);
        };
        let narrowed = (weight as f32).clamp(f32::from_bits(1), f32::MAX);
        (weight > 0.0).then_some(narrowed)
    }
}

/// A value of an enumeration; `None` when it is none.
pub(super) fn enumeration<E: TryFrom<i32>>(value: i32) -> Option<E> {
    E::try_from(value).ok()
}

/// The name of a field; `None` when it is empty.
pub(super) fn name(name: &str) -> Option<String> {
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

/// Does `path` lead into a part of a request at `root` that is of the language of queries?
fn is_of_query(path: &FieldPath, root: &FieldPath) -> bool {
    let inside = path.as_str().strip_prefix(root.as_str()).unwrap_or_default();
    let part = inside.trim_start_matches('.').split(['.', '[']).next();
    part.is_some_and(|part| QUERY_PARTS.contains(&part))
}
