//! Points on the globe.

/// A point at 1e-7 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GeoPoint {
    pub(crate) lat_e7: i32,
    pub(crate) lon_e7: i32,
}
