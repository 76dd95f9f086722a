//! Any of the areas that can be searched.

use std::ops::RangeInclusive;

use super::stretch::{Band, Rectangle, RectangleRelation, Stretch};
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
    pub fn contains(&self, point: GeoPoint) -> bool {
        match self {
            Self::Circle(circle) => circle.contains(point),
            Self::Box(bounding_box) => bounding_box.contains(point),
            Self::Polygon(polygon) => polygon.contains(point),
        }
    }

    /// As a walk over the grid sees it.
    pub(crate) fn region(&self) -> &dyn Region {
        match self {
            Self::Circle(circle) => circle,
            Self::Box(bounding_box) => bounding_box,
            Self::Polygon(polygon) => polygon,
        }
    }
}

/// What a walk over the grid asks of an area.
pub(crate) trait Region {
    /// No point outside of these latitudes, in 1e-7 degrees, is contained.
    fn latitudes(&self) -> RangeInclusive<i64>;

    /// What is known between two latitudes, of which the southern comes first.
    fn band(&self, south: i64, north: i64) -> Band;

    /// How a rectangle between the latitudes of `band` relates to the area.
    fn relation(&self, rectangle: &Rectangle, band: &Band) -> RectangleRelation {
        band.relation(rectangle)
    }

    /// The widest stretch, if it is known without looking at every latitude.
    fn longitudes(&self) -> Stretch {
        let latitudes = self.latitudes();
        let band = self.band(*latitudes.start(), *latitudes.end());
        band.touched.unwrap_or(Stretch { west: 0, width: 0 })
    }
}
