pub(super) use souk_seeds::random as seeded;

use super::{Area, BoundingBox, Circle, EARTH_RADIUS_METERS, GeoError, GeoPoint, Polygon};

/// A point evenly spread over the sphere.
pub(super) fn random_point(random: &mut fastrand::Rng) -> GeoPoint {
    let latitude = (random.f64() * 2.0 - 1.0).asin().to_degrees();
    GeoPoint::new(latitude, random.f64() * 360.0 - 180.0).unwrap()
}

/// Where things go wrong: poles, antimeridian, equator, Greenwich.
pub(super) fn places() -> Vec<GeoPoint> {
    [
        (90.0, 0.0),
        (90.0, 123.0),
        (-90.0, -77.0),
        (89.9999, 45.0),
        (-89.5, 179.9),
        (0.0, 180.0),
        (0.0, -179.99999),
        (52.0, 179.99999),
        (-17.0, -180.0),
        (0.0, 0.0),
        (30.2741, 120.1551),
        (58.3, 11.2),
    ]
    .map(|(latitude, longitude)| point(latitude, longitude))
    .to_vec()
}

fn point(latitude: f64, longitude: f64) -> GeoPoint {
    GeoPoint::new(latitude, longitude).unwrap()
}

fn polygon(vertices: &[(f64, f64)]) -> Result<Polygon, GeoError> {
    let vertices: Vec<GeoPoint> = vertices
        .iter()
        .map(|(latitude, longitude)| point(*latitude, *longitude))
        .collect();
    Polygon::new(&vertices)
}

fn bounding_box(top_left: (f64, f64), bottom_right: (f64, f64)) -> Area {
    let corners = (
        point(top_left.0, top_left.1),
        point(bottom_right.0, bottom_right.1),
    );
    Area::Box(BoundingBox::new(corners.0, corners.1).unwrap())
}

#[test]
fn points_outside_the_globe_are_refused() {
    assert_eq!(
        GeoPoint::new(90.000_000_1, 0.0),
        Err(GeoError::Latitude(90.000_000_1))
    );
    assert_eq!(GeoPoint::new(0.0, -180.1), Err(GeoError::Longitude(-180.1)));
    assert!(matches!(GeoPoint::new(f64::NAN, 0.0), Err(GeoError::Latitude(_))));
    assert!(matches!(
        GeoPoint::new(0.0, f64::NAN),
        Err(GeoError::Longitude(_))
    ));
    assert!(GeoPoint::new(0.0, f64::INFINITY).is_err());
}

#[test]
fn the_antimeridian_has_one_longitude() {
    assert_eq!(point(5.0, 180.0), point(5.0, -180.0));
    assert_eq!(point(5.0, 179.999_999_99), point(5.0, -180.0));
    assert!(point(5.0, 180.0).longitude() < 0.0);
}

#[test]
fn known_distances() {
    let half_around = std::f64::consts::PI * EARTH_RADIUS_METERS;
    let cases = [
        ((0.0, 0.0), (0.0, 0.0), 0.0),
        ((0.0, 0.0), (0.0, 180.0), half_around),
        ((90.0, 12.0), (-90.0, 99.0), half_around),
        ((90.0, 12.0), (90.0, -99.0), 0.0),
        ((0.0, 179.5), (0.0, -179.5), half_around / 180.0),
        // Hangzhou to Beijing.
        ((30.2741, 120.1551), (39.9042, 116.4074), 1_125_000.0),
    ];
    for (a, b, expected) in cases {
        let (a, b) = (point(a.0, a.1), point(b.0, b.1));
        let distance = a.distance_meters(b);
        assert!(
            (distance - expected).abs() <= expected * 0.005 + 1e-6,
            "{a:?} {b:?}: {distance}"
        );
        assert_eq!(distance.to_bits(), b.distance_meters(a).to_bits());
    }
}

#[test]
fn a_circle_holds_exactly_what_is_not_farther() {
    let mut random = seeded();
    for _ in 0..20_000 {
        let fixed = places();
        let (a, b) = (fixed[random.usize(..fixed.len())], random_point(&mut random));
        let distance = a.distance_meters(b);
        let beside = [
            distance,
            distance.next_down().max(0.0),
            distance.next_up(),
            random.f64() * 2.1e7,
            0.0,
        ];
        for radius in beside {
            let circle = Area::Circle(Circle::new(a, radius).unwrap());
            let expected = distance <= radius || radius >= std::f64::consts::PI * EARTH_RADIUS_METERS;
            assert_eq!(circle.contains(b), expected, "{a:?} {b:?} {radius} {distance}");
        }
    }
    assert!(Area::Circle(Circle::new(point(3.0, 4.0), 0.0).unwrap()).contains(point(3.0, 4.0)));
    assert!(!Area::Circle(Circle::new(point(3.0, 4.0), 0.0).unwrap()).contains(point(3.0, 4.000_000_1)));
    for radius in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Circle::new(point(0.0, 0.0), radius),
            Err(GeoError::Distance(_))
        ));
    }
}

#[test]
fn boxes_hold_their_boundary_and_cross_the_antimeridian() {
    let plain = bounding_box((10.0, 20.0), (-10.0, 40.0));
    for (latitude, longitude, inside) in [
        (10.0, 20.0, true),
        (-10.0, 40.0, true),
        (0.0, 30.0, true),
        (10.000_000_1, 30.0, false),
        (0.0, 19.9, false),
    ] {
        assert_eq!(
            plain.contains(point(latitude, longitude)),
            inside,
            "{latitude} {longitude}"
        );
    }
    let crossing = bounding_box((10.0, 170.0), (-10.0, -170.0));
    for (longitude, inside) in [
        (170.0, true),
        (180.0, true),
        (-175.0, true),
        (-170.0, true),
        (0.0, false),
        (169.9, false),
    ] {
        assert_eq!(crossing.contains(point(0.0, longitude)), inside, "{longitude}");
    }
    let up_to = bounding_box((10.0, 100.0), (-10.0, 180.0));
    assert!(
        up_to.contains(point(0.0, 180.0))
            && up_to.contains(point(0.0, 101.0))
            && !up_to.contains(point(0.0, -179.0))
    );
    let all = bounding_box((90.0, -180.0), (-90.0, 180.0));
    assert!(places().into_iter().all(|place| all.contains(place)));
    let meridian = bounding_box((10.0, 7.0), (-10.0, 7.0));
    assert!(meridian.contains(point(0.0, 7.0)) && !meridian.contains(point(0.0, 7.1)));
    assert!(matches!(
        BoundingBox::new(point(1.0, 0.0), point(2.0, 1.0)),
        Err(GeoError::UpsideDown { .. })
    ));
}

#[test]
fn polygons_hold_their_boundary() {
    // A U, open to the north.
    let u = [
        (0.0, 0.0),
        (0.0, 10.0),
        (10.0, 10.0),
        (10.0, 7.0),
        (3.0, 7.0),
        (3.0, 3.0),
        (10.0, 3.0),
        (10.0, 0.0),
    ];
    for reversed in [false, true] {
        let mut vertices = u.to_vec();
        if reversed {
            vertices.reverse();
        }
        let area = Area::Polygon(polygon(&vertices).unwrap());
        for (latitude, longitude, inside) in [
            (1.0, 5.0, true),
            (5.0, 5.0, false),
            (5.0, 1.0, true),
            (5.0, 8.0, true),
            (3.0, 5.0, true),
            (3.000_000_1, 5.0, false),
            (0.0, 0.0, true),
            (10.0, 10.0, true),
            (10.0, 5.0, false),
            (-0.1, 5.0, false),
            (3.0, -1.0, false),
            (3.0, 11.0, false),
        ] {
            assert_eq!(
                area.contains(point(latitude, longitude)),
                inside,
                "{latitude} {longitude} {reversed}"
            );
        }
    }
}

#[test]
fn polygons_cross_the_antimeridian_the_short_way() {
    let area =
        Area::Polygon(polygon(&[(10.0, 170.0), (10.0, -170.0), (-10.0, -170.0), (-10.0, 170.0)]).unwrap());
    for (longitude, inside) in [
        (180.0, true),
        (175.0, true),
        (-171.0, true),
        (-170.0, true),
        (-169.0, false),
        (0.0, false),
    ] {
        assert_eq!(area.contains(point(0.0, longitude)), inside, "{longitude}");
    }
}

#[test]
fn a_ring_around_a_pole_holds_the_pole() {
    let north = Area::Polygon(polygon(&[(60.0, 0.0), (70.0, 120.0), (65.0, -120.0)]).unwrap());
    for (latitude, longitude, inside) in [
        (90.0, 33.0, true),
        (80.0, -179.0, true),
        (70.0, 120.0, true),
        (59.9, 0.0, false),
        (60.0, 0.0, true),
        (-90.0, 0.0, false),
    ] {
        assert_eq!(
            north.contains(point(latitude, longitude)),
            inside,
            "{latitude} {longitude}"
        );
    }
    let south = Area::Polygon(polygon(&[(-60.0, 10.0), (-60.0, -110.0), (-60.0, 130.0)]).unwrap());
    assert!(
        south.contains(point(-90.0, 0.0))
            && south.contains(point(-61.0, 77.0))
            && !south.contains(point(90.0, 0.0))
    );
    assert_eq!(
        polygon(&[(60.0, 0.0), (-70.0, 120.0), (65.0, -120.0)]),
        Err(GeoError::AroundTheGlobe)
    );
}

#[test]
fn shapes_that_are_no_polygon_are_refused_with_the_reason() {
    assert_eq!(polygon(&[]), Err(GeoError::TooFewVertices { distinct: 0 }));
    assert_eq!(
        polygon(&[(0.0, 0.0), (1.0, 1.0), (1.0, 1.0), (0.0, 0.0)]),
        Err(GeoError::TooFewVertices { distinct: 2 })
    );
    assert_eq!(
        polygon(&[(0.0, 0.0), (1.0, 1.0), (3.0, 3.0)]),
        Err(GeoError::NoArea)
    );
    // A bow tie, a spike, a vertex on another edge, an edge gone twice.
    assert_eq!(
        polygon(&[(0.0, 0.0), (10.0, 10.0), (10.0, 0.0), (0.0, 10.0)]),
        Err(GeoError::EdgesMeet { first: 0, second: 2 })
    );
    assert!(matches!(
        polygon(&[(0.0, 0.0), (0.0, 10.0), (0.0, 5.0), (5.0, 5.0)]),
        Err(GeoError::EdgesMeet { .. })
    ));
    assert!(matches!(
        polygon(&[(0.0, 0.0), (0.0, 10.0), (5.0, 10.0), (0.0, 5.0), (5.0, 0.0)]),
        Err(GeoError::EdgesMeet { .. })
    ));
    assert!(matches!(
        polygon(&[
            (0.0, 0.0),
            (0.0, 5.0),
            (5.0, 5.0),
            (5.0, 9.0),
            (5.0, 5.0),
            (5.0, 0.0)
        ]),
        Err(GeoError::EdgesMeet { .. })
    ));
}

#[test]
fn a_closed_and_an_open_ring_are_the_same_polygon() {
    let open = [(0.0, 0.0), (0.0, 10.0), (10.0, 0.0)];
    let closed = [(0.0, 0.0), (0.0, 0.0), (0.0, 10.0), (10.0, 0.0), (0.0, 0.0)];
    assert_eq!(polygon(&open), polygon(&closed));
}

#[test]
fn a_polygon_of_many_vertices_answers_like_its_definition() {
    let mut random = seeded();
    let count = 10_000;
    let ring: Vec<GeoPoint> = (0..count)
        .map(|at| {
            let angle = std::f64::consts::TAU * f64::from(at) / f64::from(count);
            let radius = 5.0 + random.f64() * 4.0;
            point(radius * angle.sin(), radius * angle.cos())
        })
        .collect();
    let area = Area::Polygon(Polygon::new(&ring).unwrap());
    for _ in 0..2_000 {
        let place = point(random.f64() * 20.0 - 10.0, random.f64() * 20.0 - 10.0);
        // The ring is a star around 0, 0: radius by angle, straight between neighbours.
        let angle = place
            .latitude()
            .atan2(place.longitude())
            .rem_euclid(std::f64::consts::TAU);
        let at = (angle / std::f64::consts::TAU * f64::from(count)) as usize % ring.len();
        let (a, b) = (ring[at], ring[(at + 1) % ring.len()]);
        let cross = (b.longitude() - a.longitude()) * (place.latitude() - a.latitude())
            - (b.latitude() - a.latitude()) * (place.longitude() - a.longitude());
        if cross.abs() > 1e-4 {
            assert_eq!(area.contains(place), cross > 0.0, "{place:?}");
        }
    }
}
