//! Clauses on points.

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_POLYGON_VERTICES;
use souk_index::{GeoPoint, Query};
use souk_proto::search::v1 as pb;
use souk_proto::r#type::v1 as wire;

use super::reader::Reader;
use crate::wire::{point, required};

impl Reader<'_> {
    pub(super) fn geo_distance(&mut self, circle: &pb::GeoDistanceQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&circle.field, at, "field");
        let center = self.corner(circle.center.as_ref(), at.field("center"));
        let meters = circle.distance_meters;
        let fits = meters.is_finite() && meters >= 0.0;
        if !fits {
            let message = format!("is {meters}, must be a finite number of metres from 0");
            self.violations
                .push(at.field("distance_meters"), "OUT_OF_RANGE", message);
        }
        let (field, center) = (field?, center?);
        fits.then_some(Query::GeoDistance {
            field,
            center,
            distance_meters: meters,
        })
    }

    pub(super) fn geo_bounding_box(
        &mut self,
        area: &pb::GeoBoundingBoxQuery,
        at: &FieldPath,
    ) -> Option<Query> {
        let field = self.name(&area.field, at, "field");
        let top_left = self.corner(area.top_left.as_ref(), at.field("top_left"));
        let bottom_right = self.corner(area.bottom_right.as_ref(), at.field("bottom_right"));
        Some(Query::GeoBoundingBox {
            field: field?,
            top_left: top_left?,
            bottom_right: bottom_right?,
        })
    }

    pub(super) fn geo_polygon(&mut self, polygon: &pb::GeoPolygonQuery, at: &FieldPath) -> Option<Query> {
        let field = self.name(&polygon.field, at, "field");
        let path = at.field("vertices");
        if polygon.vertices.len() > MAX_POLYGON_VERTICES {
            self.limit(
                path,
                "MAX_POLYGON_VERTICES",
                MAX_POLYGON_VERTICES,
                polygon.vertices.len(),
            );
            return None;
        }
        let vertices = self.points(&polygon.vertices, &path);
        Some(Query::GeoPolygon {
            field: field?,
            vertices: vertices?,
        })
    }

    /// Points of a list, each with a violation of its own.
    pub(super) fn points(&mut self, points: &[wire::GeoPoint], at: &FieldPath) -> Option<Vec<GeoPoint>> {
        let read: Vec<_> = points
            .iter()
            .enumerate()
            .map(|(place, vertex)| point(vertex, at.index(place), &mut self.violations))
            .collect();
        read.into_iter().collect()
    }

    pub(super) fn corner(&mut self, corner: Option<&wire::GeoPoint>, path: FieldPath) -> Option<GeoPoint> {
        required(corner, path, &mut self.violations, |corner, path, violations| {
            point(corner, path, violations)
        })
    }
}
