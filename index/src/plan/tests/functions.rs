//! `function_score` and `dis_max` by figures worked out by hand, and what is wrong with them.

use std::ops::Bound;

use super::model::Model;
use super::*;
use crate::document::Object;
use crate::geo::GeoPoint;
use crate::request::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Modifier, QueryValue, ScoreFunction, ScoreMode,
};

const SECOND: i64 = 1_000_000_000;

/// Documents 1 to 4; the first one is deleted.
fn model() -> Model {
    let point = |latitude| GeoPoint::new(latitude, 120.0).expect("a point");
    let documents = vec![
        Object::default(),
        Object::default()
            .with("count", 100)
            .with("price", 4.0)
            .with("created", crate::document::FieldValue::Date(10 * SECOND))
            .with("position", point(30.0)),
        Object::default()
            .with_all("count", [3, 1])
            .with("price", -4.0)
            .with("brand", "x"),
        Object::default().with("price", 0.0).with_all("count", [0, 20]),
        Object::default().with("name", "tea"),
    ];
    Model::new(documents, 2, usize::MAX)
}

fn factor(field: &str, modifier: Modifier, missing: Option<f64>) -> ScoreFunction {
    ScoreFunction::new(Function::FieldValueFactor {
        field: field.to_owned(),
        factor: 1.0,
        modifier,
        missing,
    })
}

fn decay(field: &str, origin: DecayOrigin, shape: DecayShape, mode: DistanceMode) -> ScoreFunction {
    ScoreFunction::new(Function::Decay(Decay {
        field: field.to_owned(),
        shape,
        origin,
        scale: 10.0,
        offset: 5.0,
        decay: 0.5,
        mode,
    }))
}

fn weight(weight: f64, filter: Option<Query>) -> ScoreFunction {
    ScoreFunction {
        weight,
        filter,
        ..ScoreFunction::new(Function::One)
    }
}

fn scored(functions: Vec<ScoreFunction>, change: impl FnOnce(&mut FunctionScore)) -> Query {
    let base = Query::ConstScore {
        filter: Box::new(Query::MatchAll),
        weight: 2.0,
    };
    let mut scored = FunctionScore::new(base, functions);
    change(&mut scored);
    Query::FunctionScore(Box::new(scored))
}

#[track_caller]
fn check(query: &Query, expected: [f64; 4]) {
    let found = model().scored(query);
    let scores: Vec<f64> = found.iter().map(|(_, score)| f64::from(*score)).collect();
    let near = scores
        .iter()
        .zip(expected)
        .all(|(score, expected)| (score - expected).abs() < 1e-6);
    assert!(near && scores.len() == 4, "{scores:?} for {expected:?}");
}

#[test]
fn numbers_with_modifiers() {
    let only = |function: ScoreFunction| {
        scored(vec![function], |scored| {
            scored.combine_mode = CombineMode::Replace
        })
    };
    // Arrays count by their first value; what is negative, or no number, is 0; no value, no function, which is 1.
    check(
        &only(factor("count", Modifier::None, None)),
        [100.0, 3.0, 0.0, 1.0],
    );
    check(
        &only(factor("count", Modifier::None, Some(7.0))),
        [100.0, 3.0, 0.0, 7.0],
    );
    check(
        &only(factor("count", Modifier::Log, Some(0.1))),
        [2.0, 3_f64.log10(), 0.0, 0.0],
    );
    check(
        &only(factor("count", Modifier::Log1p, None)),
        [101_f64.log10(), 4_f64.log10(), 0.0, 1.0],
    );
    check(
        &only(factor("count", Modifier::Ln2p, None)),
        [102_f64.ln(), 5_f64.ln(), 2_f64.ln(), 1.0],
    );
    check(&only(factor("price", Modifier::Sqrt, None)), [2.0, 0.0, 0.0, 1.0]);
    check(
        &only(factor("price", Modifier::Square, None)),
        [16.0, 16.0, 0.0, 1.0],
    );
    let largest = f64::from(f32::MAX);
    check(
        &only(factor("price", Modifier::Reciprocal, None)),
        [0.25, 0.0, largest, 1.0],
    );
    check(
        &only(factor("created", Modifier::None, Some(3.0))),
        [10.0, 3.0, 3.0, 3.0],
    );
}

/// -0.0 and 0.0 are one number, which has one reciprocal.
#[test]
fn zero_has_no_sign() {
    let zero = Object::default().with("price", -0.0);
    for (own, by) in [(zero.clone(), 1.0), (zero.with("price", 0.0), -1.0)] {
        let model = Model::new(vec![Object::default(), own], 1, 2);
        let reciprocal = ScoreFunction::new(Function::FieldValueFactor {
            field: "price".to_owned(),
            factor: by,
            modifier: Modifier::Reciprocal,
            missing: None,
        });
        let query = scored(vec![reciprocal], |scored| {
            scored.combine_mode = CombineMode::Replace
        });
        assert_eq!(model.scored(&query), [(1, f32::MAX)], "by {by}");
    }
}

#[test]
fn an_infinite_value_is_the_largest_score_before_weights_around() {
    let infinite = scored(vec![factor("price", Modifier::Reciprocal, Some(1.0))], |scored| {
        scored.combine_mode = CombineMode::Replace;
    });
    let around = Query::Weighted {
        query: Box::new(infinite),
        weight: 0.5,
    };
    let found: Vec<f32> = model().scored(&around).iter().map(|(_, score)| *score).collect();
    assert_eq!(found, [0.125, 0.0, f32::MAX * 0.5, 0.5]);
}

#[test]
fn an_infinite_value_of_an_object_is_averaged_before_weights_around() {
    let objects = [0.0, 1.0, 1.0, 1.0].map(|score| Object::default().with("score", score));
    let documents = vec![
        Object::default(),
        Object::default().with("tags", objects.to_vec()),
    ];
    let model = Model::new(documents, 2, usize::MAX);
    let nested = Query::Nested {
        path: "tags".to_owned(),
        query: Box::new(scored(
            vec![factor("tags.score", Modifier::Reciprocal, None)],
            |scored| scored.combine_mode = CombineMode::Replace,
        )),
        score_mode: ScoreMode::Avg,
        weight: 2.5,
        inner_hits: None,
    };
    assert_eq!(model.scored(&nested), [(1, f32::MAX / 4.0 * 2.5)]);
}

#[test]
fn an_infinite_value_of_no_weight_scores_nothing() {
    let modes = [
        (FunctionScoreMode::Multiply, 0.0, 0.0),
        (FunctionScoreMode::Sum, 0.0, 3.0),
        (FunctionScoreMode::First, 0.0, 0.0),
        (FunctionScoreMode::Max, 0.0, 3.0),
        (FunctionScoreMode::Min, 0.0, 0.0),
        // An average of no weight at all is 1.
        (FunctionScoreMode::Avg, 1.0, 1.0),
    ];
    for (mode, alone, beside) in modes {
        let unweighted = || ScoreFunction {
            weight: 0.0,
            ..factor("price", Modifier::Reciprocal, None)
        };
        let of = |functions, combine_mode| {
            scored(functions, |scored| {
                scored.score_mode = mode;
                scored.combine_mode = combine_mode;
            })
        };
        let one = of(vec![unweighted()], CombineMode::Replace);
        check(&one, [alone, alone, alone, 1.0]);
        check(
            &of(vec![unweighted()], CombineMode::Sum),
            [2.0 + alone, 2.0 + alone, 2.0 + alone, 3.0],
        );
        let two = of(vec![unweighted(), weight(3.0, None)], CombineMode::Replace);
        let of_one_function = if mode == FunctionScoreMode::Avg { 1.0 } else { 3.0 };
        check(&two, [beside, beside, beside, of_one_function]);
        // Nor does a computed score of which the weight outside leaves nothing.
        let infinite = of(
            vec![factor("price", Modifier::Reciprocal, None)],
            CombineMode::Replace,
        );
        let none = Query::Weighted {
            query: Box::new(infinite),
            weight: 0.0,
        };
        check(&none, [0.0; 4]);
    }
}

#[test]
fn distances_fall_to_the_decay_at_the_scale() {
    let only = |function: ScoreFunction| {
        scored(vec![function], |scored| {
            scored.combine_mode = CombineMode::Replace
        })
    };
    let zero = || DecayOrigin::Value(QueryValue::Integer(0));
    // Behind the offset: 95; 0 of both; 0 and 15.
    let linear = |mode| only(decay("count", zero(), DecayShape::Linear, mode));
    check(&linear(DistanceMode::Min), [0.0, 1.0, 1.0, 1.0]);
    check(&linear(DistanceMode::Max), [0.0, 1.0, 0.25, 1.0]);
    check(&linear(DistanceMode::Avg), [0.0, 1.0, 0.625, 1.0]);
    check(&linear(DistanceMode::Sum), [0.0, 1.0, 0.25, 1.0]);
    let exp = only(decay("count", zero(), DecayShape::Exp, DistanceMode::Max));
    check(&exp, [0.5_f64.powf(9.5), 1.0, 0.5_f64.powf(1.5), 1.0]);
    let gauss = only(decay("count", zero(), DecayShape::Gauss, DistanceMode::Max));
    check(&gauss, [0.5_f64.powf(90.25), 1.0, 0.5_f64.powf(2.25), 1.0]);
    // Seconds of a date, metres of a point.
    let later = DecayOrigin::Value(QueryValue::Time(25 * SECOND));
    check(
        &only(decay("created", later, DecayShape::Exp, DistanceMode::Min)),
        [0.5, 1.0, 1.0, 1.0],
    );
    let meters = 15.0 / crate::geo::EARTH_RADIUS_METERS * 180.0 / std::f64::consts::PI;
    let point = GeoPoint::new(30.0 + meters, 120.0).expect("a point");
    let near = decay(
        "position",
        DecayOrigin::Point(point),
        DecayShape::Linear,
        DistanceMode::Min,
    );
    let found = model().scored(&only(near));
    assert!((found[0].1 - 0.5).abs() < 1e-3, "{found:?}");
}

#[test]
fn functions_combine() {
    let brand = || Some(Query::exists("brand"));
    let functions = || {
        vec![
            weight(3.0, brand()),
            weight(4.0, None),
            factor("count", Modifier::None, None),
        ]
    };
    let combined = |score_mode, combine_mode| {
        scored(functions(), |scored| {
            scored.score_mode = score_mode;
            scored.combine_mode = combine_mode;
        })
    };
    let by = |score_mode| combined(score_mode, CombineMode::Replace);
    check(&by(FunctionScoreMode::Multiply), [400.0, 36.0, 0.0, 4.0]);
    check(&by(FunctionScoreMode::Sum), [104.0, 10.0, 4.0, 4.0]);
    check(
        &by(FunctionScoreMode::Avg),
        [104.0 / 5.0, 10.0 / 8.0, 4.0 / 5.0, 1.0],
    );
    check(&by(FunctionScoreMode::Max), [100.0, 4.0, 4.0, 4.0]);
    check(&by(FunctionScoreMode::Min), [4.0, 3.0, 0.0, 4.0]);
    check(&by(FunctionScoreMode::First), [4.0, 3.0, 4.0, 4.0]);
    let with = |combine_mode| combined(FunctionScoreMode::First, combine_mode);
    check(&with(CombineMode::Multiply), [8.0, 6.0, 8.0, 8.0]);
    check(&with(CombineMode::Sum), [6.0, 5.0, 6.0, 6.0]);
    check(&with(CombineMode::Avg), [3.0, 2.5, 3.0, 3.0]);
    check(&with(CombineMode::Max), [4.0, 3.0, 4.0, 4.0]);
    check(&with(CombineMode::Min), [2.0, 2.0, 2.0, 2.0]);
    let cut = scored(functions(), |scored| scored.max_score = Some(30.0));
    check(&cut, [60.0, 60.0, 0.0, 8.0]);
    // Without functions the score stays.
    assert_eq!(model().plan(&scored(vec![], |_| {})).constant_score, 2.0);
}

#[test]
fn what_scores_too_little_before_the_first_match_is_not_excluded() {
    let mut documents = vec![Object::default()];
    documents.extend([100, 3, 0, 7].map(|count| {
        Object::default()
            .with("price", 4.0)
            .with("brand", "x")
            .with("name", "tea")
            .with_all("count", [count, 5])
    }));
    let model = Model::new(documents, 1, usize::MAX);
    let mut reciprocal = factor("count", Modifier::Reciprocal, None);
    // Read forward alone; the value is 1 where it doesn't match.
    reciprocal.filter = Some(Query::exists("count"));
    for query in [
        Query::MatchAll,
        Query::term("count", 5),
        Query::term("price", 4.0),
        Query::term("brand", "x"),
        Query::term("name", "tea"),
        Query::exists("brand"),
        Query::exists("price"),
        Query::range(
            "price",
            Bound::Excluded(QueryValue::Double(0.0)),
            Bound::Unbounded,
        ),
        Query::range("count", Bound::Included(QueryValue::Integer(5)), Bound::Unbounded),
    ] {
        let mut scored = FunctionScore::new(query.clone(), vec![reciprocal.clone()]);
        scored.combine_mode = CombineMode::Replace;
        scored.min_score = Some(0.5);
        let scored = Query::FunctionScore(Box::new(scored));
        let beginning = Query::prefix("name", "t");
        for scored in [
            scored.clone(),
            Query::all(vec![scored.clone(), scored.clone()]),
            Query::all(vec![beginning, scored]),
        ] {
            assert_eq!(model.found(&scored), [3], "{scored:?}");
            assert_eq!(model.found(&Query::not(scored.clone())), [1, 2, 4], "{scored:?}");
        }
    }
}

#[test]
fn scores_below_the_least_do_not_match() {
    let least = |least| {
        scored(vec![factor("count", Modifier::None, None)], |scored| {
            scored.min_score = Some(least)
        })
    };
    assert_eq!(model().found(&least(6.0)), [1, 2]);
    assert_eq!(model().scored(&least(6.1)), [(1, 200.0)]);
    assert_eq!(model().found(&Query::not(least(6.0))), [3, 4]);
    let both = Query::all(vec![Query::exists("price"), least(2.0)]);
    assert_eq!(model().scored(&both), [(1, 201.0), (2, 7.0)]);
}

#[test]
fn random_numbers_belong_to_keys() {
    let shuffled = |seed| {
        let random = ScoreFunction::new(Function::Random { seed });
        model().scored(&scored(vec![random], |scored| {
            scored.combine_mode = CombineMode::Replace
        }))
    };
    let (one, again, other) = (shuffled(1), shuffled(1), shuffled(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
    assert!(one.iter().all(|(_, score)| (0.0..=1.0).contains(score)));
}

#[test]
fn the_best_of_several() {
    let weighed = |field: &str, weight| Query::ConstScore {
        filter: Box::new(Query::exists(field)),
        weight,
    };
    let best = |tie_breaker| Query::DisMax {
        queries: vec![
            weighed("count", 1.0),
            weighed("price", 3.0),
            weighed("brand", 2.0),
        ],
        tie_breaker,
        weight: 2.0,
    };
    assert_eq!(model().scored(&best(0.0)), [(1, 6.0), (2, 6.0), (3, 6.0)]);
    assert_eq!(model().scored(&best(0.5)), [(1, 7.0), (2, 9.0), (3, 7.0)]);
    let sum = Query::Weighted {
        query: Box::new(Query::any(vec![weighed("count", 1.0), weighed("price", 3.0)])),
        weight: 0.5,
    };
    assert_eq!(model().scored(&sum), [(1, 2.0), (2, 2.0), (3, 2.0)]);
}

#[test]
fn mistakes_name_their_place() {
    let wrong = |query: Query, expected: &[&str]| {
        let Err(Error::InvalidQuery(found)) = plan(&layout(), &run(), &query, "query") else {
            panic!("accepted: {query:?}")
        };
        let paths: Vec<&str> = found
            .listed()
            .iter()
            .map(|violation| violation.path.as_str())
            .collect();
        let expected: Vec<String> = expected.iter().map(|path| format!("query.{path}")).collect();
        assert_eq!(paths, expected, "{found}");
    };
    wrong(
        scored(vec![weight(1.0, None); 33], |_| {}),
        &["function_score.functions"],
    );
    let ends =
        |scored: &mut FunctionScore| (scored.min_score, scored.max_score) = (Some(-1.0), Some(f64::NAN));
    wrong(
        scored(vec![weight(-1.0, Some(Query::exists("x")))], ends),
        &[
            "function_score.min_score",
            "function_score.max_score",
            "function_score.functions[0].weight",
            "function_score.functions[0].filter.exists.field",
        ],
    );
    let factors = vec![
        factor("brand", Modifier::None, None),
        factor("count", Modifier::None, Some(f64::INFINITY)),
    ];
    wrong(
        scored(factors, |_| {}),
        &[
            "function_score.functions[0].field_value_factor.field",
            "function_score.functions[1].field_value_factor.missing",
        ],
    );
    let point = DecayOrigin::Point(GeoPoint::new(0.0, 0.0).expect("a point"));
    let value = |value| DecayOrigin::Value(value);
    let decays = [
        ("count", point, "point"),
        ("count", value(QueryValue::from("a")), "value"),
        ("position", value(QueryValue::from(1)), "value"),
        ("brand", value(QueryValue::from("a")), "field"),
    ];
    for (field, origin, part) in decays {
        let decay = decay(field, origin, DecayShape::Exp, DistanceMode::Min);
        wrong(
            scored(vec![decay], |_| {}),
            &[&format!("function_score.functions[0].decay.{part}")],
        );
    }
    let numbers = Decay {
        field: "count".to_owned(),
        shape: DecayShape::Gauss,
        origin: value(QueryValue::from(1)),
        scale: 0.0,
        offset: -1.0,
        decay: 1.0,
        mode: DistanceMode::Min,
    };
    let parts = ["scale", "offset", "decay"].map(|part| format!("function_score.functions[0].decay.{part}"));
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    wrong(
        scored(vec![ScoreFunction::new(Function::Decay(numbers))], |_| {}),
        &parts,
    );
    let best = |queries, tie_breaker| Query::DisMax {
        queries,
        tie_breaker,
        weight: -1.0,
    };
    wrong(
        best(vec![], 1.5),
        &["dis_max.weight", "dis_max.tie_breaker", "dis_max.queries"],
    );
    wrong(
        best(vec![Query::exists("x")], 0.0),
        &["dis_max.weight", "dis_max.queries[0].exists.field"],
    );
}
