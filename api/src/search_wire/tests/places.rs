//! The search behind `NearbyXxxRequest`.

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
