//! Every kind of query and sort read, and every path under which a mistake is reported.

use std::ops::Bound;

use souk_index::{
    Analyzer, ArrayMode, Field, GeoPoint, Missing, NestedSort, Operator, Query, QueryValue, Relation, Schema,
    ScoreMode, Sort, SortValue, TotalRequest,
};
use souk_proto::search::v1::{self as pb, field_sort, query::Kind, range_query, sort, total_request};
use souk_proto::r#type::v1::{self as wire, value};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::text::Minimum;
use super::{WireSearch, index_error, nearby, nearby_error, read, sort_values, total};
use crate::error::EngineError;
use crate::search::NearbyRequest;

fn schema() -> Schema {
    Schema::new(vec![
        Field::keyword("type"),
        Field::text("name", Analyzer::single_word()),
        Field::long("price"),
        Field::double("rating"),
        Field::geo_point("position"),
        Field::nested("tags", vec![Field::keyword("tag"), Field::double("score")]),
    ])
    .expect("a schema")
}

fn value(kind: value::Kind) -> wire::Value {
    wire::Value { kind: Some(kind) }
}

fn text(text: &str) -> Option<wire::Value> {
    Some(value(value::Kind::StringValue(text.to_owned())))
}

fn query(kind: Kind) -> pb::Query {
    pb::Query { kind: Some(kind) }
}

fn term(field: &str, value: Option<wire::Value>) -> pb::Query {
    query(Kind::Term(pb::TermQuery {
        field: field.to_owned(),
        value,
        weight: None,
    }))
}

fn at(latitude: f64, longitude: f64) -> Option<wire::GeoPoint> {
    Some(wire::GeoPoint { latitude, longitude })
}

fn asked(kind: Kind) -> pb::Search {
    pb::Search {
        query: Some(query(kind)),
        ..pb::Search::default()
    }
}

fn sorted(kind: sort::Kind) -> pb::Search {
    pb::Search {
        sort: vec![pb::Sort { kind: Some(kind) }],
        ..pb::Search::default()
    }
}

fn read_ok(search: pb::Search) -> WireSearch {
    read(search, "search", &schema()).expect("a valid search")
}

fn read_query(kind: Kind) -> Query {
    read_ok(asked(kind)).request.query
}

/// The answer to a search, with its reason and the paths that it names.
fn refused(search: pb::Search) -> (Status, String, Vec<String>) {
    told(read(search, "search", &schema()).expect_err("an invalid search"))
}

fn told(error: EngineError) -> (Status, String, Vec<String>) {
    let status = Status::from(error);
    let details = status.get_error_details();
    let reason = details.error_info().expect("an ErrorInfo").reason.clone();
    let fields = details.bad_request().map(|bad| &bad.field_violations);
    let fields = fields
        .into_iter()
        .flatten()
        .map(|violation| violation.field.clone())
        .collect();
    (status, reason, fields)
}

#[track_caller]
fn refuses(search: pb::Search, reason: &str, paths: &[&str]) {
    let (status, found, fields) = refused(search);
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert_eq!(found, reason, "{status:?}");
    assert_eq!(fields, paths, "{status:?}");
}

fn nested_to(depth: usize) -> pb::Query {
    (1..depth).fold(term("type", text("tea")), |inner, _| {
        query(Kind::Bool(pb::BoolQuery {
            must: vec![inner],
            ..pb::BoolQuery::default()
        }))
    })
}

#[test]
fn an_empty_search_is_ten_of_everything() {
    let read = read_ok(pb::Search::default());
    assert_eq!(read.request.query, Query::MatchAll);
    assert_eq!(read.request.sort, []);
    assert_eq!(read.request.page_size, 10);
    assert_eq!(read.request.after, None);
    assert_eq!(read.request.total, TotalRequest::None);
    assert_eq!(
        (read.min_sequence, read.hits, read.profile),
        (0, pb::HitsMode::Full, false)
    );
}

#[test]
fn page_total_and_hits() {
    let read = read_ok(pb::Search {
        page_size: 5_000,
        page_token: "token".to_owned(),
        total: Some(pb::TotalRequest {
            kind: Some(total_request::Kind::AtLeast(7)),
        }),
        hits_mode: pb::HitsMode::Keys.into(),
        min_sequence: 9,
        profile: true,
        ..pb::Search::default()
    });
    assert_eq!(read.request.page_size, 1_000);
    assert_eq!(read.request.after.as_deref(), Some("token"));
    assert_eq!(read.request.total, TotalRequest::AtLeast(7));
    assert_eq!(
        (read.min_sequence, read.hits, read.profile),
        (9, pb::HitsMode::Keys, true)
    );
    let counted = read_ok(pb::Search {
        hits_mode: pb::HitsMode::None.into(),
        ..pb::Search::default()
    });
    assert_eq!(counted.request.page_size, 0);
}

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
            weight: None,
        })
    };
    let minimum_of = |minimum| match read_query(matches(pb::Operator::Or, minimum)) {
        Query::Match {
            minimum_should_match, ..
        } => minimum_should_match,
        other => panic!("{other:?}"),
    };
    assert_eq!(minimum_of(""), None);
    // The text has four different words.
    for (minimum, expected) in [
        ("2", 2),
        ("-1", 3),
        ("75%", 3),
        ("-25%", 3),
        ("10%", 1),
        ("-9", 1),
        ("100%", 4),
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
    for wrong in ["0", "x", "%", "-", "+1", "--1", "101%", "1.5", "99999999999"] {
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
    })));
    let expected = Query::Nested {
        path: "tags".to_owned(),
        query: Box::new(Query::term("tags.tag", "a")),
        score_mode: ScoreMode::Avg,
        weight: 1.0,
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
fn orders_of_every_kind() {
    let field = read_ok(sorted(sort::Kind::Field(pb::FieldSort {
        field: "tags.score".to_owned(),
        descending: true,
        mode: pb::SortMode::Max.into(),
        missing: Some(field_sort::Missing::MissingValue(value(
            value::Kind::DoubleValue(0.5),
        ))),
        nested: Some(pb::NestedSort {
            path: "tags".to_owned(),
            filter: Some(term("tags.tag", text("a"))),
        }),
    })));
    let expected = Sort::Field {
        field: "tags.score".to_owned(),
        descending: true,
        mode: Some(ArrayMode::Max),
        missing: Missing::Value(QueryValue::Double(0.5)),
        nested: Some(NestedSort {
            path: "tags".to_owned(),
            filter: Some(Query::term("tags.tag", "a")),
        }),
    };
    assert_eq!(field.request.sort, [expected]);
    let score = sorted(sort::Kind::Score(pb::ScoreSort { ascending: true }));
    assert_eq!(read_ok(score).request.sort, [Sort::Score { ascending: true }]);
    let key = sorted(sort::Kind::PrimaryKey(pb::PrimaryKeySort { descending: true }));
    assert_eq!(read_ok(key).request.sort, [Sort::PrimaryKey { descending: true }]);
    let distance = read_ok(sorted(sort::Kind::GeoDistance(pb::GeoDistanceSort {
        field: "position".to_owned(),
        points: at(1.0, 2.0).into_iter().collect(),
        descending: false,
    })));
    let expected = Sort::GeoDistance {
        field: "position".to_owned(),
        points: vec![GeoPoint::new(1.0, 2.0).expect("a point")],
        descending: false,
    };
    assert_eq!(distance.request.sort, [expected]);
}

#[test]
fn all_mistakes_come_at_once() {
    let wrong = pb::Search {
        query: Some(query(Kind::Bool(pb::BoolQuery {
            must: vec![term("", None), pb::Query { kind: None }],
            filter: vec![query(Kind::GeoDistance(pb::GeoDistanceQuery {
                field: "position".to_owned(),
                center: at(91.0, -181.0),
                distance_meters: f64::NAN,
            }))],
            must_not: vec![query(Kind::Nested(Box::new(pb::NestedQuery {
                score_mode: 77,
                ..pb::NestedQuery::default()
            })))],
            ..pb::BoolQuery::default()
        }))),
        sort: vec![pb::Sort { kind: None }],
        page_size: -1,
        skip: -1,
        min_sequence: -1,
        ..pb::Search::default()
    };
    let paths = [
        "search.query.bool.must[0].term.field",
        "search.query.bool.must[0].term.value",
        "search.query.bool.must[1]",
        "search.query.bool.filter[0].geo_distance.center.latitude",
        "search.query.bool.filter[0].geo_distance.center.longitude",
        "search.query.bool.filter[0].geo_distance.distance_meters",
        "search.query.bool.must_not[0].nested.path",
        "search.query.bool.must_not[0].nested.query",
        "search.query.bool.must_not[0].nested.score_mode",
        "search.sort[0]",
        "search.page_size",
        "search.skip",
        "search.min_sequence",
    ];
    refuses(wrong, "INVALID_QUERY", &paths);
}

#[test]
fn mistakes_in_clauses() {
    let terms = |count| {
        Kind::Terms(pb::TermsQuery {
            field: "type".to_owned(),
            values: vec![value(value::Kind::BoolValue(true)); count],
            weight: None,
        })
    };
    let weighted = |weight| {
        Kind::ConstScore(Box::new(pb::ConstScoreQuery {
            filter: None,
            weight: Some(weight),
        }))
    };
    let vertices = vec![wire::GeoPoint::default(); 10_001];
    let polygon = pb::GeoPolygonQuery {
        field: "position".to_owned(),
        vertices,
    };
    let range = pb::RangeQuery {
        field: "price".to_owned(),
        lower: Some(range_query::Lower::Gte(wire::Value { kind: None })),
        upper: Some(range_query::Upper::Lt(wire::Value { kind: None })),
    };
    let constant = [
        "search.query.const_score.filter",
        "search.query.const_score.weight",
    ];
    let cases: [(Kind, &[&str]); 9] = [
        (terms(0), &["search.query.terms.values"]),
        (terms(1_025), &["search.query.terms.values"]),
        (weighted(0.0), &constant),
        (weighted(-1.0), &constant),
        (weighted(1e39), &constant),
        (weighted(f64::NAN), &constant),
        (Kind::GeoPolygon(polygon), &["search.query.geo_polygon.vertices"]),
        (
            Kind::Range(range),
            &["search.query.range.gte", "search.query.range.lt"],
        ),
        (
            Kind::Exists(pb::ExistsQuery::default()),
            &["search.query.exists.field"],
        ),
    ];
    for (kind, paths) in cases {
        refuses(asked(kind), "INVALID_QUERY", paths);
    }
}

#[test]
fn mistakes_in_orders() {
    let by_field = |sort: pb::FieldSort| {
        sorted(sort::Kind::Field(pb::FieldSort {
            field: "price".to_owned(),
            ..sort
        }))
    };
    let mode = by_field(pb::FieldSort {
        mode: 99,
        ..Default::default()
    });
    refuses(mode, "INVALID_QUERY", &["search.sort[0].field.mode"]);
    let order = Some(field_sort::Missing::MissingOrder(99));
    let order = by_field(pb::FieldSort {
        missing: order,
        ..Default::default()
    });
    refuses(order, "INVALID_QUERY", &["search.sort[0].field.missing_order"]);
    let nothing = Some(field_sort::Missing::MissingValue(wire::Value { kind: None }));
    let nothing = by_field(pb::FieldSort {
        missing: nothing,
        ..Default::default()
    });
    refuses(nothing, "INVALID_QUERY", &["search.sort[0].field.missing_value"]);
    let nested = Some(pb::NestedSort {
        path: "tags".to_owned(),
        filter: Some(pb::Query { kind: None }),
    });
    let nested = by_field(pb::FieldSort {
        nested,
        ..Default::default()
    });
    refuses(nested, "INVALID_QUERY", &["search.sort[0].field.nested.filter"]);
    let distance = |points| {
        sorted(sort::Kind::GeoDistance(pb::GeoDistanceSort {
            field: "position".to_owned(),
            points,
            descending: false,
        }))
    };
    refuses(
        distance(vec![]),
        "INVALID_QUERY",
        &["search.sort[0].geo_distance.points"],
    );
    let many = vec![wire::GeoPoint::default(); souk_index::limits::MAX_SORT_POINTS + 1];
    refuses(
        distance(many),
        "INVALID_QUERY",
        &["search.sort[0].geo_distance.points"],
    );
    let wrong = at(0.0, 200.0).into_iter().collect();
    refuses(
        distance(wrong),
        "INVALID_QUERY",
        &["search.sort[0].geo_distance.points[0].longitude"],
    );
    let sorts = vec![
        pb::Sort {
            kind: Some(sort::Kind::Score(pb::ScoreSort { ascending: false }))
        };
        9
    ];
    let nine = pb::Search {
        sort: sorts,
        ..pb::Search::default()
    };
    refuses(nine, "INVALID_QUERY", &["search.sort"]);
}

#[test]
fn mistakes_beside_the_query() {
    let search = |search: pb::Search| search;
    let at_least = pb::TotalRequest {
        kind: Some(total_request::Kind::AtLeast(-1)),
    };
    let cases = [
        (
            search(pb::Search {
                page_size: -1,
                ..Default::default()
            }),
            "search.page_size",
        ),
        (
            search(pb::Search {
                min_sequence: -1,
                ..Default::default()
            }),
            "search.min_sequence",
        ),
        (
            search(pb::Search {
                skip: 100_001,
                ..Default::default()
            }),
            "search.skip",
        ),
        (
            search(pb::Search {
                skip: 1,
                page_token: "t".to_owned(),
                ..Default::default()
            }),
            "search.skip",
        ),
        (
            search(pb::Search {
                total: Some(at_least),
                ..Default::default()
            }),
            "search.total.at_least",
        ),
        (
            search(pb::Search {
                hits_mode: 9,
                ..Default::default()
            }),
            "search.hits_mode",
        ),
    ];
    for (search, path) in cases {
        refuses(search, "INVALID_ARGUMENT", &[path]);
    }
}

#[test]
fn trees_are_bounded() {
    let of = |query| pb::Search {
        query: Some(query),
        ..pb::Search::default()
    };
    assert!(read(of(nested_to(32)), "search", &schema()).is_ok());
    for depth in [33, 45, 1_000] {
        let (status, reason, fields) = refused(of(nested_to(depth)));
        assert_eq!(
            (reason.as_str(), fields.as_slice()),
            ("INVALID_QUERY", &["search.query".to_owned()][..])
        );
        assert!(status.message().contains("MAX_QUERY_DEPTH of 32"), "{status:?}");
    }
    let wide = |clauses| {
        query(Kind::Bool(pb::BoolQuery {
            should: vec![term("type", text("a")); clauses],
            ..pb::BoolQuery::default()
        }))
    };
    assert!(read(of(wide(1_023)), "search", &schema()).is_ok());
    let (status, ..) = refused(of(wide(1_024)));
    assert!(status.message().contains("MAX_QUERY_NODES of 1024"), "{status:?}");
    // The filters of nested sorts count with the query.
    let nested = Some(pb::NestedSort {
        path: "tags".to_owned(),
        filter: Some(term("tags.tag", text("a"))),
    });
    let field = pb::FieldSort {
        field: "tags.score".to_owned(),
        nested,
        ..pb::FieldSort::default()
    };
    let both = pb::Search {
        query: Some(wide(1_023)),
        ..sorted(sort::Kind::Field(field))
    };
    refuses(both, "INVALID_QUERY", &["search.sort[0].field.nested.filter"]);
}

#[test]
fn what_the_index_does_not_answer() {
    let phrase = pb::MatchPhrasePrefixQuery::default();
    let inner = pb::NestedQuery {
        path: "tags".to_owned(),
        query: Some(Box::new(term("tags.tag", text("a")))),
        inner_hits: Some(pb::InnerHits::default()),
        ..pb::NestedQuery::default()
    };
    let aggregations = [("a".to_owned(), pb::Aggregation::default())]
        .into_iter()
        .collect();
    let cases = [
        (
            asked(Kind::MatchPhrasePrefix(phrase)),
            "search.query.match_phrase_prefix",
        ),
        (
            asked(Kind::FunctionScore(Box::default())),
            "search.query.function_score",
        ),
        (
            asked(Kind::Nested(Box::new(inner))),
            "search.query.nested.inner_hits",
        ),
        (
            pb::Search {
                aggregations,
                ..Default::default()
            },
            "search.aggregations",
        ),
        (
            pb::Search {
                collapse: Some(pb::Collapse::default()),
                ..Default::default()
            },
            "search.collapse",
        ),
        (
            pb::Search {
                highlight: Some(pb::Highlight::default()),
                ..Default::default()
            },
            "search.highlight",
        ),
    ];
    for (search, path) in cases {
        // Other mistakes don't matter: correcting them wouldn't help.
        let (status, reason, fields) = refused(pb::Search {
            page_size: -1,
            ..search
        });
        assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
        assert_eq!(
            (reason.as_str(), fields.as_slice()),
            ("UNSUPPORTED_FEATURE", &[path.to_owned()][..])
        );
    }
}

fn near() -> NearbyRequest<'static> {
    NearbyRequest {
        field: "position",
        center: at(30.0, 120.0),
        ..NearbyRequest::default()
    }
}

#[test]
fn nearby_is_a_search_by_distance() {
    let center = GeoPoint::new(30.0, 120.0).expect("a point");
    let everything = nearby(near(), &schema()).expect("a valid request");
    let filter_of = |search: WireSearch| match search.request.query {
        Query::Bool { filter, .. } => filter,
        other => panic!("{other:?}"),
    };
    let field = || "position".to_owned();
    let sort = Sort::GeoDistance {
        field: field(),
        points: vec![center],
        descending: false,
    };
    assert_eq!(everything.request.sort, [sort]);
    assert_eq!(everything.request.page_size, 10);
    assert_eq!(filter_of(everything), [Query::exists("position")]);
    let bounded = nearby(
        NearbyRequest {
            max_distance_meters: Some(500.0),
            query: Some(term("type", text("tea"))),
            ..near()
        },
        &schema(),
    );
    let circle = Query::GeoDistance {
        field: field(),
        center,
        distance_meters: 500.0,
    };
    assert_eq!(
        filter_of(bounded.expect("a valid request")),
        [circle, Query::term("type", "tea")]
    );
}

#[test]
fn mistakes_in_nearby() {
    let wrong = |request| told(nearby(request, &schema()).expect_err("an invalid request"));
    let (_, reason, fields) = wrong(NearbyRequest {
        center: None,
        ..near()
    });
    assert_eq!(
        (reason.as_str(), fields),
        ("INVALID_ARGUMENT", vec!["center".to_owned()])
    );
    let (_, reason, fields) = wrong(NearbyRequest {
        center: at(91.0, 0.0),
        page_size: -1,
        min_sequence: -1,
        ..near()
    });
    assert_eq!(reason, "INVALID_ARGUMENT");
    assert_eq!(fields, ["center.latitude", "page_size", "min_sequence"]);
    for meters in [0.0, -1.0, f64::NAN, f64::INFINITY, 3e7] {
        let (_, _, fields) = wrong(NearbyRequest {
            max_distance_meters: Some(meters),
            ..near()
        });
        assert_eq!(fields, ["max_distance_meters"], "{meters}");
    }
    let (_, reason, fields) = wrong(NearbyRequest {
        query: Some(term("type", None)),
        ..near()
    });
    assert_eq!(
        (reason.as_str(), fields),
        ("INVALID_QUERY", vec!["query.term.value".to_owned()])
    );
}

/// An error of the index about a clause at `path`.
fn unsupported(path: &str) -> souk_index::Error {
    souk_index::Error::Unsupported {
        path: path.to_owned(),
        feature: "a feature",
        advice: "do without",
    }
}

fn path_of(error: EngineError) -> String {
    match error {
        EngineError::Unsupported { path, .. } | EngineError::PageTokenInvalid { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_index_names_the_paths_of_the_request() {
    assert_eq!(
        path_of(index_error(unsupported("query.term"), "search")),
        "search.query.term"
    );
    let token = || souk_index::Error::PageTokenInvalid {
        detail: "its checksum is wrong",
    };
    assert_eq!(path_of(index_error(token(), "search")), "search.page_token");
    assert_eq!(path_of(nearby_error(token())), "page_token");
    for (inside, outside) in [
        ("query.bool.filter[1].term.field", "query.term.field"),
        (
            "query.bool.filter[0].geo_distance.distance_meters",
            "max_distance_meters",
        ),
        ("query.bool.filter[0].geo_distance.center", "center"),
        ("page_size", "page_size"),
    ] {
        assert_eq!(path_of(nearby_error(unsupported(inside))), outside);
    }
}

#[test]
fn sort_values_of_every_kind() {
    use pb::sort_value::Kind;

    let by = Sort::field("x", false);
    let points = vec![];
    let distance = Sort::GeoDistance {
        field: "position".to_owned(),
        points,
        descending: false,
    };
    let of = |kind| Some(Kind::Value(value(kind)));
    let time = prost_types::Timestamp {
        seconds: -1,
        nanos: 999_999_999,
    };
    let cases = [
        (SortValue::Missing, by.clone(), None),
        (SortValue::Long(7), by.clone(), of(value::Kind::IntValue(7))),
        (
            SortValue::Double(0.5),
            by.clone(),
            of(value::Kind::DoubleValue(0.5)),
        ),
        (
            SortValue::Double(0.5),
            Sort::Score { ascending: false },
            Some(Kind::Score(0.5)),
        ),
        (SortValue::Double(0.5), distance, Some(Kind::DistanceMeters(0.5))),
        (
            SortValue::Boolean(true),
            by.clone(),
            of(value::Kind::BoolValue(true)),
        ),
        (SortValue::Date(-1), by.clone(), of(value::Kind::TimeValue(time))),
        (
            SortValue::String("x".to_owned()),
            by,
            of(value::Kind::StringValue("x".to_owned())),
        ),
        (
            SortValue::Key(vec![1]),
            Sort::PrimaryKey { descending: false },
            of(value::Kind::StringValue("o1".to_owned())),
        ),
    ];
    for (found, sort, kind) in cases {
        assert_eq!(sort_values(&[found], &[sort], "o1"), [pb::SortValue { kind }]);
    }
}

#[test]
fn totals() {
    for (relation, told) in [
        (Relation::Equal, pb::TotalRelation::Equal),
        (Relation::AtLeast, pb::TotalRelation::AtLeast),
    ] {
        let found = total(souk_index::Total { value: 3, relation });
        assert_eq!(
            found,
            pb::Total {
                value: 3,
                relation: told.into()
            }
        );
    }
}
