//! What of a stored row a read gives back.

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::catalog::Table;
use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::filter::Filter;
use crate::metering::Meter;
use crate::read::{ColumnPage, ReadOptions, TimeRange};
use crate::row::borrowed::{ColumnRef, RowRef, Take, Wanted};
use crate::row::{ColumnSelection, Row, cells_in_message, codec, key_in_message};
use crate::value::PrimaryKey;

/// What a read wants of each row, checked.
#[derive(Debug)]
pub(crate) struct Projection<'a> {
    /// The selected columns, in order; `None`: all.
    names: Option<Vec<&'a str>>,
    time: Option<TimeRange>,
    filter: Option<&'a Filter>,
    /// How many patterns look at each row.
    rules: usize,
    /// The columns the filter looks at, in order.
    filtered: Vec<&'a str>,
    start: Option<&'a str>,
    end: Option<&'a str>,
    page: Option<ColumnPage>,
    /// Whether a row is returned although it has none of the selected cells.
    keeps_empty: bool,
    /// Most bytes of one row, as [`Row::message_bytes`] counts them.
    bytes: usize,
    /// Versions that are visible of each column.
    visible_versions: usize,
    /// Versions that are returned of each column.
    versions: usize,
    /// Whether cells of the table expire.
    expires: bool,
    expiry: Expiry,
    meter: Meter,
}

/// What a read gets of a stored row.
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
    /// Of rows of this table, as they are visible at `now`, nanoseconds.
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
        let visible_versions = usize::try_from(schema.max_versions).unwrap_or(usize::MAX);
        let versions = options.versions.max_versions.unwrap_or(schema.max_versions);
        Ok(Self {
            names,
            time: options.versions.time,
            filter: options.filter.as_ref(),
            rules: options.filter.as_ref().map_or(0, Filter::rules),
            filtered: options.filter.as_ref().map_or_else(Vec::new, Filter::columns),
            start: options.start_column.as_deref(),
            end: options.end_column.as_deref(),
            page: options.column_page,
            keeps_empty,
            bytes: usize::MAX,
            visible_versions,
            versions: usize::try_from(versions).unwrap_or(usize::MAX),
            expires: schema.time_to_live.is_some(),
            expiry: Expiry::new(table, now),
            meter: Meter::of(&schema),
        })
    }

    /// Returns of each row at most so many bytes, but at least one column.
    pub(crate) fn within(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Whether it gives back every stored row.
    pub(crate) fn takes_all(&self) -> bool {
        self.keeps_empty && self.filter.is_none() && !self.expires
    }

    /// How many patterns look at each row.
    pub(crate) fn rules(&self) -> usize {
        self.rules
    }

    /// Most versions of a column in the rows that it gives back, if it gives back everything of every row.
    pub(crate) fn whole_versions(&self) -> Option<usize> {
        self.takes_whole().then_some(self.visible_versions)
    }

    /// Whether it gives back everything of every row.
    fn takes_whole(&self) -> bool {
        self.takes_all()
            && self.names.is_none()
            && (self.start, self.end, self.page) == (None, None, None)
            && self.versions >= self.visible_versions
    }

    /// What it wants of a row that may not be there.
    pub(crate) fn stored(&self, key: &PrimaryKey, value: Option<&Bytes>) -> Result<Projected> {
        value.map_or_else(
            || Ok(Projected::default()),
            |value| self.row_after(None, key.clone(), value),
        )
    }

    /// The row that it wants of a stored one, without what it cost; `previous` as in [`Self::row_after`]. Not for projections
    /// [within](Self::within) so many bytes.
    pub(crate) fn whole(
        &self,
        previous: Option<&Row>,
        key: PrimaryKey,
        value: Option<&Bytes>,
    ) -> Result<Option<Row>> {
        match value {
            None => Ok(None),
            Some(value) if self.takes_whole() => {
                codec::decode_after(previous, key, value, self.visible_versions).map(Some)
            }
            Some(value) => Ok(self.row_after(previous, key, value)?.row),
        }
    }

    /// What it wants of a stored value. It shares the names of its columns with `previous`, another row of the table, where they
    /// are the same.
    pub(crate) fn row_after(
        &self,
        previous: Option<&Row>,
        key: PrimaryKey,
        value: &[u8],
    ) -> Result<Projected> {
        let key = if self.takes_whole() && value.len() <= self.bytes {
            let row = codec::decode_after(previous, key, value, self.visible_versions)?;
            if self.bytes == usize::MAX || row.message_bytes() <= self.bytes {
                return Ok(Projected {
                    bytes: self.meter.row(&row),
                    row: Some(row),
                    next_column: None,
                });
            }
            row.key
        } else {
            key
        };
        let found = RowRef::decode(value, self)
            .map_err(|Malformed(expected)| Error::corrupt(format!("row {key:?}: expected {expected}")))?;
        self.found(key, &found)
    }

    fn found(&self, key: PrimaryKey, found: &RowRef<'_>) -> Result<Projected> {
        if !found.present && !self.expiry.is_visible(found.newest) {
            return Ok(Projected::default());
        }
        let mut bytes = self.meter.key(&key);
        if !found.present && !self.keeps_empty {
            return Ok(Projected {
                bytes,
                ..Projected::default()
            });
        }
        let window = self.window(found.columns());
        let offset = self.page.map_or(0, |page| page.offset.min(window.len()));
        let (skipped, rest) = window.split_at_checked(offset).unwrap_or((window, &[]));
        let size = |column: &ColumnRef<'_>| {
            let (values, cells) = found.measure(column);
            cells * self.meter.cell(column.name, 0) + values
        };
        let most = self.page.map_or(usize::MAX, |page| page.limit);
        bytes += skipped.iter().map(size).sum::<usize>();
        let (mut count, mut taken) = (0, key_in_message(&key));
        for column in rest.iter().take(most) {
            let (values, cells) = found.measure(column);
            taken += cells_in_message(column.name, cells, values);
            if count > 0 && taken > self.bytes {
                break;
            }
            bytes += size(column);
            count += 1;
        }
        if let Some(filter) = self.filter
            && !filter.passes(&key, Some(found), &mut 0)?
        {
            return Ok(Projected {
                bytes,
                ..Projected::default()
            });
        }
        Ok(Projected {
            row: Some(found.to_row(key, rest.iter().take(count))),
            next_column: rest.get(count).map(|column| column.name.to_owned()),
            bytes,
        })
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
        let filtered_before = self.filtered.last().is_none_or(|last| *last < name);
        // Whether the row is there shows in any of its cells, selected or not.
        if behind && filtered_before && present {
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
        self.versions
    }

    fn version(&self, place: usize, version: i64) -> bool {
        place < self.visible_versions
            && self.expiry.is_visible(version)
            && self.time.is_none_or(|time| time.contains(version))
    }
}
