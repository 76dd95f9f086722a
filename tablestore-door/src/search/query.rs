//! Converts queries of the wire to the index's.

use std::ops::Bound;

use souk_engine::index::analyze::{Phase, analyze};
use souk_engine::index::limits::MAX_MATCH_TEXT_BYTES;
use souk_engine::index::query::DEFAULT_WEIGHT;
use souk_engine::index::{FieldKind, InnerHits, Minimum, Operator, Query, QueryValue, ScoreMode};
use souk_tablestore::messages::{self as pb, QueryOperator};
use souk_tablestore::{MinimumShouldMatch, QueryNode, ServiceError};

use super::fields::{Fields, count, enumeration, name, point};
use crate::error::{invalid, missing, unsupported};

/// Converts a query, with those that are nested in it.
pub(super) fn query(node: &QueryNode, fields: Fields<'_>) -> Result<Query, ServiceError> {
    Ok(match node {
        QueryNode::MatchAll => Query::MatchAll,
        QueryNode::Match(body) => match_text(body, fields)?,
        QueryNode::MatchPhrase(body) => Query::MatchPhrase {
            field: name(body.field_name.as_deref())?,
            text: body.text().to_owned(),
            slop: u32::try_from(body.slop())
                .map_err(|_| invalid("The slop of a match phrase query is negative."))?,
            weight: weight(body.weight)?,
        },
        QueryNode::Term(body) => {
            let field = name(body.field_name.as_deref())?;
            Query::Term {
                value: fields.value(&field, body.term.as_ref(), "The term of a term query")?,
                field,
                weight: weight(body.weight)?,
            }
        }
        QueryNode::Terms(body) => {
            let field = name(body.field_name.as_deref())?;
            let values = body
                .terms
                .iter()
                .map(|term| fields.value(&field, Some(term), "A term"));
            Query::Terms {
                values: values.collect::<Result<_, _>>()?,
                field,
                weight: weight(body.weight)?,
            }
        }
        QueryNode::Range(body) => range(body, fields)?,
        QueryNode::Prefix(body) => Query::Prefix {
            field: name(body.field_name.as_deref())?,
            value: body.prefix().to_owned(),
            weight: weight(body.weight)?,
        },
        QueryNode::Suffix(body) => Query::Suffix {
            field: name(body.field_name.as_deref())?,
            value: body.suffix().to_owned(),
            weight: weight(body.weight)?,
        },
        QueryNode::Wildcard(body) => Query::Wildcard {
            field: name(body.field_name.as_deref())?,
            pattern: body.value().to_owned(),
            weight: weight(body.weight)?,
        },
        QueryNode::Exists(body) => Query::exists(name(body.field_name.as_deref())?),
        QueryNode::GeoBoundingBox(body) => Query::GeoBoundingBox {
            field: name(body.field_name.as_deref())?,
            top_left: point(body.top_left())?,
            bottom_right: point(body.bottom_right())?,
        },
        QueryNode::GeoDistance(body) => Query::GeoDistance {
            field: name(body.field_name.as_deref())?,
            center: point(body.center_point())?,
            distance_meters: body
                .distance
                .ok_or_else(|| missing("The distance of a geo distance query"))?,
        },
        QueryNode::GeoPolygon(body) => Query::GeoPolygon {
            field: name(body.field_name.as_deref())?,
            vertices: body
                .points
                .iter()
                .map(|text| point(text))
                .collect::<Result<_, _>>()?,
        },
        QueryNode::Bool {
            must,
            must_not,
            filter,
            should,
            body,
        } => weighted(
            Query::Bool {
                must: queries(must, fields)?,
                filter: queries(filter, fields)?,
                should: queries(should, fields)?,
                must_not: queries(must_not, fields)?,
                // Without should clauses the minimum is ignored.
                minimum_should_match: minimum(
                    body.minimum_should_match,
                    body.new_minimum_should_match.as_deref(),
                    || should.len(),
                )?
                .filter(|_| !should.is_empty()),
            },
            weight(body.weight)?,
        ),
        QueryNode::Nested { query: inside, body } => Query::Nested {
            path: name(body.path.as_deref())?,
            query: Box::new(query(inside, fields)?),
            score_mode: match enumeration(body.score_mode, pb::ScoreMode::None, "score mode")? {
                pb::ScoreMode::None => ScoreMode::None,
                pb::ScoreMode::Avg => ScoreMode::Avg,
                pb::ScoreMode::Max => ScoreMode::Max,
                pb::ScoreMode::Total => ScoreMode::Total,
                pb::ScoreMode::Min => ScoreMode::Min,
            },
            weight: weight(body.weight)?,
            inner_hits: body
                .inner_hits
                .as_ref()
                .map(|asked| inner_hits(asked, fields))
                .transpose()?,
        },
        QueryNode::ConstScore { filter } => Query::ConstScore {
            filter: Box::new(query(filter, fields)?),
            weight: DEFAULT_WEIGHT,
        },
        QueryNode::FunctionScore { query: scored, body } => {
            fields.function_score(query(scored, fields)?, body)?
        }
        QueryNode::FunctionsScore {
            query: scored,
            filters,
            body,
        } => {
            let filters = filters
                .iter()
                .map(|filter| filter.as_ref().map(|filter| query(filter, fields)).transpose());
            let filters: Vec<_> = filters.collect::<Result<_, _>>()?;
            fields.functions_score(query(scored, fields)?, filters, body)?
        }
        QueryNode::KnnVector { .. } => {
            return Err(unsupported("knn vector queries: indexes have no VECTOR fields"));
        }
        QueryNode::DisMax { queries: all, body } => Query::DisMax {
            queries: queries(all, fields)?,
            tie_breaker: f64::from(body.tie_breaker()),
            weight: weight(body.weight)?,
        },
    })
}

fn queries(nodes: &[QueryNode], fields: Fields<'_>) -> Result<Vec<Query>, ServiceError> {
    nodes.iter().map(|node| query(node, fields)).collect()
}

fn weighted(query: Query, weight: f32) -> Query {
    match weight == DEFAULT_WEIGHT {
        true => query,
        false => Query::Weighted {
            query: Box::new(query),
            weight,
        },
    }
}

pub(super) fn weight(weight: Option<f32>) -> Result<f32, ServiceError> {
    match weight {
        None => Ok(DEFAULT_WEIGHT),
        Some(weight) if weight > 0.0 && weight.is_finite() => Ok(weight),
        Some(weight) => Err(invalid(format!(
            "The weight of a query is {weight}, which isn't a positive number."
        ))),
    }
}

/// How many of the optional clauses have to match; `None` is the default. `clauses` counts them, where a text may say a percentage.
fn minimum(
    number: Option<i32>,
    text: Option<&str>,
    clauses: impl FnOnce() -> usize,
) -> Result<Option<u32>, ServiceError> {
    let least = match MinimumShouldMatch::new(number, text.filter(|text| !text.is_empty())) {
        None => return Ok(None),
        Some(MinimumShouldMatch::Count(number)) => u32::try_from(number).unwrap_or_default(),
        Some(MinimumShouldMatch::Text(text)) => match Minimum::parse(&text) {
            Some(minimum) => minimum.of(u32::try_from(clauses()).unwrap_or(u32::MAX)),
            None => return Err(invalid(format!("Invalid minimum_should_match: '{text}'."))),
        },
    };
    Ok(Some(least).filter(|least| *least > 0))
}

fn match_text(body: &pb::MatchQuery, fields: Fields<'_>) -> Result<Query, ServiceError> {
    let field = name(body.field_name.as_deref())?;
    let text = body.text().to_owned();
    let operator = match enumeration(body.operator, QueryOperator::Or, "query operator")? {
        QueryOperator::Or => Operator::Or,
        QueryOperator::And => Operator::And,
    };
    let words = || {
        let kind = fields.resolve(&field).map(|field| &field.kind);
        match kind {
            Some(FieldKind::Text(analyzer)) if text.len() <= MAX_MATCH_TEXT_BYTES => {
                analyze(analyzer, Phase::Query, &text).len()
            }
            // The index says what is wrong with others.
            _ => 1,
        }
    };
    let text_of_minimum = body.new_minimum_should_match.as_deref();
    // With all words nothing is left to say.
    let minimum_should_match = match operator {
        Operator::And => None,
        Operator::Or => minimum(body.minimum_should_match, text_of_minimum, words)?,
    };
    Ok(Query::Match {
        weight: weight(body.weight)?,
        field,
        text,
        operator,
        minimum_should_match,
    })
}

fn range(body: &pb::RangeQuery, fields: Fields<'_>) -> Result<Query, ServiceError> {
    let field = name(body.field_name.as_deref())?;
    let end = |bytes: Option<&bytes::Bytes>, is_included: bool| -> Result<Bound<QueryValue>, ServiceError> {
        Ok(match fields.optional(&field, bytes)? {
            None => Bound::Unbounded,
            Some(value) if is_included => Bound::Included(value),
            Some(value) => Bound::Excluded(value),
        })
    };
    let (lower, upper) = (
        end(body.range_from.as_ref(), body.include_lower())?,
        end(body.range_to.as_ref(), body.include_upper())?,
    );
    Ok(Query::range(field, lower, upper))
}

fn inner_hits(asked: &pb::InnerHits, fields: Fields<'_>) -> Result<InnerHits, ServiceError> {
    if fields.in_sort {
        return Err(unsupported("inner hits in the filter of a sort"));
    }
    if asked.highlight.is_some() {
        return Err(unsupported("highlights of inner hits"));
    }
    let default = InnerHits::default();
    Ok(InnerHits {
        name: None,
        sort: match &asked.sort {
            Some(sort) => fields.object_sorts(sort)?,
            None => Vec::new(),
        },
        size: asked
            .limit
            .map_or(Ok(default.size), |limit| count(limit, "The limit of inner hits"))?,
        offset: count(asked.offset(), "The offset of inner hits")?,
    })
}
