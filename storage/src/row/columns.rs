//! The columns of a row: a sorted vector, for rows are read far more often than they are changed.

use smallvec::{SmallVec, smallvec};
use smol_str::SmolStr;

use crate::row::Cell;
use crate::value::Value;

/// The name of a column. One of up to 23 bytes needs no allocation.
pub type ColumnName = SmolStr;

/// Columns in the order of their names, each once and with at least one cell, the newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns(Vec<Column>);

/// What the allocation of a long text or of bytes takes beside them.
const ALLOCATION_BYTES: usize = 16;

/// One column. A name of up to 23 bytes and a single cell, as nearly all have, need no allocation of their own.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    name: ColumnName,
    cells: Cells,
}

/// The cells of one column.
pub(crate) type Cells = SmallVec<[Cell; 1]>;

impl Columns {
    /// No columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// No columns, with room for so many.
    pub(crate) fn with_capacity(columns: usize) -> Self {
        Self(Vec::with_capacity(columns))
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// About the memory that they take, but for texts and bytes that aren't in place.
    pub(crate) fn memory_bytes(&self) -> usize {
        let spilled = self.0.iter().filter(|column| column.cells.spilled());
        let cells: usize = spilled.map(|column| column.cells.capacity()).sum();
        self.0.capacity() * (size_of::<Column>() + ALLOCATION_BYTES) + cells * size_of::<Cell>()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cells of a column, the newest first; empty when there is no such column.
    pub fn get(&self, name: &str) -> &[Cell] {
        self.place(name).map_or(&[], |place| self.at(place))
    }

    /// The place of a column in the order of their names, looked for at `near` and its neighbours first: rows of a table mostly have
    /// a column at the same place.
    pub fn find(&self, name: &str, near: usize) -> Option<usize> {
        let is_here = |place: &usize| self.name(*place).is_some_and(|here| here == name);
        [near, near.wrapping_sub(1), near.saturating_add(1)]
            .into_iter()
            .find(is_here)
            .or_else(|| self.place(name).ok())
    }

    /// The cells of the column at a place, the newest first; empty when there is none.
    pub fn at(&self, place: usize) -> &[Cell] {
        self.0.get(place).map_or(&[], |column| &column.cells)
    }

    /// Each column with its cells.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &[Cell])> + ExactSizeIterator {
        self.0
            .iter()
            .map(|column| (column.name.as_str(), column.cells.as_slice()))
    }

    /// Each column with its newest value.
    pub fn newest(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.iter()
            .filter_map(|(name, cells)| Some((name, &cells.first()?.value)))
    }

    /// Puts a cell in its place; a cell of the same version is replaced.
    pub(crate) fn put(&mut self, name: &str, cell: Cell) {
        match self.place(name) {
            Ok(at) => {
                let Some(Column { cells, .. }) = self.0.get_mut(at) else {
                    return;
                };
                let index = cells.partition_point(|each| each.version > cell.version);
                match cells.get_mut(index) {
                    Some(same) if same.version == cell.version => *same = cell,
                    Some(_) | None => cells.insert(index, cell),
                }
            }
            Err(at) => self.0.insert(
                at,
                Column {
                    name: name.into(),
                    cells: smallvec![cell],
                },
            ),
        }
    }

    /// Appends a column behind all others; the caller vouches for the order and for at least one cell.
    #[inline]
    pub(crate) fn push(&mut self, name: ColumnName, cells: Cells) {
        self.0.push(Column { name, cells });
    }

    /// The name of the column at a place.
    #[inline]
    pub(crate) fn name(&self, place: usize) -> Option<&ColumnName> {
        self.0.get(place).map(|column| &column.name)
    }

    /// Removes a column.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Ok(at) = self.place(name) {
            self.0.remove(at);
        }
    }

    /// Keeps the cells for which `keep` is true. It is given the column, the place of the cell, 0 for the newest, and the cell.
    /// A column that loses all its cells is removed.
    pub(crate) fn retain_cells(&mut self, mut keep: impl FnMut(&str, usize, &Cell) -> bool) {
        self.0.retain_mut(|Column { name, cells }| {
            let mut place = 0;
            cells.retain(|cell| {
                let kept = keep(name, place, cell);
                place += 1;
                kept
            });
            !cells.is_empty()
        });
    }

    /// The place of a column, else the one where it would be inserted.
    fn place(&self, name: &str) -> Result<usize, usize> {
        // Most columns are put in the order of their names.
        match self.0.last() {
            Some(last) if last.name.as_str() < name => Err(self.0.len()),
            Some(_) | None => self.0.binary_search_by(|each| each.name.as_str().cmp(name)),
        }
    }
}

/// Columns of one cell each.
impl<Name: Into<ColumnName>> FromIterator<(Name, Cell)> for Columns {
    fn from_iter<I: IntoIterator<Item = (Name, Cell)>>(columns: I) -> Self {
        let columns = columns.into_iter();
        let mut all = Self::with_capacity(columns.size_hint().0);
        for (name, cell) in columns {
            all.push(name.into(), smallvec![cell]);
        }
        let names = |one: &Column, other: &Column| one.name.as_str().cmp(other.name.as_str());
        all.0.sort_by(names);
        if all.0.is_sorted_by(|one, other| names(one, other).is_lt()) {
            return all;
        }
        // A column is there more than once.
        let mut distinct = Self::with_capacity(all.len());
        for Column { name, cells } in all.0 {
            for cell in cells {
                distinct.put(&name, cell);
            }
        }
        distinct
    }
}
