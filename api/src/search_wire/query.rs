//! The query tree.

use std::ops::Bound;

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_TERMS;
use souk_index::query::DEFAULT_WEIGHT;
use souk_index::{Query, QueryValue, ScoreMode};
use souk_proto::search::v1::{self as pb, query::Kind, range_query};
use souk_proto::r#type::v1::Value;

use super::reader::Reader;
use crate::wire::query_value;

impl Reader<'_> {
    /// Reads a query whose size has been checked; `None` comes with a violation.
    pub(super) fn query(&mut self, query: &pb::Query, path: &FieldPath) -> Option<Query> {
        let Some(kind) = &query.kind else {
            self.violations.push(
                path,
                "FIELD_REQUIRED",
                "needs one of the kinds of Query, for example match_all or term",
            );
            return None;
        };
        match kind {
            Kind::MatchAll(_) => Some(Query::MatchAll),
            Kind::Term(term) => self.term(term, &path.field("term")),
            Kind::Terms(terms) => self.terms(terms, &path.field("terms")),
            Kind::Range(range) => self.range(range, &path.field("range")),
            Kind::Prefix(prefix) => self.prefix(prefix, &path.field("prefix")),
            Kind::Suffix(suffix) => self.suffix(suffix, &path.field("suffix")),
            Kind::Wildcard(wildcard) => self.wildcard(wildcard, &path.field("wildcard")),
            Kind::Exists(exists) => {
                let field = self.name(&exists.field, &path.field("exists"), "field")?;
                Some(Query::Exists { field })
            }
            Kind::Match(text) => self.match_text(text, &path.field("match")),
            Kind::MatchPhrase(phrase) => self.match_phrase(phrase, &path.field("match_phrase")),
            Kind::MatchPhrasePrefix(phrase) => {
                self.match_phrase_prefix(phrase, &path.field("match_phrase_prefix"))
            }
            Kind::Bool(all) => self.boolean(all, &path.field("bool")),
            Kind::Nested(nested) => self.nested(nested, &path.field("nested")),
            Kind::GeoDistance(circle) => self.geo_distance(circle, &path.field("geo_distance")),
            Kind::GeoBoundingBox(area) => self.geo_bounding_box(area, &path.field("geo_bounding_box")),
            Kind::GeoPolygon(polygon) => self.geo_polygon(polygon, &path.field("geo_polygon")),
            Kind::ConstScore(constant) => self.const_score(constant, &path.field("const_score")),
            Kind::FunctionScore(functions) => self.function_score(functions, &path.field("function_score")),
            Kind::DisMax(best) => self.dis_max(best, &path.field("dis_max")),
        }
    }

    fn term(&mut self, term: &pb::TermQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&term.field, at, "field");
        let value = query_value(term.value.as_ref(), at.field("value"), &mut self.violations);
        let weight = self.weight(term.weight, at);
        Some(Query::Term {
            field: field?,
            value: value?,
            weight: weight?,
        })
    }

    fn terms(&mut self, terms: &pb::TermsQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&terms.field, at, "field");
        let weight = self.weight(terms.weight, at);
        let path = at.field("values");
        if terms.values.is_empty() {
            let message = format!("is empty, 1 to {MAX_TERMS} values are needed");
            self.violations.push(path, "FIELD_REQUIRED", message);
            return None;
        }
        if terms.values.len() > MAX_TERMS {
            self.limit(path, "MAX_TERMS", MAX_TERMS, terms.values.len());
            return None;
        }
        let values: Vec<_> = terms
            .values
            .iter()
            .enumerate()
            .map(|(place, value)| query_value(Some(value), path.index(place), &mut self.violations))
            .collect();
        Some(Query::Terms {
            field: field?,
            values: values.into_iter().collect::<Option<_>>()?,
            weight: weight?,
        })
    }

    fn range(&mut self, range: &pb::RangeQuery, at: &FieldPath) -> Option<Query> {
        use range_query::{Lower, Upper};

        let field = self.name(&range.field, at, "field");
        let lower = match &range.lower {
            None => Some(Bound::Unbounded),
            Some(Lower::Gt(value)) => self.end(value, at.field("gt")).map(Bound::Excluded),
            Some(Lower::Gte(value)) => self.end(value, at.field("gte")).map(Bound::Included),
        };
        let upper = match &range.upper {
            None => Some(Bound::Unbounded),
            Some(Upper::Lt(value)) => self.end(value, at.field("lt")).map(Bound::Excluded),
            Some(Upper::Lte(value)) => self.end(value, at.field("lte")).map(Bound::Included),
        };
        Some(Query::Range {
            field: field?,
            lower: lower?,
            upper: upper?,
        })
    }

    fn end(&mut self, value: &Value, path: FieldPath) -> Option<QueryValue> {
        query_value(Some(value), path, &mut self.violations)
    }

    fn prefix(&mut self, prefix: &pb::PrefixQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&prefix.field, at, "field");
        let weight = self.weight(prefix.weight, at);
        Some(Query::Prefix {
            field: field?,
            value: prefix.value.clone(),
            weight: weight?,
        })
    }

    fn suffix(&mut self, suffix: &pb::SuffixQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&suffix.field, at, "field");
        let weight = self.weight(suffix.weight, at);
        Some(Query::Suffix {
            field: field?,
            value: suffix.value.clone(),
            weight: weight?,
        })
    }

    fn wildcard(&mut self, wildcard: &pb::WildcardQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&wildcard.field, at, "field");
        let weight = self.weight(wildcard.weight, at);
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
        let weight = self.weight(all.weight, at);
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
        let path = self.name(&nested.path, at, "path");
        let query = self.below(nested.query.as_deref(), at.field("query"));
        let score_mode =
            self.enumeration(nested.score_mode, &at.field("score_mode"))
                .map(|mode| match mode {
                    pb::ScoreMode::Unspecified | pb::ScoreMode::None => ScoreMode::None,
                    pb::ScoreMode::Avg => ScoreMode::Avg,
                    pb::ScoreMode::Max => ScoreMode::Max,
                    pb::ScoreMode::Min => ScoreMode::Min,
                    pb::ScoreMode::Total => ScoreMode::Total,
                });
        let inner_hits = self.inner_hits(nested, at);
        let weight = self.weight(nested.weight, at);
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
        let weight = self.weight(constant.weight, at);
        Some(Query::ConstScore {
            filter: Box::new(filter?),
            weight: weight?,
        })
    }

    /// The query that a clause can't do without.
    pub(super) fn below(&mut self, query: Option<&pb::Query>, path: FieldPath) -> Option<Query> {
        let Some(query) = query else {
            self.violations.required(path);
            return None;
        };
        self.query(query, &path)
    }
}
