//! The H3 cells of the points of a column, kept as searches find them out: that takes most of the time of counting points by cells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use h3o::{LatLng, Resolution};

use crate::geo::GeoPoint;
use crate::held_bytes::HeldBytes;
use crate::limits::MAX_KEPT_CELLS_BYTES;
use crate::points::Points;

/// The number of no cell.
const UNKNOWN: u64 = 0;

/// The cells of one resolution that the points of a segment lie in.
pub(crate) struct GeoCells {
    points: Points,
    resolution: Resolution,
    /// By the row of the point; [`UNKNOWN`] until somebody asks.
    known: Box<[AtomicU64]>,
    _held: HeldBytes,
}

impl GeoCells {
    /// `None` when more than [`MAX_KEPT_CELLS_BYTES`] would be held then.
    pub(super) fn new(points: Points, resolution: Resolution, of_all: &Arc<AtomicUsize>) -> Option<Self> {
        let count = points.count();
        let held = HeldBytes::new(count as usize * size_of::<AtomicU64>(), of_all);
        if of_all.load(Ordering::Relaxed) > MAX_KEPT_CELLS_BYTES {
            return None;
        }
        Some(Self {
            points,
            resolution,
            known: (0..count).map(|_| AtomicU64::new(UNKNOWN)).collect(),
            _held: held,
        })
    }

    /// The cell of the point of a row.
    pub(crate) fn at(&self, row: u32) -> Option<u64> {
        let known = self.known.get(row as usize)?;
        match known.load(Ordering::Relaxed) {
            UNKNOWN => {
                let cell = cell(self.points.at(row)?, self.resolution)?;
                known.store(cell, Ordering::Relaxed);
                Some(cell)
            }
            cell => Some(cell),
        }
    }
}

/// The number of the cell that a point lies in.
pub(crate) fn cell(point: GeoPoint, resolution: Resolution) -> Option<u64> {
    let place = LatLng::new(point.latitude(), point.longitude()).ok()?;
    Some(place.to_cell(resolution).into())
}
