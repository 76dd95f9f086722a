//! What a read asks of each row.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::row::ColumnSelection;

/// Versions from `from` (inclusive) to `to` (exclusive), milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The lowest version.
    pub from: i64,
    /// Just above the highest version.
    pub to: i64,
}

impl TimeRange {
    /// This version alone. There is none at `i64::MAX`.
    pub fn exact(version: i64) -> Self {
        Self {
            from: version,
            to: version.saturating_add(1),
        }
    }

    pub(crate) fn contains(self, version: i64) -> bool {
        (self.from..self.to).contains(&version)
    }
}

/// Which of the visible versions of each column a read gives back. Without conditions: all that the table keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VersionSelection {
    /// The newest so many, of those that `time` admits; not 0.
    pub max_versions: Option<u32>,
    /// Only those within.
    pub time: Option<TimeRange>,
}

/// A part of a row's columns, counted from the start of the window: `offset` columns are skipped, then at most
/// `limit` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnPage {
    /// Most columns; not 0.
    pub limit: usize,
    /// Columns before the first.
    pub offset: usize,
}

/// What a read asks of each row. It takes effect in this order:
///
/// 1. `columns` and `versions` select cells. A row that has none of them is not returned, unless a key column is
///    named or nothing is selected at all.
/// 2. `filter` sees what is selected and drops rows.
/// 3. `start_column`, `end_column` and `column_page` are a window on a row that passed. It never drops a row:
///    outside of it a row has no columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadOptions {
    /// Which columns.
    pub columns: ColumnSelection,
    /// Which versions of them.
    pub versions: VersionSelection,
    /// Which rows.
    pub filter: Option<Filter>,
    /// The first column of the window, inclusive.
    pub start_column: Option<String>,
    /// The end of the window, exclusive.
    pub end_column: Option<String>,
    /// Which columns of the window.
    pub column_page: Option<ColumnPage>,
}

impl ReadOptions {
    /// Everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these columns.
    #[must_use]
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.columns = ColumnSelection::named(columns);
        self
    }

    /// Only the newest so many versions.
    #[must_use]
    pub fn max_versions(mut self, versions: u32) -> Self {
        self.versions.max_versions = Some(versions);
        self
    }

    /// Only versions in this range.
    #[must_use]
    pub fn time(mut self, range: TimeRange) -> Self {
        self.versions.time = Some(range);
        self
    }

    /// Only rows that pass.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// From this column on: a column's name, or the `next_column` of the read before.
    #[must_use]
    pub fn start_column(mut self, column: impl Into<String>) -> Self {
        self.start_column = Some(column.into());
        self
    }

    /// Up to before this column.
    #[must_use]
    pub fn end_column(mut self, column: impl Into<String>) -> Self {
        self.end_column = Some(column.into());
        self
    }

    /// At most `limit` columns after the first `offset`.
    #[must_use]
    pub fn page(mut self, limit: usize, offset: usize) -> Self {
        self.column_page = Some(ColumnPage { limit, offset });
        self
    }

    /// Goes on in a wide row where a read stopped.
    #[must_use]
    pub fn resume(mut self, next_column: String) -> Self {
        self.start_column = Some(next_column);
        if let Some(page) = &mut self.column_page {
            page.offset = 0;
        }
        self
    }

    /// Refuses what can't be right whatever the table.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        self.columns.check()?;
        if self.versions.max_versions == Some(0) {
            return Err(Error::invalid(
                "version selection",
                "asks for no version (max_versions is 0)",
            ));
        }
        if let Some(TimeRange { from, to }) = self.versions.time
            && from >= to
        {
            return Err(Error::invalid(
                "time range",
                format!("is empty: from {from} (inclusive) to {to} (exclusive)"),
            ));
        }
        if let (Some(start), Some(end)) = (&self.start_column, &self.end_column)
            && start >= end
        {
            return Err(Error::invalid(
                "column range",
                format!("is empty: from {start:?} (inclusive) to {end:?} (exclusive)"),
            ));
        }
        if self.column_page.is_some_and(|page| page.limit == 0) {
            return Err(Error::invalid("column page", "asks for no column (limit is 0)"));
        }
        self.filter.as_ref().map_or(Ok(()), Filter::check)
    }
}
