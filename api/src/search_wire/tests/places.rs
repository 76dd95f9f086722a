//! The search behind `NearbyXxxRequest`.

use souk_proto::shop::v1::NearbyShopsRequest;

use super::*;

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
    let everything = nearby(near(), &schema(), Violations::default()).expect("a valid request");
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
        Violations::default(),
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

/// What is wrong with a request as it comes.
fn wrong(request: NearbyShopsRequest) -> (Status, String, Vec<String>) {
    let violations = broken(&request, &FieldPath::message());
    let near = NearbyRequest {
        field: "position",
        center: request.center,
        max_distance_meters: request.max_distance_meters,
        query: request.query,
        page_size: request.page_size,
        page_token: &request.page_token,
        min_sequence: request.min_sequence,
    };
    told(nearby(near, &schema(), violations).expect_err("an invalid request"))
}

#[test]
fn mistakes_in_nearby() {
    let near = || NearbyShopsRequest {
        center: at(30.0, 120.0),
        ..NearbyShopsRequest::default()
    };
    let (_, reason, fields) = wrong(NearbyShopsRequest::default());
    assert_eq!(
        (reason.as_str(), fields),
        ("INVALID_ARGUMENT", vec!["center".to_owned()])
    );
    let (_, reason, fields) = wrong(NearbyShopsRequest {
        center: at(91.0, 0.0),
        page_size: -1,
        min_sequence: -1,
        ..near()
    });
    assert_eq!(reason, "INVALID_ARGUMENT");
    assert_eq!(fields, ["center.latitude", "page_size", "min_sequence"]);
    for meters in [0.0, -1.0, f64::NAN, f64::INFINITY, 3e7] {
        let (_, _, fields) = wrong(NearbyShopsRequest {
            max_distance_meters: Some(meters),
            ..near()
        });
        assert_eq!(fields, ["max_distance_meters"], "{meters}");
    }
    let farthest = NearbyShopsRequest {
        max_distance_meters: Some(souk_index::limits::MAX_DISTANCE_METERS),
        ..near()
    };
    assert!(broken(&farthest, &FieldPath::message()).is_empty());
    let (_, reason, fields) = wrong(NearbyShopsRequest {
        query: Some(term("type", None)),
        ..near()
    });
    assert_eq!(
        (reason.as_str(), fields),
        ("INVALID_QUERY", vec!["query.term.value".to_owned()])
    );
}
