//! Visibility: which cells of a stored row the table's time to live and its number of versions let readers see.
//!
//! A cell is visible until its version is older than the time to live, or the table's number of newer versions exists. A
//! row is visible until its last cell has expired. Both follow a change of the table at once; what is invisible is freed
//! later, in the background.

use crate::catalog::Table;
use crate::clock::{millis, milliseconds};
use crate::row::Row;

/// What of a table's rows is visible at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry {
    /// Versions (milliseconds) up to this have expired; `None`: cells of the table don't expire.
    expired_version: Option<i64>,
    /// How many versions of a column are visible, the newest ones.
    max_versions: usize,
}

impl Expiry {
    /// The visibility of a table's rows at `now`, nanoseconds since the Unix epoch.
    pub(crate) fn new(table: &Table, now: i64) -> Self {
        let schema = table.schema();
        let expired_version = |lifetime| milliseconds(now).saturating_sub(millis(lifetime));
        Self {
            expired_version: schema.time_to_live.map(expired_version),
            max_versions: usize::try_from(schema.max_versions).unwrap_or(usize::MAX),
        }
    }

    /// Versions (milliseconds) up to this have expired; `None`: cells of the table don't expire.
    pub(crate) fn expired_version(self) -> Option<i64> {
        self.expired_version
    }

    /// Whether a version (milliseconds) hasn't expired.
    pub(crate) fn is_visible(self, version: i64) -> bool {
        self.expired_version.is_none_or(|expired| version > expired)
    }

    /// The row without its expired and surplus cells; `None` when all of it has expired.
    pub(crate) fn visible(self, mut row: Row) -> Option<Row> {
        if self.expired_version.is_some() {
            if !self.is_visible(newest_version(&row)) {
                return None;
            }
            self.drop_expired(&mut row);
        }
        self.drop_surplus(&mut row);
        Some(row)
    }

    /// Whether a row has more versions of a column than are visible.
    pub(crate) fn has_surplus(self, row: &Row) -> bool {
        row.columns()
            .iter()
            .any(|(_, cells)| cells.len() > self.max_versions)
    }

    /// Removes the versions of each column that are too many.
    pub(crate) fn drop_surplus(self, row: &mut Row) {
        if self.has_surplus(row) {
            row.columns_mut()
                .retain_cells(|_, place, _| place < self.max_versions);
        }
    }

    /// Removes the expired cells of a row.
    pub(crate) fn drop_expired(self, row: &mut Row) {
        if self.expired_version.is_some() {
            row.columns_mut()
                .retain_cells(|_, _, cell| self.is_visible(cell.version));
        }
    }
}

/// The version (milliseconds) of a row's newest cell: when that has expired, the row has. A row without cells has the time
/// of its last write.
pub(crate) fn newest_version(row: &Row) -> i64 {
    row.columns()
        .iter()
        .filter_map(|(_, cells)| cells.first().map(|cell| cell.version))
        .max()
        .unwrap_or_else(|| milliseconds(row.written))
}

/// The version (milliseconds) of a row's oldest cell: until that has expired, nothing of the row has. A row without
/// cells has the time of its last write.
pub(crate) fn oldest_version(row: &Row) -> i64 {
    row.columns()
        .iter()
        .filter_map(|(_, cells)| cells.last().map(|cell| cell.version))
        .min()
        .unwrap_or_else(|| milliseconds(row.written))
}
