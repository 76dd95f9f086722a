//! `geo_distance`, `geo_bounding_box` and `geo_polygon`: documents with a point in an area.

use std::sync::Arc;

use super::Planner;
use super::area_scorer::AreaQuery;
use super::clause::Clause;
use crate::error::{Checker, Reason};
use crate::geo::{Area, BoundingBox, Circle, GeoError, GeoPoint, Polygon};
use crate::layout::Handle;
use crate::limits::{MAX_DISTANCE_METERS, limit};
use crate::pace::Pace;
use crate::schema::{FieldKind, ResolvedField};

/// Edges of a polygon that are compared with another, or sorted, between two looks at the deadline.
const EDGES_PER_CHECK: u32 = 8_192;

impl<'a> Planner<'a> {
    pub(super) fn geo_distance(
        &mut self,
        at: &str,
        field: &str,
        center: GeoPoint,
        meters: f64,
    ) -> Option<Clause> {
        let field = self.point_field(at, field);
        let distance_at = format!("{at}.distance_meters");
        if meters > MAX_DISTANCE_METERS && meters.is_finite() {
            let actual = meters.ceil() as usize;
            let advice = "leave the clause out: the circle is the globe";
            self.at_most(&distance_at, limit!(MAX_DISTANCE_METERS), actual, advice)?;
        }
        let circle = self.shape(&distance_at, Circle::new(center, meters));
        self.area(field?, Area::Circle(circle?))
    }

    pub(super) fn geo_bounding_box(
        &mut self,
        at: &str,
        field: &str,
        top_left: GeoPoint,
        bottom_right: GeoPoint,
    ) -> Option<Clause> {
        let field = self.point_field(at, field);
        let corner_at = format!("{at}.top_left");
        let bounding_box = self.shape(&corner_at, BoundingBox::new(top_left, bottom_right));
        self.area(field?, Area::Box(bounding_box?))
    }

    pub(super) fn geo_polygon(&mut self, at: &str, field: &str, vertices: &[GeoPoint]) -> Option<Clause> {
        let field = self.point_field(at, field);
        let vertices_at = format!("{at}.vertices");
        let advice = "use fewer vertices, or several polygons";
        self.at_most(&vertices_at, limit!(MAX_POLYGON_VERTICES), vertices.len(), advice)?;
        let mut pace = Pace::new(&**self.run, EDGES_PER_CHECK);
        let polygon = Polygon::paced(vertices, &mut |edges| pace.stops(edges as u32));
        let polygon = self.shape(&vertices_at, polygon);
        self.area(field?, Area::Polygon(polygon??))
    }

    fn point_field(&mut self, at: &str, field: &str) -> Option<&'a ResolvedField> {
        let is_point = |kind: &FieldKind| *kind == FieldKind::GeoPoint;
        self.field_of(at, field, is_point, "GEO_POINT fields", "use a GEO_POINT field")
    }

    fn shape<T>(&mut self, at: &str, shape: Result<T, GeoError>) -> Option<T> {
        match shape {
            Ok(shape) => Some(shape),
            Err(error) => self.refuse(at, Reason::OutOfRange, error.to_string(), "correct the shape"),
        }
    }

    fn area(&self, field: &ResolvedField, area: Area) -> Option<Clause> {
        let Handle::Point { cell, .. } = self.layout.handle(&field.path)? else {
            return None;
        };
        let query = AreaQuery {
            cells: cell,
            path: field.path.as_str().into(),
            area: Arc::new(area),
            run: Arc::clone(self.run),
        };
        Some(Clause::constant(Box::new(query), 1.0))
    }
}
