//! Reads query trees. A part that is `None` was noted as a violation, or breaks a rule of the contract, which is noted
//! already. Where parts can add violations, every part is read before a missing one ends the reading, so that all come at once.

use std::ops::Bound;

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_TERMS;
use souk_index::query::DEFAULT_WEIGHT;
use souk_index::{Query, ScoreMode};
use souk_proto::search::v1::{self as pb, query::Kind, range_query};

use super::reader::{Reader, enumeration, name};
use crate::wire::query_value;

impl Reader<'_> {
    /// Reads a query; its size and depth have been checked by [`Reader::tree`].
    pub(super) fn query(&mut self, query: &pb::Query, path: &FieldPath) -> Option<Query> {
        match query.kind.as_ref()? {
            Kind::MatchAll(_) => Some(Query::MatchAll),
            Kind::Term(term) => Self::term(term),
            Kind::Terms(terms) => self.terms(terms, &path.field("terms")),
            Kind::Range(range) => Self::range(range),
            Kind::Prefix(prefix) => Self::prefix(prefix),
            Kind::Suffix(suffix) => Self::suffix(suffix),
            Kind::Wildcard(wildcard) => Self::wildcard(wildcard),
            Kind::Exists(exists) => Some(Query::Exists {
                field: name(&exists.field)?,
            }),
            Kind::Match(text) => self.match_text(text, &path.field("match")),
            Kind::MatchPhrase(phrase) => Self::match_phrase(phrase),
            Kind::MatchPhrasePrefix(phrase) => Self::match_phrase_prefix(phrase),
            Kind::Bool(bool) => self.boolean(bool, &path.field("bool")),
            Kind::Nested(nested) => self.nested(nested, &path.field("nested")),
            Kind::GeoDistance(circle) => Self::geo_distance(circle),
            Kind::GeoBoundingBox(area) => Self::geo_bounding_box(area),
            Kind::GeoPolygon(polygon) => self.geo_polygon(polygon, &path.field("geo_polygon")),
            Kind::ConstScore(constant) => self.const_score(constant, &path.field("const_score")),
            Kind::FunctionScore(functions) => self.function_score(functions, &path.field("function_score")),
            Kind::DisMax(best) => self.dis_max(best, &path.field("dis_max")),
        }
    }

    fn term(term: &pb::TermQuery) -> Option<Query> {
        Some(Query::Term {
            field: name(&term.field)?,
            value: query_value(term.value.as_ref()?)?,
            weight: Self::weight(term.weight)?,
        })
    }

    fn terms(&mut self, terms: &pb::TermsQuery, at: &FieldPath) -> Option<Query> {
        if terms.values.len() > MAX_TERMS {
            self.limit(at.field("values"), "MAX_TERMS", MAX_TERMS, terms.values.len());
            return None;
        }
        Some(Query::Terms {
            field: name(&terms.field)?,
            values: terms.values.iter().map(query_value).collect::<Option<_>>()?,
            weight: Self::weight(terms.weight)?,
        })
    }

    fn range(range: &pb::RangeQuery) -> Option<Query> {
        use range_query::{Lower, Upper};

        Some(Query::Range {
            field: name(&range.field)?,
            lower: match &range.lower {
                None => Bound::Unbounded,
                Some(Lower::Gt(value)) => Bound::Excluded(query_value(value)?),
                Some(Lower::Gte(value)) => Bound::Included(query_value(value)?),
            },
            upper: match &range.upper {
                None => Bound::Unbounded,
                Some(Upper::Lt(value)) => Bound::Excluded(query_value(value)?),
                Some(Upper::Lte(value)) => Bound::Included(query_value(value)?),
            },
        })
    }

    fn prefix(prefix: &pb::PrefixQuery) -> Option<Query> {
        Some(Query::Prefix {
            field: name(&prefix.field)?,
            value: prefix.value.clone(),
            weight: Self::weight(prefix.weight)?,
        })
    }

    fn suffix(suffix: &pb::SuffixQuery) -> Option<Query> {
        Some(Query::Suffix {
            field: name(&suffix.field)?,
            value: suffix.value.clone(),
            weight: Self::weight(suffix.weight)?,
        })
    }

    fn wildcard(wildcard: &pb::WildcardQuery) -> Option<Query> {
        Some(Query::Wildcard {
            field: name(&wildcard.field)?,
            pattern: wildcard.pattern.clone(),
            weight: Self::weight(wildcard.weight)?,
        })
    }

    fn boolean(&mut self, bool: &pb::BoolQuery, at: &FieldPath) -> Option<Query> {
        let must = self.clauses(&bool.must, &at.field("must"));
        let filter = self.clauses(&bool.filter, &at.field("filter"));
        let should = self.clauses(&bool.should, &at.field("should"));
        let must_not = self.clauses(&bool.must_not, &at.field("must_not"));
        let minimum = self.minimum_of_clauses(bool, at);
        let query = Query::Bool {
            must: must?,
            filter: filter?,
            should: should?,
            must_not: must_not?,
            minimum_should_match: minimum?,
        };
        let weight = Self::weight(bool.weight)?;
        Some(if weight == DEFAULT_WEIGHT {
            query
        } else {
            let query = Box::new(query);
            Query::Weighted { query, weight }
        })
    }

    pub(super) fn clauses(&mut self, clauses: &[pb::Query], at: &FieldPath) -> Option<Vec<Query>> {
        let read: Vec<_> = clauses
            .iter()
            .enumerate()
            .map(|(index, clause)| self.query(clause, &at.index(index)))
            .collect();
        read.into_iter().collect()
    }

    fn nested(&mut self, nested: &pb::NestedQuery, at: &FieldPath) -> Option<Query> {
        let query = self.required_query(nested.query.as_deref(), at.field("query"));
        let score_mode = enumeration(nested.score_mode).map(|mode| match mode {
            pb::ScoreMode::Unspecified | pb::ScoreMode::None => ScoreMode::None,
            pb::ScoreMode::Avg => ScoreMode::Avg,
            pb::ScoreMode::Max => ScoreMode::Max,
            pb::ScoreMode::Min => ScoreMode::Min,
            pb::ScoreMode::Total => ScoreMode::Total,
        });
        let inner_hits = self.inner_hits(nested, at);
        Some(Query::Nested {
            path: name(&nested.path)?,
            query: Box::new(query?),
            score_mode: score_mode?,
            weight: Self::weight(nested.weight)?,
            inner_hits: inner_hits?,
        })
    }

    fn const_score(&mut self, constant: &pb::ConstScoreQuery, at: &FieldPath) -> Option<Query> {
        let filter = self.required_query(constant.filter.as_deref(), at.field("filter"))?;
        Some(Query::ConstScore {
            filter: Box::new(filter),
            weight: Self::weight(constant.weight)?,
        })
    }

    /// Reads the query that a rule of the contract requires inside another.
    pub(super) fn required_query(&mut self, query: Option<&pb::Query>, path: FieldPath) -> Option<Query> {
        self.query(query?, &path)
    }
}
