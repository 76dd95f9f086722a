//! The reference: what a query matches and how hits are ordered, by brute force over the documents as they were given.

use std::cmp::Ordering;
use std::ops::Bound;

use souk_index::{
    Analyzer, ArrayMode, FieldKind, FieldValue, GeoPoint, Missing, NestedSort, Object, Operator, Query,
    QueryValue, Schema, Sort, SortValue,
};

use super::words;

/// Where a query stands: on the objects of a NESTED field, or on the documents themselves (`""`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    schema: &'a Schema,
    path: &'a str,
}

impl<'a> Scope<'a> {
    /// The documents of a schema.
    pub(super) fn document(schema: &'a Schema) -> Self {
        Self { schema, path: "" }
    }

    fn inside(self, path: &'a str) -> Self {
        Self { path, ..self }
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
fn values<'a>(object: &'a Object, scope: Scope<'_>, field: &str) -> &'a [FieldValue] {
    let rest = if scope.path.is_empty() {
        field
    } else {
        &field[scope.path.len() + 1..]
    };
    object.values(rest.split('.').next().unwrap_or(rest))
}

fn text_of(value: &FieldValue) -> &str {
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

pub(super) fn integer_against_double(integer: i64, double: f64) -> Ordering {
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

fn points(object: &Object, scope: Scope<'_>, field: &str) -> Vec<GeoPoint> {
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
fn objects<'a>(object: &'a Object, scope: Scope<'_>, path: &str) -> Vec<&'a Object> {
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
pub(super) fn matches<'a>(query: &'a Query, object: &Object, scope: Scope<'a>) -> bool {
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
                .any(|token| within(&FieldValue::String(token), lower, upper))
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
        // Held against brute force by tests of their own.
        Query::MatchFuzzy { .. }
        | Query::FunctionScore { .. }
        | Query::DisMax { .. }
        | Query::Weighted { .. } => panic!("not asked here"),
    }
}

fn order_of(one: &SortValue, other: &SortValue) -> Ordering {
    match (one, other) {
        (SortValue::Long(a), SortValue::Long(b)) | (SortValue::Date(a), SortValue::Date(b)) => a.cmp(b),
        (SortValue::Double(a), SortValue::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (SortValue::Boolean(a), SortValue::Boolean(b)) => a.cmp(b),
        (SortValue::String(a), SortValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (SortValue::Key(a), SortValue::Key(b)) => a.cmp(b),
        (one, other) => panic!("{one:?} against {other:?}"),
    }
}

fn sort_value_of(value: &FieldValue) -> SortValue {
    match value {
        FieldValue::String(text) => SortValue::String(text.clone()),
        FieldValue::Long(number) => SortValue::Long(*number),
        FieldValue::Double(number) => SortValue::Double(*number),
        FieldValue::Boolean(flag) => SortValue::Boolean(*flag),
        FieldValue::Date(time) => SortValue::Date(*time),
        other => panic!("no order: {other:?}"),
    }
}

fn sum(values: &[&FieldValue]) -> f64 {
    let mut integers = 0_i128;
    let mut doubles = 0.0;
    for value in values {
        match value {
            FieldValue::Long(number) | FieldValue::Date(number) => integers += i128::from(*number),
            FieldValue::Double(number) => doubles += number,
            other => panic!("no sum: {other:?}"),
        }
    }
    doubles + integers as f64
}

fn substitute(missing: &Missing, like: SortSample) -> SortValue {
    match missing {
        Missing::First | Missing::Last => SortValue::Missing,
        Missing::Value(QueryValue::String(text)) => SortValue::String(text.clone()),
        Missing::Value(QueryValue::Boolean(flag)) => SortValue::Boolean(*flag),
        Missing::Value(QueryValue::Double(number)) => SortValue::Double(*number),
        Missing::Value(QueryValue::Time(time)) if !like.averaged => SortValue::Date(*time),
        Missing::Value(QueryValue::Integer(number)) if !like.averaged && !like.double => {
            SortValue::Long(*number)
        }
        Missing::Value(QueryValue::Integer(number) | QueryValue::Time(number)) => {
            SortValue::Double(*number as f64)
        }
        Missing::Value(QueryValue::Bytes(_)) => panic!("no field holds bytes"),
    }
}

struct SortSample {
    averaged: bool,
    double: bool,
}

/// What a document is sorted by. `None` for scores.
pub(super) fn sort_value_in(
    root: Scope<'_>,
    sort: &Sort,
    key: &[u8],
    document: &Object,
) -> Option<SortValue> {
    match sort {
        Sort::Score { .. } => None,
        Sort::PrimaryKey { .. } => Some(SortValue::Key(key.to_vec())),
        Sort::GeoDistance {
            field, points: there, ..
        } => {
            let here = points(document, root, field);
            let pairs = here
                .iter()
                .flat_map(|here| there.iter().map(|there| there.distance_meters(*here)));
            Some(
                pairs
                    .min_by(f64::total_cmp)
                    .map_or(SortValue::Missing, SortValue::Double),
            )
        }
        Sort::Field {
            field,
            descending,
            mode,
            missing,
            nested,
        } => {
            let all: Vec<&FieldValue> = match nested {
                None => values(document, root, field).iter().collect(),
                Some(NestedSort { path, filter }) => {
                    let inside = root.inside(path);
                    let fits = |object: &&Object| {
                        filter
                            .as_ref()
                            .is_none_or(|filter| matches(filter, object, inside))
                    };
                    objects(document, root, path)
                        .into_iter()
                        .filter(fits)
                        .flat_map(|object| values(object, inside, field))
                        .collect()
                }
            };
            let averaged = matches!(mode, Some(ArrayMode::Avg | ArrayMode::Sum));
            if all.is_empty() {
                let double = *root.kind(field) == FieldKind::Double;
                return Some(substitute(missing, SortSample { averaged, double }));
            }
            let each = all.iter().map(|value| sort_value_of(value));
            Some(
                match mode.unwrap_or(if *descending {
                    ArrayMode::Max
                } else {
                    ArrayMode::Min
                }) {
                    ArrayMode::Min => each.min_by(order_of).expect("a value"),
                    ArrayMode::Max => each.max_by(order_of).expect("a value"),
                    ArrayMode::Sum => SortValue::Double(sum(&all)),
                    ArrayMode::Avg => SortValue::Double(sum(&all) / all.len() as f64),
                },
            )
        }
    }
}

/// Compares two documents by their sort values, then by their keys.
pub(super) fn compare_hits(
    sorts: &[Sort],
    one: (&[u8], &[SortValue]),
    other: (&[u8], &[SortValue]),
) -> Ordering {
    for (sort, (a, b)) in sorts.iter().zip(one.1.iter().zip(other.1)) {
        let (descending, missing_first) = match sort {
            Sort::Field {
                descending, missing, ..
            } => (*descending, *missing == Missing::First),
            Sort::Score { ascending } => (!ascending, false),
            Sort::PrimaryKey { descending } | Sort::GeoDistance { descending, .. } => (*descending, false),
        };
        let towards_missing = if missing_first {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        let ordering = match (a == &SortValue::Missing, b == &SortValue::Missing) {
            (true, true) => Ordering::Equal,
            (true, false) => towards_missing,
            (false, true) => towards_missing.reverse(),
            (false, false) if descending => order_of(b, a),
            (false, false) => order_of(a, b),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    one.0.cmp(other.0)
}
