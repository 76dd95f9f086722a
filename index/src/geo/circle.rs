//! All points within a distance of a centre.

use std::ops::RangeInclusive;

use super::patch::{Patch, Relation};
use super::{EARTH_RADIUS_METERS, GeoError, GeoPoint, QUARTER_TURN, UNITS, half_chord_squared, haversine};

/// Metres within which a patch is neither inside nor outside: distances near the antipode of a centre are not more exact.
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

    /// The centre.
    #[must_use]
    pub fn center(&self) -> GeoPoint {
        self.center
    }

    /// The radius in metres.
    #[must_use]
    pub fn radius_meters(&self) -> f64 {
        self.radius
    }

    pub(super) fn contains(&self, point: GeoPoint) -> bool {
        let center = (self.center.latitude(), self.center.longitude());
        let chord = half_chord_squared(center, (point.latitude(), point.longitude()), self.cos_latitude);
        let slack = CHORD_SLACK * self.chord.min(1.0) + f64::EPSILON;
        if chord < self.chord - slack {
            return true;
        }
        if chord > self.chord + slack {
            return false;
        }
        self.center.distance_meters(point) <= self.radius
    }

    pub(super) fn latitudes(&self) -> RangeInclusive<i64> {
        // Saturates for radii around the globe.
        let reach = ((self.radius / EARTH_RADIUS_METERS).to_degrees() * UNITS).min(1e10) as i64 + 10;
        (self.center.lat() - reach).max(-QUARTER_TURN)..=(self.center.lat() + reach).min(QUARTER_TURN)
    }

    pub(super) fn relation(&self, patch: &Patch) -> Relation {
        let distance = haversine((self.center.latitude(), self.center.longitude()), patch.center);
        if distance - patch.radius > self.radius + SLACK_METERS {
            Relation::Outside
        } else if self.chord.is_infinite() || distance + patch.radius < self.radius - SLACK_METERS {
            Relation::Inside
        } else {
            Relation::Mixed
        }
    }
}
