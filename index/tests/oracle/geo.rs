//! Distances on the sphere, and areas, as docs/SEARCH.md defines them. Coordinates are whole numbers of 1e-7 degrees.

use souk_index::GeoPoint;

/// The radius of the sphere, in metres.
const RADIUS: f64 = 6_371_008.77;
/// Units of a turn around the globe.
const TURN: i64 = 3_600_000_000;

/// How far two points are from each other in metres: the angle between their directions, by its tangent.
pub(crate) fn meters(a: GeoPoint, b: GeoPoint) -> f64 {
    let (a, b) = (direction(a), direction(b));
    let cross = [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ];
    let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    RADIUS * length(cross).atan2(dot)
}

/// By how much a distance may be off: the sine of half an angle tells little near the other side of the globe.
pub(crate) fn slack(meters: f64) -> f64 {
    if meters > 19_000_000.0 { 2.0 } else { 0.002 }
}

/// The direction of a point from the middle of the globe.
pub(crate) fn direction(point: GeoPoint) -> [f64; 3] {
    let (latitude, longitude) = (point.latitude().to_radians(), point.longitude().to_radians());
    [
        latitude.cos() * longitude.cos(),
        latitude.cos() * longitude.sin(),
        latitude.sin(),
    ]
}

pub(crate) fn length(vector: [f64; 3]) -> f64 {
    vector.iter().map(|part| part * part).sum::<f64>().sqrt()
}

/// Latitude and longitude in units.
fn units(point: GeoPoint) -> (i64, i64) {
    (
        (point.latitude() * 1e7).round() as i64,
        (point.longitude() * 1e7).round() as i64,
    )
}

/// Whether a point is in a box, its sides included.
pub(crate) fn in_box(point: GeoPoint, top_left: GeoPoint, bottom_right: GeoPoint) -> bool {
    let ((north, west), (south, east), (y, x)) = (units(top_left), units(bottom_right), units(point));
    // Both sides on the antimeridian are all longitudes.
    let all = west == -TURN / 2 && east == -TURN / 2;
    let between = if west <= east {
        west <= x && x <= east
    } else {
        x >= west || x <= east
    };
    south <= y && y <= north && (all || between)
}

/// Whether a point is in a polygon whose vertices are less than half a turn from the first, its edges included.
pub(crate) fn in_polygon(point: GeoPoint, vertices: &[GeoPoint]) -> bool {
    let first = units(vertices[0]).1;
    let ring: Vec<(i64, i64)> = vertices
        .iter()
        .map(|vertex| {
            let (y, x) = units(*vertex);
            (y, first + (x - first + TURN / 2).rem_euclid(TURN) - TURN / 2)
        })
        .collect();
    let (y, x) = units(point);
    [x - TURN, x, x + TURN].into_iter().any(|x| inside((y, x), &ring))
}

/// Counts the edges that a ray to the east crosses.
fn inside((y, x): (i64, i64), ring: &[(i64, i64)]) -> bool {
    let mut crossed = 0;
    for (nth, a) in ring.iter().enumerate() {
        let b = &ring[(nth + 1) % ring.len()];
        // Positive where the point lies to the left of the edge.
        let side = i128::from(b.1 - a.1) * i128::from(y - a.0) - i128::from(b.0 - a.0) * i128::from(x - a.1);
        let within = |value: i64, from: i64, to: i64| from.min(to) <= value && value <= from.max(to);
        if side == 0 && within(y, a.0, b.0) && within(x, a.1, b.1) {
            return true;
        }
        let upwards = a.0 <= y && y < b.0;
        let downwards = b.0 <= y && y < a.0;
        crossed += usize::from((upwards && side > 0) || (downwards && side < 0));
    }
    crossed % 2 == 1
}
