//! Random queries over random documents find what the model says, with and without scores.

use std::ops::Bound;

use fastrand::Rng;

use super::model::Model;
use super::*;
use crate::document::{FieldValue, Object};
use crate::geo::GeoPoint;
use crate::request::{Operator, QueryValue, ScoreMode};

const WORDS: [&str; 8] = [
    "奶茶",
    "沈家茶馆",
    "iPhone",
    "tea",
    "Tea house",
    "中华人民共和国",
    "hang zhou",
    "a",
];
const BRANDS: [&str; 9] = [
    "",
    "vivo",
    "viv",
    "vivo x21",
    "华为",
    "华",
    "oppo",
    "o\u{10ffff}",
    "zz",
];
/// Doubles and integers between which rounding would decide.
const INTEGERS: [i64; 8] = [
    i64::MIN,
    -3,
    0,
    1,
    2,
    9_007_199_254_740_992,
    9_007_199_254_740_993,
    i64::MAX,
];
const DOUBLES: [f64; 8] = [
    -3.5,
    -0.0,
    0.0,
    1.0,
    1.5,
    9_007_199_254_740_992.0,
    9.3e18,
    f64::MAX,
];

fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(0..from.len())]
}

fn point(random: &mut Rng) -> GeoPoint {
    // Around Hangzhou, around the antimeridian, and a pole.
    let (latitude, longitude) = pick(random, &[(30.27, 120.15), (0.0, 180.0), (90.0, 7.0)]);
    let near = |random: &mut Rng, spread: f64| (random.f64() - 0.5) * spread;
    let latitude = (latitude + near(random, 0.2)).clamp(-90.0, 90.0);
    let longitude: f64 = longitude + near(random, 0.2);
    GeoPoint::new(
        latitude,
        if longitude > 180.0 {
            longitude - 360.0
        } else {
            longitude
        },
    )
    .expect("a point")
}

fn text(random: &mut Rng) -> String {
    let words: Vec<&str> = (0..random.usize(1..4)).map(|_| pick(random, &WORDS)).collect();
    words.join(" ")
}

fn document(random: &mut Rng) -> Object {
    let mut object = Object::default();
    // Always something, so that an empty object is a deleted one.
    object.push("serial", pick(random, &INTEGERS));
    for _ in 0..random.usize(0..3) {
        object.push("brand", pick(random, &BRANDS));
        object.push("count", pick(random, &INTEGERS));
    }
    if random.bool() {
        object.push("name", text(random).as_str());
        object.push("paid", random.bool());
    }
    if random.u8(0..3) > 0 {
        object.push("created", FieldValue::Date(random.i64(0..20)));
        for _ in 0..random.usize(1..3) {
            object.push("price", pick(random, &DOUBLES) + 0.0);
            object.push("position", point(random));
        }
    }
    let tags: Vec<Object> = (0..random.usize(0..4))
        .map(|_| {
            let sources: Vec<Object> = (0..random.usize(0..3))
                .map(|_| {
                    Object::default()
                        .with("site", pick(random, &BRANDS))
                        .with("rank", pick(random, &INTEGERS))
                })
                .collect();
            let mut tag = Object::default().with("tag", pick(random, &BRANDS));
            if random.bool() {
                tag.push("score", pick(random, &DOUBLES) + 0.0);
            }
            if sources.is_empty() {
                tag
            } else {
                tag.with("sources", FieldValue::Objects(sources))
            }
        })
        .collect();
    if tags.is_empty() {
        object
    } else {
        object.with("tags", FieldValue::Objects(tags))
    }
}

fn number(random: &mut Rng) -> QueryValue {
    if random.bool() {
        pick(random, &INTEGERS).into()
    } else {
        pick(random, &DOUBLES).into()
    }
}

fn bounds(low: QueryValue, high: QueryValue, random: &mut Rng) -> (Bound<QueryValue>, Bound<QueryValue>) {
    let mut bound = |value| {
        if random.bool() {
            Bound::Included(value)
        } else {
            Bound::Excluded(value)
        }
    };
    let (low, high) = (bound(low), bound(high));
    match random.u8(0..5) {
        0 => (Bound::Unbounded, high),
        1 => (low, Bound::Unbounded),
        _ => (low, high),
    }
}

/// A query on one field of a scope.
fn leaf(random: &mut Rng, scope: Option<&str>) -> Query {
    let (strings, numbers): (&[&str], &[&str]) = match scope {
        None => (&["brand", "name.keyword"], &["count", "serial", "price"]),
        Some("tags") => (&["tags.tag"], &["tags.score"]),
        Some(_) => (&["tags.sources.site"], &["tags.sources.rank"]),
    };
    let (string, numeric) = (pick(random, strings), pick(random, numbers));
    match random.u8(0..if scope.is_none() { 20 } else { 9 }) {
        0 => Query::term(string, pick(random, &BRANDS)),
        1 => Query::terms(
            string,
            (0..random.usize(1..30))
                .map(|_| pick(random, &BRANDS))
                .collect::<Vec<_>>(),
        ),
        2 => {
            let mut ends = [pick(random, &BRANDS), pick(random, &BRANDS)];
            ends.sort_unstable();
            let (lower, upper) = bounds(ends[0].into(), ends[1].into(), random);
            Query::range(string, lower, upper)
        }
        3 => Query::prefix(
            string,
            pick(random, &["v", "vivo", "华", "o\u{10ffff}", "x", "Tea"]),
        ),
        4 => Query::suffix(string, pick(random, &["o", "21", "为", "x", "house"])),
        5 => Query::wildcard(
            string,
            pick(
                random,
                &["*", "v*o", "?", "*i*", "vi??*", "*华", "华*", "vivo", "*a*e*"],
            ),
        ),
        6 => Query::term(numeric, number(random)),
        7 => Query::terms(
            numeric,
            (0..random.usize(1..6))
                .map(|_| number(random))
                .collect::<Vec<_>>(),
        ),
        8 => {
            let mut ends = [number(random), number(random)];
            if number_of(&ends[0]).compare(number_of(&ends[1])).is_gt() {
                ends.swap(0, 1);
            }
            let [low, high] = ends;
            let (lower, upper) = bounds(low, high, random);
            Query::range(numeric, lower, upper)
        }
        9 => Query::term("paid", random.bool()),
        10 => {
            let (low, high) = (random.i64(0..10), random.i64(10..20));
            let (lower, upper) = bounds(QueryValue::Time(low), high.into(), random);
            Query::range("created", lower, upper)
        }
        11 => Query::terms(
            "created",
            (0..random.usize(1..6))
                .map(|_| random.i64(0..20))
                .collect::<Vec<_>>(),
        ),
        12 => Query::exists(pick(
            random,
            &[
                "brand",
                "name",
                "name.words",
                "count",
                "serial",
                "price",
                "paid",
                "created",
                "position",
                "tags",
            ],
        )),
        13 => Query::Match {
            field: pick(random, &["name", "name.words", "name.fuzzy", "name.keyword"]).to_owned(),
            text: text(random),
            operator: pick(random, &[Operator::And, Operator::Or]),
            minimum_should_match: None,
            weight: pick(random, &[1.0, 2.5]),
        },
        14 => Query::Match {
            field: pick(random, &["name", "name.words"]).to_owned(),
            text: text(random),
            operator: Operator::Or,
            minimum_should_match: Some(random.u32(1..4)),
            weight: 1.0,
        },
        15 => Query::MatchPhrase {
            field: "name".to_owned(),
            text: text(random),
            slop: 0,
            weight: 1.0,
        },
        16 => Query::term(
            pick(random, &["name", "name.words", "name.fuzzy"]),
            pick(random, &["茶", "tea", "Tea", "人民"]),
        ),
        17 => {
            let center = point(random);
            let distance_meters = pick(random, &[0.0, 300.0, 5_000.0, 40_000.0, 20_000_000.0]);
            Query::GeoDistance {
                field: "position".to_owned(),
                center,
                distance_meters,
            }
        }
        18 => {
            let (a, b) = (point(random), point(random));
            let (top, bottom) = if a.latitude() >= b.latitude() {
                (a, b)
            } else {
                (b, a)
            };
            Query::GeoBoundingBox {
                field: "position".to_owned(),
                top_left: top,
                bottom_right: bottom,
            }
        }
        _ => {
            let corner = |latitude, longitude| GeoPoint::new(latitude, longitude).expect("a point");
            let (south, west) = pick(random, &[(30.2, 120.1), (-0.05, 179.95), (-30.0, 0.0)]);
            let size = pick(random, &[0.05, 0.1, 50.0]);
            let east = if west + size > 180.0 {
                west + size - 360.0
            } else {
                west + size
            };
            let vertices = vec![
                corner(south, west),
                corner(south, east),
                corner(south + size, east),
            ];
            Query::GeoPolygon {
                field: "position".to_owned(),
                vertices,
            }
        }
    }
}

fn number_of(value: &QueryValue) -> super::super::number::Number {
    super::super::number::Number::of(value).expect("a number")
}

fn query(random: &mut Rng, scope: Option<&str>, depth: usize) -> Query {
    match random.u8(0..if depth == 0 { 4 } else { 10 }) {
        4..=6 => {
            let mut some = |max: usize| -> Vec<Query> {
                (0..random.usize(0..=max))
                    .map(|_| query(random, scope, depth - 1))
                    .collect()
            };
            let (must, filter, should, must_not) = (some(2), some(1), some(3), some(1));
            let minimum_should_match = random.bool().then(|| random.u32(0..=should.len() as u32));
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                minimum_should_match,
            }
        }
        7 | 8 if scope != Some("tags.sources") => {
            let path = match scope {
                None => pick(random, &["tags", "tags.sources"]),
                Some(_) => "tags.sources",
            };
            Query::Nested {
                path: path.to_owned(),
                query: Box::new(query(random, Some(path), depth - 1)),
                score_mode: pick(
                    random,
                    &[
                        ScoreMode::None,
                        ScoreMode::Avg,
                        ScoreMode::Max,
                        ScoreMode::Min,
                        ScoreMode::Total,
                    ],
                ),
                weight: 1.0,
                inner_hits: None,
            }
        }
        9 => Query::ConstScore {
            filter: Box::new(query(random, scope, depth - 1)),
            weight: 3.0,
        },
        3 if random.u8(0..4) == 0 => Query::MatchAll,
        _ => leaf(random, scope),
    }
}

#[test]
fn random_queries_find_what_they_should() {
    let seed = souk_seeds::seed();
    let mut random = Rng::with_seed(seed);
    let documents: Vec<Object> = (0..600).map(|_| document(&mut random)).collect();
    let model = Model::new(documents, 4, 10);
    let (mut some, mut all) = (0, 0);
    for _ in 0..500 {
        let query = query(&mut random, None, 3);
        let expected = model.expected(&query);
        assert_eq!(model.found(&query), expected, "{query:?} ({seed})");
        let scored = model.scored(&query);
        let numbers: Vec<usize> = scored.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, expected, "with scores: {query:?} ({seed})");
        let plan = model.plan(&query);
        if !plan.scores {
            let differing = scored.iter().find(|(_, score)| *score != plan.constant_score);
            assert_eq!(
                differing, None,
                "{query:?} should score {} ({seed})",
                plan.constant_score
            );
        }
        some += usize::from(!expected.is_empty());
        all += usize::from(expected.len() == 540);
    }
    assert!(
        some > 250 && all < 100,
        "{some} queries find something, {all} everything: the test tests too little"
    );
}

#[test]
fn each_kind_of_leaf_finds_something() {
    let mut random = souk_seeds::random();
    let model = Model::new((0..600).map(|_| document(&mut random)).collect(), 2, 50);
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..400 {
        let query = leaf(&mut random, None);
        let name = format!("{query:?}");
        let name = name.split(' ').next().unwrap_or_default().to_owned();
        *kinds.entry(name).or_default() += model.found(&query).len();
    }
    assert_eq!(kinds.len(), 12, "{kinds:?}");
    assert!(kinds.values().all(|found| *found > 0), "{kinds:?}");
}
