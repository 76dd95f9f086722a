//! The cells of the grid that an area touches and in which a segment has points.
//!
//! Scans the segment's dictionary of cells along the rows of the grid, so that cells without points cost nothing, at the
//! poles and over the sea alike. Cells at the area's boundary that hold many documents are split into those of the next
//! finer level; the documents of the others are compared with the area one by one.

use std::ops::RangeInclusive;

use tantivy::postings::TermInfo;
use tantivy::{InvertedIndexReader, Result};

use crate::geo::{GridCell, GridLevel, RectangleRelation, Region};
use crate::pace::Pace;
use crate::run::Run;

/// Cells and dictionary ranges between two looks at the deadline.
const STEPS_PER_CHECK: u32 = 1_024;

/// The posting lists of the cells of a segment that an area touches.
#[derive(Debug, Default)]
pub(crate) struct TouchedCells {
    /// Of cells that lie in the area: all their points match.
    pub(crate) inside: Vec<TermInfo>,
    /// Of cells that may lie in it partly: each of their points has to be compared.
    pub(crate) boundary: Vec<TermInfo>,
}

impl TouchedCells {
    /// How many documents there are in all these cells; one with several points may count several times.
    pub(crate) fn documents(&self) -> u64 {
        self.lists().map(|list| u64::from(list.doc_freq)).sum()
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = &TermInfo> {
        self.inside.iter().chain(&self.boundary)
    }
}

struct CellWalk<'a> {
    index: &'a InvertedIndexReader,
    region: &'a dyn Region,
    pace: Pace<&'a Run>,
    max_boundary_docs: u32,
    cells: TouchedCells,
    /// Boundary cells of the present level by row and column, which aren't among `cells` yet.
    boundary: Vec<(i64, i64, TermInfo)>,
}

/// Finds the cells of a segment that `region` touches. `index` is the inverted index of the field of cells. Boundary cells
/// with more documents than `max_boundary_docs` are split, down to the finest level.
pub(crate) fn walk(
    index: &InvertedIndexReader,
    region: &dyn Region,
    max_boundary_docs: u32,
    run: &Run,
) -> Result<TouchedCells> {
    let mut walk = CellWalk {
        index,
        region,
        pace: Pace::new(run, STEPS_PER_CHECK),
        max_boundary_docs,
        cells: TouchedCells::default(),
        boundary: Vec::new(),
    };
    walk.walk_levels()?;
    Ok(walk.cells)
}

impl CellWalk<'_> {
    fn walk_levels(&mut self) -> Result<()> {
        let latitudes = self.region.latitudes();
        let mut level = GridLevel::beginning(&latitudes, self.region.longitudes().width);
        for row in level.rows(&latitudes) {
            self.walk_row(level, row, None)?;
        }
        while let Some(finer) = level.finer() {
            let mut split = Vec::new();
            for (row, column, list) in self.boundary.drain(..) {
                if list.doc_freq > self.max_boundary_docs {
                    split.push((row, column));
                } else {
                    self.cells.boundary.push(list);
                }
            }
            for (row, columns) in merge_adjacent(split) {
                let columns = *finer.inside(level, *columns.start()).start()
                    ..=*finer.inside(level, *columns.end()).end();
                for row in finer.inside(level, row) {
                    self.walk_row(finer, row, Some(&columns))?;
                }
            }
            level = finer;
        }
        let coarse = self.boundary.drain(..);
        self.cells.boundary.extend(coarse.map(|(.., list)| list));
        Ok(())
    }

    /// Adds the cells of a row that the area touches, of the columns `within` if they are given.
    fn walk_row(&mut self, level: GridLevel, row: i64, within: Option<&RangeInclusive<i64>>) -> Result<()> {
        let (south, north) = level.latitudes(row);
        let band = self.region.band(south, north);
        let Some(touched) = &band.touched else {
            return Ok(());
        };
        for columns in level.columns(touched) {
            let columns = match within {
                None => columns,
                Some(within) => *columns.start().max(within.start())..=*columns.end().min(within.end()),
            };
            if columns.is_empty() {
                continue;
            }
            let numbers = level.numbers(row, &columns);
            let (from, to) = (numbers.start().to_be_bytes(), numbers.end().to_be_bytes());
            let mut stream = self.index.terms().range().ge(from).le(to).into_stream()?;
            self.pace.step(1)?;
            while let Some((term, list)) = stream.next() {
                let Ok(number) = term.try_into().map(u64::from_be_bytes) else {
                    continue;
                };
                let column = GridCell::column(number);
                let rectangle = GridCell { level, row, column }.rectangle();
                match self.region.relation(&rectangle, &band) {
                    RectangleRelation::Outside => {}
                    RectangleRelation::Inside => self.cells.inside.push(list.clone()),
                    RectangleRelation::Mixed => self.boundary.push((row, column, list.clone())),
                }
                self.pace.step(1)?;
            }
        }
        Ok(())
    }
}

/// Merges adjacent cells of a row into ranges of columns; the cells come row by row, each from west to east.
fn merge_adjacent(cells: Vec<(i64, i64)>) -> Vec<(i64, RangeInclusive<i64>)> {
    let mut ranges: Vec<(i64, RangeInclusive<i64>)> = Vec::new();
    for (row, column) in cells {
        match ranges.last_mut() {
            Some((last_row, columns)) if *last_row == row && columns.end() + 1 == column => {
                *columns = *columns.start()..=column;
            }
            _ => ranges.push((row, column..=column)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_cells_of_a_row_are_merged() {
        let cells = vec![(1, 3), (1, 4), (1, 6), (2, 7), (2, 8)];
        assert_eq!(merge_adjacent(cells), [(1, 3..=4), (1, 6..=6), (2, 7..=8)]);
        assert!(merge_adjacent(Vec::new()).is_empty());
    }
}
