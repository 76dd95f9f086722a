//! Time to live: a cell is visible until its version is that old; a row, until its last cell has expired.

use crate::catalog::Table;
use crate::clock::millis;
use crate::row::Row;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// Milliseconds of a time in nanoseconds.
pub(crate) fn milliseconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(NANOS_PER_MILLI)
}

/// The line between what is visible and what has expired, at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry {
    /// Versions up to this have expired; `None`: none ever does.
    expired: Option<i64>,
}

impl Expiry {
    /// Of a table at a time in nanoseconds.
    pub(crate) fn of(table: &Table, now: i64) -> Self {
        let lifetime = table.schema().time_to_live;
        Self {
            expired: lifetime.map(|lifetime| milliseconds(now).saturating_sub(millis(lifetime))),
        }
    }

    /// Whether something of this version (milliseconds) is visible.
    pub(crate) fn is_visible(self, version: i64) -> bool {
        self.expired.is_none_or(|expired| version > expired)
    }

    /// The row without its expired cells; `None` when all of it has expired.
    pub(crate) fn visible(self, mut row: Row) -> Option<Row> {
        if self.expired.is_none() {
            return Some(row);
        }
        if !self.is_visible(life(&row)) {
            return None;
        }
        self.drop_expired(&mut row);
        Some(row)
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
