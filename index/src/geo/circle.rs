//! All points within a distance of a centre.

use std::ops::RangeInclusive;

use super::area::Region;
use super::stretch::{Band, Stretch};
use super::{EARTH_RADIUS_METERS, GeoError, GeoPoint, HALF_TURN, QUARTER_TURN, UNITS, half_chord_squared};

/// Metres within which a cell is neither inside nor outside: distances near the antipode of a centre are not more exact.
const SLACK_METERS: f64 = 1.0;
/// The part of a squared half chord within which the distance itself is compared.
const CHORD_SLACK: f64 = 1e-9;

/// All points within a distance of a centre, the boundary included: those with
/// [`GeoPoint::distance_meters`] up to the radius.
#[derive(Clone, Debug, PartialEq)]
pub struct Circle {
    center: GeoPoint,
    radius: f64,
    cos_latitude: f64,
    /// The squared half chord of the radius; above 1 when every point is contained.
    chord: f64,
}

impl Circle {
    /// The circle around `center`. From half the earth's circumference (20,015,114 m) on it contains every point.
    ///
    /// # Errors
    /// [`GeoError::Distance`] when `radius_meters` isn't a finite number from 0.
    pub fn new(center: GeoPoint, radius_meters: f64) -> Result<Self, GeoError> {
        if !radius_meters.is_finite() || radius_meters < 0.0 {
            return Err(GeoError::Distance(radius_meters));
        }
        let angle = radius_meters / EARTH_RADIUS_METERS;
        let chord = if angle >= std::f64::consts::PI {
            f64::INFINITY
        } else {
            (angle / 2.0).sin().powi(2)
        };
        let cos_latitude = center.latitude().to_radians().cos();
        Ok(Self {
            center,
            radius: radius_meters,
            cos_latitude,
            chord,
        })
    }

    pub(super) fn contains(&self, point: GeoPoint) -> bool {
        let chord = half_chord_squared(self.center.degrees(), point.degrees(), self.cos_latitude);
        let slack = CHORD_SLACK * self.chord.min(1.0) + f64::EPSILON;
        if chord < self.chord - slack {
            return true;
        }
        if chord > self.chord + slack {
            return false;
        }
        self.center.distance_meters(point) <= self.radius
    }
}

impl Region for Circle {
    fn latitudes(&self) -> RangeInclusive<i64> {
        // Saturates for radii around the globe.
        let reach = ((self.radius / EARTH_RADIUS_METERS).to_degrees() * UNITS).min(1e10) as i64 + 10;
        (self.center.lat() - reach).max(-QUARTER_TURN)..=(self.center.lat() + reach).min(QUARTER_TURN)
    }

    /// How far the circle reaches to both sides of its centre's meridian between two latitudes: at its widest, and
    /// everywhere. Along the parallels the reach has one extreme at most, so it lies there or at an end.
    fn band(&self, south: i64, north: i64) -> Band {
        let latitudes = self.latitudes();
        if north < *latitudes.start() || south > *latitudes.end() {
            return Band::default();
        }
        let angle = |meters: f64| meters / EARTH_RADIUS_METERS;
        let outer = Reach::new(self.center, angle(self.radius + SLACK_METERS));
        let inner = Reach::new(self.center, angle(self.radius - SLACK_METERS));
        let units = |radians: f64| (radians.to_degrees() * UNITS).min(2.0 * HALF_TURN as f64);
        let widest = units(outer.between(south, north).1.max(0.0)).ceil() as i64 + 2;
        let everywhere = units(inner.between(south, north).0).floor() as i64 - 2;
        Band {
            touched: Some(Stretch::around(self.center.lon(), widest)),
            inside: (everywhere >= 0).then(|| Stretch::around(self.center.lon(), everywhere)),
        }
    }
}

/// How far a circle reaches along parallels.
struct Reach {
    center: f64,
    /// Of the sphere's radius; from 0.
    angle: f64,
    /// Where the reach is longest, or shortest, if anywhere between the circle's ends.
    extreme: Option<f64>,
}

impl Reach {
    fn new(center: GeoPoint, angle: f64) -> Self {
        let center = center.latitude().to_radians();
        let sine = center.sin() / angle.cos();
        Self {
            center,
            angle,
            // At a pole itself rounding may go either way.
            extreme: (sine.abs() <= 1.0 + 1e-9).then(|| sine.clamp(-1.0, 1.0).asin()),
        }
    }

    /// The shortest and the longest reach between two latitudes, in radians; below 0 where there is none.
    fn between(&self, south: i64, north: i64) -> (f64, f64) {
        let radians = |units: i64| (units as f64 / UNITS).to_radians();
        let (south, north) = (radians(south), radians(north));
        let extreme = self.extreme.filter(|extreme| (south..=north).contains(extreme));
        let extreme = extreme.map_or(f64::NAN, |extreme| self.at(extreme));
        // NaN loses against numbers.
        let (one, other) = (self.at(south), self.at(north));
        (one.min(other).min(extreme), one.max(other).max(extreme))
    }

    /// The longitude between the centre's meridian and the circle, in radians.
    fn at(&self, latitude: f64) -> f64 {
        if self.angle < 0.0 {
            return -1.0;
        }
        if self.angle >= std::f64::consts::PI {
            return std::f64::consts::PI;
        }
        let haversine = |angle: f64| (angle * 0.5).sin().powi(2);
        let left = haversine(self.angle) - haversine(latitude - self.center);
        if left < -1e-15 {
            return -1.0;
        }
        let part = left.max(0.0) / (latitude.cos() * self.center.cos());
        // Also where both are zero, at a pole.
        if part < 1.0 {
            2.0 * part.sqrt().asin()
        } else {
            std::f64::consts::PI
        }
    }
}
