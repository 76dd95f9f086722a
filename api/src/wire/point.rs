//! Conversion of `souk.type.v1.GeoPoint`.

use souk_index::GeoPoint;
use souk_proto::r#type::v1 as pb;

/// A point of the wire, rounded to 1e-7 degrees; `None` when it isn't on the globe.
#[must_use]
pub fn point(value: &pb::GeoPoint) -> Option<GeoPoint> {
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

/// Rounds a point as a row keeps it. One that isn't on the globe stays: it breaks a rule of its field, which refuses it.
pub fn round_point(given: &mut Option<pb::GeoPoint>) {
    if let Some(rounded) = given.as_ref().and_then(point) {
        *given = Some(point_to_wire(rounded));
    }
}
