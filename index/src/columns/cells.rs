//! The H3 cells of the points of a column, kept as searches find them out: that takes most of the time of counting points by cells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use h3o::{LatLng, Resolution};
use tantivy::DocId;

use crate::held::Held;
use crate::points::Points;

/// The number of no cell.
const UNKNOWN: u64 = 0;

/// The cells of one resolution that the points of a segment lie in.
pub(crate) struct Cells {
    points: Points,
    resolution: Resolution,
    /// By the row of the point; [`UNKNOWN`] until somebody asks.
    known: Box<[AtomicU64]>,
    _held: Held,
}

impl Cells {
    pub(super) fn new(points: Points, resolution: Resolution, held: &Arc<AtomicUsize>) -> Self {
        let known: Box<[_]> = (0..points.count()).map(|_| AtomicU64::new(UNKNOWN)).collect();
        Self {
            points,
            resolution,
            _held: Held::new(size_of_val(&*known), held),
            known,
        }
    }

    /// The cells of a document's points, which may repeat.
    pub(crate) fn of(&self, doc: DocId) -> impl Iterator<Item = u64> + '_ {
        self.points.rows(doc).filter_map(|row| self.at(row))
    }

    fn at(&self, row: u32) -> Option<u64> {
        let known = self.known.get(row as usize)?;
        match known.load(Ordering::Relaxed) {
            UNKNOWN => {
                let point = self.points.at(row)?;
                let place = LatLng::new(point.latitude(), point.longitude()).ok()?;
                let cell = u64::from(place.to_cell(self.resolution));
                known.store(cell, Ordering::Relaxed);
                Some(cell)
            }
            cell => Some(cell),
        }
    }
}
