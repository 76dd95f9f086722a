//! Clauses: trees of them, patterns, constants and weights, functions, places.

use std::ops::Bound;

use souk_index::{
    Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, GeoPoint, Modifier, Operator,
    Query, QueryValue, ScoreFunction, ScoreMode, SearchRequest, limits,
};

use super::asked::{
    Bomb,
    Expected::{Done, Either, Refused, Slow},
    any_of, counted, from,
};
use super::texts::{phrase, words_of};

pub(super) fn trees() -> Vec<Bomb> {
    let deep = |levels| (0..levels).fold(from(0), |inside, _| Query::all(vec![inside]));
    let nested = |levels| {
        (0..levels).fold(Query::exists("items.qty"), |inside, _| {
            Query::all(vec![inside, Query::term("items.sku", "7")])
        })
    };
    vec![
        (
            "bool of 10,000 clauses",
            counted(any_of((0..10_000).map(from).collect())),
            Refused("MAX_QUERY_NODES"),
        ),
        (
            "bool of 1,000 ranges over everything",
            counted(any_of((0..1_000).map(from).collect())),
            Done,
        ),
        (
            "bool of 1,000 clauses, 500 have to match",
            counted(Query::Bool {
                must: Vec::new(),
                filter: Vec::new(),
                should: (0..1_000)
                    .map(|n| Query::term("kind", format!("kind{}", n % 100).as_str()))
                    .collect(),
                must_not: Vec::new(),
                minimum_should_match: Some(500),
            }),
            Done,
        ),
        ("100 levels", counted(deep(100)), Refused("MAX_QUERY_DEPTH")),
        ("31 levels", counted(deep(30)), Done),
        (
            "30 levels inside of objects, scored",
            counted(Query::Nested {
                path: "items".to_owned(),
                query: Box::new(nested(14)),
                score_mode: ScoreMode::Total,
                weight: 1.0,
                inner_hits: None,
            }),
            Done,
        ),
        (
            "100,000 values",
            counted(Query::terms("n", 0..100_000)),
            Refused("MAX_TERMS"),
        ),
        (
            "1,000 clauses of 1,000 values",
            counted(any_of((0..1_000).map(|_| Query::terms("n", 0..1_000)).collect())),
            Done,
        ),
    ]
}

fn star(vertices: usize) -> Query {
    let vertex = |nth: usize| {
        let angle = std::f64::consts::TAU * nth as f64 / vertices as f64;
        let radius = if nth.is_multiple_of(2) { 80.0 } else { 40.0 };
        GeoPoint::new(radius * angle.sin(), radius * angle.cos()).expect("in range")
    };
    Query::GeoPolygon {
        field: "spot".to_owned(),
        vertices: (0..vertices).map(vertex).collect(),
    }
}

pub(super) fn patterns() -> Vec<Bomb> {
    let wildcard = |pattern: &str| Query::wildcard("words", pattern);
    let text = |text: String| Query::Match {
        field: "text".to_owned(),
        text,
        operator: Operator::Or,
        minimum_should_match: None,
        weight: 1.0,
    };
    let terms_from = |nth: usize| {
        let term = |from: String| Bound::Included(QueryValue::String(from));
        match nth % 2 {
            0 => Query::range("words", term(format!("{nth:03x}")), Bound::Unbounded),
            _ => Query::range("text", term(format!("w{nth}")), Bound::Unbounded),
        }
    };
    vec![
        ("*a*b*c*", counted(wildcard("*a*b*c*")), Either("DEADLINE")),
        (
            "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
            counted(wildcard("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b")),
            Either("DEADLINE"),
        ),
        (
            "?*?*?*?*?*?*?*?*?*?*",
            counted(wildcard("?*?*?*?*?*?*?*?*?*?*")),
            Either("DEADLINE"),
        ),
        (
            "100 times *x*y*",
            counted(any_of((0..100).map(|n| wildcard(&format!("*{n}*f*"))).collect())),
            Either("DEADLINE"),
        ),
        (
            "33 characters of a pattern",
            counted(wildcard(&"*a".repeat(17))),
            Refused("MAX_WILDCARD_CHARS"),
        ),
        (
            "suffix of one character",
            counted(Query::suffix("words", "f")),
            Either("DEADLINE"),
        ),
        (
            "prefix of one character",
            counted(Query::prefix("words", "f")),
            Done,
        ),
        (
            "1,001 bytes of a prefix",
            counted(Query::prefix("words", "f".repeat(limits::MAX_AFFIX_BYTES + 1))),
            Refused("MAX_AFFIX_BYTES"),
        ),
        (
            "1,000 ranges of terms",
            counted(any_of((0..1_000).map(terms_from).collect())),
            Slow("MAX_SEARCH_BYTES"),
        ),
        ("800 words", counted(text(words_of(800))), Done),
        (
            "5,000 words",
            counted(text(words_of(5_000))),
            Refused("MAX_MATCH_TEXT_BYTES"),
        ),
        (
            "a phrase of the same words with slop",
            counted(phrase("a b c a b c a b c a b c a b c a b c a b c a b c", 256)),
            Done,
        ),
    ]
}

/// What has a value, and scores that no document makes: of constants, and of weights.
pub(super) fn constants() -> Vec<Bomb> {
    let fields = [
        "words", "kind", "text", "n", "price", "at", "spot", "items", "parts", "extra",
    ];
    let constant = |nth: u16| Query::ConstScore {
        filter: Box::new(Query::wildcard("words", format!("*{nth}*f*"))),
        weight: f32::from(nth),
    };
    let inside_each_other = |weight: f32| {
        let weighed = |query| Query::Weighted {
            query: Box::new(query),
            weight,
        };
        (0..30).fold(Query::match_text("text", "a w1"), |inside, _| weighed(inside))
    };
    vec![
        ("a value of a field", counted(Query::exists("words")), Done),
        (
            "no value of a field",
            counted(Query::not(Query::exists("n"))),
            Done,
        ),
        (
            "a value of any field, 1,000 times",
            counted(any_of(
                (0..1_000)
                    .map(|nth| Query::exists(fields[nth % fields.len()]))
                    .collect(),
            )),
            Either("DEADLINE"),
        ),
        (
            "500 constants of patterns",
            counted(any_of((0..500).map(constant).collect())),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "500 patterns of an attribute",
            counted(any_of(
                (0..500)
                    .map(|nth| Query::wildcard("extra.code", format!("*{nth}*f*")))
                    .collect(),
            )),
            Slow("MAX_SEARCH_BYTES"),
        ),
        // 3.9 to the power of 30 is less than the greatest weight, 4 to the power of 30 is more.
        (
            "30 weights inside each other",
            counted(inside_each_other(3.9)),
            Done,
        ),
        (
            "the same that multiply to too much",
            counted(inside_each_other(4.0)),
            Refused("MAX_WEIGHT"),
        ),
    ]
}

/// A decay of any shape and mode over any field that has distances.
fn decay(nth: usize) -> Function {
    let field = ["n", "price", "at", "spot"][nth % 4];
    let origin = match field {
        "spot" => DecayOrigin::Point(GeoPoint::new(10.0, 20.0).expect("in range")),
        "at" => DecayOrigin::Value(QueryValue::Time(0)),
        _ => DecayOrigin::Value(QueryValue::Integer(0)),
    };
    let modes = [
        DistanceMode::Min,
        DistanceMode::Max,
        DistanceMode::Avg,
        DistanceMode::Sum,
    ];
    Function::Decay(Decay {
        field: field.to_owned(),
        shape: [DecayShape::Gauss, DecayShape::Exp, DecayShape::Linear][nth % 3],
        origin,
        scale: 1e6,
        offset: 1.0,
        decay: 0.5,
        mode: modes[nth / 4 % 4],
    })
}

/// Scores that leave nothing over, and scores of everything.
pub(super) fn functions() -> Vec<Bomb> {
    let value = |nth: usize| Function::FieldValueFactor {
        field: ["n", "price"][nth % 2].to_owned(),
        factor: 1.0,
        modifier: Modifier::Log1p,
        missing: None,
    };
    let random = |nth: usize| Function::Random { seed: nth as u64 };
    let scored = |query: Query, count: usize, function: &dyn Fn(usize) -> Function| {
        let functions = (0..count).map(|nth| ScoreFunction::new(function(nth)));
        FunctionScore::new(query, functions.collect())
    };
    let nothing = |query: Query, function: &dyn Fn(usize) -> Function| {
        let mut scored = scored(query, limits::MAX_SCORE_FUNCTIONS, function);
        scored.min_score = Some(1e30);
        Query::FunctionScore(Box::new(scored))
    };
    let everything = |scored: FunctionScore| {
        SearchRequest::new(Query::FunctionScore(Box::new(scored))).page_size(limits::MAX_PAGE_SIZE)
    };
    let most = |function: &dyn Fn(usize) -> Function| {
        everything(scored(Query::MatchAll, limits::MAX_SCORE_FUNCTIONS, function))
    };
    let heaviest = |nth: usize| ScoreFunction {
        function: Function::One,
        weight: limits::MAX_WEIGHT,
        filter: Some(Query::wildcard("words", format!("*{nth}*f*"))),
    };
    let heaviest = (0..limits::MAX_SCORE_FUNCTIONS).map(heaviest).collect();
    vec![
        (
            "32 functions that leave nothing over",
            counted(nothing(Query::MatchAll, &value)),
            Either("DEADLINE"),
        ),
        (
            "the same 20 times inside each other",
            counted((0..20).fold(Query::MatchAll, |inside, _| nothing(inside, &value))),
            Either("DEADLINE"),
        ),
        (
            "the same as a filter of another",
            counted(Query::all(vec![
                Query::term("kind", "kind7"),
                nothing(Query::MatchAll, &value),
            ])),
            Either("DEADLINE"),
        ),
        (
            "32 decays that leave nothing over",
            counted(nothing(Query::MatchAll, &decay)),
            Either("DEADLINE"),
        ),
        (
            "32 functions by chance that leave nothing over",
            counted(nothing(Query::MatchAll, &random)),
            Either("DEADLINE"),
        ),
        (
            "the best of everything by 32 decays",
            most(&decay),
            Either("DEADLINE"),
        ),
        (
            "the best of everything by chance",
            most(&random),
            Either("DEADLINE"),
        ),
        (
            "32 filtered functions of the greatest weight",
            everything(FunctionScore::new(Query::MatchAll, heaviest)),
            Either("DEADLINE"),
        ),
        (
            "33 functions",
            everything(scored(Query::MatchAll, limits::MAX_SCORE_FUNCTIONS + 1, &value)),
            Refused("MAX_SCORE_FUNCTIONS"),
        ),
    ]
}

/// Half of the globe, and somewhat more with each.
fn circle(nth: usize) -> Query {
    let center = GeoPoint::new((nth % 170) as f64 - 85.0, (nth * 7 % 360) as f64 - 180.0);
    Query::GeoDistance {
        field: "spot".to_owned(),
        center: center.expect("in range"),
        distance_meters: limits::MAX_DISTANCE_METERS / 2.0 + nth as f64,
    }
}

/// A box across the antimeridian.
fn bounding_box(nth: usize) -> Query {
    let (lower, narrower) = ((nth % 60) as f64, (nth % 70) as f64);
    let top_left = GeoPoint::new(80.0 - lower, 100.0 + narrower);
    let bottom_right = GeoPoint::new(-10.0 - lower, -100.0 - narrower);
    Query::GeoBoundingBox {
        field: "spot".to_owned(),
        top_left: top_left.expect("in range"),
        bottom_right: bottom_right.expect("in range"),
    }
}

pub(super) fn places() -> Vec<Bomb> {
    vec![
        (
            "polygon of 1,000,000 vertices",
            counted(star(1_000_000)),
            Refused("MAX_POLYGON_VERTICES"),
        ),
        (
            "polygon of the most vertices",
            counted(star(limits::MAX_POLYGON_VERTICES)),
            Done,
        ),
        (
            "as many vertices as a message carries",
            counted(any_of((0..20).map(|_| star(9_000)).collect())),
            Either("DEADLINE"),
        ),
        (
            "1,000 circles of half the globe",
            counted(any_of((0..1_000).map(circle).collect())),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "a circle beyond the globe",
            counted(Query::GeoDistance {
                field: "spot".to_owned(),
                center: GeoPoint::new(0.0, 0.0).expect("in range"),
                distance_meters: limits::MAX_DISTANCE_METERS + 1.0,
            }),
            Refused("MAX_DISTANCE_METERS"),
        ),
        (
            "1,000 boxes across the antimeridian",
            counted(any_of((0..1_000).map(bounding_box).collect())),
            Slow("MAX_SEARCH_BYTES"),
        ),
    ]
}
