//! Percentiles: all values while there is room, then fewer with a bound of what that costs.
//!
//! Values lie on levels; one of level n stands for 2ⁿ. A full level is sorted, every other of its values goes up one
//! level, the rest is dropped: a place among all values is off by at most 2ⁿ after that, whichever values they are (Munro
//! and Paterson, "Selection and sorting with limited storage", 1980). These errors are summed as they happen.

use super::budget::Budget;

/// Values of a level from which on it is made smaller when there is no room.
const LEVEL: usize = 16_384;
/// Bytes of one value.
const VALUE_BYTES: usize = size_of::<u64>();

/// Numbers, and how far their places may be off.
#[derive(Default)]
pub(super) struct Quantiles {
    levels: Vec<Vec<u64>>,
    count: u64,
    error: u64,
    /// Which values the next level to be made smaller keeps: the errors of both kinds cancel out.
    odd: bool,
}

impl Quantiles {
    /// How many numbers were taken.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn push(&mut self, number: u64) {
        self.count += 1;
        match self.levels.first_mut() {
            Some(level) => level.push(number),
            None => self.levels.push(vec![number]),
        }
    }

    /// Makes room when there is none.
    pub(super) fn shrink(&mut self, budget: &mut Budget) {
        let mut at = 0;
        while at < self.levels.len() {
            let full = self.levels.get(at).is_some_and(|level| level.len() >= LEVEL);
            if full && !budget.exact(0) {
                self.halve(at, budget);
            }
            at += 1;
        }
    }

    fn halve(&mut self, at: usize, budget: &mut Budget) {
        let Some(level) = self.levels.get_mut(at) else {
            return;
        };
        let mut values = std::mem::take(level);
        values.sort_unstable();
        // A pair each: one that is left over waits for the next time.
        if values.len() % 2 == 1 {
            level.extend(values.pop());
        }
        let kept = values.iter().skip(usize::from(self.odd)).step_by(2).copied();
        budget.release(values.len() / 2 * VALUE_BYTES);
        self.odd = !self.odd;
        self.error = self.error.saturating_add(1 << at.min(63));
        match self.levels.get_mut(at + 1) {
            Some(above) => above.extend(kept),
            None => {
                let kept = kept.collect();
                self.levels.push(kept);
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self, budget: &mut Budget) {
        if self.count == 0 {
            *self = other;
            return;
        }
        self.count += other.count;
        self.error = self.error.saturating_add(other.error);
        for (at, values) in other.levels.into_iter().enumerate() {
            match self.levels.get_mut(at) {
                Some(level) => level.extend(values),
                None => self.levels.push(values),
            }
        }
        self.shrink(budget);
    }

    /// By what part of all numbers a place may be off.
    pub(super) fn rank_error_bound(&self) -> f64 {
        if self.error == 0 {
            return 0.0;
        }
        (self.error as f64 / self.count as f64).min(1.0)
    }

    /// For each percentage the lowest number that at least so many are not above; none without numbers.
    pub(super) fn at(&self, percentages: &[f64]) -> Vec<u64> {
        let mut weighed: Vec<(u64, u64)> = Vec::new();
        for (at, level) in self.levels.iter().enumerate() {
            weighed.extend(level.iter().map(|number| (*number, 1_u64 << at.min(63))));
        }
        weighed.sort_unstable();
        let mut up_to = 0_u64;
        for (_, weight) in &mut weighed {
            up_to = up_to.saturating_add(*weight);
            *weight = up_to;
        }
        let places = percentages.iter().filter_map(|percentage| {
            let place = place(*percentage, self.count);
            let at = weighed.partition_point(|(_, up_to)| *up_to < place);
            weighed.get(at).or(weighed.last()).map(|(number, _)| *number)
        });
        places.collect()
    }
}

/// The place of a percentage among `count` numbers, from 1.
fn place(percentage: f64, count: u64) -> u64 {
    let place = (percentage / 100.0 * count as f64).ceil() as u64;
    place.clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_EXACT_BYTES;

    const ASKED: [f64; 8] = [0.0, 1.0, 25.0, 50.0, 75.0, 99.0, 99.9, 100.0];

    #[test]
    fn few_values_are_exact() {
        let mut quantiles = Quantiles::default();
        assert!(quantiles.at(&ASKED).is_empty());
        (1..=4).for_each(|number| quantiles.push(number * 10));
        assert_eq!(
            quantiles.at(&[0.0, 25.0, 25.1, 50.0, 99.0, 100.0]),
            [10, 10, 20, 20, 40, 40]
        );
        assert_eq!((quantiles.count(), quantiles.rank_error_bound()), (4, 0.0));
    }

    #[test]
    fn places_stay_within_their_bound_without_room() {
        let mut budget = Budget::default();
        budget.exact(MAX_EXACT_BYTES);
        let mut parts = [Quantiles::default(), Quantiles::default()];
        let count = 400_000_u64;
        for n in 0..count {
            // Every number below `count` once, in no order.
            let part = &mut parts[usize::from(n % 3 == 0)];
            part.push(n * 7_919 % count);
            budget.exact(VALUE_BYTES);
            part.shrink(&mut budget);
        }
        let [mut all, other] = parts;
        all.merge(other, &mut budget);
        let bound = all.rank_error_bound();
        assert!(bound > 0.0 && bound < 0.001, "{bound}");
        let held: usize = all.levels.iter().map(Vec::len).sum();
        assert!(held < 8 * LEVEL, "{held}");
        for (percentage, found) in ASKED.iter().zip(all.at(&ASKED)) {
            let off = (found + 1).abs_diff(place(*percentage, count)) as f64 / count as f64;
            assert!(
                off <= bound,
                "{percentage}: {found} is off by {off}, bound {bound}"
            );
        }
    }
}
