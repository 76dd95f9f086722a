//! Each mistake is found at its path, all of them at once.

use std::ops::Bound;

use super::*;
use crate::geo::GeoPoint;
use crate::request::{Fuzziness, Operator, QueryValue, ScoreMode};

/// The paths and codes of the violations, in order.
fn violations(query: &Query) -> Vec<(String, &'static str)> {
    match plan(&layout(), &run(), query, "query") {
        Err(Error::InvalidQuery(violations)) => violations
            .listed()
            .iter()
            .map(|violation| (violation.path.clone(), violation.reason.code()))
            .collect(),
        Err(other) => panic!("{query:?}: {other}"),
        Ok(_) => Vec::new(),
    }
}

fn one(query: &Query) -> (String, &'static str) {
    let found = violations(query);
    assert_eq!(found.len(), 1, "{query:?}: {found:?}");
    found.into_iter().next().unwrap_or_default()
}

fn assert_one(query: &Query, path: &str, code: &str) {
    assert_eq!(one(query), (path.to_owned(), code_of(code)), "{query:?}");
}

fn code_of(code: &str) -> &'static str {
    [
        "UNKNOWN_FIELD",
        "TYPE_MISMATCH",
        "OUTSIDE_NESTED_PATH",
        "MISSING",
        "OUT_OF_RANGE",
        "LIMIT_EXCEEDED",
    ]
    .into_iter()
    .find(|known| *known == code)
    .unwrap_or("no such code")
}

fn nested(path: &str, query: Query) -> Query {
    Query::Nested {
        path: path.to_owned(),
        query: Box::new(query),
        score_mode: ScoreMode::None,
        weight: 1.0,
        inner_hits: None,
    }
}

fn included(value: impl Into<QueryValue>) -> Bound<QueryValue> {
    Bound::Included(value.into())
}

fn match_of(operator: Operator, minimum_should_match: Option<u32>, text: &str) -> Query {
    Query::Match {
        field: "name".to_owned(),
        text: text.to_owned(),
        operator,
        minimum_should_match,
        weight: 1.0,
    }
}

#[test]
fn all_mistakes_are_listed_with_their_paths() {
    let query = Query::Bool {
        must: vec![Query::MatchAll, Query::term("colour", "red")],
        filter: vec![nested("tags", Query::term("tags.tag", 7))],
        should: vec![Query::all(vec![Query::range(
            "count",
            included("a"),
            included(3),
        )])],
        must_not: vec![Query::terms(
            "brand",
            [QueryValue::from("a"), QueryValue::from(1)],
        )],
        minimum_should_match: Some(2),
    };
    let expected = [
        ("query.bool.must[1].term.field", "UNKNOWN_FIELD"),
        ("query.bool.filter[0].nested.query.term.value", "TYPE_MISMATCH"),
        ("query.bool.should[0].bool.must[0].range.gte", "TYPE_MISMATCH"),
        ("query.bool.must_not[0].terms.values[1]", "TYPE_MISMATCH"),
        ("query.bool.minimum_should_match", "OUT_OF_RANGE"),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(path, code)| (path.to_owned(), code))
        .collect();
    assert_eq!(violations(&query), expected);
}

#[test]
fn fields_belong_to_a_nested_path() {
    assert_one(
        &Query::term("tags.tag", "a"),
        "query.term.field",
        "OUTSIDE_NESTED_PATH",
    );
    assert_one(
        &nested("tags", Query::term("brand", "a")),
        "query.nested.query.term.field",
        "OUTSIDE_NESTED_PATH",
    );
    let deep = nested("tags.sources", Query::term("tags.tag", "a"));
    assert_one(&deep, "query.nested.query.term.field", "OUTSIDE_NESTED_PATH");
    let back = nested("tags.sources", nested("tags", Query::MatchAll));
    assert_one(&back, "query.nested.query.nested.path", "OUTSIDE_NESTED_PATH");
    assert_one(
        &nested("brand", Query::MatchAll),
        "query.nested.path",
        "TYPE_MISMATCH",
    );
    assert_one(
        &nested("colours", Query::MatchAll),
        "query.nested.path",
        "UNKNOWN_FIELD",
    );
    let Err(Error::InvalidQuery(found)) = plan(&layout(), &run(), &Query::term("tags.tag", "a"), "query")
    else {
        panic!("accepted")
    };
    assert!(
        found.to_string().contains("nested query with the path `tags`"),
        "{found}"
    );
}

#[test]
fn scopes_of_sorts_are_planned_like_nested_queries() {
    let layout = layout();
    let plan = |query: &Query| plan_in_scope(&layout, &run(), query, Some("tags"), "sort[0].filter");
    assert!(plan(&Query::term("tags.tag", "a")).is_ok());
    let Err(Error::InvalidQuery(found)) = plan(&Query::term("brand", "a")) else {
        panic!("accepted")
    };
    assert_eq!(
        found.listed().first().map(|found| found.path.as_str()),
        Some("sort[0].filter.term.field")
    );
}

#[test]
fn values_suit_their_fields() {
    let wrong = |field: &str, value: QueryValue| {
        assert_one(&Query::term(field, value), "query.term.value", "TYPE_MISMATCH");
    };
    wrong("brand", 7.into());
    wrong("name", true.into());
    wrong("count", "7".into());
    wrong("count", QueryValue::Time(7));
    wrong("price", "7".into());
    wrong("paid", 1.into());
    wrong("created", 1.5.into());
    wrong("brand", QueryValue::Bytes(vec![1]));
    assert_one(
        &Query::term("price", f64::NAN),
        "query.term.value",
        "OUT_OF_RANGE",
    );
    assert_one(
        &Query::term("count", f64::INFINITY),
        "query.term.value",
        "OUT_OF_RANGE",
    );
    for (field, value) in [("position", "30,120"), ("tags", "a")] {
        assert_one(&Query::term(field, value), "query.term.field", "TYPE_MISMATCH");
    }
    assert_eq!(violations(&Query::term("created", 7)), []);
    assert_eq!(violations(&Query::term("count", 7.5)), []);
}

#[test]
fn queries_suit_their_fields() {
    let field =
        |query: &Query, kind: &str| assert_one(query, &format!("query.{kind}.field"), "TYPE_MISMATCH");
    field(&Query::range("paid", included(true), Bound::Unbounded), "range");
    field(&Query::range("position", included(1), Bound::Unbounded), "range");
    field(&Query::prefix("count", "7"), "prefix");
    field(&Query::suffix("price", "7"), "suffix");
    field(&Query::wildcard("created", "7*"), "wildcard");
    field(&Query::match_text("count", "7"), "match");
    let phrase = Query::MatchPhrase {
        field: "paid".into(),
        text: "x".into(),
        slop: 0,
        weight: 1.0,
    };
    field(&phrase, "match_phrase");
    let center = GeoPoint::new(1.0, 1.0).expect("a point");
    field(
        &Query::GeoDistance {
            field: "name".into(),
            center,
            distance_meters: 1.0,
        },
        "geo_distance",
    );
    let corners = Query::GeoBoundingBox {
        field: "count".into(),
        top_left: center,
        bottom_right: center,
    };
    field(&corners, "geo_bounding_box");
}

#[test]
fn numbers_and_shapes_make_sense() {
    let range = |lower, upper| Query::range("count", lower, upper);
    assert_one(&range(included(3), included(2.5)), "query.range", "OUT_OF_RANGE");
    assert_one(
        &range(Bound::Unbounded, Bound::Unbounded),
        "query.range",
        "MISSING",
    );
    assert_eq!(violations(&range(included(3), Bound::Excluded(3.into()))), []);
    for weight in [-1.0, f32::NAN, f32::INFINITY] {
        let term = Query::Term {
            field: "brand".into(),
            value: "a".into(),
            weight,
        };
        assert_one(&term, "query.term.weight", "OUT_OF_RANGE");
        let constant = Query::ConstScore {
            filter: Box::new(Query::MatchAll),
            weight,
        };
        assert_one(&constant, "query.const_score.weight", "OUT_OF_RANGE");
    }
    assert_one(
        &match_of(Operator::Or, Some(0), "x"),
        "query.match.minimum_should_match",
        "OUT_OF_RANGE",
    );
    assert_one(
        &match_of(Operator::And, Some(1), "x"),
        "query.match.minimum_should_match",
        "TYPE_MISMATCH",
    );
    assert_one(&match_of(Operator::Or, None, ""), "query.match.text", "MISSING");
    assert_one(
        &Query::wildcard("brand", r"a\"),
        "query.wildcard.pattern",
        "OUT_OF_RANGE",
    );
    assert_one(&Query::wildcard("brand", ""), "query.wildcard.pattern", "MISSING");
    assert_one(&Query::prefix("brand", ""), "query.prefix.value", "MISSING");
    assert_one(
        &Query::terms("brand", Vec::<&str>::new()),
        "query.terms.values",
        "MISSING",
    );
    let point = |latitude, longitude| GeoPoint::new(latitude, longitude).expect("a point");
    let upside_down = Query::GeoBoundingBox {
        field: "position".into(),
        top_left: point(1.0, 1.0),
        bottom_right: point(2.0, 2.0),
    };
    assert_one(&upside_down, "query.geo_bounding_box.top_left", "OUT_OF_RANGE");
    let line = Query::GeoPolygon {
        field: "position".into(),
        vertices: vec![point(1.0, 1.0), point(2.0, 2.0)],
    };
    assert_one(&line, "query.geo_polygon.vertices", "OUT_OF_RANGE");
    let negative = Query::GeoDistance {
        field: "position".into(),
        center: point(1.0, 1.0),
        distance_meters: -1.0,
    };
    assert_one(&negative, "query.geo_distance.distance_meters", "OUT_OF_RANGE");
}

#[test]
fn limits_are_named() {
    let limit = |query: &Query, path: &str, limit: &str| {
        let Err(Error::InvalidQuery(found)) = plan(&layout(), &run(), query, "query") else {
            panic!("{limit} is not kept")
        };
        let [violation] = found.listed() else {
            panic!("{found}")
        };
        assert_eq!(violation.path, path);
        let Reason::LimitExceeded {
            limit: named,
            max,
            actual,
        } = violation.reason
        else {
            panic!("{violation}")
        };
        assert_eq!(named, limit);
        assert!(actual > max, "{violation}");
    };
    let many = |count: usize| vec![Query::MatchAll; count];
    limit(&Query::all(many(1_024)), "query", "MAX_QUERY_NODES");
    assert_eq!(violations(&Query::all(many(1_023))), []);
    let deep = |levels: usize| (1..levels).fold(Query::MatchAll, |query, _| Query::all(vec![query]));
    limit(&deep(33), "query", "MAX_QUERY_DEPTH");
    assert_eq!(violations(&deep(32)), []);
    limit(
        &Query::terms("count", vec![1; 1_025]),
        "query.terms.values",
        "MAX_TERMS",
    );
    limit(
        &Query::term("brand", "x".repeat(4_097).as_str()),
        "query.term.value",
        "MAX_KEYWORD_BYTES",
    );
    limit(
        &Query::wildcard("brand", "茶".repeat(33)),
        "query.wildcard.pattern",
        "MAX_WILDCARD_CHARS",
    );
    assert_eq!(violations(&Query::wildcard("brand", "茶".repeat(32))), []);
    limit(
        &Query::prefix("brand", "x".repeat(1_001)),
        "query.prefix.value",
        "MAX_AFFIX_BYTES",
    );
    limit(
        &Query::suffix("brand", "x".repeat(1_001)),
        "query.suffix.value",
        "MAX_AFFIX_BYTES",
    );
    limit(
        &match_of(Operator::Or, None, &"x".repeat(4_097)),
        "query.match.text",
        "MAX_MATCH_TEXT_BYTES",
    );
    let words: String = (0..1_300)
        .filter_map(|nth| char::from_u32(0x4e00 + nth))
        .collect();
    limit(
        &match_of(Operator::Or, None, &words),
        "query.match.text",
        "MAX_MATCH_TOKENS",
    );
    let phrase = Query::MatchPhrase {
        field: "name".into(),
        text: "a b".into(),
        slop: 257,
        weight: 1.0,
    };
    limit(&phrase, "query.match_phrase.slop", "MAX_SLOP");
    let center = GeoPoint::new(1.0, 1.0).expect("a point");
    let far = Query::GeoDistance {
        field: "position".into(),
        center,
        distance_meters: 3e7,
    };
    limit(&far, "query.geo_distance.distance_meters", "MAX_DISTANCE_METERS");
    let vertices = vec![center; 10_001];
    limit(
        &Query::GeoPolygon {
            field: "position".into(),
            vertices,
        },
        "query.geo_polygon.vertices",
        "MAX_POLYGON_VERTICES",
    );
}

#[test]
fn misspelled_words_have_bounds() {
    let near = |field: &str, fuzziness, text: &str| Query::MatchFuzzy {
        field: field.to_owned(),
        text: text.to_owned(),
        operator: Operator::Or,
        minimum_should_match: None,
        fuzziness,
        prefix_length: 0,
        weight: 1.0,
    };
    let three = near("name", Fuzziness::Edits(3), "tea");
    assert_one(&three, "query.match.fuzziness", "OUT_OF_RANGE");
    let number = near("count", Fuzziness::Auto, "7");
    assert_one(&number, "query.match.field", "TYPE_MISMATCH");
    let words: Vec<String> = (0..65).map(|nth| format!("w{nth}")).collect();
    let many = near("name", Fuzziness::Auto, &words.join(" "));
    assert_one(&many, "query.match.text", "LIMIT_EXCEEDED");
    let unfinished = Query::MatchPhrasePrefix {
        field: "paid".to_owned(),
        text: "x".to_owned(),
        weight: 1.0,
    };
    assert_one(&unfinished, "query.match_phrase_prefix.field", "TYPE_MISMATCH");
}

#[test]
fn nodes_are_counted_over_all_trees_of_a_search() {
    let (layout, run) = (layout(), run());
    let half = Query::all(vec![Query::MatchAll; 600]);
    assert!(plan(&layout, &run, &half, "query").is_ok());
    let second = plan_in_scope(&layout, &run, &half, Some("tags"), "sort[0].filter");
    assert!(
        matches!(second, Err(Error::InvalidQuery(found)) if found.to_string().contains("MAX_QUERY_NODES"))
    );
}

#[test]
fn weights_multiply_to_a_limit() {
    let text = |weight| Query::Match {
        field: "name".to_owned(),
        text: "tea".to_owned(),
        operator: Operator::Or,
        minimum_should_match: None,
        weight,
    };
    let weighted = |weight, query| Query::Weighted {
        query: Box::new(Query::all(vec![query])),
        weight,
    };
    let exceeded = |query: &Query, paths: &[&str]| {
        let expected: Vec<_> = paths
            .iter()
            .map(|path| ((*path).to_owned(), "LIMIT_EXCEEDED"))
            .collect();
        assert_eq!(violations(query), expected, "{query:?}");
    };
    // Each may be large, not all together; what is small outside doesn't help what overflows inside.
    exceeded(&text(1e18), &[]);
    exceeded(&text(2e18), &["query.match.weight"]);
    exceeded(&weighted(1e9, text(1e9)), &[]);
    exceeded(&weighted(1e9, text(2e9)), &["query.bool.must[0].match.weight"]);
    exceeded(
        &weighted(1e-30, weighted(1e9, weighted(1e3, text(1e7)))),
        &["query.bool.must[0].bool.must[0].bool.must[0].match.weight"],
    );
    exceeded(
        &weighted(1e30, text(1e30)),
        &["query.weight", "query.bool.must[0].match.weight"],
    );
    exceeded(&weighted(0.0, text(1e18)), &[]);
    let best = Query::DisMax {
        queries: vec![text(1.0), text(1e10)],
        tie_breaker: 0.5,
        weight: 1e10,
    };
    exceeded(&best, &["query.dis_max.queries[1].match.weight"]);
    let objects = Query::Nested {
        path: "tags".to_owned(),
        query: Box::new(Query::ConstScore {
            filter: Box::new(Query::term("tags.tag", "x")),
            weight: 1e10,
        }),
        score_mode: ScoreMode::Total,
        weight: 1e10,
        inner_hits: None,
    };
    exceeded(&objects, &["query.nested.query.const_score.weight"]);
    // What a function_score computes is finite, so that weights begin anew inside of it.
    let functions = |weight| {
        let function = crate::request::ScoreFunction {
            weight,
            ..crate::request::ScoreFunction::new(crate::request::Function::One)
        };
        let scored = crate::request::FunctionScore::new(text(1e10), vec![function]);
        weighted(1e10, Query::FunctionScore(Box::new(scored)))
    };
    exceeded(&functions(1e8), &[]);
    exceeded(
        &functions(1e9),
        &["query.bool.must[0].function_score.functions[0].weight"],
    );
    // Without functions it computes nothing: its query's scores are its own.
    let plain = |query| Query::FunctionScore(Box::new(crate::request::FunctionScore::new(query, Vec::new())));
    exceeded(&weighted(1e10, plain(text(1e8))), &[]);
    exceeded(
        &weighted(1e10, plain(text(1e9))),
        &["query.bool.must[0].function_score.query.match.weight"],
    );
    let mut least = crate::request::FunctionScore::new(text(1e18), Vec::new());
    least.min_score = Some(1.0);
    exceeded(&weighted(1e18, Query::FunctionScore(Box::new(least))), &[]);
}
