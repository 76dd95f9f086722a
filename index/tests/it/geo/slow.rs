//! Which points an area holds, by other means than the index: chords in space for circles, the ray along a meridian to
//! the north pole for polygons, exact fractions throughout.

use souk_index::{GeoPoint, Query};

const QUARTER: i64 = 900_000_000;
const HALF: i64 = 2 * QUARTER;
const FULL: i64 = 2 * HALF;
const EARTH_METERS: f64 = 6_371_008.77;

/// A point in 1e-7 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) lat: i64,
    pub(super) lon: i64,
}

impl Place {
    pub(super) fn new(lat: i64, lon: i64) -> Self {
        Self {
            lat: lat.clamp(-QUARTER, QUARTER),
            lon: (lon + HALF).rem_euclid(FULL) - HALF,
        }
    }

    pub(super) fn point(&self) -> GeoPoint {
        GeoPoint::new(self.lat as f64 / 1e7, self.lon as f64 / 1e7).expect("in range")
    }

    fn in_space(self) -> [f64; 3] {
        let (lat, lon) = (
            (self.lat as f64 / 1e7).to_radians(),
            (self.lon as f64 / 1e7).to_radians(),
        );
        [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
    }

    /// By the chord in space.
    fn meters(self, other: Self) -> f64 {
        let (a, b) = (self.in_space(), other.in_space());
        let squared: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
        2.0 * EARTH_METERS * (squared.sqrt() / 2.0).min(1.0).asin()
    }
}

/// An area.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Circle(Place, f64),
    /// Top left, bottom right.
    Box(Place, Place),
    Polygon(Vec<Place>),
}

impl Shape {
    pub(super) fn query(&self, field: &str) -> Query {
        let field = field.to_owned();
        match self {
            Self::Circle(center, distance_meters) => Query::GeoDistance {
                field,
                center: center.point(),
                distance_meters: *distance_meters,
            },
            Self::Box(top_left, bottom_right) => Query::GeoBoundingBox {
                field,
                top_left: top_left.point(),
                bottom_right: bottom_right.point(),
            },
            Self::Polygon(vertices) => Query::GeoPolygon {
                field,
                vertices: vertices.iter().map(Place::point).collect(),
            },
        }
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        match self {
            Self::Circle(center, meters) => {
                let distance = center.meters(place);
                // Within rounding of two ways to measure, the index's own decides: tests of the boundary are elsewhere.
                if (distance - meters).abs() < 1e-2 {
                    return center.point().distance_meters(place.point()) <= *meters;
                }
                distance <= *meters
            }
            Self::Box(top_left, bottom_right) => {
                let all = top_left.lon == -HALF && bottom_right.lon == -HALF;
                let east = (bottom_right.lon - top_left.lon).rem_euclid(FULL);
                (bottom_right.lat..=top_left.lat).contains(&place.lat)
                    && (all || (place.lon - top_left.lon).rem_euclid(FULL) <= east)
            }
            Self::Polygon(vertices) => in_polygon(vertices, place),
        }
    }
}

/// How far an edge goes east.
fn step(from: Place, to: Place) -> i64 {
    let step = to.lon - from.lon;
    if step > HALF {
        step - FULL
    } else if step < -HALF {
        step + FULL
    } else {
        step
    }
}

/// Counts the edges between the place and the north pole, along its meridian.
fn in_polygon(vertices: &[Place], place: Place) -> bool {
    let mut north = 0;
    let mut around = 0;
    for (nth, from) in vertices.iter().enumerate() {
        let to = vertices[(nth + 1) % vertices.len()];
        let step = step(*from, to);
        around += step;
        let (west, east) = if step >= 0 { (*from, to) } else { (to, *from) };
        let width = step.abs();
        let offset = (place.lon - west.lon).rem_euclid(FULL);
        if offset > width {
            continue;
        }
        if width == 0 {
            let (low, high) = (west.lat.min(east.lat), west.lat.max(east.lat));
            if (low..=high).contains(&place.lat) {
                return true;
            }
            continue;
        }
        // The edge's latitude there, times the width.
        let edge =
            i128::from(west.lat) * i128::from(width) + i128::from(east.lat - west.lat) * i128::from(offset);
        let here = i128::from(place.lat) * i128::from(width);
        if edge == here {
            return true;
        }
        // Half open in longitude, so that a vertex between two edges counts once.
        north += u32::from(edge > here && offset < width);
    }
    let north_pole_inside = around != 0 && vertices.iter().all(|vertex| vertex.lat >= 0);
    (north % 2 == 1) != north_pole_inside
}
