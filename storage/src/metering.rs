//! What an operation costs, by Tablestore's rules: capacity units of 4 KB, reads and writes apart.
//!
//! The size of a row is the names and values of its key columns, and for each cell the name of its column and its
//! value; in a table that keeps versions or has a time to live, each cell counts 8 bytes more for its version.
//! Sizes are what the user sees (an INTEGER is 8 bytes), not what lies on the disk.

#[cfg(test)]
mod tests;

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::row::Row;
use crate::schema::TableSchema;
use crate::value::PrimaryKey;

/// Bytes of one capacity unit.
pub const CAPACITY_UNIT_BYTES: usize = 4 << 10;

/// Bytes a version counts, where versions count.
const VERSION_BYTES: usize = 8;

/// What an operation costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct CapacityUnits {
    /// Units read.
    pub read: u64,
    /// Units written.
    pub write: u64,
}

impl CapacityUnits {
    /// What a write costs whose condition doesn't hold.
    pub const FAILED_CONDITION: Self = Self { read: 1, write: 1 };
    /// What beginning, committing or aborting a transaction costs, each.
    pub const TRANSACTION_STEP: Self = Self { read: 0, write: 1 };

    /// Reading that many bytes at once; at least one unit.
    pub fn reading(bytes: usize) -> Self {
        Self {
            read: units(bytes),
            write: 0,
        }
    }

    /// Writing that many bytes at once; at least one unit.
    pub fn writing(bytes: usize) -> Self {
        Self {
            read: 0,
            write: units(bytes),
        }
    }
}

impl Add for CapacityUnits {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            write: self.write.saturating_add(other.write),
        }
    }
}

impl AddAssign for CapacityUnits {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for CapacityUnits {
    fn sum<I: Iterator<Item = Self>>(units: I) -> Self {
        units.fold(Self::default(), Add::add)
    }
}

fn units(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(CAPACITY_UNIT_BYTES).max(1)).unwrap_or(u64::MAX)
}

/// Measures the rows of one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    /// Bytes of the names of the key columns.
    key_names: usize,
    /// Bytes each cell counts for its version.
    version: usize,
}

impl Meter {
    /// Of a table as it is declared now.
    pub(crate) fn of(schema: &TableSchema) -> Self {
        let keeps_versions = schema.max_versions > 1 || schema.time_to_live.is_some();
        Self {
            key_names: schema.key.iter().map(|(name, _)| name.len()).sum(),
            version: if keeps_versions { VERSION_BYTES } else { 0 },
        }
    }

    /// Bytes of a key: what a delete, or a condition on existence, is about.
    pub(crate) fn key(self, key: &PrimaryKey) -> usize {
        self.key_names + key.size()
    }

    /// Bytes of a cell whose value has that many; without a value, of the deletion of one.
    pub(crate) fn cell(self, column: &str, value: usize) -> usize {
        column.len() + value + self.version
    }

    /// Bytes of a row.
    pub(crate) fn row(self, row: &Row) -> usize {
        let cells = row.columns().iter().map(|(name, cells)| {
            let sizes = cells.iter().map(|cell| self.cell(name, cell.value.size()));
            sizes.sum::<usize>()
        });
        self.key(&row.key) + cells.sum::<usize>()
    }
}
