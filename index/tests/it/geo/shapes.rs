//! Random places and areas, many of them where things go wrong.

use fastrand::Rng;

use super::slow::{Place, Shape};

const DEGREE: f64 = 1e7;

fn at(latitude: f64, longitude: f64) -> Place {
    Place::new(
        (latitude * DEGREE).round() as i64,
        (longitude * DEGREE).round() as i64,
    )
}

/// Evenly spread over the globe.
pub(super) fn anywhere(rng: &mut Rng) -> Place {
    let latitude = (rng.f64() * 2.0 - 1.0).asin().to_degrees();
    at(latitude, rng.f64() * 360.0 - 180.0)
}

/// Poles, the antimeridian, the equator, Greenwich, and borders of cells.
pub(super) fn difficult(rng: &mut Rng) -> Place {
    let places = [
        (90.0, 0.0),
        (90.0, -170.0),
        (-90.0, 100.0),
        (89.999, 45.0),
        (-89.5, 179.9),
        (0.0, -180.0),
        (0.0, 179.999_999_9),
        (65.0, 179.99),
        (-17.0, -180.0),
        (0.0, 0.0),
        (51.5, 0.0),
        (-8.388_608, 8.388_608),
    ];
    let (latitude, longitude) = places[rng.usize(..places.len())];
    at(latitude, longitude)
}

/// Up to `degrees` away.
pub(super) fn around(rng: &mut Rng, near: Place, degrees: f64) -> Place {
    let mut off = || ((rng.f64() - 0.5) * 2.0 * degrees * DEGREE) as i64;
    Place::new(near.lat + off(), near.lon + off())
}

/// An area around a place, of any kind and size. Polygons may turn out invalid.
pub(super) fn random(rng: &mut Rng, near: Place) -> Shape {
    let size = 10f64.powf(rng.f64() * 7.0 - 4.7);
    match rng.u8(..12) {
        0..3 => {
            let meters = match rng.u8(..8) {
                0 => 0.0,
                1 => 1e7 + rng.f64() * 1e7,
                2 => 20_037_508.0,
                _ => (size * 111_000.0).min(2e7),
            };
            Shape::Circle(near, meters)
        }
        3..6 => {
            let (a, b) = (around(rng, near, size), around(rng, near, size));
            let (top, bottom) = if a.lat >= b.lat { (a, b) } else { (b, a) };
            match rng.u8(..10) {
                // Along a parallel, along a meridian, one point, everything, a cap.
                0 => Shape::Box(Place::new(top.lat, top.lon), Place::new(top.lat, bottom.lon)),
                1 => Shape::Box(Place::new(top.lat, near.lon), Place::new(bottom.lat, near.lon)),
                2 => Shape::Box(near, near),
                3 => Shape::Box(at(90.0, -180.0), at(-90.0, 180.0)),
                4 => Shape::Box(at(90.0, -180.0), Place::new(top.lat, -1_800_000_000)),
                _ => Shape::Box(top, bottom),
            }
        }
        6 => ring_around_a_pole(rng, near, size.min(80.0)),
        7 => triangle_with_repeats(rng, near, size),
        8 => Shape::Polygon(
            (0..rng.usize(3..6))
                .map(|_| around(rng, near, size.min(80.0)))
                .collect(),
        ),
        9 => staircase(rng, near, size.min(4.0)),
        _ => star(rng, near, size.min(25.0)),
    }
}

/// A ring of any radius by angle: simple, with up to hundreds of vertices.
fn star(rng: &mut Rng, near: Place, degrees: f64) -> Shape {
    let count = if rng.u8(..5) == 0 {
        rng.usize(50..400)
    } else {
        rng.usize(3..24)
    };
    let center = Place::new(near.lat.clamp(-600_000_000, 600_000_000), near.lon);
    let ring = (0..count).map(|nth| {
        let angle = std::f64::consts::TAU * nth as f64 / count as f64;
        let radius = degrees * (0.3 + 0.7 * rng.f64()) * DEGREE;
        let (lat, lon) = ((radius * angle.sin()) as i64, (radius * angle.cos()) as i64);
        Place::new(center.lat + lat, center.lon + lon)
    });
    Shape::Polygon(ring.collect())
}

/// Edges along parallels and meridians only: points lie on them often.
fn staircase(rng: &mut Rng, near: Place, degrees: f64) -> Shape {
    let unit = ((degrees * DEGREE) as i64 / 8).max(1);
    let center = Place::new(near.lat.clamp(-800_000_000, 800_000_000), near.lon);
    let mut ring = Vec::new();
    let mut height = 0;
    for step in 0..6 {
        ring.push(Place::new(center.lat + height, center.lon + step * unit));
        height += rng.i64(1..3) * unit;
        ring.push(Place::new(center.lat + height, center.lon + step * unit));
    }
    ring.push(Place::new(center.lat + height, center.lon + 6 * unit));
    ring.push(Place::new(center.lat, center.lon + 6 * unit));
    Shape::Polygon(ring)
}

/// Vertices given several times, and vertices in the middle of straight edges.
fn triangle_with_repeats(rng: &mut Rng, near: Place, degrees: f64) -> Shape {
    let half = ((degrees.min(40.0) * DEGREE) as i64 / 4).max(1);
    let center = Place::new(near.lat.clamp(-400_000_000, 400_000_000), near.lon);
    let corner = |lat: i64, lon: i64| Place::new(center.lat + lat * half, center.lon + lon * half);
    let mut ring = vec![
        corner(0, 0),
        corner(0, 0),
        corner(0, 1),
        corner(0, 2),
        corner(1, 1),
        corner(2, 0),
    ];
    ring.push(corner(1, 0));
    if rng.bool() {
        ring.push(corner(0, 0));
    }
    if rng.bool() {
        ring.reverse();
    }
    Shape::Polygon(ring)
}

fn ring_around_a_pole(rng: &mut Rng, near: Place, degrees: f64) -> Shape {
    let north = near.lat >= 0;
    let count = rng.usize(4..40);
    let mut longitudes: Vec<f64> = (0..count)
        .map(|nth| 360.0 * (nth as f64 + 0.9 * rng.f64()) / count as f64 - 180.0)
        .collect();
    if rng.bool() {
        longitudes.reverse();
    }
    let ring = longitudes.into_iter().map(|longitude| {
        let latitude = 90.0 - degrees * (0.2 + 0.8 * rng.f64());
        at(if north { latitude } else { -latitude }, longitude)
    });
    Shape::Polygon(ring.collect())
}
