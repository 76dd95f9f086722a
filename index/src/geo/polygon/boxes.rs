//! Boxes around runs of a polygon's edges: whether an edge touches a rectangle, without looking at each.

use super::{Edge, PlaneRectangle};

/// Edges in a box of the lowest level.
const EDGES_PER_BOX: usize = 4;
/// Boxes that one question looks at. Edges that are long, slanted and close together make it look at many in vain.
const LOOKS: usize = 512;

impl PlaneRectangle {
    const NOTHING: Self = Self {
        x: (i64::MAX, i64::MIN),
        y: (i64::MAX, i64::MIN),
    };

    /// The rectangle around both.
    fn with(self, other: Self) -> Self {
        Self {
            x: (self.x.0.min(other.x.0), self.x.1.max(other.x.1)),
            y: (self.y.0.min(other.y.0), self.y.1.max(other.y.1)),
        }
    }
}

/// A binary tree over the edges in the order of the ring, where neighbours lie near each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boxes {
    edges: Vec<Edge>,
    /// The root is at 1, the lowest level begins at `leaves`.
    bounds: Vec<PlaneRectangle>,
    leaves: usize,
}

impl Boxes {
    pub(super) fn new(edges: Vec<Edge>) -> Self {
        let leaves = edges.len().div_ceil(EDGES_PER_BOX).next_power_of_two();
        let around = |boxes: &[PlaneRectangle]| {
            let boxes = boxes.iter().copied();
            boxes.fold(PlaneRectangle::NOTHING, PlaneRectangle::with)
        };
        let of_edges: Vec<PlaneRectangle> = edges.iter().map(Edge::bounding_box).collect();
        let mut lowest: Vec<PlaneRectangle> = of_edges.chunks(EDGES_PER_BOX).map(around).collect();
        lowest.resize(leaves, PlaneRectangle::NOTHING);
        // Level by level from the lowest to the root, then turned around.
        let mut levels = vec![lowest];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            levels.push(last.chunks(2).map(around).collect());
        }
        let mut bounds = vec![PlaneRectangle::NOTHING];
        bounds.extend(levels.into_iter().rev().flatten());
        Self {
            edges,
            bounds,
            leaves,
        }
    }

    /// Whether an edge has a place in common with a rectangle, or finding that out would take long.
    pub(super) fn may_touch(&self, rectangle: &PlaneRectangle) -> bool {
        let mut open = vec![1];
        let mut looks = 0;
        while let Some(node) = open.pop() {
            let Some(bounds) = self.bounds.get(node) else {
                continue;
            };
            if !rectangle.overlaps(bounds.x, bounds.y) {
                continue;
            }
            looks += 1;
            if looks > LOOKS {
                return true;
            }
            if node < self.leaves {
                open.extend([2 * node, 2 * node + 1]);
                continue;
            }
            let first = (node - self.leaves) * EDGES_PER_BOX;
            let edges = self.edges.iter().skip(first).take(EDGES_PER_BOX);
            if edges.into_iter().any(|edge| edge.touches(rectangle)) {
                return true;
            }
        }
        false
    }
}
