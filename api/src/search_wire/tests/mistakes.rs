//! Every path under which a mistake is reported.

use super::*;

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
        souk_index::limits::MAX_SORTS + 1
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
