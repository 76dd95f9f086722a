//! Queries that compute scores, and how many clauses have to match.

use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Modifier, ScoreFunction,
};

use super::*;

fn scored(functions: Vec<pb::ScoreFunction>) -> pb::FunctionScoreQuery {
    pb::FunctionScoreQuery {
        query: Some(Box::new(term("type", text("tea")))),
        functions,
        ..pb::FunctionScoreQuery::default()
    }
}

fn function(function: pb::score_function::Function) -> pb::ScoreFunction {
    pb::ScoreFunction {
        function: Some(function),
        ..pb::ScoreFunction::default()
    }
}

#[test]
fn functions_and_their_defaults() {
    use pb::score_function::Function as Kind;

    let plain = read_query(super::Kind::FunctionScore(Box::new(scored(vec![
        pb::ScoreFunction::default(),
        function(Kind::FieldValueFactor(pb::FieldValueFactor {
            field: "rating".to_owned(),
            ..pb::FieldValueFactor::default()
        })),
        function(Kind::Decay(pb::DecayFunction {
            field: "position".to_owned(),
            origin: at(30.0, 120.0).map(pb::decay_function::Origin::Point),
            scale: 500.0,
            ..pb::DecayFunction::default()
        })),
        function(Kind::Random(pb::RandomFunction { seed: -1 })),
    ]))));
    let decay = Decay {
        field: "position".to_owned(),
        shape: DecayShape::Gauss,
        origin: DecayOrigin::Point(GeoPoint::new(30.0, 120.0).expect("a point")),
        scale: 500.0,
        offset: 0.0,
        decay: 0.5,
        mode: DistanceMode::Min,
    };
    let factor = Function::FieldValueFactor {
        field: "rating".to_owned(),
        factor: 1.0,
        modifier: Modifier::None,
        missing: None,
    };
    let functions = [
        Function::One,
        factor,
        Function::Decay(decay),
        Function::Random { seed: u64::MAX },
    ];
    let functions = functions.map(ScoreFunction::new).to_vec();
    let expected = FunctionScore::new(Query::term("type", "tea"), functions);
    assert_eq!(plain, Query::FunctionScore(Box::new(expected)));
}

#[test]
fn functions_with_everything() {
    use pb::score_function::Function as Kind;

    let factor = pb::FieldValueFactor {
        field: "price".to_owned(),
        factor: Some(0.5),
        modifier: pb::Modifier::Ln1p.into(),
        missing: Some(3.0),
    };
    let decay = pb::DecayFunction {
        field: "price".to_owned(),
        shape: pb::DecayShape::Linear.into(),
        origin: Some(pb::decay_function::Origin::Value(value(value::Kind::IntValue(7)))),
        scale: 2.0,
        offset: 1.0,
        decay: Some(0.25),
        mode: pb::SortMode::Sum.into(),
    };
    let whole = pb::FunctionScoreQuery {
        score_mode: pb::FunctionScoreMode::Avg.into(),
        combine_mode: pb::CombineMode::Replace.into(),
        min_score: Some(0.5),
        max_score: Some(9.0),
        ..scored(vec![
            pb::ScoreFunction {
                weight: Some(4.0),
                filter: Some(term("type", text("shop"))),
                ..function(Kind::FieldValueFactor(factor))
            },
            function(Kind::Decay(decay)),
        ])
    };
    let factor = Function::FieldValueFactor {
        field: "price".to_owned(),
        factor: 0.5,
        modifier: Modifier::Ln1p,
        missing: Some(3.0),
    };
    let decay = Decay {
        field: "price".to_owned(),
        shape: DecayShape::Linear,
        origin: DecayOrigin::Value(QueryValue::Integer(7)),
        scale: 2.0,
        offset: 1.0,
        decay: 0.25,
        mode: DistanceMode::Sum,
    };
    let first = ScoreFunction {
        function: factor,
        weight: 4.0,
        filter: Some(Query::term("type", "shop")),
    };
    let expected = FunctionScore {
        query: Query::term("type", "tea"),
        functions: vec![first, ScoreFunction::new(Function::Decay(decay))],
        score_mode: FunctionScoreMode::Avg,
        combine_mode: CombineMode::Replace,
        min_score: Some(0.5),
        max_score: Some(9.0),
    };
    let read = read_query(super::Kind::FunctionScore(Box::new(whole)));
    assert_eq!(read, Query::FunctionScore(Box::new(expected)));
}

#[test]
fn the_best_of_several_and_weights_of_combinations() {
    let best = pb::DisMaxQuery {
        queries: vec![term("type", text("a")), term("type", text("b"))],
        tie_breaker: 0.3,
        weight: Some(2.0),
    };
    let expected = Query::DisMax {
        queries: vec![Query::term("type", "a"), Query::term("type", "b")],
        tie_breaker: 0.3,
        weight: 2.0,
    };
    assert_eq!(read_query(super::Kind::DisMax(best)), expected);
    let weighted = |minimum: &str, weight| {
        super::Kind::Bool(pb::BoolQuery {
            should: ["a", "b", "c", "d"].map(|word| term("type", text(word))).to_vec(),
            minimum_should_match_expression: minimum.to_owned(),
            weight,
            ..pb::BoolQuery::default()
        })
    };
    let Query::Weighted { query, weight } = read_query(weighted("-25%", Some(3.0))) else {
        panic!("no weight")
    };
    assert_eq!(weight, 3.0);
    let minimum = |query| match query {
        Query::Bool {
            minimum_should_match, ..
        } => minimum_should_match,
        other => panic!("{other:?}"),
    };
    assert_eq!(minimum(*query), Some(3));
    for (text, expected) in [
        ("", None),
        ("2", Some(2)),
        ("10%", None),
        ("-4", None),
        ("3<50%", Some(2)),
    ] {
        assert_eq!(minimum(read_query(weighted(text, None))), expected, "{text}");
    }
}

#[test]
fn mistakes_in_scoring() {
    use pb::score_function::Function as Kind;

    let score = |functions| asked(super::Kind::FunctionScore(Box::new(scored(functions))));
    let under = |path: &str| format!("search.query.function_score.{path}");
    let decay = |decay| vec![function(Kind::Decay(decay))];
    let cases = [
        (
            score(vec![pb::ScoreFunction::default(); 33]),
            vec![under("functions")],
        ),
        (
            asked(super::Kind::FunctionScore(Box::default())),
            vec![under("query")],
        ),
        (
            score(decay(pb::DecayFunction {
                shape: 9,
                mode: 9,
                ..pb::DecayFunction::default()
            })),
            ["field", "shape", "mode", "value"]
                .map(|part| under(&format!("functions[0].decay.{part}")))
                .to_vec(),
        ),
        (
            score(decay(pb::DecayFunction {
                field: "position".to_owned(),
                origin: at(91.0, 0.0).map(pb::decay_function::Origin::Point),
                ..pb::DecayFunction::default()
            })),
            vec![under("functions[0].decay.point.latitude")],
        ),
        (
            score(vec![function(Kind::FieldValueFactor(pb::FieldValueFactor {
                modifier: 99,
                ..pb::FieldValueFactor::default()
            }))]),
            vec![
                under("functions[0].field_value_factor.field"),
                under("functions[0].field_value_factor.modifier"),
            ],
        ),
        (
            score(vec![pb::ScoreFunction {
                filter: Some(pb::Query { kind: None }),
                ..pb::ScoreFunction::default()
            }]),
            vec![under("functions[0].filter")],
        ),
        (
            asked(super::Kind::DisMax(pb::DisMaxQuery::default())),
            vec!["search.query.dis_max.queries".to_owned()],
        ),
        (
            asked(super::Kind::Bool(pb::BoolQuery {
                minimum_should_match: Some(1),
                minimum_should_match_expression: "1".to_owned(),
                ..pb::BoolQuery::default()
            })),
            vec!["search.query.bool.minimum_should_match_expression".to_owned()],
        ),
        (
            asked(super::Kind::Bool(pb::BoolQuery {
                minimum_should_match_expression: "2<".to_owned(),
                weight: Some(-1.0),
                ..pb::BoolQuery::default()
            })),
            vec![
                "search.query.bool.weight".to_owned(),
                "search.query.bool.minimum_should_match_expression".to_owned(),
            ],
        ),
    ];
    for (search, paths) in cases {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        refuses(search, "INVALID_QUERY", &paths);
    }
    // Filters and queries of scoring count as nodes.
    let deep = pb::ScoreFunction {
        filter: Some(nested_to(32)),
        ..pb::ScoreFunction::default()
    };
    refuses(score(vec![deep]), "INVALID_QUERY", &["search.query"]);
    let wide = pb::DisMaxQuery {
        queries: vec![term("type", text("a")); 1_024],
        ..pb::DisMaxQuery::default()
    };
    refuses(
        asked(super::Kind::DisMax(wide)),
        "INVALID_QUERY",
        &["search.query"],
    );
}
