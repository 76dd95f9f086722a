//! Which cells of the grid an area touches, as far as a segment has points there.
//!
//! The walk goes along the rows of the grid through the segment's dictionary, so cells without points cost nothing, at the
//! poles and over the sea alike. Cells at the area's boundary that hold many documents are walked again at the next finer
//! level; the rest's documents are compared with the area one by one.

use std::ops::RangeInclusive;

use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, InvertedIndexReader};

use crate::geo::{Cell, Level, Region, Relation};
use crate::run::Run;

const CELLS_PER_CHECK: usize = 1_024;

/// The cells of a segment that an area touches, as the lists of their documents.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// All their points are contained.
    pub(crate) inside: Vec<TermInfo>,
    /// Their points may be contained.
    pub(crate) boundary: Vec<TermInfo>,
}

impl Cells {
    /// How many documents there are in all these cells; one with several points may count several times.
    pub(crate) fn documents(&self) -> u64 {
        let lists = self.inside.iter().chain(&self.boundary);
        lists.map(|list| u64::from(list.doc_freq)).sum()
    }
}

/// A cell at the boundary.
struct Mixed {
    row: i64,
    column: i64,
    list: TermInfo,
}

struct Walk<'a, R> {
    index: &'a InvertedIndexReader,
    region: &'a R,
    run: &'a Run,
    coarse: u32,
    cells: Cells,
    /// At the level of now.
    mixed: Vec<Mixed>,
    walked: usize,
}

/// Walks over a segment's cells; `index` is that of the field of cells. Cells at the boundary with more documents than
/// `coarse` are walked again at the next finer level.
pub(crate) fn walk(
    index: &InvertedIndexReader,
    region: &impl Region,
    coarse: u32,
    run: &Run,
) -> tantivy::Result<Cells> {
    let mut walk = Walk {
        index,
        region,
        run,
        coarse,
        cells: Cells::default(),
        mixed: Vec::new(),
        walked: 0,
    };
    walk.all()?;
    Ok(walk.cells)
}

/// Gives the documents of a list to `take`, a block at a time.
pub(crate) fn each_block(
    index: &InvertedIndexReader,
    list: &TermInfo,
    postings: &mut Option<BlockSegmentPostings>,
    mut take: impl FnMut(&[DocId]),
) -> tantivy::Result<()> {
    let postings = match postings {
        Some(postings) => {
            index.reset_block_postings_from_terminfo(list, postings)?;
            postings
        }
        None => postings.insert(index.read_block_postings_from_terminfo(list, IndexRecordOption::Basic)?),
    };
    while !postings.docs().is_empty() {
        take(postings.docs());
        postings.advance();
    }
    Ok(())
}

impl<R: Region> Walk<'_, R> {
    fn all(&mut self) -> tantivy::Result<()> {
        let latitudes = self.region.latitudes();
        let mut level = Level::beginning(&latitudes, self.region.longitudes().width);
        for row in level.rows(&latitudes) {
            self.row(level, row, None)?;
        }
        while let Some(finer) = level.finer() {
            let mut open = Vec::new();
            for mixed in self.mixed.drain(..) {
                if mixed.list.doc_freq > self.coarse {
                    open.push((mixed.row, mixed.column));
                } else {
                    self.cells.boundary.push(mixed.list);
                }
            }
            for (row, columns) in neighbours(open) {
                let columns = *finer.inside(level, *columns.start()).start()
                    ..=*finer.inside(level, *columns.end()).end();
                for row in finer.inside(level, row) {
                    self.row(finer, row, Some(&columns))?;
                }
            }
            level = finer;
        }
        self.cells
            .boundary
            .extend(self.mixed.drain(..).map(|mixed| mixed.list));
        Ok(())
    }

    /// The cells of a row that the area touches, as far as they are among `within`.
    fn row(&mut self, level: Level, row: i64, within: Option<&RangeInclusive<i64>>) -> tantivy::Result<()> {
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
            let mut stream = self
                .index
                .terms()
                .range()
                .ge(numbers.start().to_be_bytes())
                .le(numbers.end().to_be_bytes())
                .into_stream()?;
            self.pace()?;
            while let Some((term, list)) = stream.next() {
                let Ok(number) = term.try_into().map(u64::from_be_bytes) else {
                    continue;
                };
                let column = Cell::column(number);
                let rectangle = Cell { level, row, column }.rectangle();
                match self.region.relation(&rectangle, &band) {
                    Relation::Outside => {}
                    Relation::Inside => self.cells.inside.push(list.clone()),
                    Relation::Mixed => self.mixed.push(Mixed {
                        row,
                        column,
                        list: list.clone(),
                    }),
                }
                self.walked += 1;
                if self.walked.is_multiple_of(CELLS_PER_CHECK) {
                    self.run.check_inside()?;
                }
            }
        }
        Ok(())
    }

    /// Before a stretch of a row.
    fn pace(&mut self) -> tantivy::Result<()> {
        self.walked += 1;
        if self.walked.is_multiple_of(CELLS_PER_CHECK) {
            self.run.check_inside()?;
        }
        Ok(())
    }
}

/// Cells beside each other in a row, as ranges of columns; the cells come row by row, each from west to east.
fn neighbours(cells: Vec<(i64, i64)>) -> Vec<(i64, RangeInclusive<i64>)> {
    let mut runs: Vec<(i64, RangeInclusive<i64>)> = Vec::new();
    for (row, column) in cells {
        match runs.last_mut() {
            Some((last, columns)) if *last == row && columns.end() + 1 == column => {
                *columns = *columns.start()..=column;
            }
            _ => runs.push((row, column..=column)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_beside_each_other_are_walked_together() {
        let cells = vec![(1, 3), (1, 4), (1, 6), (2, 7), (2, 8)];
        assert_eq!(neighbours(cells), [(1, 3..=4), (1, 6..=6), (2, 7..=8)]);
        assert!(neighbours(Vec::new()).is_empty());
    }
}
