//! Sums, means and extremes while they grow.

use tantivy::columnar::MonotonicallyMappableToU64;

use super::budget::Account;
use super::column::{Kind, ValueBlock};
use super::sum::ExactSum;
use crate::request::MetricKind;

#[derive(Clone, Default)]
pub(super) struct Numbers {
    pub(super) count: u64,
    pub(super) sum: ExactSum,
    /// Only valid with a count.
    lowest: u64,
    highest: u64,
}

impl Numbers {
    pub(super) fn extremes(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.lowest, self.highest))
    }

    pub(super) fn merge(&mut self, other: Self, account: &mut Account<'_>) -> tantivy::Result<()> {
        if other.count == 0 {
            return Ok(());
        }
        if self.count == 0 {
            (self.lowest, self.highest) = (other.lowest, other.highest);
        }
        self.count += other.count;
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        if self.sum.merge(&other.sum) {
            account.hold(ExactSum::WIDE_BYTES)?;
        }
        Ok(())
    }

    fn bound(&mut self, number: u64) {
        if self.count == 0 {
            (self.lowest, self.highest) = (number, number);
        } else {
            self.lowest = self.lowest.min(number);
            self.highest = self.highest.max(number);
        }
    }
}

/// Adds a block to the numbers of its groups: no more of it than the figure needs. How many sums became wide.
pub(super) fn add(numbers: &mut [Numbers], block: ValueBlock<'_>, kind: Kind, figure: MetricKind) -> usize {
    let mut widened = 0;
    match (figure, kind) {
        (MetricKind::Count | MetricKind::DistinctCount, _) => each(numbers, block, |_, _| {}),
        (MetricKind::Sum | MetricKind::Avg, Kind::Double) => each(numbers, block, |numbers, value| {
            widened += usize::from(numbers.sum.add(f64::from_u64(value)));
        }),
        (MetricKind::Sum | MetricKind::Avg, _) => each(numbers, block, |numbers, value| {
            numbers.sum.add_whole(i64::from_u64(value));
        }),
        (MetricKind::Min | MetricKind::Max, _) => each(numbers, block, Numbers::bound),
        (MetricKind::Stats, Kind::Double) => each(numbers, block, |numbers, value| {
            numbers.bound(value);
            widened += usize::from(numbers.sum.add(f64::from_u64(value)));
        }),
        (MetricKind::Stats, _) => each(numbers, block, |numbers, value| {
            numbers.bound(value);
            numbers.sum.add_whole(i64::from_u64(value));
        }),
    }
    widened
}

/// Takes each value of a block, and counts it.
fn each(numbers: &mut [Numbers], block: ValueBlock<'_>, mut take: impl FnMut(&mut Numbers, u64)) {
    for (value, slot) in block.values.iter().zip(block.slots) {
        if let Some(numbers) = numbers.get_mut(*slot as usize) {
            take(numbers, *value);
            numbers.count += 1;
        }
    }
}
