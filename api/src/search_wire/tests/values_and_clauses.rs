//! Values and clauses of every kind, as the index takes them.

use super::*;

#[test]
fn values_of_every_kind() {
    let time = prost_types::Timestamp {
        seconds: -1,
        nanos: 5,
    };
    let cases = [
        (
            value::Kind::StringValue("x".to_owned()),
            QueryValue::String("x".to_owned()),
        ),
        (value::Kind::IntValue(i64::MIN), QueryValue::Integer(i64::MIN)),
        (value::Kind::DoubleValue(-0.5), QueryValue::Double(-0.5)),
        (value::Kind::BoolValue(true), QueryValue::Boolean(true)),
        (
            value::Kind::BytesValue(vec![1, 2].into()),
            QueryValue::Bytes(vec![1, 2]),
        ),
        (value::Kind::TimeValue(time), QueryValue::Time(-999_999_995)),
    ];
    for (kind, expected) in cases {
        let read = read_query(Kind::Term(pb::TermQuery {
            field: "type".to_owned(),
            value: Some(value(kind)),
            weight: Some(2.0),
        }));
        let field = "type".to_owned();
        assert_eq!(
            read,
            Query::Term {
                field,
                value: expected,
                weight: 2.0
            }
        );
    }
}

#[test]
fn values_out_of_range() {
    let far = prost_types::Timestamp {
        seconds: i64::MAX,
        nanos: 0,
    };
    let cases = [
        (
            value::Kind::DoubleValue(f64::NAN),
            "search.query.term.value.double_value",
        ),
        (
            value::Kind::DoubleValue(f64::INFINITY),
            "search.query.term.value.double_value",
        ),
        (value::Kind::TimeValue(far), "search.query.term.value.time_value"),
    ];
    for (kind, path) in cases {
        let search = pb::Search {
            query: Some(term("type", Some(value(kind)))),
            ..pb::Search::default()
        };
        refuses(search, "INVALID_QUERY", &[path]);
    }
}

#[test]
fn clauses_on_values() {
    let terms = read_query(Kind::Terms(pb::TermsQuery {
        field: "type".to_owned(),
        values: text("a").into_iter().chain(text("b")).collect(),
        weight: None,
    }));
    assert_eq!(terms, Query::terms("type", ["a", "b"]));
    let range = read_query(Kind::Range(pb::RangeQuery {
        field: "price".to_owned(),
        lower: Some(range_query::Lower::Gt(value(value::Kind::IntValue(1)))),
        upper: Some(range_query::Upper::Lte(value(value::Kind::DoubleValue(2.5)))),
    }));
    let (lower, upper) = (Bound::Excluded(1.into()), Bound::Included(2.5.into()));
    assert_eq!(range, Query::range("price", lower, upper));
    let open = read_query(Kind::Range(pb::RangeQuery {
        field: "price".to_owned(),
        ..pb::RangeQuery::default()
    }));
    assert_eq!(open, Query::range("price", Bound::Unbounded, Bound::Unbounded));
    let prefix = pb::PrefixQuery {
        field: "type".to_owned(),
        value: "t".to_owned(),
        weight: None,
    };
    assert_eq!(read_query(Kind::Prefix(prefix)), Query::prefix("type", "t"));
    let suffix = pb::SuffixQuery {
        field: "type".to_owned(),
        value: "a".to_owned(),
        weight: None,
    };
    assert_eq!(read_query(Kind::Suffix(suffix)), Query::suffix("type", "a"));
    let wildcard = pb::WildcardQuery {
        field: "type".to_owned(),
        pattern: "*e?".to_owned(),
        weight: None,
    };
    assert_eq!(
        read_query(Kind::Wildcard(wildcard)),
        Query::wildcard("type", "*e?")
    );
    let exists = pb::ExistsQuery {
        field: "type".to_owned(),
    };
    assert_eq!(read_query(Kind::Exists(exists)), Query::exists("type"));
    assert_eq!(read_query(Kind::MatchAll(pb::MatchAllQuery {})), Query::MatchAll);
}

#[test]
fn clauses_on_texts() {
    let matches = |operator: pb::Operator, minimum: &str| {
        Kind::Match(pb::MatchQuery {
            field: "name".to_owned(),
            text: "one two three Three four".to_owned(),
            operator: operator.into(),
            minimum_should_match: minimum.to_owned(),
            ..pb::MatchQuery::default()
        })
    };
    let minimum_of = |minimum| match read_query(matches(pb::Operator::Or, minimum)) {
        Query::Match {
            minimum_should_match, ..
        } => minimum_should_match,
        other => panic!("{other:?}"),
    };
    assert_eq!(minimum_of(""), None);
    // The text has five words, of which two are the same.
    for (minimum, expected) in [
        ("2", 2),
        ("-1", 4),
        ("75%", 3),
        ("-25%", 4),
        ("10%", 1),
        ("-9", 1),
        ("100%", 5),
        ("4<60%", 3),
        ("5<60%", 5),
    ] {
        assert_eq!(minimum_of(minimum), Some(expected), "{minimum}");
    }
    let all = read_query(matches(pb::Operator::And, ""));
    assert!(matches!(
        all,
        Query::Match {
            operator: Operator::And,
            minimum_should_match: None,
            ..
        }
    ));
    let path = "search.query.match.minimum_should_match";
    refuses(asked(matches(pb::Operator::And, "2")), "INVALID_QUERY", &[path]);
    for wrong in [
        "0",
        "x",
        "%",
        "-",
        "+1",
        "--1",
        "101%",
        "1.5",
        "99999999999",
        "2<",
    ] {
        assert_eq!(Minimum::parse(wrong), None, "{wrong}");
        refuses(asked(matches(pb::Operator::Or, wrong)), "INVALID_QUERY", &[path]);
    }
    let phrase = read_query(Kind::MatchPhrase(pb::MatchPhraseQuery {
        field: "name".to_owned(),
        text: "one two".to_owned(),
        slop: 3,
        weight: None,
    }));
    let (field, text) = ("name".to_owned(), "one two".to_owned());
    assert_eq!(
        phrase,
        Query::MatchPhrase {
            field,
            text,
            slop: 3,
            weight: 1.0
        }
    );
}

#[test]
fn combined_clauses() {
    let all = read_query(Kind::Bool(pb::BoolQuery {
        must: vec![term("type", text("a"))],
        filter: vec![term("type", text("b"))],
        should: vec![term("type", text("c"))],
        must_not: vec![term("type", text("d"))],
        minimum_should_match: Some(1),
        ..pb::BoolQuery::default()
    }));
    let expected = Query::Bool {
        must: vec![Query::term("type", "a")],
        filter: vec![Query::term("type", "b")],
        should: vec![Query::term("type", "c")],
        must_not: vec![Query::term("type", "d")],
        minimum_should_match: Some(1),
    };
    assert_eq!(all, expected);
    let nested = read_query(Kind::Nested(Box::new(pb::NestedQuery {
        path: "tags".to_owned(),
        query: Some(Box::new(term("tags.tag", text("a")))),
        score_mode: pb::ScoreMode::Avg.into(),
        inner_hits: None,
        weight: Some(2.0),
    })));
    let expected = Query::Nested {
        path: "tags".to_owned(),
        query: Box::new(Query::term("tags.tag", "a")),
        score_mode: ScoreMode::Avg,
        weight: 2.0,
        inner_hits: None,
    };
    assert_eq!(nested, expected);
    let constant = read_query(Kind::ConstScore(Box::new(pb::ConstScoreQuery {
        filter: Some(Box::new(term("type", text("a")))),
        weight: Some(0.5),
    })));
    let filter = Box::new(Query::term("type", "a"));
    assert_eq!(constant, Query::ConstScore { filter, weight: 0.5 });
}

#[test]
fn clauses_on_points() {
    let field = || "position".to_owned();
    let here = GeoPoint::new(30.25, 120.5).expect("a point");
    let there = GeoPoint::new(-1.0, 121.0).expect("a point");
    let circle = pb::GeoDistanceQuery {
        field: field(),
        center: at(30.25, 120.5),
        distance_meters: 0.0,
    };
    let expected = Query::GeoDistance {
        field: field(),
        center: here,
        distance_meters: 0.0,
    };
    assert_eq!(read_query(Kind::GeoDistance(circle)), expected);
    let area = pb::GeoBoundingBoxQuery {
        field: field(),
        top_left: at(30.25, 120.5),
        bottom_right: at(-1.0, 121.0),
    };
    let expected = Query::GeoBoundingBox {
        field: field(),
        top_left: here,
        bottom_right: there,
    };
    assert_eq!(read_query(Kind::GeoBoundingBox(area)), expected);
    let corners = [at(30.25, 120.5), at(-1.0, 121.0)];
    let polygon = pb::GeoPolygonQuery {
        field: field(),
        vertices: corners.into_iter().flatten().collect(),
    };
    let expected = Query::GeoPolygon {
        field: field(),
        vertices: vec![here, there],
    };
    assert_eq!(read_query(Kind::GeoPolygon(polygon)), expected);
}

#[test]
fn misspelled_words_and_unfinished_phrases() {
    let matches = |fuzziness: pb::Fuzziness, prefix_length| {
        Kind::Match(pb::MatchQuery {
            field: "name".to_owned(),
            text: "tae".to_owned(),
            fuzziness: fuzziness.into(),
            prefix_length,
            ..pb::MatchQuery::default()
        })
    };
    for (asked, expected) in [
        (pb::Fuzziness::Auto, Fuzziness::Auto),
        (pb::Fuzziness::One, Fuzziness::Edits(1)),
        (pb::Fuzziness::Two, Fuzziness::Edits(2)),
    ] {
        match read_query(matches(asked, 1)) {
            Query::MatchFuzzy {
                fuzziness,
                prefix_length,
                ..
            } => assert_eq!((fuzziness, prefix_length), (expected, 1)),
            other => panic!("{other:?}"),
        }
    }
    let same = read_query(matches(pb::Fuzziness::None, 0));
    assert!(matches!(same, Query::Match { .. }), "{same:?}");
    let path = "search.query.match.prefix_length";
    refuses(asked(matches(pb::Fuzziness::None, 1)), "INVALID_QUERY", &[path]);

    let begun = read_query(Kind::MatchPhrasePrefix(pb::MatchPhrasePrefixQuery {
        field: "name".to_owned(),
        text: "green te".to_owned(),
        weight: Some(2.0),
    }));
    let (field, text) = ("name".to_owned(), "green te".to_owned());
    assert_eq!(
        begun,
        Query::MatchPhrasePrefix {
            field,
            text,
            weight: 2.0
        }
    );
}

#[test]
fn a_highlight_has_defaults() {
    let read = |highlight| {
        read_ok(pb::Search {
            highlight: Some(highlight),
            ..pb::Search::default()
        })
        .highlight
    };
    let fields = || vec!["name".to_owned()];
    let default = pb::Highlight {
        fields: fields(),
        ..pb::Highlight::default()
    };
    assert_eq!(read(default), Some(Highlight::new(fields())));
    let given = pb::Highlight {
        fields: fields(),
        pre_tag: "[".to_owned(),
        post_tag: "]".to_owned(),
        fragment_size: 7,
        number_of_fragments: 3,
        fragment_order: pb::FragmentOrder::Score.into(),
        encoder: pb::HighlightEncoder::Html.into(),
    };
    let expected = Highlight {
        fields: fields(),
        pre_tag: "[".to_owned(),
        post_tag: "]".to_owned(),
        fragment_size: 7,
        number_of_fragments: 3,
        order: FragmentOrder::Score,
        encoder: Encoder::Html,
    };
    assert_eq!(read(given), Some(expected));
}
