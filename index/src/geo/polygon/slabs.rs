//! The edges of a polygon by latitude and, at each latitude, from west to east: which of them lie west of a place.
//!
//! Between two neighbouring latitudes of vertices no edge begins, ends or crosses another, so edges have an order there. A
//! segment tree over these slabs (J. L. Bentley, "Algorithms for Klee's rectangle problems", 1977) lists each edge at
//! O(log n) nodes whose latitudes it spans wholly, sorted at each; a place looks at O(log n) nodes, in O(log n) steps each,
//! whatever the polygon looks like.

use std::cmp::Ordering;

use super::{Edge, Vertex};

/// Longitudes at a latitude, as doubles, that tell two edges apart without exact arithmetic.
const CLEARLY_APART: f64 = 1e-3;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slabs {
    /// All vertices, by latitude and longitude.
    vertices: Vec<(i64, i64)>,
    /// Edges along a parallel: latitude, west, east; sorted.
    level: Vec<(i64, i64, i64)>,
    /// The different latitudes of vertices, ascending; slab n is from the nth to before the next.
    latitudes: Vec<i64>,
    /// Leaves of the tree: a power of two.
    leaves: usize,
    /// Where in `listed` the edges of each node begin; the root is node 1.
    begins: Vec<u32>,
    /// Edges from south to north.
    listed: Vec<Edge>,
}

impl Slabs {
    /// `None` when `stops`, which is told how many edges are sorted next, says so.
    pub(super) fn paced(edges: &[Edge], stops: &mut dyn FnMut(usize) -> bool) -> Option<Self> {
        let mut vertices: Vec<(i64, i64)> = edges.iter().map(|edge| (edge.a.y, edge.a.x)).collect();
        vertices.sort_unstable();
        let mut latitudes: Vec<i64> = vertices.iter().map(|vertex| vertex.0).collect();
        latitudes.dedup();
        let leaves = latitudes.len().next_power_of_two();
        let slab = |latitude: i64| latitudes.partition_point(|other| *other < latitude);
        let mut level = Vec::new();
        // Node, longitude at the middle of the node's latitudes, those latitudes' sum, edge.
        let mut placed: Vec<(usize, f64, i64, Edge)> = Vec::new();
        for edge in edges {
            let (a, b) = (edge.a, edge.b);
            let (low, high) = if a.y <= b.y { (a, b) } else { (b, a) };
            if low.y == high.y {
                let (west, east) = edge.x();
                level.push((low.y, west, east));
                continue;
            }
            let upwards = Edge { a: low, b: high };
            let (mut from, mut to, mut span) = (slab(low.y) + leaves, slab(high.y) + leaves, 1);
            while from < to {
                for node in [(from & 1 == 1).then_some(from), (to & 1 == 1).then_some(to - 1)] {
                    let Some(node) = node else { continue };
                    // The node's first slab, and the one behind its last.
                    let first = node * span - leaves;
                    let ends = latitudes.get(first).zip(latitudes.get(first + span));
                    let sum = ends.map_or(low.y + high.y, |(south, north)| south + north);
                    placed.push((node, upwards.longitude(sum), sum, upwards));
                }
                from = (from + (from & 1)) >> 1;
                to >>= 1;
                span <<= 1;
            }
        }
        level.sort_unstable();
        placed.sort_unstable_by_key(|(node, ..)| *node);
        for of_node in placed.chunk_by_mut(|one, other| one.0 == other.0) {
            if stops(of_node.len()) {
                return None;
            }
            of_node.sort_unstable_by(|one, other| {
                if (one.1 - other.1).abs() > CLEARLY_APART {
                    return one.1.total_cmp(&other.1);
                }
                one.3.compare_at(&other.3, one.2)
            });
        }
        let mut begins = vec![0; 2 * leaves + 1];
        for (node, ..) in &placed {
            if let Some(behind) = begins.get_mut(node + 1) {
                *behind += 1;
            }
        }
        let mut sum = 0;
        for begin in &mut begins {
            sum += *begin;
            *begin = sum;
        }
        Some(Self {
            vertices,
            level,
            latitudes,
            leaves,
            begins,
            listed: placed.into_iter().map(|(.., edge)| edge).collect(),
        })
    }

    /// Whether a place is on an edge, or inside: with an odd number of edges west of it.
    pub(super) fn hold(&self, place: Vertex) -> bool {
        if self.vertices.binary_search(&(place.y, place.x)).is_ok() || self.on_level_edge(place) {
            return true;
        }
        let behind = self.latitudes.partition_point(|latitude| *latitude <= place.y);
        let Some(slab) = behind.checked_sub(1) else {
            return false;
        };
        let mut west = 0;
        let mut node = slab + self.leaves;
        while node > 0 {
            let edges = self.edges(node);
            let before = edges.partition_point(|edge| edge.side(place) == Ordering::Less);
            let next = edges.get(before);
            if next.is_some_and(|edge| edge.side(place) == Ordering::Equal) {
                return true;
            }
            west += before;
            node >>= 1;
        }
        west % 2 == 1
    }

    fn edges(&self, node: usize) -> &[Edge] {
        let begin = |node: usize| self.begins.get(node).map_or(0, |begin| *begin as usize);
        self.listed.get(begin(node)..begin(node + 1)).unwrap_or_default()
    }

    /// Edges along one parallel don't overlap: the last that begins at or west of the place is the only one.
    fn on_level_edge(&self, place: Vertex) -> bool {
        let behind = self
            .level
            .partition_point(|(latitude, west, _)| (*latitude, *west) <= (place.y, place.x));
        let last = behind.checked_sub(1).and_then(|last| self.level.get(last));
        last.is_some_and(|(latitude, _, east)| *latitude == place.y && place.x <= *east)
    }
}
