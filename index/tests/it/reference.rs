//! The reference: what a query matches and how hits are ordered, by brute force over the documents as they were given.
//!
//! | module | what it knows |
//! |---|---|
//! | `words` | what a text has of the words and phrases of a query |
//! | `order` | what documents are sorted by, and which comes first |

mod order;
mod words;

use std::cmp::Ordering;
use std::ops::Bound;

use souk_index::{Analyzer, FieldKind, FieldValue, GeoPoint, Object, Operator, Query, QueryValue, Schema};

pub(crate) use order::{compare_hits, sort_value};
pub(crate) use words::single_words;

/// Where a query stands: on the objects of a NESTED field, or on the documents themselves (`""`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    schema: &'a Schema,
    path: &'a str,
}

impl<'a> Scope<'a> {
    /// The documents of a schema.
    pub(crate) fn document(schema: &'a Schema) -> Self {
        Self { schema, path: "" }
    }

    /// The objects of a NESTED field, by its full path.
    pub(crate) fn inside(self, path: &'a str) -> Self {
        Self { path, ..self }
    }

    /// Whether a field is TEXT.
    pub(crate) fn is_text(self, field: &str) -> bool {
        self.analyzer(field).is_some()
    }

    fn kind(self, field: &str) -> &'a FieldKind {
        let resolved = self.schema.resolve(field);
        &resolved.expect("queries are on fields of the schema").kind
    }

    fn analyzer(self, field: &str) -> Option<&'a Analyzer> {
        match self.kind(field) {
            FieldKind::Text(analyzer) => Some(analyzer),
            _ => None,
        }
    }
}

/// The values of a field, addressed by its full path, on an object of a scope. A sub-field has those of its field.
pub(crate) fn values<'a>(object: &'a Object, scope: Scope<'_>, field: &str) -> &'a [FieldValue] {
    let rest = if scope.path.is_empty() {
        field
    } else {
        &field[scope.path.len() + 1..]
    };
    object.values(rest.split('.').next().unwrap_or(rest))
}

pub(crate) fn text_of(value: &FieldValue) -> &str {
    match value {
        FieldValue::String(text) => text,
        other => panic!("not a string: {other:?}"),
    }
}

/// The strings that patterns and terms see: tokens of a TEXT, whole values of a KEYWORD.
fn strings(object: &Object, scope: Scope<'_>, field: &str) -> Vec<String> {
    let texts = values(object, scope, field).iter().map(text_of);
    match scope.analyzer(field) {
        Some(analyzer) => texts.flat_map(|text| words::tokens(analyzer, text)).collect(),
        None => texts.map(str::to_owned).collect(),
    }
}

/// The texts of a field.
fn texts<'a>(object: &'a Object, scope: Scope<'_>, field: &str) -> Vec<&'a str> {
    values(object, scope, field).iter().map(text_of).collect()
}

pub(crate) fn integer_against_double(integer: i64, double: f64) -> Ordering {
    if double >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if double < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let whole = double.floor();
    let below = integer.cmp(&(whole as i64));
    if below.is_eq() && double > whole {
        Ordering::Less
    } else {
        below
    }
}

fn compare(value: &FieldValue, with: &QueryValue) -> Ordering {
    match (value, with) {
        (FieldValue::String(a), QueryValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (FieldValue::Long(a) | FieldValue::Date(a), QueryValue::Integer(b) | QueryValue::Time(b)) => a.cmp(b),
        (FieldValue::Long(a), QueryValue::Double(b)) => integer_against_double(*a, *b),
        (FieldValue::Double(a), QueryValue::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (FieldValue::Double(a), QueryValue::Integer(b)) => integer_against_double(*b, *a).reverse(),
        (FieldValue::Boolean(a), QueryValue::Boolean(b)) => a.cmp(b),
        (value, with) => panic!("{value:?} against {with:?}"),
    }
}

fn equals_any(object: &Object, scope: Scope<'_>, field: &str, with: &QueryValue) -> bool {
    if let (Some(_), QueryValue::String(token)) = (scope.analyzer(field), with) {
        return strings(object, scope, field).contains(token);
    }
    values(object, scope, field)
        .iter()
        .any(|value| compare(value, with).is_eq())
}

fn within(value: &FieldValue, lower: &Bound<QueryValue>, upper: &Bound<QueryValue>) -> bool {
    let above = match lower {
        Bound::Included(bound) => compare(value, bound).is_ge(),
        Bound::Excluded(bound) => compare(value, bound).is_gt(),
        Bound::Unbounded => true,
    };
    above
        && match upper {
            Bound::Included(bound) => compare(value, bound).is_le(),
            Bound::Excluded(bound) => compare(value, bound).is_lt(),
            Bound::Unbounded => true,
        }
}

fn wildcard(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|skip| wildcard(rest, &text[skip..])),
        ['?', rest @ ..] => !text.is_empty() && wildcard(rest, &text[1..]),
        ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
            text.first() == Some(literal) && wildcard(rest, &text[1..])
        }
    }
}

pub(crate) fn points(object: &Object, scope: Scope<'_>, field: &str) -> Vec<GeoPoint> {
    let point = |value: &FieldValue| match value {
        FieldValue::GeoPoint(point) => *point,
        other => panic!("not a point: {other:?}"),
    };
    values(object, scope, field).iter().map(point).collect()
}

fn in_box(point: GeoPoint, top_left: GeoPoint, bottom_right: GeoPoint) -> bool {
    let (west, east, x) = (top_left.longitude(), bottom_right.longitude(), point.longitude());
    let in_longitude = if west <= east {
        west <= x && x <= east
    } else {
        west <= x || x <= east
    };
    in_longitude && bottom_right.latitude() <= point.latitude() && point.latitude() <= top_left.latitude()
}

/// Casts a ray to the east; the boundary is left to chance, which never hits it here.
fn in_polygon(point: GeoPoint, vertices: &[GeoPoint]) -> bool {
    let (x, y) = (point.longitude(), point.latitude());
    let mut inside = false;
    for (nth, a) in vertices.iter().enumerate() {
        let b = vertices[(nth + 1) % vertices.len()];
        if (a.latitude() > y) != (b.latitude() > y) {
            let at = (y - a.latitude()) / (b.latitude() - a.latitude());
            inside ^= x < a.longitude() + at * (b.longitude() - a.longitude());
        }
    }
    inside
}

/// The objects of a NESTED field, any number of levels inside `object`.
pub(crate) fn objects<'a>(object: &'a Object, scope: Scope<'_>, path: &str) -> Vec<&'a Object> {
    let rest = if scope.path.is_empty() {
        path
    } else {
        &path[scope.path.len() + 1..]
    };
    let mut found = vec![object];
    for name in rest.split('.') {
        let inside = found
            .iter()
            .flat_map(|object| object.values(name))
            .flat_map(|value| match value {
                FieldValue::Objects(objects) => objects.iter(),
                other => panic!("not objects: {other:?}"),
            });
        found = inside.collect();
    }
    found
}

/// Whether an object of a scope matches.
pub(crate) fn matches<'a>(query: &'a Query, object: &Object, scope: Scope<'a>) -> bool {
    let is = |query: &'a Query| matches(query, object, scope);
    match query {
        Query::MatchAll => true,
        Query::Term { field, value, .. } => equals_any(object, scope, field, value),
        Query::Terms { field, values, .. } => {
            values.iter().any(|value| equals_any(object, scope, field, value))
        }
        Query::Range { field, lower, upper } if scope.analyzer(field).is_some() => {
            strings(object, scope, field)
                .into_iter()
                .any(|token| within(&FieldValue::from(token), lower, upper))
        }
        Query::Range { field, lower, upper } => values(object, scope, field)
            .iter()
            .any(|value| within(value, lower, upper)),
        Query::Prefix { field, value, .. } => {
            strings(object, scope, field).iter().any(|s| s.starts_with(value))
        }
        Query::Suffix { field, value, .. } => {
            strings(object, scope, field).iter().any(|s| s.ends_with(value))
        }
        // A run of anything alone asks for any value, also a text without a token.
        Query::Wildcard { field, pattern, .. } if pattern.chars().all(|c| c == '*') => {
            !values(object, scope, field).is_empty()
        }
        Query::Wildcard { field, pattern, .. } => {
            let pattern: Vec<char> = pattern.chars().collect();
            strings(object, scope, field)
                .iter()
                .any(|s| wildcard(&pattern, &s.chars().collect::<Vec<_>>()))
        }
        Query::Exists { field } => !values(object, scope, field).is_empty(),
        Query::Match {
            field,
            text,
            operator,
            minimum_should_match,
            ..
        } => {
            let Some(analyzer) = scope.analyzer(field) else {
                return texts(object, scope, field).contains(&text.as_str());
            };
            let needed = |words: usize| match operator {
                Operator::And => words,
                Operator::Or => minimum_should_match.unwrap_or(1) as usize,
            };
            words::matches(analyzer, text, &texts(object, scope, field), needed)
        }
        Query::MatchPhrase {
            field, text, slop, ..
        } => {
            let Some(analyzer) = scope.analyzer(field) else {
                return texts(object, scope, field).contains(&text.as_str());
            };
            words::has_phrase(analyzer, text, u64::from(*slop), &texts(object, scope, field))
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            minimum_should_match,
        } => {
            let optional = !must.is_empty() || !filter.is_empty() || should.is_empty();
            let needed = minimum_should_match.map_or(usize::from(!optional), |minimum| minimum as usize);
            must.iter().chain(filter).all(is)
                && !must_not.iter().any(is)
                && should.iter().filter(|query| is(query)).count() >= needed
        }
        Query::Nested { path, query, .. } => objects(object, scope, path)
            .into_iter()
            .any(|object| matches(query, object, scope.inside(path))),
        Query::GeoDistance {
            field,
            center,
            distance_meters,
        } => points(object, scope, field)
            .iter()
            .any(|point| center.distance_meters(*point) <= *distance_meters),
        Query::GeoBoundingBox {
            field,
            top_left,
            bottom_right,
        } => points(object, scope, field)
            .iter()
            .any(|point| in_box(*point, *top_left, *bottom_right)),
        Query::GeoPolygon { field, vertices } => points(object, scope, field)
            .iter()
            .any(|point| in_polygon(*point, vertices)),
        Query::ConstScore { filter, .. } => is(filter),
        Query::MatchPhrasePrefix { field, text, .. } if scope.analyzer(field).is_some() => scope
            .analyzer(field)
            .is_some_and(|analyzer| words::begins_phrase(analyzer, text, &texts(object, scope, field))),
        Query::MatchPhrasePrefix { field, text, .. } => {
            strings(object, scope, field).iter().any(|s| s.starts_with(text))
        }
        // Held against brute force in `text_queries`.
        Query::MatchFuzzy { .. } => panic!("the reference doesn't know misspelled words"),
        Query::DisMax { queries, .. } => queries.iter().any(is),
        Query::Weighted { query, .. } => is(query),
        Query::FunctionScore(scored) => {
            assert_eq!(scored.min_score, None, "the reference doesn't know scores");
            is(&scored.query)
        }
    }
}
