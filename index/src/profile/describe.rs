//! Clauses in words.

use std::ops::Bound;

use crate::analyze::{Phase, analyze};
use crate::geo::GeoPoint;
use crate::layout::Layout;
use crate::request::{Operator, Query, QueryValue};
use crate::schema::FieldKind;

/// Characters of a description; longer ones are cut.
const MAX_CHARS: usize = 200;
/// Values and tokens that are listed; further ones are counted.
const MAX_LISTED: usize = 8;

pub(super) fn describe(query: &Query, layout: &Layout) -> String {
    let mut text = words(query, layout);
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn words(query: &Query, layout: &Layout) -> String {
    let tokens = |field: &str, text: &str| listed(tokens(layout, field, text));
    let point = |point: &GeoPoint| format!("{}, {}", point.latitude(), point.longitude());
    let some = |operator: &Operator| match operator {
        Operator::And => "all",
        Operator::Or => "some",
    };
    let field = query.field().unwrap_or_default();
    match query {
        Query::MatchAll => "every document".to_owned(),
        Query::Term { value, .. } => format!("{field} is {}", word(value)),
        Query::Terms { values, .. } => format!("{field} is one of {}", listed(values.iter().map(word))),
        Query::Range { lower, upper, .. } => {
            let bound = |bound: &Bound<QueryValue>, [included, excluded]: [&str; 2]| match bound {
                Bound::Included(value) => format!(" {included} {}", word(value)),
                Bound::Excluded(value) => format!(" {excluded} {}", word(value)),
                Bound::Unbounded => String::new(),
            };
            let (lower, upper) = (bound(lower, ["from", "above"]), bound(upper, ["to", "below"]));
            format!("{field}{lower}{upper}")
        }
        Query::Prefix { value, .. } => format!("{field} begins with {value:?}"),
        Query::Suffix { value, .. } => format!("{field} ends with {value:?}"),
        Query::Wildcard { pattern, .. } => format!("{field} is like {pattern:?}"),
        Query::Exists { .. } => format!("{field} has a value"),
        Query::Match { text, operator, .. } => {
            format!("{field} has {} of {}", some(operator), tokens(field, text))
        }
        Query::MatchFuzzy {
            text,
            operator,
            fuzziness,
            ..
        } => {
            let (of, tokens) = (some(operator), tokens(field, text));
            format!("{field} has words like {of} of {tokens}, fuzziness {fuzziness:?}")
        }
        Query::MatchPhrase { text, slop, .. } => {
            format!("{field} has in this order {}, slop {slop}", tokens(field, text))
        }
        Query::MatchPhrasePrefix { text, .. } => {
            let tokens = tokens(field, text);
            format!("{field} has in this order {tokens}, the last as a prefix")
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
            parts.join(", ")
        }
        Query::Nested { score_mode, .. } => format!("an object of {field} matches, scores {score_mode:?}"),
        Query::GeoDistance {
            center,
            distance_meters,
            ..
        } => format!("{field} within {distance_meters} m of {}", point(center)),
        Query::GeoBoundingBox {
            top_left,
            bottom_right,
            ..
        } => format!("{field} from {} to {}", point(top_left), point(bottom_right)),
        Query::GeoPolygon { vertices, .. } => {
            format!("{field} inside a polygon of {} vertices", vertices.len())
        }
        Query::ConstScore { weight, .. } => format!("scores {weight}"),
        Query::FunctionScore(scored) => format!("a score by {} functions", scored.functions.len()),
        Query::DisMax { queries, .. } => format!("the best of {} queries", queries.len()),
        Query::Weighted { weight, .. } => format!("scores times {weight}"),
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
