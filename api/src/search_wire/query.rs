//! The query tree.

use std::ops::Bound;

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_TERMS;
use souk_index::query::DEFAULT_WEIGHT;
use souk_index::{Query, ScoreMode};
use souk_proto::search::v1::{self as pb, query::Kind, range_query};

use super::reader::{Reader, enumeration, name};
use crate::wire::query_value;

impl Reader<'_> {
    /// Reads a query whose size has been checked; `None` comes with a violation.
    pub(super) fn query(&mut self, query: &pb::Query, path: &FieldPath) -> Option<Query> {
        match query.kind.as_ref()? {
            Kind::MatchAll(_) => Some(Query::MatchAll),
            Kind::Term(term) => Self::term(term),
            Kind::Terms(terms) => self.terms(terms, &path.field("terms")),
            Kind::Range(range) => Self::range(range),
            Kind::Prefix(prefix) => Self::prefix(prefix),
            Kind::Suffix(suffix) => Self::suffix(suffix),
            Kind::Wildcard(wildcard) => Self::wildcard(wildcard),
            Kind::Exists(exists) => {
                let field = name(&exists.field)?;
                Some(Query::Exists { field })
            }
            Kind::Match(text) => self.match_text(text, &path.field("match")),
            Kind::MatchPhrase(phrase) => Self::match_phrase(phrase),
            Kind::MatchPhrasePrefix(phrase) => Self::match_phrase_prefix(phrase),
            Kind::Bool(all) => self.boolean(all, &path.field("bool")),
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
        let field = name(&term.field);
        let value = term.value.as_ref().and_then(query_value);
        let weight = Self::weight(term.weight);
        Some(Query::Term {
            field: field?,
            value: value?,
            weight: weight?,
        })
    }

    fn terms(&mut self, terms: &pb::TermsQuery, at: &FieldPath) -> Option<Query> {
        let field = name(&terms.field);
        let weight = Self::weight(terms.weight);
        if terms.values.len() > MAX_TERMS {
            self.limit(at.field("values"), "MAX_TERMS", MAX_TERMS, terms.values.len());
            return None;
        }
        Some(Query::Terms {
            field: field?,
            values: terms.values.iter().map(query_value).collect::<Option<_>>()?,
            weight: weight?,
        })
    }

    fn range(range: &pb::RangeQuery) -> Option<Query> {
        use range_query::{Lower, Upper};

        let field = name(&range.field);
        let lower = match &range.lower {
            None => Some(Bound::Unbounded),
            Some(Lower::Gt(value)) => query_value(value).map(Bound::Excluded),
            Some(Lower::Gte(value)) => query_value(value).map(Bound::Included),
        };
        let upper = match &range.upper {
            None => Some(Bound::Unbounded),
            Some(Upper::Lt(value)) => query_value(value).map(Bound::Excluded),
            Some(Upper::Lte(value)) => query_value(value).map(Bound::Included),
        };
        Some(Query::Range {
            field: field?,
            lower: lower?,
            upper: upper?,
        })
    }

    fn prefix(prefix: &pb::PrefixQuery) -> Option<Query> {
        let field = name(&prefix.field);
        let weight = Self::weight(prefix.weight);
        Some(Query::Prefix {
            field: field?,
            value: prefix.value.clone(),
            weight: weight?,
        })
    }

    fn suffix(suffix: &pb::SuffixQuery) -> Option<Query> {
        let field = name(&suffix.field);
        let weight = Self::weight(suffix.weight);
        Some(Query::Suffix {
            field: field?,
            value: suffix.value.clone(),
            weight: weight?,
        })
    }

    fn wildcard(wildcard: &pb::WildcardQuery) -> Option<Query> {
        let field = name(&wildcard.field);
        let weight = Self::weight(wildcard.weight);
        Some(Query::Wildcard {
            field: field?,
            pattern: wildcard.pattern.clone(),
            weight: weight?,
        })
    }

    fn boolean(&mut self, all: &pb::BoolQuery, at: &FieldPath) -> Option<Query> {
        let must = self.clauses(&all.must, &at.field("must"));
        let filter = self.clauses(&all.filter, &at.field("filter"));
        let should = self.clauses(&all.should, &at.field("should"));
        let must_not = self.clauses(&all.must_not, &at.field("must_not"));
        let minimum = self.minimum_of_clauses(all, at);
        let weight = Self::weight(all.weight);
        let query = Query::Bool {
            must: must?,
            filter: filter?,
            should: should?,
            must_not: must_not?,
            minimum_should_match: minimum?,
        };
        let weight = weight?;
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
            .map(|(place, clause)| self.query(clause, &at.index(place)))
            .collect();
        read.into_iter().collect()
    }

    fn nested(&mut self, nested: &pb::NestedQuery, at: &FieldPath) -> Option<Query> {
        let path = name(&nested.path);
        let query = self.below(nested.query.as_deref(), at.field("query"));
        let score_mode = enumeration(nested.score_mode).map(|mode| match mode {
            pb::ScoreMode::Unspecified | pb::ScoreMode::None => ScoreMode::None,
            pb::ScoreMode::Avg => ScoreMode::Avg,
            pb::ScoreMode::Max => ScoreMode::Max,
            pb::ScoreMode::Min => ScoreMode::Min,
            pb::ScoreMode::Total => ScoreMode::Total,
        });
        let inner_hits = self.inner_hits(nested, at);
        let weight = Self::weight(nested.weight);
        Some(Query::Nested {
            path: path?,
            query: Box::new(query?),
            score_mode: score_mode?,
            weight: weight?,
            inner_hits: inner_hits?,
        })
    }

    fn const_score(&mut self, constant: &pb::ConstScoreQuery, at: &FieldPath) -> Option<Query> {
        let filter = self.below(constant.filter.as_deref(), at.field("filter"));
        let weight = Self::weight(constant.weight);
        Some(Query::ConstScore {
            filter: Box::new(filter?),
            weight: weight?,
        })
    }

    /// The query that a clause can't do without.
    pub(super) fn below(&mut self, query: Option<&pb::Query>, path: FieldPath) -> Option<Query> {
        self.query(query?, &path)
    }
}
