//! The edges of a polygon by latitude, so that a point is compared with few of them.

use std::ops::RangeInclusive;

use super::Edge;

/// Strips of latitudes at most.
const MAX_STRIPS: usize = 1024;
/// Times that an edge is listed on average, at most: bounds the memory where all edges are long.
const MAX_LISTINGS_PER_EDGE: usize = 8;

/// Strips of equal height, each with the edges that touch it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strips {
    edges: Vec<Edge>,
    south: i64,
    height: i64,
    /// Where in `listed` the edges of each strip begin; one more than there are strips.
    begins: Vec<usize>,
    listed: Vec<u32>,
}

impl Strips {
    pub(super) fn new(edges: Vec<Edge>, latitudes: &RangeInclusive<i64>) -> Self {
        let south = *latitudes.start();
        let span = latitudes.end() - south + 1;
        let mut count = edges.len().clamp(1, MAX_STRIPS);
        loop {
            let height = span / count as i64 + 1;
            let strips_of = |edge: &Edge| {
                let (low, high) = edge.y();
                ((low - south) / height) as usize..=((high - south) / height) as usize
            };
            let listings: usize = edges.iter().map(|edge| strips_of(edge).count()).sum();
            if count > 1 && listings > edges.len() * MAX_LISTINGS_PER_EDGE {
                count /= 2;
                continue;
            }
            let mut by_strip: Vec<Vec<u32>> = vec![Vec::new(); count];
            for (at, edge) in edges.iter().enumerate() {
                for strip in by_strip
                    .iter_mut()
                    .take(strips_of(edge).end() + 1)
                    .skip(*strips_of(edge).start())
                {
                    strip.push(at as u32);
                }
            }
            let mut begins = vec![0];
            let mut listed = Vec::with_capacity(listings);
            for strip in by_strip {
                listed.extend(strip);
                begins.push(listed.len());
            }
            return Self {
                edges,
                south,
                height,
                begins,
                listed,
            };
        }
    }

    /// The edges that may have a place between two latitudes; with one latitude, none of them twice.
    pub(super) fn between(&self, low: i64, high: i64) -> impl Iterator<Item = &Edge> + '_ {
        let last = self.begins.len().saturating_sub(2);
        let strip = |latitude: i64| (((latitude - self.south).max(0) / self.height) as usize).min(last);
        let from = self.begins.get(strip(low)).copied().unwrap_or_default();
        let to = self.begins.get(strip(high) + 1).copied().unwrap_or_default();
        self.listed
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .filter_map(|at| self.edges.get(*at as usize))
    }
}
