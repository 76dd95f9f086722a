//! What operations cost, as Tablestore meters them: capacity units of 4 KiB, read and written ones apart. Nothing is
//! charged here; whoever bills or throttles sums them up.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Bytes of one capacity unit.
const UNIT_BYTES: usize = 4 << 10;

/// What an operation has consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CapacityUnits {
    /// Units read.
    pub read: u64,
    /// Units written.
    pub write: u64,
}

impl CapacityUnits {
    /// What a write costs whose condition failed.
    pub const FAILED_CONDITION: Self = Self { read: 1, write: 1 };
    /// What beginning, committing or aborting a transaction costs, each.
    pub const TRANSACTION_STEP: Self = Self { read: 0, write: 1 };

    /// Of reading that many bytes.
    pub fn reading(bytes: usize) -> Self {
        Self {
            read: units(bytes),
            write: 0,
        }
    }

    /// Of writing that many bytes.
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
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), Self::add)
    }
}

/// Started units of 4 KiB, at least one.
fn units(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(UNIT_BYTES).max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_started_units() {
        let units = |bytes| CapacityUnits::writing(bytes).write;
        assert_eq!(
            [0, 1, 4096, 4097, 8192, 8193].map(units),
            [1, 1, 1, 2, 2, 3],
            "4 KiB each, at least one"
        );
        let sum = CapacityUnits::reading(4097) + CapacityUnits::TRANSACTION_STEP;
        assert_eq!(sum, CapacityUnits { read: 2, write: 1 });
    }
}
