//! Projection: the part of a stored row that a read returns.

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::catalog::Table;
use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::filter::Filter;
use crate::limits::MAX_READ_BYTES;
use crate::metering::Meter;
use crate::read::{ColumnPage, ReadOptions, TimeRange};
use crate::row::borrowed::{ColumnRef, RowRef, Take, Wanted};
use crate::row::{ColumnSelection, Row, codec};
use crate::value::PrimaryKey;

/// The validated [`ReadOptions`] of a read, for the rows of one table at one moment.
#[derive(Debug)]
pub(crate) struct Projection<'a> {
    /// The selected columns, sorted; `None`: all.
    names: Option<Vec<&'a str>>,
    time: Option<TimeRange>,
    filter: Option<&'a Filter>,
    /// The columns the filter looks at, sorted.
    filtered: Vec<&'a str>,
    /// The first column of the window, and the one behind its last.
    start: Option<&'a str>,
    end: Option<&'a str>,
    page: Option<ColumnPage>,
    /// Whether a row is returned although it has none of the selected cells.
    keeps_empty: bool,
    /// Most bytes of columns that are returned of one row.
    max_bytes: usize,
    /// Most versions that are returned of each column.
    max_versions: usize,
    expiry: Expiry,
    meter: Meter,
}

/// The outcome of a [`Projection`] of one row.
#[derive(Debug, Default)]
pub(crate) struct Projected {
    /// The row, unless it has expired, has none of the columns, or the filter refuses it.
    pub(crate) row: Option<Row>,
    /// The first column of the window that wasn't returned.
    pub(crate) next_column: Option<String>,
    /// What was read, passed by the filter or not, in the bytes of [`crate::metering`].
    pub(crate) bytes: usize,
}

impl<'a> Projection<'a> {
    /// A projection of the table's rows as they are visible at `now`, nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// As [`ReadOptions::check`].
    pub(crate) fn new(table: &Table, options: &'a ReadOptions, now: i64) -> Result<Self> {
        options.check()?;
        let schema = table.schema();
        let names = match &options.columns {
            ColumnSelection::All => None,
            ColumnSelection::Named(names) => {
                let mut names: Vec<_> = names.iter().map(String::as_str).collect();
                names.sort_unstable();
                names.dedup();
                Some(names)
            }
        };
        let keeps_empty = match &names {
            None => options.versions.time.is_none(),
            Some(names) => names.iter().any(|name| schema.key_position(name).is_some()),
        };
        let max_versions = options.versions.max_versions.unwrap_or(schema.max_versions);
        Ok(Self {
            names,
            time: options.versions.time,
            filter: options.filter.as_ref(),
            filtered: options.filter.as_ref().map_or_else(Vec::new, Filter::columns),
            start: options.start_column.as_deref(),
            end: options.end_column.as_deref(),
            page: options.column_page,
            keeps_empty,
            max_bytes: usize::MAX,
            max_versions: usize::try_from(max_versions).unwrap_or(usize::MAX),
            expiry: Expiry::new(table, now),
            meter: Meter::of(&schema),
        })
    }

    /// Returns of each row at most [`MAX_READ_BYTES`], but at least one column.
    pub(crate) fn bounded(mut self) -> Self {
        self.max_bytes = MAX_READ_BYTES;
        self
    }

    /// Whether it returns every stored row, if perhaps only a part of it.
    pub(crate) fn takes_all(&self) -> bool {
        self.keeps_empty && self.filter.is_none() && self.expiry.expired_version().is_none()
    }

    /// Whether it returns all that is visible of every stored row.
    fn takes_whole(&self) -> bool {
        self.takes_all()
            && self.names.is_none()
            && (self.start, self.end, self.page) == (None, None, None)
            && self.max_versions >= self.expiry.max_versions()
    }

    /// Projects a row that may not be there: `value` is what is stored.
    ///
    /// # Errors
    /// As [`Self::row_after`].
    pub(crate) fn stored(&self, key: &PrimaryKey, value: Option<&Bytes>) -> Result<Projected> {
        value.map_or_else(|| Ok(Projected::default()), |value| self.row(key.clone(), value))
    }

    /// Projects a stored row.
    ///
    /// # Errors
    /// As [`Self::row_after`].
    pub(crate) fn row(&self, key: PrimaryKey, value: &[u8]) -> Result<Projected> {
        self.row_after(None, key, value)
    }

    /// [`Self::row`], which takes less time with another row of the table: it mostly has the same column names.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when `value` isn't a row.
    pub(crate) fn row_after(&self, other: Option<&Row>, key: PrimaryKey, value: &[u8]) -> Result<Projected> {
        let key = if self.takes_whole() && value.len() <= self.max_bytes {
            let mut row = codec::decode_after(other, key, value, &ColumnSelection::All)?;
            self.expiry.drop_surplus(&mut row);
            let bytes = self.meter.row(&row);
            if bytes <= self.max_bytes {
                return Ok(Projected {
                    row: Some(row),
                    next_column: None,
                    bytes,
                });
            }
            row.key
        } else {
            key
        };
        let found = RowRef::decode(value, self)
            .map_err(|Malformed(expected)| Error::corrupt(format!("row {key:?}: expected {expected}")))?;
        Ok(self.project(key, &found))
    }

    fn project(&self, key: PrimaryKey, found: &RowRef<'_>) -> Projected {
        if !found.present && !self.expiry.is_visible(found.newest) {
            return Projected::default();
        }
        let mut bytes = self.meter.key(&key);
        if !found.present && !self.keeps_empty {
            return Projected {
                bytes,
                ..Projected::default()
            };
        }
        let window = self.window(found.columns());
        let offset = self.page.map_or(0, |page| page.offset.min(window.len()));
        let (skipped, rest) = window.split_at_checked(offset).unwrap_or((window, &[]));
        let size = |column: &ColumnRef<'_>| {
            let (values, cells) = found.measure(column);
            cells * self.meter.cell(column.name, 0) + values
        };
        let limit = self.page.map_or(usize::MAX, |page| page.limit);
        bytes += skipped.iter().map(size).sum::<usize>();
        let (mut count, mut returned_bytes) = (0, 0);
        for column in rest.iter().take(limit) {
            let size = size(column);
            if count > 0 && returned_bytes + size > self.max_bytes {
                break;
            }
            returned_bytes += size;
            count += 1;
        }
        bytes += returned_bytes;
        if !self.filter.is_none_or(|filter| filter.passes(Some(found))) {
            return Projected {
                bytes,
                ..Projected::default()
            };
        }
        Projected {
            row: Some(found.to_row(key, rest.iter().take(count))),
            next_column: rest.get(count).map(|column| column.name.to_owned()),
            bytes,
        }
    }

    /// The columns from the start to the end of the window.
    fn window<'c, 'r>(&self, columns: &'c [ColumnRef<'r>]) -> &'c [ColumnRef<'r>] {
        let first = columns.partition_point(|column| self.start.is_some_and(|start| column.name < start));
        let end = columns.partition_point(|column| self.end.is_none_or(|end| column.name < end));
        columns.get(first..end).unwrap_or_default()
    }

    fn selects(&self, name: &str) -> bool {
        let among = |names: &Vec<&str>| names.binary_search(&name).is_ok();
        self.names.as_ref().is_none_or(among)
    }

    fn filters(&self, name: &str) -> bool {
        self.filtered.binary_search(&name).is_ok()
    }
}

impl Wanted for Projection<'_> {
    fn column(&self, name: &str, present: bool) -> Option<Take> {
        let behind = self.end.is_some_and(|end| name >= end);
        let filter_is_done = self.filtered.last().is_none_or(|last| *last < name);
        // Until a cell was found, any further one tells whether the row is visible.
        if behind && filter_is_done && present {
            return None;
        }
        if !self.selects(name) {
            return Some(Take::Nothing);
        }
        let before = self.start.is_some_and(|start| name < start);
        Some(if (before || behind) && !self.filters(name) {
            Take::Presence
        } else {
            Take::Cells
        })
    }

    fn cells(&self) -> usize {
        self.max_versions
    }

    fn version(&self, place: usize, version: i64) -> bool {
        place < self.expiry.max_versions()
            && self.expiry.is_visible(version)
            && self.time.is_none_or(|time| time.contains(version))
    }
}
