//! What of a stored row is visible. A cell is until its version is older than the table's time to live, or so many
//! newer ones are there as the table keeps; a row is until its last cell has expired. Both follow a changed table at
//! once: what is stored too much is only taken away later.

use crate::catalog::Table;
use crate::clock::{millis, milliseconds};
use crate::row::Row;

/// The line between what is visible and what isn't, at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry {
    /// Versions up to this have expired; `None`: none ever does.
    expired: Option<i64>,
    /// How many versions of a column are visible.
    versions: usize,
}

impl Expiry {
    /// Of a table at a time in nanoseconds.
    pub(crate) fn of(table: &Table, now: i64) -> Self {
        let schema = table.schema();
        let lifetime = schema.time_to_live;
        Self {
            expired: lifetime.map(|lifetime| milliseconds(now).saturating_sub(millis(lifetime))),
            versions: usize::try_from(schema.max_versions).unwrap_or(usize::MAX),
        }
    }

    /// Versions up to this have expired; `None`: none ever does.
    pub(crate) fn expired(self) -> Option<i64> {
        self.expired
    }

    /// Whether something of this version (milliseconds) is visible.
    pub(crate) fn is_visible(self, version: i64) -> bool {
        self.expired.is_none_or(|expired| version > expired)
    }

    /// The row without its expired and surplus cells; `None` when all of it has expired.
    pub(crate) fn visible(self, mut row: Row) -> Option<Row> {
        if self.expired.is_some() {
            if !self.is_visible(life(&row)) {
                return None;
            }
            self.drop_expired(&mut row);
        }
        self.drop_surplus(&mut row);
        Some(row)
    }

    /// Whether a row has more versions of a column than are visible.
    pub(crate) fn has_surplus(self, row: &Row) -> bool {
        row.columns().iter().any(|(_, cells)| cells.len() > self.versions)
    }

    /// Takes the cells out of a row that are too many.
    pub(crate) fn drop_surplus(self, row: &mut Row) {
        if self.has_surplus(row) {
            row.columns_mut()
                .retain_cells(|_, place, _| place < self.versions);
        }
    }

    /// Takes the expired cells out of a row.
    pub(crate) fn drop_expired(self, row: &mut Row) {
        if self.expired.is_some() {
            row.columns_mut()
                .retain_cells(|_, _, cell| self.is_visible(cell.version));
        }
    }
}

/// The version (milliseconds) a row lives by: its newest cell; a row without cells lives by its last write.
pub(crate) fn life(row: &Row) -> i64 {
    row.columns()
        .iter()
        .filter_map(|(_, cells)| cells.first().map(|cell| cell.version))
        .max()
        .unwrap_or_else(|| milliseconds(row.written))
}

/// The version (milliseconds) of a row's oldest cell: until that has expired, nothing of the row has. A row without
/// cells has the time of its last write.
pub(crate) fn oldest(row: &Row) -> i64 {
    row.columns()
        .iter()
        .filter_map(|(_, cells)| cells.last().map(|cell| cell.version))
        .min()
        .unwrap_or_else(|| milliseconds(row.written))
}
