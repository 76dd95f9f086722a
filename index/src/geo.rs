//! Points and areas on the globe.
//!
//! The earth is a sphere here: distances are great-circle distances on a sphere of [`EARTH_RADIUS_METERS`]. Points are
//! kept at 1e-7 degrees (11 mm at the equator), so all comparisons of coordinates are exact.

pub mod area;
mod bounding_box;
mod circle;
pub mod geohash;
mod grid;
mod polygon;
mod sines;
mod stretch;

use std::fmt;

pub use area::Area;
pub(crate) use area::Region;
pub use bounding_box::BoundingBox;
pub use circle::Circle;
pub(crate) use grid::{GridCell, GridLevel, point_cells};
pub use polygon::Polygon;
pub(crate) use stretch::{Band, Rectangle, RectangleRelation, Stretch};

/// The radius of the sphere that distances are measured on: the mean radius of WGS 84.
pub const EARTH_RADIUS_METERS: f64 = 6_371_008.77;

/// Units of a stored coordinate in one degree.
const UNITS: f64 = 1e7;
/// A quarter turn in stored units.
const QUARTER_TURN: i64 = 900_000_000;
/// A half turn in stored units.
const HALF_TURN: i64 = 2 * QUARTER_TURN;
/// A full turn in stored units.
const FULL_TURN: i64 = 2 * HALF_TURN;

/// Why coordinates are no point, or a shape is no area.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GeoError {
    /// The latitude isn't a number from -90 to 90.
    #[error("latitude {0} is not from -90 to 90 degrees")]
    Latitude(f64),
    /// The longitude isn't a number from -180 to 180.
    #[error("longitude {0} is not from -180 to 180 degrees")]
    Longitude(f64),
    /// The distance isn't a number from 0.
    #[error("distance {0} is not a finite number of metres from 0")]
    Distance(f64),
    /// The box's top lies south of its bottom.
    #[error("the top of the box, {top}, lies south of its bottom, {bottom}")]
    UpsideDown {
        /// Latitude of the top.
        top: f64,
        /// Latitude of the bottom.
        bottom: f64,
    },
    /// A polygon has fewer than three distinct vertices.
    #[error("a polygon needs 3 distinct vertices, this one has {distinct}")]
    TooFewVertices {
        /// Distinct vertices next to each other.
        distinct: usize,
    },
    /// A polygon's vertices lie on one line.
    #[error("the polygon has no area: its vertices lie on one line")]
    NoArea,
    /// Two edges of a polygon cross, touch or overlap.
    #[error("the polygon is not simple: the edges behind vertices {first} and {second} meet")]
    EdgesMeet {
        /// Ordinal of the vertex at which one of the edges begins, repeated vertices not counted.
        first: usize,
        /// The same of the other edge.
        second: usize,
    },
    /// A polygon goes around the globe in both hemispheres, or more than once.
    #[error("the polygon goes around the globe, so what is inside is unclear; use several smaller polygons")]
    AroundTheGlobe,
}

/// A point on the globe in WGS 84 degrees, kept at 1e-7 degrees.
///
/// Longitude 180 is kept as -180. At the poles the longitude is kept as it is given: it doesn't matter for distances and
/// cells, but boxes and polygons compare it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeoPoint {
    pub(crate) lat_e7: i32,
    pub(crate) lon_e7: i32,
}

impl GeoPoint {
    /// The point at these degrees, rounded to 1e-7 degrees.
    ///
    /// # Errors
    /// [`GeoError::Latitude`] and [`GeoError::Longitude`] outside -90 to 90 and -180 to 180, and for NaN.
    pub fn new(latitude: f64, longitude: f64) -> Result<Self, GeoError> {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err(GeoError::Latitude(latitude));
        }
        if !(-180.0..=180.0).contains(&longitude) {
            return Err(GeoError::Longitude(longitude));
        }
        let units = |degrees: f64| (degrees * UNITS).round() as i32;
        Ok(Self::from_units(units(latitude), units(longitude)))
    }

    /// The point at these 1e-7 degrees, which are in range.
    pub(crate) fn from_units(lat_e7: i32, lon_e7: i32) -> Self {
        let turned = i64::from(lon_e7) >= HALF_TURN;
        let lon_e7 = if turned { (-HALF_TURN) as i32 } else { lon_e7 };
        Self { lat_e7, lon_e7 }
    }

    /// The point whose stored columns have these values; `None` when no point is stored like that.
    pub(crate) fn from_columns(latitude: i64, longitude: i64) -> Option<Self> {
        let in_range = latitude.abs() <= QUARTER_TURN && (-HALF_TURN..HALF_TURN).contains(&longitude);
        in_range.then_some(Self {
            lat_e7: latitude as i32,
            lon_e7: longitude as i32,
        })
    }

    /// Degrees north of the equator.
    pub fn latitude(self) -> f64 {
        f64::from(self.lat_e7) / UNITS
    }

    /// Degrees east of Greenwich, from -180, to less than 180.
    pub fn longitude(self) -> f64 {
        f64::from(self.lon_e7) / UNITS
    }

    /// The great-circle distance in metres, by the haversine formula (R. W. Sinnott, "Virtues of the Haversine", Sky and
    /// Telescope 68, 1984): 0 between equal points, the same in both directions, never NaN.
    pub fn distance_meters(self, other: Self) -> f64 {
        let (here, there) = (self.degrees(), other.degrees());
        let half = half_chord_squared(here, there, here.0.to_radians().cos());
        2.0 * EARTH_RADIUS_METERS * half.sqrt().min(1.0).asin()
    }

    /// The same on the unit sphere: towards latitude and longitude 0, longitude 90, and the north pole.
    pub(crate) fn direction(self) -> [f64; 3] {
        let (north, outwards) = sines::sin_cos(self.lat());
        let (east, ahead) = sines::sin_cos(self.lon());
        [outwards * ahead, outwards * east, north]
    }

    fn degrees(self) -> (f64, f64) {
        (self.latitude(), self.longitude())
    }

    /// Degrees north, in 1e-7.
    pub(crate) fn lat(self) -> i64 {
        i64::from(self.lat_e7)
    }

    /// Degrees east, in 1e-7.
    pub(crate) fn lon(self) -> i64 {
        i64::from(self.lon_e7)
    }
}

impl fmt::Debug for GeoPoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "GeoPoint({}, {})", self.latitude(), self.longitude())
    }
}

/// The square of half the chord between two (latitude, longitude) on the unit sphere, given the cosine of `a`'s
/// latitude: grows with the distance, and is cheaper.
fn half_chord_squared(a: (f64, f64), b: (f64, f64), cos_a: f64) -> f64 {
    let over_latitude = ((b.0 - a.0).to_radians() * 0.5).sin();
    let over_longitude = ((b.1 - a.1).to_radians() * 0.5).sin();
    over_latitude * over_latitude + cos_a * b.0.to_radians().cos() * over_longitude * over_longitude
}

#[cfg(test)]
mod tests;
