//! Any of the areas that can be searched.

use super::cover::{Cover, cover};
use super::patch::{Patch, Relation};
use super::{BoundingBox, Circle, GeoPoint, Polygon};

/// An area on the globe, its boundary included.
#[derive(Clone, Debug, PartialEq)]
pub enum Area {
    /// All points within a distance of a centre.
    Circle(Circle),
    /// All points between two parallels and two meridians.
    Box(BoundingBox),
    /// All points inside a polygon.
    Polygon(Polygon),
}

impl Area {
    /// Whether the point is inside or on the boundary.
    #[must_use]
    pub fn contains(&self, point: GeoPoint) -> bool {
        match self {
            Self::Circle(circle) => circle.contains(point),
            Self::Box(bounding_box) => bounding_box.contains(point),
            Self::Polygon(polygon) => polygon.contains(point),
        }
    }

    /// The cells to look up; `None` when the area is so large that comparing every point is better.
    #[must_use]
    pub fn cover(&self) -> Option<Cover> {
        cover(self)
    }

    /// The latitudes of the area in 1e-7 degrees: no point outside of them is contained.
    #[must_use]
    pub fn latitudes(&self) -> std::ops::RangeInclusive<i64> {
        match self {
            Self::Circle(circle) => circle.latitudes(),
            Self::Box(bounding_box) => bounding_box.latitudes(),
            Self::Polygon(polygon) => polygon.latitudes(),
        }
    }

    pub(super) fn relation(&self, patch: &Patch) -> Relation {
        match self {
            Self::Circle(circle) => circle.relation(patch),
            Self::Box(bounding_box) => bounding_box.relation(patch),
            Self::Polygon(polygon) => polygon.relation(patch),
        }
    }
}
