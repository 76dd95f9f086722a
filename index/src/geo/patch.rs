//! A round patch of the globe that surely holds all points of a cell, and how it relates to an area.

use super::{EARTH_RADIUS_METERS, FULL_TURN, HALF_TURN, QUARTER_TURN, UNITS};

/// How all points of a patch relate to an area. Never wrong about [`Relation::Inside`] and [`Relation::Outside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// All are contained.
    Inside,
    /// None is contained.
    Outside,
    /// Some may be.
    Mixed,
}

/// By how much rectangles grow, in 1e-7 degrees (0.1 m), so that rounding can't leave a point out.
const SLACK_UNITS: f64 = 10.0;

/// All points within a distance of a centre.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    /// Degrees: latitude, longitude.
    pub(super) center: (f64, f64),
    /// Metres.
    pub(super) radius: f64,
}

/// A rectangle in latitude and longitude, in 1e-7 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub(super) south: i64,
    pub(super) north: i64,
    /// From -180 degrees to less than 180.
    pub(super) west: i64,
    /// From `west` eastwards; a full turn at most.
    pub(super) width: i64,
}

impl Patch {
    /// The rectangle around the patch. With a pole inside it goes all the way around.
    pub(super) fn rectangle(&self) -> Rectangle {
        let angle = self.radius / EARTH_RADIUS_METERS;
        let (latitude, longitude) = self.center;
        let (south, north) = (latitude - angle.to_degrees(), latitude + angle.to_degrees());
        let all_around = Rectangle {
            south: ((south * UNITS - SLACK_UNITS) as i64).max(-QUARTER_TURN),
            north: ((north * UNITS + SLACK_UNITS) as i64).min(QUARTER_TURN),
            west: -HALF_TURN,
            width: FULL_TURN,
        };
        // The meridians that touch the patch: sin(difference) = sin(angle) / cos(latitude).
        let sine = angle.sin() / latitude.to_radians().cos();
        if south <= -90.0 || north >= 90.0 || sine.is_nan() || sine >= 1.0 {
            return all_around;
        }
        let half_width = sine.asin().to_degrees() * UNITS + SLACK_UNITS;
        let west = (longitude * UNITS - half_width) as i64;
        let width = (2.0 * half_width) as i64 + 2;
        if width >= FULL_TURN {
            return all_around;
        }
        Rectangle {
            west: wrapped(west),
            width,
            ..all_around
        }
    }
}

/// The same meridian from -180 degrees to less than 180.
pub(super) fn wrapped(longitude: i64) -> i64 {
    (longitude + HALF_TURN).rem_euclid(FULL_TURN) - HALF_TURN
}
