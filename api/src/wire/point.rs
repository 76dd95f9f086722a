//! `souk.type.v1.GeoPoint`.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::GeoPoint;
use souk_proto::r#type::v1 as pb;

use super::check_range;

/// Degrees from equator to pole.
const LATITUDE_MAX: f64 = 90.0;
/// Degrees from Greenwich to the antimeridian.
const LONGITUDE_MAX: f64 = 180.0;

/// A point at 1e-7 degrees; `None`, and a violation for each coordinate that isn't on the globe.
pub fn point(
    value: &pb::GeoPoint,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) -> Option<GeoPoint> {
    let path = path.into();
    let latitudes = -LATITUDE_MAX..=LATITUDE_MAX;
    let longitudes = -LONGITUDE_MAX..=LONGITUDE_MAX;
    check_range(value.latitude, &latitudes, path.field("latitude"), violations);
    check_range(value.longitude, &longitudes, path.field("longitude"), violations);
    GeoPoint::new(value.latitude, value.longitude).ok()
}

/// A point on the wire.
#[must_use]
pub fn point_to_wire(point: GeoPoint) -> pb::GeoPoint {
    pb::GeoPoint {
        latitude: point.latitude(),
        longitude: point.longitude(),
    }
}
