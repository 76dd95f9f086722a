//! `souk.type.v1.GeoPoint`.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::GeoPoint;
use souk_proto::r#type::v1 as pb;

/// A point at 1e-7 degrees; `None`, and a violation, when it isn't on the globe.
pub fn point(
    value: &pb::GeoPoint,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) -> Option<GeoPoint> {
    violations.take(
        path,
        "OUT_OF_RANGE",
        GeoPoint::new(value.latitude, value.longitude).map_err(|_| {
            format!(
                "is {}, {}; the latitude must lie between -90 and 90, the longitude between -180 and 180",
                value.latitude, value.longitude
            )
        }),
    )
}

/// A point on the wire.
#[must_use]
pub fn point_to_wire(point: GeoPoint) -> pb::GeoPoint {
    pb::GeoPoint {
        latitude: point.latitude(),
        longitude: point.longitude(),
    }
}
