//! Random queries on the fields of a schema.

use std::cmp::Ordering;
use std::ops::Bound;

use fastrand::Rng;
use souk_index::{
    Analyzer, FieldKind, GeoPoint, Operator, Query, QueryValue, ResolvedField, Schema, ScoreMode,
};

use super::super::reference::integer_against_double;
use super::super::value::{self, pick};

/// The fields on the objects of a scope, `""` being the documents.
fn fields<'a>(schema: &'a Schema, scope: &str) -> Vec<&'a ResolvedField> {
    let of_scope = |field: &&ResolvedField| field.scope.as_deref().unwrap_or_default() == scope;
    schema.resolved().iter().filter(of_scope).collect()
}

/// The paths of objects inside of a scope, at any depth.
fn paths<'a>(schema: &'a Schema, scope: &str) -> Vec<&'a str> {
    let inside = |field: &&ResolvedField| {
        let below = scope.is_empty()
            || field
                .path
                .strip_prefix(scope)
                .is_some_and(|rest| rest.starts_with('.'));
        below && matches!(field.kind, FieldKind::Nested(_))
    };
    schema
        .resolved()
        .iter()
        .filter(inside)
        .map(|field| field.path.as_str())
        .collect()
}

fn weight(rng: &mut Rng) -> f32 {
    pick(rng, &[0.0, 1.0, 1.0, 2.5])
}

/// A query on the objects of a scope.
pub(super) fn query(rng: &mut Rng, schema: &Schema, scope: &str, depth: u32) -> Query {
    match rng.u8(..if depth == 0 { 9 } else { 14 }) {
        0 => Query::MatchAll,
        1..=8 => {
            let fields = fields(schema, scope);
            let field = pick(rng, &fields);
            on_field(rng, schema, field, depth)
        }
        9 | 10 => {
            let paths = paths(schema, scope);
            if paths.is_empty() {
                return query(rng, schema, scope, depth - 1);
            }
            let path = pick(rng, &paths);
            nested(rng, schema, path, depth)
        }
        11 => Query::ConstScore {
            filter: Box::new(query(rng, schema, scope, depth - 1)),
            weight: weight(rng),
        },
        _ => {
            let mut clauses = |most: usize| -> Vec<Query> {
                (0..rng.usize(..=most))
                    .map(|_| query(rng, schema, scope, depth - 1))
                    .collect()
            };
            let (must, filter, should, must_not) = (clauses(2), clauses(1), clauses(3), clauses(1));
            let minimum_should_match = rng.bool().then(|| rng.u32(..=should.len() as u32));
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                minimum_should_match,
            }
        }
    }
}

fn nested(rng: &mut Rng, schema: &Schema, path: &str, depth: u32) -> Query {
    let modes = [
        ScoreMode::None,
        ScoreMode::Avg,
        ScoreMode::Max,
        ScoreMode::Min,
        ScoreMode::Total,
    ];
    Query::Nested {
        path: path.to_owned(),
        query: Box::new(query(rng, schema, path, depth.saturating_sub(1))),
        score_mode: pick(rng, &modes),
        weight: weight(rng),
        inner_hits: None,
    }
}

fn on_field(rng: &mut Rng, schema: &Schema, field: &ResolvedField, depth: u32) -> Query {
    if rng.u8(..8) == 0 {
        return Query::exists(&field.path);
    }
    match &field.kind {
        FieldKind::Attributes => Query::exists(&field.path),
        FieldKind::Nested(_) => nested(rng, schema, &field.path, depth),
        FieldKind::GeoPoint => area(rng, &field.path),
        FieldKind::Boolean => one_or_several(rng, field),
        FieldKind::Long | FieldKind::Double | FieldKind::Date if rng.bool() => range(rng, field),
        FieldKind::Long | FieldKind::Double | FieldKind::Date => one_or_several(rng, field),
        FieldKind::Keyword | FieldKind::Text(_) => match rng.u8(..5) {
            0 => range(rng, field),
            1 => one_or_several(rng, field),
            2 | 3 => pattern(rng, field),
            _ => full_text(rng, field),
        },
    }
}

/// A string that the field can have: a token of a TEXT.
fn string(rng: &mut Rng, field: &ResolvedField) -> String {
    if matches!(field.kind, FieldKind::Text(_)) && rng.bool() {
        let text = value::asked_text(rng);
        let part: Vec<char> = text.chars().take(rng.usize(1..5)).collect();
        return part.into_iter().collect::<String>().to_lowercase();
    }
    value::word(rng)
}

/// Something that the field's values are compared with.
fn asked(rng: &mut Rng, field: &ResolvedField) -> QueryValue {
    match field.kind {
        FieldKind::Long | FieldKind::Double if rng.bool() => QueryValue::Double(value::asked_double(rng)),
        FieldKind::Long | FieldKind::Double => QueryValue::Integer(value::integer(rng)),
        FieldKind::Date if rng.u8(..4) == 0 => QueryValue::Integer(value::time(rng)),
        FieldKind::Date => QueryValue::Time(value::time(rng)),
        FieldKind::Boolean => QueryValue::Boolean(rng.bool()),
        _ => QueryValue::String(string(rng, field)),
    }
}

fn one_or_several(rng: &mut Rng, field: &ResolvedField) -> Query {
    let path = field.path.clone();
    if rng.bool() {
        return Query::Term {
            field: path,
            value: asked(rng, field),
            weight: weight(rng),
        };
    }
    let count = pick(rng, &[1, 2, 3, 5, 20]);
    Query::Terms {
        field: path,
        values: (0..count).map(|_| asked(rng, field)).collect(),
        weight: weight(rng),
    }
}

fn order(a: &QueryValue, b: &QueryValue) -> Ordering {
    use QueryValue::{Double, Integer, String, Time};
    match (a, b) {
        (String(a), String(b)) => a.cmp(b),
        (Integer(a) | Time(a), Integer(b) | Time(b)) => a.cmp(b),
        (Double(a), Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (Integer(a), Double(b)) => integer_against_double(*a, *b),
        (Double(a), Integer(b)) => integer_against_double(*b, *a).reverse(),
        (a, b) => panic!("{a:?} against {b:?}"),
    }
}

fn range(rng: &mut Rng, field: &ResolvedField) -> Query {
    let (mut a, mut b) = (asked(rng, field), asked(rng, field));
    if order(&a, &b).is_gt() {
        (a, b) = (b, a);
    }
    let bound = |rng: &mut Rng, value| match rng.u8(..6) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(value),
        _ => Bound::Included(value),
    };
    let (lower, upper) = match (bound(rng, a.clone()), bound(rng, b)) {
        (Bound::Unbounded, Bound::Unbounded) => (Bound::Included(a), Bound::Unbounded),
        both => both,
    };
    Query::range(&field.path, lower, upper)
}

fn pattern(rng: &mut Rng, field: &ResolvedField) -> Query {
    let word: Vec<char> = string(rng, field).chars().collect();
    if word.is_empty() {
        return Query::exists(&field.path);
    }
    let from = rng.usize(..word.len());
    let (path, weight) = (field.path.clone(), weight(rng));
    match rng.u8(..4) {
        0 => Query::Prefix {
            field: path,
            value: word[..=from].iter().collect(),
            weight,
        },
        1 => Query::Suffix {
            field: path,
            value: word[from..].iter().collect(),
            weight,
        },
        2 => {
            // Somewhere inside.
            let to = rng.usize(from + 1..=word.len());
            let inside = word[from..to].iter().flat_map(|c| ['\\', *c]);
            let pattern: String = inside.take(30).collect();
            Query::Wildcard {
                field: path,
                pattern: format!("*{pattern}*"),
                weight,
            }
        }
        _ => {
            let mut pattern = String::new();
            for c in word.into_iter().take(10) {
                match rng.u8(..8) {
                    0 => pattern.push('*'),
                    1 => pattern.push('?'),
                    2 => pattern.extend(['*', '\\', c]),
                    _ => pattern.extend(['\\', c]),
                }
            }
            Query::Wildcard {
                field: path,
                pattern,
                weight,
            }
        }
    }
}

fn full_text(rng: &mut Rng, field: &ResolvedField) -> Query {
    let path = field.path.clone();
    let text = value::asked_text(rng);
    let stems_or_parts = matches!(
        field.kind,
        FieldKind::Text(Analyzer::Fuzzy { .. } | Analyzer::Stemmed(_))
    );
    if rng.u8(..6) == 0 && !stems_or_parts {
        let weight = weight(rng);
        return Query::MatchPhrasePrefix {
            field: path,
            text,
            weight,
        };
    }
    if rng.u8(..3) == 0 {
        // What slop means for parts of words, and from one text of an array to the next, isn't told.
        let whole = !matches!(field.kind, FieldKind::Text(Analyzer::Fuzzy { .. })) && !field.array;
        return Query::MatchPhrase {
            field: path,
            text,
            slop: if whole { pick(rng, &[0, 0, 1, 2, 256]) } else { 0 },
            weight: weight(rng),
        };
    }
    let and = rng.bool();
    Query::Match {
        field: path,
        text,
        operator: if and { Operator::And } else { Operator::Or },
        minimum_should_match: (!and && rng.bool()).then(|| rng.u32(1..4)),
        weight: weight(rng),
    }
}

/// A point that isn't on the antimeridian, which has two longitudes: as a side it belongs to both halves of the globe.
fn inland(rng: &mut Rng) -> GeoPoint {
    loop {
        let point = value::point(rng);
        if point.longitude().abs() < 180.0 {
            return point;
        }
    }
}

/// An area of any kind that a field's points may lie in.
pub(crate) fn area(rng: &mut Rng, field: &str) -> Query {
    let field = field.to_owned();
    match rng.u8(..3) {
        0 => Query::GeoDistance {
            field,
            center: value::point(rng),
            distance_meters: pick(rng, &[0.0, 10.0, 3_000.0, 12_000.0, 9_000_000.0, 20_037_508.0]),
        },
        1 => {
            let (a, b) = (inland(rng), inland(rng));
            let (north, south) = (a.latitude().max(b.latitude()), a.latitude().min(b.latitude()));
            Query::GeoBoundingBox {
                field,
                top_left: GeoPoint::new(north, a.longitude()).expect("in range"),
                bottom_right: GeoPoint::new(south, b.longitude()).expect("in range"),
            }
        }
        _ => {
            // Of a star around its centre, whose edges never cross.
            let center = value::near(rng, (30.27, 120.15), 0.4);
            let count = rng.usize(3..20);
            let vertices = (0..count).map(|nth| {
                let angle = std::f64::consts::TAU * nth as f64 / count as f64;
                let radius = 0.02 + rng.f64() * 0.2;
                let latitude = center.latitude() + radius * angle.sin();
                GeoPoint::new(latitude, center.longitude() + radius * angle.cos()).expect("in range")
            });
            Query::GeoPolygon {
                field,
                vertices: vertices.collect(),
            }
        }
    }
}
