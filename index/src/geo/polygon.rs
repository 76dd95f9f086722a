//! All points inside a polygon.
//!
//! # Definition
//! A polygon lies in the plane of longitude and latitude (the plate carrée): its edges are straight there, not great
//! circles. Each edge takes the short way round the globe; one of exactly 180 degrees goes the way it is written. The last
//! vertex is joined to the first, vertices that repeat their neighbour don't count, and the boundary belongs to the
//! polygon. Edges may meet only where they follow each other.
//!
//! Following the edges leads back to the first vertex, or once around the globe. A ring around the globe encloses the pole
//! of the hemisphere that all its vertices lie in, and is closed through that pole along the meridian of its vertex nearest
//! to it; a ring with vertices in both hemispheres is refused.
//!
//! All arithmetic is on integers, hence exact.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use super::area::Region;
use super::stretch::{Band, Rectangle, RectangleRelation, Stretch, wrapped};
use super::{FULL_TURN, GeoError, GeoPoint, HALF_TURN, QUARTER_TURN};

mod boxes;
mod slabs;

use boxes::Boxes;
use slabs::Slabs;

/// A vertex in the plane, in 1e-7 degrees; `x` goes on beyond the antimeridian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vertex {
    x: i64,
    y: i64,
}

/// A straight line between two vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    a: Vertex,
    b: Vertex,
}

/// A rectangle in the plane, its sides included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlaneRectangle {
    x: (i64, i64),
    y: (i64, i64),
}

impl PlaneRectangle {
    fn overlaps(&self, x: (i64, i64), y: (i64, i64)) -> bool {
        overlap(self.x, x) && overlap(self.y, y)
    }
}

/// A simple polygon in longitude and latitude; see the module for what is inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    slabs: Slabs,
    boxes: Boxes,
    x: RangeInclusive<i64>,
    y: RangeInclusive<i64>,
}

impl Polygon {
    /// The polygon of these vertices; `None` when `stops`, which is told how many edges are looked at next, says that it isn't wanted any
    /// more.
    ///
    /// Checking takes time quadratic in the number of edges that lie side by side in every direction, some 0.1 s for
    /// 10,000 vertices at worst: the caller limits the number.
    ///
    /// # Errors
    /// [`GeoError::TooFewVertices`], [`GeoError::NoArea`], [`GeoError::EdgesMeet`], [`GeoError::AroundTheGlobe`].
    pub(crate) fn paced(
        vertices: &[GeoPoint],
        stops: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<Self>, GeoError> {
        let edges = edges_of(vertices)?;
        match meeting_edges(&edges, stops) {
            None => return Ok(None),
            Some(Some((first, second))) => return Err(GeoError::EdgesMeet { first, second }),
            Some(None) => {}
        }
        let x = span(edges.iter().map(|edge| edge.a.x));
        let y = span(edges.iter().map(|edge| edge.a.y));
        if x.end() - x.start() > FULL_TURN {
            return Err(GeoError::AroundTheGlobe);
        }
        Ok(Slabs::paced(&edges, stops).map(|slabs| Self {
            slabs,
            boxes: Boxes::new(edges),
            x,
            y,
        }))
    }

    #[cfg(test)]
    pub(crate) fn new(vertices: &[GeoPoint]) -> Result<Self, GeoError> {
        Ok(Self::paced(vertices, &mut |_| false)?.expect("nothing stops it"))
    }

    pub(super) fn contains(&self, point: GeoPoint) -> bool {
        self.y.contains(&point.lat())
            && self
                .turns(point.lon(), 0)
                .any(|x| self.holds(Vertex { x, y: point.lat() }))
    }

    /// The places at which a stretch of longitudes may lie in the polygon's plane.
    fn turns(&self, west: i64, width: i64) -> impl Iterator<Item = i64> + '_ {
        (-2..=2)
            .map(move |turn| west + turn * FULL_TURN)
            .filter(move |west| west + width >= *self.x.start() && west <= self.x.end())
    }

    /// Whether a place in the plane is inside or on an edge.
    fn holds(&self, place: Vertex) -> bool {
        self.y.contains(&place.y) && self.x.contains(&place.x) && self.slabs.hold(place)
    }
}

impl Region for Polygon {
    fn latitudes(&self) -> RangeInclusive<i64> {
        self.y.clone()
    }

    /// The same at all latitudes.
    fn band(&self, _: i64, _: i64) -> Band {
        let (west, width) = (wrapped(*self.x.start()), self.x.end() - self.x.start());
        Band {
            touched: Some(Stretch { west, width }),
            inside: None,
        }
    }

    fn relation(&self, rectangle: &Rectangle, band: &Band) -> RectangleRelation {
        let of_band = band.relation(rectangle);
        if of_band != RectangleRelation::Mixed {
            return of_band;
        }
        let (south, north) = (rectangle.south, rectangle.north);
        if north < *self.y.start() || south > *self.y.end() {
            return RectangleRelation::Outside;
        }
        let Stretch { west, width } = rectangle.longitudes;
        let mut relation = RectangleRelation::Outside;
        for x in self.turns(west, width) {
            let there = PlaneRectangle {
                x: (x, x + width),
                y: (south, north),
            };
            if self.boxes.may_touch(&there) {
                return RectangleRelation::Mixed;
            }
            // Without an edge in it, all of it is where its corner is.
            if self.holds(Vertex { x, y: south }) {
                relation = RectangleRelation::Inside;
            }
        }
        relation
    }
}

impl Edge {
    /// On which side of the line from `a` to `b` a place lies: greater is left.
    fn side(&self, place: Vertex) -> Ordering {
        let (dx, dy) = (self.b.x - self.a.x, self.b.y - self.a.y);
        let (px, py) = (place.x - self.a.x, place.y - self.a.y);
        (i128::from(dx) * i128::from(py)).cmp(&(i128::from(dy) * i128::from(px)))
    }

    fn x(&self) -> (i64, i64) {
        (self.a.x.min(self.b.x), self.a.x.max(self.b.x))
    }

    fn y(&self) -> (i64, i64) {
        (self.a.y.min(self.b.y), self.a.y.max(self.b.y))
    }

    /// The rectangle around it.
    fn bounding_box(&self) -> PlaneRectangle {
        let (x, y) = (self.x(), self.y());
        PlaneRectangle { x, y }
    }

    /// Whether the place is on the edge.
    fn holds(&self, place: Vertex) -> bool {
        let (x, y) = (self.x(), self.y());
        (x.0..=x.1).contains(&place.x)
            && (y.0..=y.1).contains(&place.y)
            && self.side(place) == Ordering::Equal
    }

    /// Whether two edges have a place in common.
    fn meets(&self, other: &Self) -> bool {
        if !self.bounding_box().overlaps(other.x(), other.y()) {
            return false;
        }
        // Boxes overlap: the edges meet if each has the other's ends not strictly on one side.
        let apart = |edge: &Self, other: &Self| {
            let (a, b) = (edge.side(other.a), edge.side(other.b));
            a != Ordering::Equal && a == b
        };
        !apart(self, other) && !apart(other, self)
    }

    /// Whether the edge has a place in common with a rectangle.
    fn touches(&self, rectangle: &PlaneRectangle) -> bool {
        if !rectangle.overlaps(self.x(), self.y()) {
            return false;
        }
        let ((west, east), (south, north)) = (rectangle.x, rectangle.y);
        let corner = |x, y| self.side(Vertex { x, y });
        let first = corner(west, south);
        let others = [corner(west, north), corner(east, south), corner(east, north)];
        first == Ordering::Equal || others.iter().any(|side| *side != first)
    }

    /// Where the edge, which isn't along a parallel, is at the latitude of which this is the double.
    fn longitude(&self, doubled: i64) -> f64 {
        let (dx, dy) = ((self.b.x - self.a.x) as f64, (self.b.y - self.a.y) as f64);
        self.a.x as f64 + dx * ((doubled - 2 * self.a.y) as f64 / (2.0 * dy))
    }

    /// Compares where two edges from south to north are at the latitude of which this is the double, exactly.
    fn compare_at(&self, other: &Self, doubled: i64) -> Ordering {
        // Twice the longitude times the edge's height.
        let scaled = |edge: &Self| {
            let (dx, dy) = (edge.b.x - edge.a.x, edge.b.y - edge.a.y);
            let x = 2 * i128::from(edge.a.x) * i128::from(dy)
                + i128::from(dx) * i128::from(doubled - 2 * edge.a.y);
            (x, i128::from(dy))
        };
        let ((one, height), (two, other_height)) = (scaled(self), scaled(other));
        (one * other_height).cmp(&(two * height))
    }
}

/// Whether two closed intervals overlap.
fn overlap(a: (i64, i64), b: (i64, i64)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

/// From the least to the greatest of the values.
fn span(values: impl Iterator<Item = i64> + Clone) -> RangeInclusive<i64> {
    values.clone().min().unwrap_or_default()..=values.max().unwrap_or_default()
}

/// The edges of a ring of vertices, in its order.
fn edges_of(vertices: &[GeoPoint]) -> Result<Vec<Edge>, GeoError> {
    let ring = unwrapped(vertices)?;
    let ends = ring.iter().copied().cycle().skip(1);
    let edges: Vec<Edge> = ring.iter().zip(ends).map(|(a, b)| Edge { a: *a, b }).collect();
    let on_one_line = edges
        .first()
        .is_none_or(|first| ring.iter().all(|vertex| first.side(*vertex) == Ordering::Equal));
    match on_one_line {
        true => Err(GeoError::NoArea),
        false => Ok(edges),
    }
}

/// The vertices in the plane, without repeated ones, each the short way from the one before; closed through a pole if they go around
/// it.
fn unwrapped(vertices: &[GeoPoint]) -> Result<Vec<Vertex>, GeoError> {
    let mut distinct: Vec<GeoPoint> = vertices.to_vec();
    distinct.dedup();
    while distinct.len() > 1 && distinct.first() == distinct.last() {
        distinct.pop();
    }
    if distinct.len() < 3 {
        return Err(GeoError::TooFewVertices {
            distinct: distinct.len(),
        });
    }
    let around: i64 = steps(&distinct).sum();
    if around != 0 {
        return around_a_pole(&distinct, around);
    }
    Ok(laid_out(&distinct))
}

/// How far each edge goes in longitude, the short way, eastward positive; the closing edge is the last.
fn steps(vertices: &[GeoPoint]) -> impl Iterator<Item = i64> + '_ {
    let next = vertices.iter().cycle().skip(1);
    vertices.iter().zip(next).map(|(from, to)| {
        let step = to.lon() - from.lon();
        if step > HALF_TURN {
            step - FULL_TURN
        } else if step < -HALF_TURN {
            step + FULL_TURN
        } else {
            step
        }
    })
}

/// The vertices in the plane, from the first on: each longitude continues the one before, beyond ±180° where it has to.
fn laid_out(vertices: &[GeoPoint]) -> Vec<Vertex> {
    let mut x = vertices.first().map_or(0, |first| first.lon());
    vertices
        .iter()
        .zip(steps(vertices))
        .map(|(vertex, step)| {
            let here = Vertex { x, y: vertex.lat() };
            x += step;
            here
        })
        .collect()
}

/// A ring that goes once around the globe, closed through the pole of its hemisphere.
fn around_a_pole(vertices: &[GeoPoint], around: i64) -> Result<Vec<Vertex>, GeoError> {
    let north = vertices.iter().all(|vertex| vertex.lat_e7 >= 0);
    let south = vertices.iter().all(|vertex| vertex.lat_e7 <= 0);
    if north == south || around.abs() != FULL_TURN {
        return Err(GeoError::AroundTheGlobe);
    }
    let pole = if north { QUARTER_TURN } else { -QUARTER_TURN };
    // Begun at the vertex nearest to the pole, no edge comes between it and the pole.
    let distances = vertices.iter().map(|vertex| (pole - vertex.lat()).abs());
    let nearest = distances.zip(0..).min().map_or(0, |(_, at)| at);
    let mut turned = vertices.to_vec();
    turned.rotate_left(nearest);
    let mut ring = laid_out(&turned);
    if let Some(first) = ring.first().copied() {
        let x = first.x + around;
        ring.push(Vertex { x, y: first.y });
        if first.y != pole {
            ring.extend([x, first.x].map(|x| Vertex { x, y: pole }));
        }
    }
    Ok(ring)
}

/// Directions along which edges can be swept: a place's distance along each.
const SWEEPS: [fn(Vertex) -> i64; 4] = [
    |place| place.x,
    |place| place.y,
    |place| place.x + place.y,
    |place| place.x - place.y,
];

/// The first two edges found that have a place in common beyond the vertex between neighbours, if there are any; `None` when it
/// was stopped.
///
/// Sweeps in the direction in which edges are shortest, so that long edges side by side aren't compared with each other.
fn meeting_edges(edges: &[Edge], stops: &mut dyn FnMut(usize) -> bool) -> Option<Option<(usize, usize)>> {
    let count = edges.len();
    let along = |edge: &Edge, direction: &fn(Vertex) -> i64| {
        let (a, b) = (direction(edge.a), direction(edge.b));
        (a.min(b), a.max(b))
    };
    let length = |direction: &&fn(Vertex) -> i64| -> i128 {
        let extents = edges.iter().map(|edge| along(edge, direction));
        extents.map(|(from, to)| i128::from(to - from)).sum()
    };
    let direction = SWEEPS.iter().min_by_key(length)?;
    let mut order: Vec<(i64, i64, usize)> = edges
        .iter()
        .enumerate()
        .map(|(at, edge)| {
            let (from, to) = along(edge, direction);
            (from, to, at)
        })
        .collect();
    order.sort_unstable();
    for (rank, (_, until, first)) in order.iter().enumerate() {
        let edge = edges.get(*first)?;
        let behind = order.get(rank + 1..)?;
        let beside = behind.partition_point(|(from, ..)| from <= until);
        if stops(beside) {
            return None;
        }
        for (.., second) in behind.get(..beside)?.iter().copied() {
            let other = edges.get(second)?;
            let meet = if (first + 1) % count == second {
                edge.holds(other.b) || other.holds(edge.a)
            } else if (second + 1) % count == *first {
                other.holds(edge.b) || edge.holds(other.a)
            } else {
                edge.meets(other)
            };
            if meet {
                return Some(Some((*first.min(&second), *first.max(&second))));
            }
        }
    }
    Some(None)
}
