//! Longitudes from one meridian east to another, and rectangles of them.

use super::{FULL_TURN, HALF_TURN};

/// How all points of a rectangle relate to an area. Never wrong about [`RectangleRelation::Inside`] and [`RectangleRelation::Outside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RectangleRelation {
    /// All are contained.
    Inside,
    /// None is contained.
    Outside,
    /// Some may be.
    Mixed,
}

/// The longitudes from `west` to `width` east of it, both included, in 1e-7 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// From -180 degrees to less than 180.
    pub(crate) west: i64,
    /// From 0 to a full turn.
    pub(crate) width: i64,
}

/// A rectangle in latitude and longitude, its sides included, in 1e-7 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) south: i64,
    pub(crate) north: i64,
    pub(crate) longitudes: Stretch,
}

/// What is known of an area between two latitudes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Band {
    /// No point outside of this stretch is contained; `None` when none is.
    pub(crate) touched: Option<Stretch>,
    /// All points of this stretch are contained.
    pub(crate) inside: Option<Stretch>,
}

impl Stretch {
    /// All longitudes.
    pub(crate) const EVERYTHING: Self = Self {
        west: -HALF_TURN,
        width: FULL_TURN,
    };

    /// As far to the west as to the east of a meridian; everything from half a turn on.
    pub(crate) fn around(longitude: i64, half_width: i64) -> Self {
        if half_width >= HALF_TURN {
            return Self::EVERYTHING;
        }
        Self {
            west: wrapped(longitude - half_width),
            width: 2 * half_width,
        }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.width >= FULL_TURN - 1
    }

    pub(crate) fn contains(&self, longitude: i64) -> bool {
        self.is_everything() || (longitude - self.west).rem_euclid(FULL_TURN) <= self.width
    }

    /// Whether all of another stretch lies in this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.is_everything() || (other.west - self.west).rem_euclid(FULL_TURN) + other.width <= self.width
    }

    /// Whether the two have a meridian in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.contains(other.west) || other.contains(self.west)
    }
}

impl Band {
    /// What the band alone tells of a rectangle between its latitudes.
    pub(crate) fn relation(&self, rectangle: &Rectangle) -> RectangleRelation {
        match (&self.touched, &self.inside) {
            (None, _) => RectangleRelation::Outside,
            (_, Some(inside)) if inside.covers(&rectangle.longitudes) => RectangleRelation::Inside,
            (Some(touched), _) if touched.meets(&rectangle.longitudes) => RectangleRelation::Mixed,
            (Some(_), _) => RectangleRelation::Outside,
        }
    }
}

/// The same meridian from -180 degrees to less than 180.
pub(super) fn wrapped(longitude: i64) -> i64 {
    (longitude + HALF_TURN).rem_euclid(FULL_TURN) - HALF_TURN
}
