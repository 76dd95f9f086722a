//! All points between two parallels and two meridians.

use std::ops::RangeInclusive;

use super::area::Region;
use super::stretch::{Band, Stretch};
use super::{FULL_TURN, GeoError, GeoPoint, HALF_TURN};

/// All points from a top left corner south to the latitude of a bottom right corner, and east to its longitude, the
/// boundary included.
///
/// A right side west of the left side means that the box crosses the antimeridian. Both sides on the antimeridian mean all
/// longitudes (as from -180 to 180); both on another meridian mean this meridian alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundingBox {
    south: i64,
    north: i64,
    longitudes: Stretch,
}

impl BoundingBox {
    /// The box between two corners.
    ///
    /// # Errors
    /// [`GeoError::UpsideDown`] when the top left corner lies south of the bottom right one.
    pub fn new(top_left: GeoPoint, bottom_right: GeoPoint) -> Result<Self, GeoError> {
        if top_left.lat_e7 < bottom_right.lat_e7 {
            return Err(GeoError::UpsideDown {
                top: top_left.latitude(),
                bottom: bottom_right.latitude(),
            });
        }
        let (west, east) = (top_left.lon(), bottom_right.lon());
        let width = if west == -HALF_TURN && east == -HALF_TURN {
            FULL_TURN
        } else {
            (east - west).rem_euclid(FULL_TURN)
        };
        Ok(Self {
            south: bottom_right.lat(),
            north: top_left.lat(),
            longitudes: Stretch { west, width },
        })
    }

    pub(super) fn contains(&self, point: GeoPoint) -> bool {
        self.latitudes().contains(&point.lat()) && self.longitudes.contains(point.lon())
    }
}

impl Region for BoundingBox {
    fn latitudes(&self) -> RangeInclusive<i64> {
        self.south..=self.north
    }

    fn band(&self, south: i64, north: i64) -> Band {
        let apart = north < self.south || south > self.north;
        let within = self.south <= south && north <= self.north;
        Band {
            touched: (!apart).then_some(self.longitudes),
            inside: within.then_some(self.longitudes),
        }
    }
}
