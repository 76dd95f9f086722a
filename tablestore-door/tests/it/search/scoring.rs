//! Scores by functions.

use std::collections::BTreeMap;

use prost::Message as _;
use souk_tablestore::messages::{
    self as pb, DateTimeUnit, DateTimeValue, DecayFuncDateParam, DecayFuncGeoParam, DecayFuncNumericParam,
    DecayFuncParamType, DecayMathFunction, FieldSchema, FieldType, Function, FunctionCombineMode,
    FunctionModifier, FunctionScoreMode, FunctionsScoreQuery, MultiValueMode, Query, QueryType, SearchQuery,
};

use super::lifecycle::of_fields;
use super::{INDEX, Shops, cell, everything, field, finding, id, named, of, query, rows, sorted, term};

/// The score of each row that a query finds.
async fn scores_of(shops: &mut Shops, index: &str, query: Query) -> BTreeMap<String, f64> {
    let search = SearchQuery {
        sort: sorted(pb::Sorter {
            score_sort: Some(pb::ScoreSort { order: None }),
            ..pb::Sorter::default()
        }),
        ..finding(query)
    };
    let found = shops.search_of(index, search).await.expect("an answer");
    let scores = found.search_hits.iter().map(|hit| hit.score.expect("a score"));
    rows(&found).iter().map(id).zip(scores).collect()
}

async fn scores(shops: &mut Shops, body: &FunctionsScoreQuery) -> BTreeMap<String, f64> {
    scores_of(shops, INDEX, query(QueryType::FunctionsScore, body)).await
}

/// All rows, whose score is that of the functions alone.
fn by(functions: Vec<Function>) -> FunctionsScoreQuery {
    FunctionsScoreQuery {
        query: Some(everything()),
        functions,
        combine_mode: Some(FunctionCombineMode::Replace.into()),
        ..FunctionsScoreQuery::default()
    }
}

fn factor(field: &str, factor: Option<f32>, modifier: FunctionModifier, missing: Option<f64>) -> Function {
    Function {
        field_value_factor: Some(pb::FieldValueFactorFunction {
            field_name: named(field),
            factor,
            modifier: Some(modifier.into()),
            missing,
        }),
        ..Function::default()
    }
}

fn price() -> Function {
    factor("price", None, FunctionModifier::None, None)
}

fn weighing(weight: f32) -> Function {
    Function {
        weight: Some(weight),
        ..Function::default()
    }
}

/// Scores are in single precision, and points of an index to some centimetres.
fn are(told: &BTreeMap<String, f64>, expected: &[(&str, f64)], what: &str) {
    for (id, score) in expected {
        let told = told[*id];
        assert!(
            (told - score).abs() <= 1e-3 * score.abs(),
            "{what}: {id} has {told} instead of {score}"
        );
    }
}

#[tokio::test]
async fn numbers_of_rows_are_modified() {
    let mut shops = Shops::open().await;
    type Formula = fn(f64) -> f64;
    let modifiers: [(FunctionModifier, Formula); 10] = [
        (FunctionModifier::None, |x| x),
        (FunctionModifier::Log, f64::log10),
        (FunctionModifier::Log1p, |x| (x + 1.0).log10()),
        (FunctionModifier::Log2p, |x| (x + 2.0).log10()),
        (FunctionModifier::Ln, f64::ln),
        (FunctionModifier::Ln1p, |x| (x + 1.0).ln()),
        (FunctionModifier::Ln2p, |x| (x + 2.0).ln()),
        (FunctionModifier::Square, |x| x * x),
        (FunctionModifier::Sqrt, f64::sqrt),
        (FunctionModifier::Reciprocal, |x| 1.0 / x),
    ];
    for (modifier, formula) in modifiers {
        let body = by(vec![factor("price", Some(0.5), modifier, None)]);
        let told = scores(&mut shops, &body).await;
        let expected = [("a", 10.0), ("b", 20.0), ("e", 50.0)].map(|(id, price)| (id, formula(0.5 * price)));
        are(&told, &expected, &format!("{modifier:?}"));
    }
    // `d` has no rating: another number stands for it, or the function doesn't count.
    for (missing, score) in [(Some(2.5), 2.5), (None, 1.0)] {
        let body = by(vec![factor("rating", None, FunctionModifier::None, missing)]);
        let told = scores(&mut shops, &body).await;
        are(&told, &[("c", 5.0), ("d", score), ("e", 2.0)], "missing");
    }
    shops.end().await;
}

#[tokio::test]
async fn functions_and_the_query_make_one_score() {
    let mut shops = Shops::open().await;
    for (mode, score) in [
        (FunctionScoreMode::First, 10.0),
        (FunctionScoreMode::Multiply, 30.0),
        (FunctionScoreMode::Sum, 13.0),
        (FunctionScoreMode::Max, 10.0),
        (FunctionScoreMode::Min, 3.0),
        // By their weights, 1 and 3.
        (FunctionScoreMode::Avg, 3.25),
    ] {
        let body = FunctionsScoreQuery {
            score_mode: Some(mode.into()),
            ..by(vec![price(), weighing(3.0)])
        };
        are(
            &scores(&mut shops, &body).await,
            &[("a", score)],
            &format!("{mode:?}"),
        );
    }
    let two = pb::TermQuery {
        field_name: named("id"),
        term: of("a"),
        weight: Some(2.0),
    };
    let two = query(QueryType::Term, &two);
    for (mode, score) in [
        (FunctionCombineMode::Multiply, 20.0),
        (FunctionCombineMode::Avg, 6.0),
        (FunctionCombineMode::Max, 10.0),
        (FunctionCombineMode::Sum, 12.0),
        (FunctionCombineMode::Min, 2.0),
        (FunctionCombineMode::Replace, 10.0),
    ] {
        let body = FunctionsScoreQuery {
            query: Some(two.clone()),
            combine_mode: Some(mode.into()),
            ..by(vec![price()])
        };
        are(
            &scores(&mut shops, &body).await,
            &[("a", score)],
            &format!("{mode:?}"),
        );
    }
    let bounded = FunctionsScoreQuery {
        min_score: Some(20.0),
        max_score: Some(35.0),
        ..by(vec![price()])
    };
    let told = scores(&mut shops, &bounded).await;
    assert_eq!(told.keys().map(String::as_str).collect::<String>(), "bcde");
    are(
        &told,
        &[("b", 20.0), ("c", 30.0), ("d", 35.0), ("e", 35.0)],
        "bounds",
    );
    let of_tea = Function {
        filter: Some(term("type", "tea")),
        ..weighing(5.0)
    };
    let told = scores(&mut shops, &by(vec![of_tea])).await;
    are(&told, &[("a", 5.0), ("b", 5.0), ("c", 1.0)], "filter");
    let both = Function {
        random: Some(pb::RandomScoreFunction {}),
        ..price()
    };
    let said = shops
        .refused(finding(query(QueryType::FunctionsScore, &by(vec![both]))))
        .await;
    assert!(said.contains("of several kinds"), "{said}");
    shops.end().await;
}

#[tokio::test]
async fn numbers_by_chance_are_the_same_ones_in_each_search() {
    let mut shops = Shops::open().await;
    let random = Function {
        random: Some(pb::RandomScoreFunction {}),
        ..Function::default()
    };
    let body = by(vec![random]);
    let first = scores(&mut shops, &body).await;
    assert_eq!(first, scores(&mut shops, &body).await);
    let mut numbers: Vec<f64> = first.into_values().collect();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.dedup();
    assert_eq!(numbers.len(), 5);
    assert!(
        numbers.iter().all(|number| (0.0..=1.0).contains(number)),
        "{numbers:?}"
    );
    shops.end().await;
}

fn decay(
    field: &str,
    shape: DecayMathFunction,
    kind: DecayFuncParamType,
    param: Vec<u8>,
) -> pb::DecayFunction {
    pb::DecayFunction {
        field_name: named(field),
        math_function: Some(shape.into()),
        param_type: Some(kind.into()),
        param: Some(param.into()),
        decay: None,
        multi_value_mode: None,
    }
}

fn falling(decay: pb::DecayFunction) -> FunctionsScoreQuery {
    by(vec![Function {
        decay: Some(decay),
        ..Function::default()
    }])
}

fn length(value: i32, unit: DateTimeUnit) -> Option<DateTimeValue> {
    Some(DateTimeValue {
        value: Some(value),
        unit: Some(unit.into()),
    })
}

#[tokio::test]
async fn scores_fall_with_the_distance_of_a_number_and_of_a_place() {
    let mut shops = Shops::open().await;
    for (shape, far) in [
        (DecayMathFunction::Gauss, 0.003_906_25),
        (DecayMathFunction::Exp, 0.0625),
        (DecayMathFunction::Linear, 0.0),
    ] {
        let near_thirty = DecayFuncNumericParam {
            origin: Some(30.0),
            scale: Some(10.0),
            offset: None,
        };
        let body = falling(pb::DecayFunction {
            decay: Some(0.25),
            ..decay(
                "price",
                shape,
                DecayFuncParamType::Numeric,
                near_thirty.encode_to_vec(),
            )
        });
        let told = scores(&mut shops, &body).await;
        let expected = [("a", far), ("b", 0.25), ("c", 1.0), ("d", 0.25), ("e", far)];
        are(&told, &expected, &format!("{shape:?} of numbers"));

        // As far as `b` is, on the Earth's mean radius.
        let near_a = DecayFuncGeoParam {
            origin: named("30.0,120.0"),
            scale: Some(111.195),
            offset: None,
        };
        let body = falling(decay(
            "place",
            shape,
            DecayFuncParamType::Geo,
            near_a.encode_to_vec(),
        ));
        // `e` has no place, which is no distance.
        let told = scores(&mut shops, &body).await;
        are(
            &told,
            &[("a", 1.0), ("b", 0.5), ("e", 1.0)],
            &format!("{shape:?} of places"),
        );
        assert!(told["c"] < 0.01, "{told:?}");
    }
    shops.end().await;
}

#[tokio::test]
async fn scores_fall_with_the_distance_of_a_time_in_units_that_are_of_one_length() {
    let mut shops = Shops::open().await;
    // `c` is 14 days behind.
    let text = DecayFuncDateParam {
        origin_string: named("2021-01-20"),
        ..DecayFuncDateParam::default()
    };
    let number = DecayFuncDateParam {
        origin_long: Some(1_611_100_800_000),
        ..DecayFuncDateParam::default()
    };
    let body = |param: &DecayFuncDateParam, scale, offset| {
        let param = DecayFuncDateParam {
            scale,
            offset,
            ..param.clone()
        };
        let kind = DecayFuncParamType::Date;
        falling(decay(
            "day",
            DecayMathFunction::Linear,
            kind,
            param.encode_to_vec(),
        ))
    };
    for (unit, value) in [
        (DateTimeUnit::Week, 2),
        (DateTimeUnit::Day, 14),
        (DateTimeUnit::Hour, 336),
        (DateTimeUnit::Minute, 20_160),
        (DateTimeUnit::Second, 1_209_600),
        (DateTimeUnit::Millisecond, 1_209_600_000),
    ] {
        for (param, scale, offset) in [
            (&text, length(value, unit), None),
            (&number, length(value, unit), None),
            (&text, length(7, DateTimeUnit::Day), length(value / 2, unit)),
        ] {
            let told = scores(&mut shops, &body(param, scale, offset)).await;
            are(
                &told,
                &[("b", 1.0), ("c", 0.5), ("e", 0.0)],
                &format!("{unit:?} {offset:?}"),
            );
        }
    }
    for unit in [DateTimeUnit::Year, DateTimeUnit::QuarterYear, DateTimeUnit::Month] {
        let body = body(&text, length(1, unit), None);
        assert_eq!(
            shops
                .refused(finding(query(QueryType::FunctionsScore, &body)))
                .await,
            "Unsupported: lengths of time in years, quarters and months, which differ."
        );
    }
    shops.end().await;
}

#[tokio::test]
async fn several_numbers_of_a_row_have_one_distance() {
    let mut shops = Shops::open().await;
    shops.put("f", vec![cell("sizes", "[10,40]")]).await;
    let sizes = FieldSchema {
        is_array: Some(true),
        ..field("sizes", FieldType::Long)
    };
    shops
        .create("sizes", of_fields(vec![sizes]))
        .await
        .expect("created");
    shops.built("sizes").await;
    for (mode, score) in [
        (MultiValueMode::Min, 0.95),
        (MultiValueMode::Max, 0.8),
        (MultiValueMode::Sum, 0.75),
        (MultiValueMode::Avg, 0.875),
    ] {
        let from_zero = DecayFuncNumericParam {
            origin: Some(0.0),
            scale: Some(100.0),
            offset: None,
        };
        let kind = DecayFuncParamType::Numeric;
        let body = falling(pb::DecayFunction {
            multi_value_mode: Some(mode.into()),
            ..decay(
                "sizes",
                DecayMathFunction::Linear,
                kind,
                from_zero.encode_to_vec(),
            )
        });
        let asked = query(QueryType::FunctionsScore, &body);
        let told = scores_of(&mut shops, "sizes", asked).await;
        are(&told, &[("f", score)], &format!("{mode:?}"));
    }
    shops.end().await;
}
