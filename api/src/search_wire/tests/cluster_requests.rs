//! The search behind `ClusterXxxRequest`, and its answer.

use souk_index::{Aggregation, AggregationResult, Datum, Group, MetricKind, TopHit};
use souk_proto::search::v1::aggregation;
use souk_proto::shop::v1::{ClusterShopsRequest, cluster_shops_request::Size};

use super::*;

fn viewport(top_left: (f64, f64), bottom_right: (f64, f64)) -> Option<wire::GeoRectangle> {
    Some(wire::GeoRectangle {
        top_left: at(top_left.0, top_left.1),
        bottom_right: at(bottom_right.0, bottom_right.1),
    })
}

fn asked_clusters() -> ClusterRequest<'static> {
    ClusterRequest {
        field: "position",
        viewport: viewport((31.0, 119.0), (29.0, 121.0)),
        size: Some(ClusterSize::Resolution(5)),
        best_field: "rating",
        ..ClusterRequest::default()
    }
}

fn avg(field: &str) -> pb::Aggregation {
    pb::Aggregation {
        kind: Some(aggregation::Kind::Avg(pb::AvgAggregation {
            field: field.to_owned(),
            missing: None,
        })),
    }
}

#[test]
fn clusters_are_a_search_that_groups_by_cells() {
    let read = clusters(
        ClusterRequest {
            query: Some(term("type", text("tea"))),
            aggregations: [("best_by".to_owned(), avg("rating"))].into(),
            min_sequence: 7,
            ..asked_clusters()
        },
        &schema(),
        Violations::default(),
    )
    .expect("a valid request");
    assert_eq!(
        (read.min_sequence, read.resolution, read.sized_by),
        (7, 5, "h3_resolution")
    );
    let field = || "position".to_owned();
    let viewport = Query::GeoBoundingBox {
        field: field(),
        top_left: GeoPoint::new(31.0, 119.0).expect("a point"),
        bottom_right: GeoPoint::new(29.0, 121.0).expect("a point"),
    };
    let best = Aggregation::TopHits {
        size: 1,
        sort: vec![Sort::field("rating", true)],
    };
    let mean = Aggregation::Figure {
        field: "rating".to_owned(),
        figure: MetricKind::Avg,
        missing: None,
    };
    let cells = Aggregation::GeoCell {
        field: field(),
        resolution: 5,
        size: 10_000,
        aggregations: vec![
            ("best_by".to_owned(), best),
            ("center".to_owned(), Aggregation::GeoCentroid { field: field() }),
            ("=best_by".to_owned(), mean),
        ],
    };
    let query = Query::Bool {
        must: vec![Query::term("type", "tea")],
        filter: vec![viewport],
        should: Vec::new(),
        must_not: Vec::new(),
        minimum_should_match: None,
    };
    let expected = souk_index::SearchRequest::new(query)
        .page_size(0)
        .total(TotalRequest::Exact)
        .aggregations(vec![("clusters".to_owned(), cells)]);
    assert_eq!(read.request, expected);
}

#[test]
fn clusters_are_about_sixty_pixels_wide() {
    let at = |zoom: i32, latitude: f64| {
        let request = ClusterRequest {
            size: Some(ClusterSize::Zoom(zoom)),
            viewport: viewport((latitude + 0.1, 10.0), (latitude - 0.1, 11.0)),
            ..asked_clusters()
        };
        clusters(request, &schema(), Violations::default())
            .expect("a valid request")
            .resolution
    };
    let found = [0, 3, 6, 9, 12, 15, 18, 22].map(|zoom| at(zoom, 0.0));
    assert_eq!(found, [0, 1, 3, 5, 7, 9, 11, 14]);
    // The map is drawn larger towards the poles, so the cells are smaller.
    assert_eq!((at(9, 75.0), at(0, 89.8)), (6, 4));
    for zoom in 0..=22 {
        let width = 60.0 / 256.0 * 40_030_228.9 / 2f64.powi(zoom);
        let cell = 2_219_200.0 / 7f64.powf(f64::from(at(zoom, 0.0)) / 2.0);
        assert!(
            cell < width || (0.6..1.7).contains(&(cell / width)),
            "{zoom}: {cell} for {width}"
        );
    }
}

#[test]
fn how_many_clusters() {
    let most = |max_clusters| {
        let request = ClusterRequest {
            max_clusters,
            ..asked_clusters()
        };
        let read = clusters(request, &schema(), Violations::default()).expect("a valid request");
        match &read.request.aggregations.first().expect("cells").1 {
            Aggregation::GeoCell { size, .. } => *size,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([0, 1, 10_000, 1_000_000].map(most), [10_000, 1, 10_000, 10_000]);
}

/// What is wrong with a request as it comes.
fn wrong(request: ClusterShopsRequest) -> (Status, String, Vec<String>) {
    let violations = broken(&request, &FieldPath::message());
    let size = request.size.map(|size| match size {
        Size::Zoom(zoom) => ClusterSize::Zoom(zoom),
        Size::H3Resolution(resolution) => ClusterSize::Resolution(resolution),
    });
    let asked = ClusterRequest {
        viewport: request.viewport,
        size,
        query: request.query,
        aggregations: request.aggregations,
        best_by: request.best_by,
        ..asked_clusters()
    };
    told(clusters(asked, &schema(), violations).expect_err("an invalid request"))
}

#[test]
fn mistakes_in_clusters() {
    let asked = || ClusterShopsRequest {
        viewport: viewport((31.0, 119.0), (29.0, 121.0)),
        size: Some(Size::H3Resolution(5)),
        ..ClusterShopsRequest::default()
    };
    let (_, reason, fields) = wrong(ClusterShopsRequest::default());
    assert_eq!(reason, "INVALID_ARGUMENT");
    assert_eq!(fields, ["viewport", "zoom"]);
    let (_, _, fields) = wrong(ClusterShopsRequest {
        viewport: viewport((91.0, 0.0), (0.0, 181.0)),
        size: Some(Size::Zoom(23)),
        max_clusters: -1,
        min_sequence: -1,
        ..asked()
    });
    // Fields in their order, then those of which one has to be set.
    let expected = [
        "viewport.top_left.latitude",
        "viewport.bottom_right.longitude",
        "min_sequence",
        "max_clusters",
        "zoom",
    ];
    assert_eq!(fields, expected);
    let (_, _, fields) = wrong(ClusterShopsRequest {
        viewport: Some(wire::GeoRectangle {
            top_left: None,
            bottom_right: at(0.0, 0.0),
        }),
        size: Some(Size::H3Resolution(16)),
        ..asked()
    });
    assert_eq!(fields, ["viewport.top_left", "h3_resolution"]);
    let (_, reason, fields) = wrong(ClusterShopsRequest {
        query: Some(term("type", None)),
        best_by: vec![pb::Sort { kind: None }],
        aggregations: [("x".to_owned(), pb::Aggregation::default())].into(),
        ..asked()
    });
    assert_eq!(reason, "INVALID_QUERY");
    assert_eq!(fields, ["query.term.value", r#"aggregations["x"]"#, "best_by[0]"]);
    let (status, _, fields) = wrong(ClusterShopsRequest {
        aggregations: (0..9).map(|nth| (nth.to_string(), avg("rating"))).collect(),
        ..asked()
    });
    assert_eq!(fields, ["aggregations"]);
    let details = status.get_error_details();
    let described = &details.bad_request().expect("a BadRequest").field_violations[0].description;
    assert!(described.contains("MAX_CLUSTER_FIGURES of 8"), "{described}");
}

#[test]
fn clusters_are_taken_from_their_groups() {
    let place = GeoPoint::new(1.0, 2.0).expect("a point");
    let hit = TopHit {
        key: b"s1".to_vec(),
        score: None,
        sort_values: Vec::new(),
    };
    let group = || Group {
        keys: vec![Some(Datum::String("85309".to_owned()))],
        count: 3,
        aggregations: vec![
            (
                "best_by".to_owned(),
                AggregationResult::TopHits(vec![hit.clone()]),
            ),
            (
                "center".to_owned(),
                AggregationResult::Centroid {
                    point: Some(place),
                    count: 3,
                },
            ),
            ("=best_by".to_owned(), AggregationResult::Value(None)),
        ],
    };
    let answered = |groups| {
        found_clusters(vec![(
            "clusters".to_owned(),
            AggregationResult::Groups {
                groups,
                other_count: 0,
                count_error_bound: 0,
                next_page_token: None,
            },
        )])
    };
    let found = answered(vec![group()]).expect("clusters");
    let one = found.first().expect("one cluster");
    assert_eq!(
        (one.cell.as_str(), one.count, one.center),
        ("85309", 3, Some(place))
    );
    assert_eq!(one.best, b"s1");
    assert_eq!(
        one.aggregations,
        [("best_by".to_owned(), AggregationResult::Value(None))]
    );
    let broken = Group {
        aggregations: Vec::new(),
        ..group()
    };
    assert!(matches!(
        answered(vec![broken]),
        Err(Error::Engine(EngineError::Defect(_)))
    ));
    assert!(matches!(
        found_clusters(Vec::new()),
        Err(Error::Engine(EngineError::Defect(_)))
    ));
}
