//! Clauses on points.

use souk_chassis::status::FieldPath;
use souk_index::Query;
use souk_index::limits::MAX_POLYGON_VERTICES;
use souk_proto::search::v1 as pb;

use super::reader::{Reader, name};
use crate::wire::point;

impl Reader<'_> {
    pub(super) fn geo_distance(circle: &pb::GeoDistanceQuery) -> Option<Query> {
        Some(Query::GeoDistance {
            field: name(&circle.field)?,
            center: circle.center.as_ref().and_then(point)?,
            distance_meters: circle.distance_meters,
        })
    }

    pub(super) fn geo_bounding_box(area: &pb::GeoBoundingBoxQuery) -> Option<Query> {
        Some(Query::GeoBoundingBox {
            field: name(&area.field)?,
            top_left: area.top_left.as_ref().and_then(point)?,
            bottom_right: area.bottom_right.as_ref().and_then(point)?,
        })
    }

    pub(super) fn geo_polygon(&mut self, polygon: &pb::GeoPolygonQuery, at: &FieldPath) -> Option<Query> {
        let vertices = &polygon.vertices;
        if vertices.len() > MAX_POLYGON_VERTICES {
            let path = at.field("vertices");
            self.limit(path, "MAX_POLYGON_VERTICES", MAX_POLYGON_VERTICES, vertices.len());
            return None;
        }
        Some(Query::GeoPolygon {
            field: name(&polygon.field)?,
            vertices: vertices.iter().map(point).collect::<Option<_>>()?,
        })
    }
}
