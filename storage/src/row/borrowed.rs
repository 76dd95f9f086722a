//! A stored row where it lies: only the cells a read is about, none of them copied.

#[cfg(test)]
mod tests;

use crate::clock::milliseconds;
use crate::codec::{Malformed, Reader};
use crate::row::codec::FORMAT;
use crate::row::{Cell, Columns, Row};
use crate::value::{PrimaryKey, ValueRef};

/// What is done with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Its cells.
    Cells,
    /// Only whether it has one.
    Presence,
    /// Nothing.
    Nothing,
}

/// What a read is about.
pub(crate) trait Wanted {
    /// What is done with a column; they come in the order of their names. `None`: neither this nor any behind it
    /// matters, and no more of the row is read. `present`: a cell was found.
    fn column(&self, name: &str, present: bool) -> Option<Take>;

    /// Most cells of a column.
    fn cells(&self) -> usize;

    /// Whether it is about a version, the `place`-th newest of its column, from 0.
    fn version(&self, place: usize, version: i64) -> bool;
}

/// The wanted cells of a row.
#[derive(Debug)]
pub(crate) struct RowRef<'a> {
    revision: u64,
    written: i64,
    columns: Vec<ColumnRef<'a>>,
    cells: Vec<CellRef<'a>>,
    /// Whether a wanted column has a wanted cell.
    pub(crate) present: bool,
    /// The newest version (milliseconds) of those that were read, wanted or not; without cells, the time of the write.
    pub(crate) newest: i64,
}

/// A column, and where its cells end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnRef<'a> {
    pub(crate) name: &'a str,
    first: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy)]
struct CellRef<'a> {
    version: i64,
    value: ValueRef<'a>,
}

impl<'a> RowRef<'a> {
    /// Reads a value of the rows space.
    pub(crate) fn decode(bytes: &'a [u8], wanted: &impl Wanted) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a row of format 1"));
        }
        let revision = reader.u64()?;
        let written = reader.i64()?;
        let base = milliseconds(written);
        let count = reader.count()?;
        let mut row = Self {
            revision,
            written,
            columns: Vec::new(),
            cells: Vec::new(),
            present: false,
            newest: i64::MIN,
        };
        let most = wanted.cells();
        for _ in 0..count {
            let name = reader.str()?;
            let versions = reader.count()?;
            let Some(take) = wanted.column(name, row.present) else {
                return Ok(row);
            };
            let first = row.cells.len();
            for place in 0..versions {
                let version = reader.zigzag()?.wrapping_add(base);
                row.newest = row.newest.max(version);
                let taken = row.cells.len() - first;
                if take == Take::Nothing || taken == most || !wanted.version(place, version) {
                    reader.skip_value()?;
                    continue;
                }
                row.present = true;
                if take == Take::Cells {
                    let value = reader.value_ref()?;
                    row.cells.push(CellRef { version, value });
                } else {
                    reader.skip_value()?;
                }
            }
            let end = row.cells.len();
            if end > first {
                row.columns.push(ColumnRef { name, first, end });
            }
        }
        reader.finish()?;
        if count == 0 {
            row.newest = base;
        }
        Ok(row)
    }

    /// The columns whose cells were taken.
    pub(crate) fn columns(&self) -> &[ColumnRef<'a>] {
        &self.columns
    }

    /// Bytes of the values of a column, and how many cells it has.
    pub(crate) fn measure(&self, column: &ColumnRef<'_>) -> (usize, usize) {
        let cells = self.cells_of(column);
        (cells.iter().map(|cell| cell.value.size()).sum(), cells.len())
    }

    /// The row, with copies of these of its columns.
    pub(crate) fn to_row<'c>(
        &self,
        key: PrimaryKey,
        columns: impl ExactSizeIterator<Item = &'c ColumnRef<'a>>,
    ) -> Row
    where
        'a: 'c,
    {
        let mut copied = Columns::with_capacity(columns.len());
        for column in columns {
            let cells = self.cells_of(column).iter().map(|cell| Cell {
                value: cell.value.to_value(),
                version: cell.version,
            });
            copied.push(column.name.into(), cells.collect());
        }
        Row::new(key, self.revision, self.written, copied)
    }

    /// The taken values of a column, the newest first.
    pub(crate) fn values<'b>(&'b self, column: &str) -> impl Iterator<Item = ValueRef<'b>> {
        let place = self.columns.binary_search_by(|each| each.name.cmp(column));
        let column = place.ok().and_then(|place| self.columns.get(place));
        let cells = column.map_or(&[][..], |column| self.cells_of(column));
        cells.iter().map(|cell| cell.value)
    }

    fn cells_of(&self, column: &ColumnRef<'_>) -> &[CellRef<'a>] {
        self.cells.get(column.first..column.end).unwrap_or_default()
    }
}
