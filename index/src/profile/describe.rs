//! Clauses in words.

use std::ops::Bound;

use crate::analyze::{Phase, analyze};
use crate::layout::Layout;
use crate::request::{Operator, Query, QueryValue};
use crate::schema::FieldKind;

/// Characters of a description; longer ones are cut.
const MAX_CHARS: usize = 200;
/// Values and tokens that are listed; further ones are counted.
const MAX_LISTED: usize = 8;

/// The kind of a clause, and what it looks for.
pub(super) fn describe(query: &Query, layout: &Layout) -> (&'static str, String) {
    let (kind, text) = words(query, layout);
    (kind, cut(text))
}

fn words(query: &Query, layout: &Layout) -> (&'static str, String) {
    match query {
        Query::MatchAll => ("match_all", "every document".to_owned()),
        Query::Term { field, value, .. } => ("term", format!("{field} is {}", word(value))),
        Query::Terms { field, values, .. } => {
            let values = listed(values.iter().map(word));
            ("terms", format!("{field} is one of {values}"))
        }
        Query::Range { field, lower, upper } => {
            let lower = match lower {
                Bound::Included(value) => format!("from {}", word(value)),
                Bound::Excluded(value) => format!("above {}", word(value)),
                Bound::Unbounded => String::new(),
            };
            let upper = match upper {
                Bound::Included(value) => format!("to {}", word(value)),
                Bound::Excluded(value) => format!("below {}", word(value)),
                Bound::Unbounded => String::new(),
            };
            let bounds = [field.clone(), lower, upper];
            let bounds: Vec<String> = bounds.into_iter().filter(|bound| !bound.is_empty()).collect();
            ("range", bounds.join(" "))
        }
        Query::Prefix { field, value, .. } => ("prefix", format!("{field} begins with {value:?}")),
        Query::Suffix { field, value, .. } => ("suffix", format!("{field} ends with {value:?}")),
        Query::Wildcard { field, pattern, .. } => ("wildcard", format!("{field} is like {pattern:?}")),
        Query::Exists { field } => ("exists", format!("{field} has a value")),
        Query::Match {
            field,
            text,
            operator,
            ..
        } => {
            let of = match operator {
                Operator::And => "all",
                Operator::Or => "some",
            };
            let tokens = listed(tokens(layout, field, text));
            ("match", format!("{field} has {of} of {tokens}"))
        }
        Query::MatchFuzzy {
            field,
            text,
            operator,
            fuzziness,
            ..
        } => {
            let of = match operator {
                Operator::And => "all",
                Operator::Or => "some",
            };
            let tokens = listed(tokens(layout, field, text));
            (
                "match",
                format!("{field} has words like {of} of {tokens}, fuzziness {fuzziness:?}"),
            )
        }
        Query::MatchPhrase {
            field, text, slop, ..
        } => {
            let tokens = listed(tokens(layout, field, text));
            (
                "match_phrase",
                format!("{field} has in this order {tokens}, slop {slop}"),
            )
        }
        Query::MatchPhrasePrefix { field, text, .. } => {
            let tokens = listed(tokens(layout, field, text));
            (
                "match_phrase_prefix",
                format!("{field} has in this order {tokens}, the last as a prefix"),
            )
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            ..
        } => {
            let parts = [
                (must.len(), "must"),
                (filter.len(), "filter"),
                (should.len(), "should"),
                (must_not.len(), "must_not"),
            ];
            let parts = parts.into_iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts.map(|(count, name)| format!("{count} {name}")).collect();
            ("bool", parts.join(", "))
        }
        Query::Nested { path, score_mode, .. } => (
            "nested",
            format!("an object of {path} matches, scores {score_mode:?}"),
        ),
        Query::GeoDistance {
            field,
            center,
            distance_meters,
        } => (
            "geo_distance",
            format!(
                "{field} within {distance_meters} m of {}, {}",
                center.latitude(),
                center.longitude()
            ),
        ),
        Query::GeoBoundingBox {
            field,
            top_left,
            bottom_right,
        } => (
            "geo_bounding_box",
            format!(
                "{field} from {}, {} to {}, {}",
                top_left.latitude(),
                top_left.longitude(),
                bottom_right.latitude(),
                bottom_right.longitude()
            ),
        ),
        Query::GeoPolygon { field, vertices } => (
            "geo_polygon",
            format!("{field} inside a polygon of {} vertices", vertices.len()),
        ),
        Query::ConstScore { weight, .. } => ("const_score", format!("scores {weight}")),
        Query::FunctionScore(scored) => {
            let functions = scored.functions.len();
            ("function_score", format!("a score by {functions} functions"))
        }
        Query::DisMax { queries, .. } => ("dis_max", format!("the best of {} queries", queries.len())),
        Query::Weighted { weight, .. } => ("weighted", format!("scores times {weight}")),
    }
}

fn word(value: &QueryValue) -> String {
    match value {
        QueryValue::String(text) => format!("{text:?}"),
        QueryValue::Integer(number) => number.to_string(),
        QueryValue::Double(number) => number.to_string(),
        QueryValue::Boolean(flag) => flag.to_string(),
        QueryValue::Bytes(bytes) => format!("{} bytes", bytes.len()),
        QueryValue::Time(nanos) => format!("{nanos} ns"),
    }
}

/// The tokens that a text becomes on a field.
fn tokens(layout: &Layout, field: &str, text: &str) -> Vec<String> {
    match layout.schema.resolve(field).map(|field| &field.kind) {
        Some(FieldKind::Text(analyzer)) => {
            let tokens = analyze(analyzer, Phase::Query, text).into_iter();
            tokens.map(|token| format!("{:?}", token.text)).collect()
        }
        Some(_) | None => vec![format!("{text:?}")],
    }
}

fn listed(words: impl IntoIterator<Item = String>) -> String {
    let mut words = words.into_iter();
    let mut text = words.by_ref().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    let more = words.count();
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}
