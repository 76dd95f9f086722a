//! The grid of cells under which points are stored: squares in latitude and longitude, at four sizes.
//!
//! A cell of a level is the points whose coordinates share their leading bits, so a cell consists of whole cells of the
//! next level, and which cells a box touches is integer arithmetic. The numbers of cells run along the parallels: a
//! stretch of a row is a range of numbers, and of terms, whose order is that of the numbers. Near the poles cells are thin,
//! but a row around the globe is one range there too.

use std::ops::RangeInclusive;

use super::stretch::{Rectangle, Stretch};
use super::{FULL_TURN, GeoPoint, HALF_TURN, QUARTER_TURN};

/// Bits of a coordinate below a cell: sides of 1.68, 0.21, 0.026 and 0.0033 degrees, or 187, 23, 2.9 and 0.36 km of
/// latitude.
const BITS: [u32; 4] = [24, 21, 18, 15];
pub(crate) const LEVELS: usize = BITS.len();
/// Bits of a row's and of a column's number.
const PLACE_BITS: u32 = 18;
/// Rows that an area should at least touch at the level where a walk begins: its middle is then taken as a whole.
const ROWS_AT_LEAST: i64 = 4;
/// Cells that a walk may begin with: wide areas begin at a coarser level.
const CELLS_AT_MOST: i64 = 16_384;

/// One of the four sizes of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridLevel {
    nth: u64,
    bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridCell {
    pub(crate) level: GridLevel,
    pub(crate) row: i64,
    pub(crate) column: i64,
}

/// The numbers of the cells that hold a point, the largest cell first.
pub(crate) fn point_cells(point: GeoPoint) -> [u64; LEVELS] {
    let mut cells = [0; LEVELS];
    for (cell, level) in cells.iter_mut().zip(GridLevel::all()) {
        *cell = level.cell(point.lat(), point.lon()).number();
    }
    cells
}

impl GridLevel {
    /// All, the largest cells first.
    fn all() -> impl Iterator<Item = Self> {
        BITS.into_iter().zip(0..).map(|(bits, nth)| Self { nth, bits })
    }

    /// Where to begin with an area: cells that are small for it, but not many.
    pub(crate) fn beginning(latitudes: &RangeInclusive<i64>, width: i64) -> Self {
        let height = latitudes.end() - latitudes.start();
        let mut found = Self {
            nth: 0,
            bits: BITS[0],
        };
        for level in Self::all().skip(1) {
            let (rows, columns) = ((height >> level.bits) + 2, (width >> level.bits) + 2);
            if height >> found.bits >= ROWS_AT_LEAST || rows.saturating_mul(columns) > CELLS_AT_MOST {
                break;
            }
            found = level;
        }
        found
    }

    /// The level of the next smaller cells.
    pub(crate) fn finer(self) -> Option<Self> {
        Self::all().find(|level| level.nth == self.nth + 1)
    }

    /// The cell at these 1e-7 degrees.
    fn cell(self, latitude: i64, longitude: i64) -> GridCell {
        GridCell {
            level: self,
            row: (latitude + QUARTER_TURN) >> self.bits,
            column: (longitude + HALF_TURN) >> self.bits,
        }
    }

    /// The rows that touch some latitudes.
    pub(crate) fn rows(self, latitudes: &RangeInclusive<i64>) -> RangeInclusive<i64> {
        let row =
            |latitude: &i64| (latitude.clamp(&-QUARTER_TURN, &QUARTER_TURN) + QUARTER_TURN) >> self.bits;
        row(latitudes.start())..=row(latitudes.end())
    }

    /// The latitudes of a row, from south to north.
    pub(crate) fn latitudes(self, row: i64) -> (i64, i64) {
        let south = (row << self.bits) - QUARTER_TURN;
        (south, (south + (1 << self.bits) - 1).min(QUARTER_TURN))
    }

    /// The columns that touch a stretch: one range of them, or two where it crosses the antimeridian.
    pub(crate) fn columns(self, stretch: &Stretch) -> impl Iterator<Item = RangeInclusive<i64>> {
        let column = |longitude: i64| (longitude + HALF_TURN) >> self.bits;
        let last = column(HALF_TURN - 1);
        let (west, east) = (column(stretch.west), stretch.west + stretch.width);
        let (first, second) = if stretch.is_everything() {
            (0..=last, None)
        } else if east < HALF_TURN {
            (west..=column(east), None)
        } else if column(east - FULL_TURN) >= west {
            (0..=last, None)
        } else {
            (west..=last, Some(0..=column(east - FULL_TURN)))
        };
        std::iter::once(first).chain(second)
    }

    /// The numbers of the cells in a row from one column to another.
    pub(crate) fn numbers(self, row: i64, columns: &RangeInclusive<i64>) -> RangeInclusive<u64> {
        let number = |column: i64| {
            let level = self;
            GridCell { level, row, column }.number()
        };
        number(*columns.start())..=number(*columns.end())
    }

    /// The rows, or the columns, of this level inside of one of the next larger cells'.
    pub(crate) fn inside(self, larger: Self, place: i64) -> RangeInclusive<i64> {
        let bits = larger.bits.saturating_sub(self.bits);
        place << bits..=((place + 1) << bits) - 1
    }
}

impl GridCell {
    /// What the cell is stored as.
    pub(crate) fn number(self) -> u64 {
        let place = |at: i64| at as u64 & ((1 << PLACE_BITS) - 1);
        (self.level.nth << (2 * PLACE_BITS)) | (place(self.row) << PLACE_BITS) | place(self.column)
    }

    /// The column of a cell with this number.
    pub(crate) fn column(number: u64) -> i64 {
        (number & ((1 << PLACE_BITS) - 1)) as i64
    }

    /// The points that the cell can hold.
    pub(crate) fn rectangle(self) -> Rectangle {
        let (south, north) = self.level.latitudes(self.row);
        let west = (self.column << self.level.bits) - HALF_TURN;
        let east = (west + (1 << self.level.bits) - 1).min(HALF_TURN - 1);
        Rectangle {
            south,
            north,
            longitudes: Stretch {
                west,
                width: east - west,
            },
        }
    }
}

#[cfg(test)]
mod tests;
