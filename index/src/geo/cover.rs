//! Which H3 cells an area touches: those whose points all lie inside, and those whose points have to be compared.
//!
//! Every point is stored under its cell at each of [`CELL_RESOLUTIONS`]. The coarser cells are the H3 parents of the finest,
//! so a cell's points are exactly those of its children, though the children stick out of the parent's hexagon: around a
//! cell's centre, [`reach`] bounds where the points of all its descendants lie.

use h3o::{CellIndex, LatLng, Resolution};

use super::patch::{Patch, Relation};
use super::{Area, GeoPoint};

/// The H3 resolutions under which points are stored: edges of about 9.9 km, 1.4 km and 0.2 km.
pub const CELL_RESOLUTIONS: [Resolution; 3] = [Resolution::Five, Resolution::Seven, Resolution::Nine];

/// Cells of a cover, at most. Above, comparing every point is better than looking so many up.
const MAX_CELLS: usize = 4096;
/// Mixed cells up to which the next finer resolution is worth looking at.
const REFINE_UP_TO: usize = 16;
/// Metres from the centre of a cell of resolution 0 to the farthest point of its descendants, at most; at each finer
/// resolution less by the square root of 7. Measured: see the test `every_point_is_within_reach_of_its_cells`.
const REACH_AT_ZERO: f64 = 1_600_000.0;

/// The cells that an area touches. No cell is in both lists, and none lies in another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// All points of these cells are inside the area.
    pub accepted: Vec<u64>,
    /// Points of these cells may be inside.
    pub to_verify: Vec<u64>,
}

/// The cells that a point is stored under, in the order of [`CELL_RESOLUTIONS`].
#[must_use]
pub fn point_cells(point: GeoPoint) -> [u64; 3] {
    // Coordinates of a point are finite, which is all that is asked for.
    let finest =
        LatLng::new(point.latitude(), point.longitude()).map(|point| point.to_cell(Resolution::Nine));
    CELL_RESOLUTIONS.map(|resolution| {
        finest
            .as_ref()
            .ok()
            .and_then(|cell| cell.parent(resolution))
            .map_or(0, u64::from)
    })
}

/// Metres from the centre of a cell to the farthest point of its descendants, at most.
fn reach(resolution: Resolution) -> f64 {
    REACH_AT_ZERO / 7f64.sqrt().powi(i32::from(u8::from(resolution)))
}

fn patch(cell: CellIndex) -> Patch {
    let center = LatLng::from(cell);
    Patch {
        center: (center.lat(), center.lng()),
        radius: reach(cell.resolution()),
    }
}

/// The cells to look up for an area; `None` when they would be too many.
pub(super) fn cover(area: &Area) -> Option<Cover> {
    let mut inside: Vec<CellIndex> = Vec::new();
    let mut mixed: Vec<CellIndex> = Vec::new();
    sort_out(area, CellIndex::base_cells(), &mut inside, &mut mixed);
    let mut resolution = Resolution::Zero;
    loop {
        let stored = CELL_RESOLUTIONS.contains(&resolution);
        if stored && (mixed.len() > REFINE_UP_TO || resolution == Resolution::Nine) {
            break;
        }
        let Some(finer) = resolution.succ() else { break };
        if mixed.len() > MAX_CELLS {
            return None;
        }
        let parents = std::mem::take(&mut mixed);
        sort_out(
            area,
            parents.into_iter().flat_map(|cell| cell.children(finer)),
            &mut inside,
            &mut mixed,
        );
        resolution = finer;
    }
    let mut accepted = Vec::new();
    for cell in inside {
        // Cells of a resolution that isn't stored are looked up as their children of the next one that is.
        let at = CELL_RESOLUTIONS
            .into_iter()
            .find(|stored| *stored >= cell.resolution())?;
        if accepted.len() as u64 + cell.children_count(at) > MAX_CELLS as u64 {
            return None;
        }
        accepted.extend(cell.children(at).map(u64::from));
    }
    if accepted.len() + mixed.len() > MAX_CELLS {
        return None;
    }
    Some(Cover {
        accepted,
        to_verify: mixed.into_iter().map(u64::from).collect(),
    })
}

fn sort_out(
    area: &Area,
    cells: impl Iterator<Item = CellIndex>,
    inside: &mut Vec<CellIndex>,
    mixed: &mut Vec<CellIndex>,
) {
    for cell in cells {
        match area.relation(&patch(cell)) {
            Relation::Inside => inside.push(cell),
            Relation::Mixed => mixed.push(cell),
            Relation::Outside => {}
        }
    }
}

#[cfg(test)]
mod tests;
