//! Percentiles: all values while there is room, then fewer with a bound of what that costs.
//!
//! Values lie on levels; one of level n stands for 2ⁿ. A full level is sorted, every other of its values goes up one
//! level, the rest is dropped: a place among all values is off by at most 2ⁿ after that, whichever values they are (Munro
//! and Paterson, "Selection and sorting with limited storage", 1980). These errors are summed as they happen.

use super::budget::Account;

/// Values of a level from which on it is made smaller when there is no room, by how little room there is: the less, the
/// farther places may be off.
const LEVELS: [(f64, usize); 3] = [(1.0, 16_384), (1.5, 2_048), (2.0, 256)];
/// Values that are sorted at a time.
const RUN: usize = 16_384;
/// Values that a level has room for at first.
const FIRST_VALUES: usize = 8;
const VALUE_BYTES: usize = size_of::<u64>();

/// Numbers, and how far their places may be off.
#[derive(Default)]
pub(super) struct Quantiles {
    lowest_level: Vec<u64>,
    levels_above: Vec<Vec<u64>>,
    pub(super) count: u64,
    error: u64,
    /// Which values the next level to be made smaller keeps: the errors of both kinds cancel out.
    odd: bool,
}

impl Quantiles {
    pub(super) fn push(&mut self, number: u64, account: &mut Account<'_>) -> tantivy::Result<()> {
        if self.lowest_level.len() == self.lowest_level.capacity() {
            grow(&mut self.lowest_level, 1, account)?;
            self.shrink(account)?;
            // A level that went up has no room left.
            grow(&mut self.lowest_level, 1, account)?;
        }
        self.count += 1;
        self.lowest_level.push(number);
        Ok(())
    }

    fn levels(&self) -> impl Iterator<Item = &Vec<u64>> {
        std::iter::once(&self.lowest_level).chain(&self.levels_above)
    }

    fn level(&mut self, at: usize) -> Option<&mut Vec<u64>> {
        match at.checked_sub(1) {
            None => Some(&mut self.lowest_level),
            Some(above) => self.levels_above.get_mut(above),
        }
    }

    /// Makes room when there is none.
    fn shrink(&mut self, account: &mut Account<'_>) -> tantivy::Result<()> {
        let mut at = 0;
        while at <= self.levels_above.len() {
            let pressure = account.pressure();
            let large = LEVELS.iter().rev().find(|(from, _)| pressure > *from);
            let full = |level: &mut Vec<u64>| large.is_some_and(|(_, values)| level.len() >= *values);
            if self.level(at).is_some_and(full) {
                self.halve(at, account)?;
            }
            at += 1;
        }
        Ok(())
    }

    fn halve(&mut self, at: usize, account: &mut Account<'_>) -> tantivy::Result<()> {
        account.run.check_inside()?;
        if at == self.levels_above.len() {
            self.levels_above.push(Vec::new());
        }
        let Some(level) = self.level(at) else {
            return Ok(());
        };
        let mut values = std::mem::take(level);
        values.sort_unstable();
        // A pair each: one that is left over waits for the next time.
        if values.len() % 2 == 1
            && let Some(last) = values.pop()
        {
            grow(level, 1, account)?;
            level.push(last);
        }
        let kept = values.iter().skip(usize::from(self.odd)).step_by(2).copied();
        if let Some(above) = self.levels_above.get_mut(at) {
            grow(above, values.len() / 2, account)?;
            above.extend(kept);
        }
        account.release_exact(values.capacity() * VALUE_BYTES);
        self.odd = !self.odd;
        self.error = self.error.saturating_add(1 << at.min(63));
        Ok(())
    }

    pub(super) fn merge(&mut self, mut other: Self, account: &mut Account<'_>) -> tantivy::Result<()> {
        if self.count == 0 {
            *self = other;
            return Ok(());
        }
        self.count += other.count;
        self.error = self.error.saturating_add(other.error);
        let others = std::iter::once(std::mem::take(&mut other.lowest_level)).chain(other.levels_above);
        for (at, values) in others.enumerate() {
            if at > self.levels_above.len() {
                self.levels_above.push(Vec::new());
            }
            if let Some(level) = self.level(at) {
                grow(level, values.len(), account)?;
                level.extend_from_slice(&values);
            }
            account.release_exact(values.capacity() * VALUE_BYTES);
        }
        self.shrink(account)
    }

    /// By what part of all numbers a place may be off.
    pub(super) fn rank_error_bound(&self) -> f64 {
        if self.error == 0 {
            return 0.0;
        }
        (self.error as f64 / self.count as f64).min(1.0)
    }

    /// Whether looking up a percentage takes long.
    pub(super) fn is_large(&self) -> bool {
        !self.levels_above.is_empty() || self.lowest_level.len() > RUN
    }

    /// Sorts the numbers, a run at a time; then [`Self::at`] can be asked.
    pub(super) fn sort(&mut self, account: &Account<'_>) -> tantivy::Result<()> {
        for level in std::iter::once(&mut self.lowest_level).chain(&mut self.levels_above) {
            for run in level.chunks_mut(RUN) {
                account.run.check_inside()?;
                run.sort_unstable();
            }
        }
        Ok(())
    }

    /// For a percentage the lowest number that at least so many are not above; none without numbers.
    pub(super) fn at(&self, percentage: &Percentage) -> Option<u64> {
        let rank = percentage.rank(self.count);
        if !self.is_large() {
            let at = usize::try_from(rank).unwrap_or(usize::MAX).saturating_sub(1);
            return self.lowest_level.get(at).copied();
        }
        let runs = || {
            let weighed = self.levels().enumerate();
            weighed.flat_map(|(at, level)| level.chunks(RUN).map(move |run| (run, 1_u64 << at.min(63))))
        };
        let up_to = |number: u64| {
            let below = runs().map(|(run, weight)| weight * run.partition_point(|own| *own <= number) as u64);
            below.sum::<u64>()
        };
        let lows = runs().filter_map(|(run, _)| run.first());
        let highs = runs().filter_map(|(run, _)| run.last());
        let (mut low, mut high) = (*lows.min()?, *highs.max()?);
        while low < high {
            let middle = low.midpoint(high);
            if up_to(middle) < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

/// Makes room for so many more values; above what there was, a fourth more.
fn grow(values: &mut Vec<u64>, more: usize, account: &mut Account<'_>) -> tantivy::Result<()> {
    let missing = (values.len() + more).saturating_sub(values.capacity());
    if missing > 0 {
        let more = missing.max(values.capacity() / 4).max(FIRST_VALUES);
        account.exact(more * VALUE_BYTES)?;
        values.reserve_exact(values.capacity() - values.len() + more);
    }
    Ok(())
}

/// A percentage as it was written: the shortest decimal that reads as the double. Of 1,000 numbers, 99.9 % are 999, though
/// the double is a little more than 99.9.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percentage {
    /// Without the decimal point.
    digits: u64,
    /// Digits behind the decimal point, of which there may be two less than none.
    decimals: i32,
}

impl Percentage {
    /// `percentage` lies from 0 to 100.
    pub(super) fn new(percentage: f64) -> Self {
        // The shortest digits, of which there are 17 at most.
        let text = format!("{percentage:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        Self {
            digits: digits.parse().unwrap_or_default(),
            decimals: fraction.len() as i32 - exponent.parse::<i32>().unwrap_or_default(),
        }
    }

    /// The nearest rank among `count` numbers, from 1: that of the first that so many percent are not above.
    fn rank(self, count: u64) -> u64 {
        let part = u128::from(self.digits) * u128::from(count);
        let all = u32::try_from(self.decimals + 2).map_or(Some(1), |tens| 10_u128.checked_pow(tens));
        let rank = all.map_or(1, |all| part.div_ceil(all));
        u64::try_from(rank).unwrap_or(count).clamp(1, count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::budget::testing;
    use crate::limits::MAX_EXACT_BYTES;

    fn at(quantiles: &mut Quantiles, percentages: &[f64], account: &mut Account<'_>) -> Vec<u64> {
        quantiles.sort(account).expect("nothing stops it");
        let at = percentages.iter().map(|percentage| Percentage::new(*percentage));
        at.filter_map(|percentage| quantiles.at(&percentage)).collect()
    }

    #[test]
    fn few_values_are_exact() {
        testing::with_account(|account| {
            let mut quantiles = Quantiles::default();
            assert!(at(&mut quantiles, &[0.0, 50.0], account).is_empty());
            for number in [30, 10, 40, 20] {
                quantiles.push(number, account).expect("there is room");
            }
            assert_eq!(
                at(&mut quantiles, &[0.0, 25.0, 25.1, 50.0, 99.0, 100.0], account),
                [10, 10, 20, 20, 40, 40]
            );
            assert_eq!((quantiles.count, quantiles.rank_error_bound()), (4, 0.0));
        });
    }

    #[test]
    fn ranks_are_those_of_percentages_as_they_are_written() {
        for count in [1, 50, 100, 1_000, 100_000, u64::MAX / 1_000] {
            for thousandths in 0..=100_000_u64 {
                let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
                let rank = Percentage::new(text.parse().expect("a number")).rank(count);
                // No fewer than so many of 100,000 parts, and with one less they were fewer.
                let parts = |rank: u64| u128::from(rank) * 100_000;
                let wanted = u128::from(thousandths) * u128::from(count);
                assert!(parts(rank) >= wanted, "{text} of {count}: {rank}");
                assert!(rank == 1 || parts(rank - 1) < wanted, "{text} of {count}: {rank}");
            }
        }
        assert_eq!(Percentage::new(f64::from_bits(1)).rank(u64::MAX), 1);
        assert_eq!(Percentage::new(100.0).rank(u64::MAX), u64::MAX);
        assert_eq!(Percentage::new(1e-17).rank(u64::MAX), 2);
    }

    #[test]
    fn places_stay_within_their_bound_without_room() {
        /// Percentages in tenths of a percent.
        const ASKED: [u64; 8] = [0, 10, 250, 500, 750, 990, 999, 1_000];
        for (room_taken, most) in [(1.0, 0.001), (1.6, 0.02), (2.1, 0.2)] {
            testing::with_account(|account| {
                account
                    .exact((room_taken * MAX_EXACT_BYTES as f64) as usize)
                    .expect("there is room");
                let mut parts = [Quantiles::default(), Quantiles::default()];
                let count = 400_000_u64;
                for n in 0..count {
                    // Every number below `count` once, in no order.
                    let part = &mut parts[usize::from(n % 3 == 0)];
                    part.push(n * 7_919 % count, account).expect("there is room");
                }
                let [mut all, other] = parts;
                all.merge(other, account).expect("there is room");
                let bound = all.rank_error_bound();
                assert!(bound > 0.0 && bound < most, "{bound}");
                let held: usize = all.levels().map(Vec::len).sum();
                assert!(held < 8 * RUN, "{held}");
                let percentages = ASKED.map(|tenths| tenths as f64 / 10.0);
                for (tenths, found) in ASKED.iter().zip(at(&mut all, &percentages, account)) {
                    let rank = (tenths * count).div_ceil(1_000).max(1);
                    let off = (found + 1).abs_diff(rank) as f64 / count as f64;
                    assert!(off <= bound, "{tenths}: {found} is off by {off}, bound {bound}");
                }
            });
        }
    }

    #[test]
    fn levels_are_held_with_all_of_their_room() {
        testing::with_account(|account| {
            let taken = 2 * MAX_EXACT_BYTES + 1;
            account.exact(taken).expect("there is room");
            let mut parts: [Quantiles; 20] = Default::default();
            for number in 0..40_000 {
                let part = &mut parts[(number % 20) as usize];
                part.push(number, account).expect("there is room");
            }
            let [mut all, others @ ..] = parts;
            for other in others {
                all.merge(other, account).expect("there is room");
            }
            let room: usize = all.levels().map(|level| level.capacity() * VALUE_BYTES).sum();
            let held = (account.pressure() * MAX_EXACT_BYTES as f64).round() as usize - taken;
            assert_eq!(held, room);
        });
    }

    #[test]
    fn many_exact_values_are_found_over_several_runs() {
        testing::with_account(|account| {
            let mut quantiles = Quantiles::default();
            let count = 5 * RUN as u64 + 7;
            for n in 0..count {
                quantiles.push(n * 7_919 % count, account).expect("there is room");
            }
            assert_eq!(
                at(&mut quantiles, &[0.0, 50.0, 100.0], account),
                [0, count.div_ceil(2) - 1, count - 1]
            );
            assert_eq!(quantiles.rank_error_bound(), 0.0);
        });
    }
}
