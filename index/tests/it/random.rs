//! Random documents, queries and orders over the schema of these tests. Values come from small sets, so that queries hit
//! and orders have ties; among them are the ends of every type.

use std::ops::Bound;

use fastrand::Rng;
use souk_index::{
    ArrayMode, FieldValue, Missing, NestedSort, Object, Operator, Query, QueryValue, ScoreMode, Sort,
};

use super::any_schema::queries;
use super::value::{self, pick};

const TOKENS: &[&str] = &["red", "Green", "blue7", "咖", "啡", "店", "x"];

/// The fields of a scope, by type.
struct Fields {
    keyword: &'static [&'static str],
    text: &'static [&'static str],
    long: &'static [&'static str],
    double: &'static [&'static str],
    boolean: &'static [&'static str],
    date: &'static [&'static str],
    point: &'static [&'static str],
    nested: &'static [&'static str],
}

fn fields(scope: &str) -> Fields {
    match scope {
        "" => Fields {
            keyword: &["kind", "tags", "text.raw"],
            text: &["text"],
            long: &["n", "m"],
            double: &["price"],
            boolean: &["flag"],
            date: &["at"],
            point: &["spot"],
            nested: &["items", "items.parts"],
        },
        "items" => Fields {
            keyword: &["items.sku"],
            text: &["items.title"],
            long: &["items.qty"],
            double: &["items.weight"],
            boolean: &["items.fresh"],
            date: &[],
            point: &["items.place"],
            nested: &["items.parts"],
        },
        _ => Fields {
            keyword: &["items.parts.code"],
            text: &[],
            long: &["items.parts.size"],
            double: &[],
            boolean: &[],
            date: &["items.parts.made"],
            point: &[],
            nested: &[],
        },
    }
}

pub(crate) fn text(rng: &mut Rng) -> String {
    let count = rng.usize(1..6);
    (0..count)
        .map(|_| format!("{}{}", pick(rng, TOKENS), pick(rng, &[" ", "，", "-"])))
        .collect()
}

fn some(rng: &mut Rng, most: usize, mut value: impl FnMut(&mut Rng) -> FieldValue) -> Vec<FieldValue> {
    let count = rng.usize(..=most);
    (0..count).map(|_| value(rng)).collect()
}

/// Doubles come back with -0.0 as 0.0.
fn double(rng: &mut Rng) -> FieldValue {
    FieldValue::Double(value::double(rng) + 0.0)
}

pub(crate) fn document(rng: &mut Rng) -> Object {
    let word = |rng: &mut Rng| FieldValue::from(value::word(rng));
    let integer = |rng: &mut Rng| FieldValue::Long(value::integer(rng));
    let time = |rng: &mut Rng| FieldValue::Date(value::time(rng));
    let flag = |rng: &mut Rng| FieldValue::Boolean(rng.bool());
    let words = |rng: &mut Rng| FieldValue::from(text(rng));
    let place = |rng: &mut Rng| FieldValue::GeoPoint(value::point(rng));
    let part = |rng: &mut Rng| {
        Object::new()
            .with_all("code", some(rng, 1, word))
            .with_all("size", some(rng, 1, integer))
            .with_all("made", some(rng, 1, time))
    };
    let item = |rng: &mut Rng| {
        let parts: Vec<Object> = (0..rng.usize(..4)).map(|_| part(rng)).collect();
        Object::new()
            .with_all("sku", some(rng, 1, word))
            .with_all("title", some(rng, 1, words))
            .with_all("qty", some(rng, 3, integer))
            .with_all("weight", some(rng, 1, double))
            .with_all("fresh", some(rng, 1, flag))
            .with_all("place", some(rng, 1, place))
            .with_all("parts", (!parts.is_empty()).then_some(parts))
    };
    let items: Vec<Object> = (0..rng.usize(..4)).map(|_| item(rng)).collect();
    Object::new()
        .with_all("kind", some(rng, 1, word))
        .with_all("tags", some(rng, 3, word))
        .with_all("text", some(rng, 2, words))
        .with_all("n", some(rng, 3, integer))
        .with_all("m", some(rng, 1, integer))
        .with_all("price", some(rng, 3, double))
        .with_all("flag", some(rng, 1, flag))
        .with_all("at", some(rng, 1, time))
        .with_all("spot", some(rng, 3, place))
        .with_all("items", (!items.is_empty()).then_some(items))
}

/// A field and a value that it can have, or is compared with.
fn field_and_value(rng: &mut Rng, scope: &str, ordered: bool) -> (String, Vec<QueryValue>) {
    let fields = fields(scope);
    loop {
        let two =
            |mut value: Box<dyn FnMut(&mut Rng) -> QueryValue>, rng: &mut Rng| vec![value(rng), value(rng)];
        let (of, values): (&[&str], Vec<QueryValue>) = match rng.u8(..6) {
            0 => (
                fields.keyword,
                two(Box::new(|rng| QueryValue::String(value::word(rng))), rng),
            ),
            1 => (fields.long, two(Box::new(number), rng)),
            2 => (fields.double, two(Box::new(number), rng)),
            3 => (
                fields.date,
                two(Box::new(|rng| QueryValue::Time(value::time(rng))), rng),
            ),
            4 if !ordered => (
                fields.boolean,
                two(Box::new(|rng| QueryValue::Boolean(rng.bool())), rng),
            ),
            5 if !ordered => (
                fields.text,
                two(
                    Box::new(|rng| QueryValue::String(pick(rng, TOKENS).to_lowercase())),
                    rng,
                ),
            ),
            _ => continue,
        };
        if !of.is_empty() {
            return (pick(rng, of).to_owned(), values);
        }
    }
}

fn number(rng: &mut Rng) -> QueryValue {
    if rng.bool() {
        QueryValue::Integer(value::integer(rng))
    } else {
        QueryValue::Double(value::asked_double(rng))
    }
}

/// Whether `a` is surely below `b`, both for one field.
fn below(a: &QueryValue, b: &QueryValue) -> bool {
    match (a, b) {
        (QueryValue::String(a), QueryValue::String(b)) => a < b,
        (QueryValue::Integer(a), QueryValue::Integer(b)) | (QueryValue::Time(a), QueryValue::Time(b)) => {
            a < b
        }
        (QueryValue::Double(a), QueryValue::Double(b)) => a < b,
        (QueryValue::Integer(a), QueryValue::Double(b)) => (*a as f64) < *b,
        (QueryValue::Double(a), QueryValue::Integer(b)) => *a < (*b as f64),
        _ => false,
    }
}

fn range(rng: &mut Rng, scope: &str) -> Query {
    let (field, values) = field_and_value(rng, scope, true);
    let bound = |rng: &mut Rng, value: &QueryValue| {
        if rng.bool() {
            Bound::Included(value.clone())
        } else {
            Bound::Excluded(value.clone())
        }
    };
    let (lower, upper) = match (rng.u8(..4), &values[0], &values[1]) {
        (0, a, _) => (bound(rng, a), Bound::Unbounded),
        (1, a, _) => (Bound::Unbounded, bound(rng, a)),
        (_, a, b) if below(a, b) => (bound(rng, a), bound(rng, b)),
        (_, a, b) if below(b, a) => (bound(rng, b), bound(rng, a)),
        (_, a, _) => (Bound::Included(a.clone()), Bound::Included(a.clone())),
    };
    Query::Range { field, lower, upper }
}

fn pattern(rng: &mut Rng, scope: &str) -> Query {
    let fields = fields(scope);
    let text = !fields.text.is_empty() && rng.bool();
    let field = pick(rng, if text { fields.text } else { fields.keyword });
    let word = if text {
        pick(rng, TOKENS).to_lowercase()
    } else {
        value::word(rng)
    };
    let chars: Vec<char> = word.chars().collect();
    if chars.is_empty() {
        return Query::exists(field);
    }
    let cut = rng.usize(1..=chars.len());
    match rng.u8(..3) {
        0 => Query::prefix(field, chars[..cut].iter().collect::<String>()),
        1 => Query::suffix(field, chars[chars.len() - cut..].iter().collect::<String>()),
        _ => {
            let mut pattern = String::new();
            for c in chars {
                match rng.u8(..8) {
                    0 => pattern.push('*'),
                    1 => pattern.push('?'),
                    2 => pattern.extend(['*', '\\', c]),
                    _ => pattern.extend(['\\', c]),
                }
            }
            Query::wildcard(field, pattern)
        }
    }
}

pub(crate) fn full_text(rng: &mut Rng, scope: &str) -> Query {
    let field = pick(rng, fields(scope).text).to_owned();
    match rng.u8(..6) {
        0 | 1 => return Query::match_phrase(field, text(rng)),
        2 => {
            let text = text(rng);
            let cut = rng.usize(..=text.chars().count());
            let text: String = text.chars().take(cut.max(1)).collect();
            let weight = 1.0;
            return Query::MatchPhrasePrefix { field, text, weight };
        }
        _ => {}
    }
    let and = rng.bool();
    Query::Match {
        field,
        text: text(rng),
        operator: if and { Operator::And } else { Operator::Or },
        minimum_should_match: (!and && rng.bool()).then(|| rng.u32(1..4)),
        weight: pick(rng, &[0.0, 1.0, 2.5]),
    }
}

/// A query on the objects of a scope.
pub(crate) fn query(rng: &mut Rng, scope: &str, depth: u32) -> Query {
    let known = fields(scope);
    match rng.u8(..if depth == 0 { 9 } else { 14 }) {
        0 => Query::MatchAll,
        1 => {
            let (field, values) = field_and_value(rng, scope, false);
            Query::Term {
                field,
                value: values[0].clone(),
                weight: 1.0,
            }
        }
        2 => {
            let (field, mut values) = field_and_value(rng, scope, false);
            if let Some(QueryValue::String(_)) = values.first() {
                let more = TOKENS.iter().filter(|_| rng.bool());
                values.extend(more.map(|word| QueryValue::from(*word)));
                values.extend((0..rng.usize(..9)).map(|_| QueryValue::String(value::word(rng))));
            }
            Query::Terms {
                field,
                values,
                weight: 1.0,
            }
        }
        3 | 4 => range(rng, scope),
        5 => pattern(rng, scope),
        6 => {
            let all = [
                known.keyword,
                known.text,
                known.long,
                known.double,
                known.boolean,
                known.date,
                known.point,
                known.nested,
            ]
            .concat();
            let direct = |field: &&str| !scope.is_empty() || *field != "items.parts";
            let all: Vec<&str> = all.into_iter().filter(direct).collect();
            Query::exists(pick(rng, &all))
        }
        7 if !known.text.is_empty() => full_text(rng, scope),
        8 if !known.point.is_empty() => {
            let field = pick(rng, known.point);
            queries::area(rng, field)
        }
        7 | 8 => range(rng, scope),
        9 | 10 if !known.nested.is_empty() => {
            let path = pick(rng, known.nested);
            let modes = [
                ScoreMode::None,
                ScoreMode::Avg,
                ScoreMode::Max,
                ScoreMode::Min,
                ScoreMode::Total,
            ];
            Query::Nested {
                path: path.to_owned(),
                query: Box::new(query(rng, path, depth - 1)),
                score_mode: pick(rng, &modes),
                weight: 1.0,
                inner_hits: None,
            }
        }
        11 => Query::ConstScore {
            filter: Box::new(query(rng, scope, depth - 1)),
            weight: 2.0,
        },
        _ => {
            let mut clauses = |most: usize| -> Vec<Query> {
                (0..rng.usize(..=most))
                    .map(|_| query(rng, scope, depth - 1))
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

fn missing(rng: &mut Rng, field: &str, summed: bool) -> Missing {
    let value = match field {
        "n" | "m" | "items.qty" | "items.parts.size" => QueryValue::Integer(value::integer(rng)),
        "price" | "items.weight" => QueryValue::Double(value::double(rng) + 0.0),
        "flag" | "items.fresh" => QueryValue::Boolean(rng.bool()),
        "at" | "items.parts.made" if !summed => QueryValue::Time(value::time(rng)),
        "at" | "items.parts.made" => QueryValue::Time(7),
        _ => QueryValue::from(pick(rng, &["alph", "alpi", "中文", "nowhere", "zzz"])),
    };
    match rng.u8(..3) {
        0 => Missing::First,
        1 => Missing::Last,
        _ => Missing::Value(value),
    }
}

fn sort(rng: &mut Rng) -> Sort {
    match rng.u8(..10) {
        0 => {
            return Sort::Score {
                ascending: rng.bool(),
            };
        }
        1 => {
            return Sort::PrimaryKey {
                descending: rng.bool(),
            };
        }
        2 => {
            let points = (0..rng.usize(1..4)).map(|_| value::point(rng)).collect();
            return Sort::GeoDistance {
                field: "spot".to_owned(),
                points,
                descending: rng.bool(),
            };
        }
        _ => {}
    }
    let scope = pick(rng, &["", "", "items", "items.parts"]);
    let known = fields(scope);
    let numbers = [known.long, known.double, known.date].concat();
    let all = [&numbers, known.keyword, known.boolean].concat();
    let field = pick(rng, &all);
    let modes = [ArrayMode::Min, ArrayMode::Max, ArrayMode::Avg, ArrayMode::Sum];
    let mode = rng.bool().then(|| {
        pick(
            rng,
            if numbers.contains(&field) {
                &modes
            } else {
                &modes[..2]
            },
        )
    });
    let summed = matches!(mode, Some(ArrayMode::Avg | ArrayMode::Sum));
    let nested = (!scope.is_empty()).then(|| NestedSort {
        path: scope.to_owned(),
        filter: rng.bool().then(|| query(rng, scope, 1)),
    });
    Sort::Field {
        field: field.to_owned(),
        descending: rng.bool(),
        mode,
        missing: missing(rng, field, summed),
        nested,
    }
}

pub(crate) fn sorts(rng: &mut Rng) -> Vec<Sort> {
    (0..rng.usize(..4)).map(|_| sort(rng)).collect()
}
