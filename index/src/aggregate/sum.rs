//! Exact sums of doubles: the same in every order, rounded once.
//!
//! A superaccumulator (Kulisch 1986; Neal, "Fast exact summation using small and large superaccumulators", 2015): a
//! fixed-point number wide enough for every double. Most sums never need it: doubles of about one size are added in 128
//! bits with a scale of their own.

use std::cmp::Ordering;

/// Powers of two below the first number that the narrow sum has bits for.
const BELOW: i32 = 40;
/// The greatest shift of a mantissa, of 53 bits, in the narrow sum.
const MAX_SHIFT: u32 = 73;
/// The power of two of a wide sum's lowest bit: that of the least double, and a word for what a division leaves.
const LOWEST: i32 = -1074 - 64;
/// Words of a wide sum: to 2¹⁰²⁴, for 2⁶⁴ numbers, and a sign.
const WORDS: usize = 35;

/// A sum while it grows.
#[derive(Clone, Default)]
pub(super) struct ExactSum {
    /// Counts units of two to the power of `scale`.
    narrow: i128,
    scale: i32,
    /// What didn't fit into `narrow`; the sum is that of both.
    wide: Option<Box<Wide>>,
}

impl ExactSum {
    /// Bytes of a sum that isn't narrow, beyond its own size.
    pub(super) const WIDE_BYTES: usize = size_of::<Wide>();

    /// Adds a finite number; `true` when that made the sum wide.
    pub(super) fn add(&mut self, number: f64) -> bool {
        let bits = number.to_bits();
        let fraction = (bits & ((1 << 52) - 1)) as i64;
        let (mantissa, power) = match (bits >> 52 & 0x7ff) as i32 {
            0 => (fraction, -1074),
            exponent => (fraction | 1 << 52, exponent - 1075),
        };
        if mantissa == 0 {
            return false;
        }
        if self.narrow == 0 {
            self.scale = power - BELOW;
        }
        let signed = i128::from(if number.is_sign_negative() {
            -mantissa
        } else {
            mantissa
        });
        let shift = power.wrapping_sub(self.scale).cast_unsigned();
        if shift <= MAX_SHIFT
            && let Some(sum) = self.narrow.checked_add(signed << shift)
        {
            self.narrow = sum;
            return false;
        }
        let widened = self.wide.is_none();
        self.wide.get_or_insert_default().add(signed, power);
        widened
    }

    /// Adds an integer. Only for sums of integers alone, whose scale stays 0.
    pub(super) fn add_whole(&mut self, number: i64) {
        // 2⁶⁴ of them fit.
        self.narrow += i128::from(number);
    }

    /// The sum of what [`Self::add_whole`] has added.
    pub(super) fn whole(&self) -> i128 {
        self.narrow
    }

    /// Adds another sum; `true` when that made this one wide.
    pub(super) fn merge(&mut self, other: &Self) -> bool {
        let was_wide = self.is_wide();
        self.add_sum(other);
        !was_wide && self.is_wide()
    }

    fn add_sum(&mut self, other: &Self) {
        if let Some(other) = &other.wide {
            self.wide.get_or_insert_default().merge(other);
        }
        if self.narrow == 0 {
            (self.narrow, self.scale) = (other.narrow, other.scale);
            return;
        }
        if other.narrow == 0 {
            return;
        }
        let scale = self.scale.min(other.scale);
        let aligned = self.at_scale(scale).zip(other.at_scale(scale));
        match aligned.and_then(|(own, other)| own.checked_add(other)) {
            Some(sum) => (self.narrow, self.scale) = (sum, scale),
            None => self.wide.get_or_insert_default().add(other.narrow, other.scale),
        }
    }

    /// The narrow sum at a scale that isn't above its own; `None` when it overflows there.
    fn at_scale(&self, scale: i32) -> Option<i128> {
        let shift = self.scale.abs_diff(scale);
        let shifted = self.narrow.checked_shl(shift)?;
        (shifted >> shift == self.narrow).then_some(shifted)
    }

    /// Whether it takes [`Self::WIDE_BYTES`].
    pub(super) fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// The sum divided by `count`, from 1: the nearest double, ties to even, and the greatest finite one beyond.
    pub(super) fn divided(&self, count: u64) -> f64 {
        let mut sum = self.wide.as_deref().cloned().unwrap_or_default();
        sum.add(self.narrow, self.scale);
        sum.divided(count)
    }
}

/// A fixed-point number in two's complement, the lowest word first.
#[derive(Clone)]
struct Wide([u64; WORDS]);

impl Default for Wide {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

impl Wide {
    /// Adds `number` times two to the power of `power`, which is at least [`LOWEST`].
    fn add(&mut self, number: i128, power: i32) {
        let from = power.wrapping_sub(LOWEST).cast_unsigned();
        let shift = from % 64;
        let sign = (number >> 127) as u64;
        let low = number << shift;
        let high = number.checked_shr(128 - shift).map_or(sign, |high| high as u64);
        let parts = [low as u64, (low >> 64) as u64, high];
        let mut carry = false;
        for (nth, word) in self.0.iter_mut().skip(from as usize / 64).enumerate() {
            if nth >= parts.len() && carry == (sign != 0) {
                break;
            }
            let part = parts.get(nth).copied().unwrap_or(sign);
            (*word, carry) = add_words(*word, part, carry);
        }
    }

    fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (word, other) in self.0.iter_mut().zip(other.0) {
            (*word, carry) = add_words(*word, other, carry);
        }
    }

    fn divided(mut self, count: u64) -> f64 {
        let negative = self.0.last().is_some_and(|word| word >> 63 != 0);
        if negative {
            let mut carry = true;
            for word in &mut self.0 {
                (*word, carry) = add_words(!*word, 0, carry);
            }
        }
        let inexact = count > 1 && self.divide(count);
        let magnitude = self.rounded(inexact);
        if negative { -magnitude } else { magnitude }
    }

    /// Divides it, which is not negative, to more bits than a double has; whether there is a rest.
    fn divide(&mut self, count: u64) -> bool {
        let top = self.0.iter().rposition(|word| *word != 0).unwrap_or_default();
        let (below, above) = self.0.split_at_mut(top.saturating_sub(3));
        let mut rest = 0_u128;
        for word in above.iter_mut().rev() {
            let part = rest << 64 | u128::from(*word);
            *word = (part / u128::from(count)) as u64;
            rest = part % u128::from(count);
        }
        let more = below.iter().any(|word| *word != 0);
        below.fill(0);
        rest != 0 || more
    }

    /// The nearest double of it, which is not negative, where it is a little more if `inexact`.
    fn rounded(&self, inexact: bool) -> f64 {
        let Some(top) = self.0.iter().rposition(|word| *word != 0) else {
            return 0.0;
        };
        let word = |at: usize| u128::from(self.0.get(at).copied().unwrap_or_default());
        let bits = top * 64 + 63 - word(top).leading_zeros().saturating_sub(64) as usize;
        // Of subnormal numbers fewer bits are left than 53.
        let shift = (bits.saturating_sub(52)).max(64);
        // The implicit bit of what is kept, and a carry out of it, count up the exponent.
        let exponent = shift as u64 - 64;
        if exponent >= 0x7fe {
            return f64::MAX;
        }
        let (at, within) = (shift / 64, shift % 64);
        let kept = ((word(at + 1) << 64 | word(at)) >> within) as u64;
        let rest = match within {
            0 => word(at - 1) << 64,
            within => (word(at) << (64 - within) & u128::from(u64::MAX)) << 64 | word(at - 1),
        };
        let below = self.0.iter().take(at - 1).any(|word| *word != 0);
        let up = match rest.cmp(&(1 << 127)) {
            Ordering::Less => false,
            Ordering::Equal => below || inexact || kept % 2 == 1,
            Ordering::Greater => true,
        };
        f64::from_bits((exponent << 52) + kept + u64::from(up)).min(f64::MAX)
    }
}

/// One step of a long addition.
fn add_words(one: u64, other: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = one.overflowing_add(other);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first || second)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// A sum of numbers, in parts that are merged.
    fn sum(numbers: &[f64], part: usize) -> ExactSum {
        let mut all = ExactSum::default();
        for numbers in numbers.chunks(part) {
            let mut own = ExactSum::default();
            for number in numbers {
                own.add(*number);
            }
            all.merge(&own);
        }
        all
    }

    fn avg(numbers: &[f64]) -> f64 {
        sum(numbers, 100).divided(numbers.len() as u64)
    }

    #[test]
    fn what_is_lost_in_doubles_is_not_lost() {
        assert_eq!(avg(&[1e308, 1e308]), 1e308);
        assert_eq!(avg(&[f64::MAX, f64::MAX, f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX], 1).divided(1), f64::MAX);
        assert_eq!(sum(&[f64::MIN, f64::MIN], 1).divided(1), f64::MIN);
        let tiny = f64::from_bits(1);
        for part in [1, 2, 5] {
            assert_eq!(sum(&[1e300, 1.0, tiny, -1e300, -1.0], part).divided(1), tiny);
            assert_eq!(sum(&[1e16, 1.0, 1.0, 1.0, -1e16], part).divided(1), 3.0);
            assert_eq!(sum(&[0.0, -0.0], part).divided(1).to_bits(), 0);
        }
        // Halves are rounded to the even neighbour, and a little more than one is more.
        let (one, ulp) = (1.0_f64, f64::EPSILON);
        assert_eq!(sum(&[one, ulp / 2.0], 9).divided(1), one);
        assert_eq!(sum(&[one + ulp, ulp / 2.0], 9).divided(1), one + 2.0 * ulp);
        assert_eq!(sum(&[one, ulp / 2.0, tiny], 9).divided(1), one + ulp);
        assert_eq!(sum(&[-one, ulp / -2.0, -tiny], 9).divided(1), -one - ulp);
        // Below the normal numbers there are fewer bits.
        assert_eq!(avg(&[tiny, 0.0]), 0.0);
        assert_eq!(avg(&[3.0 * tiny, 0.0]), 2.0 * tiny);
        assert_eq!(avg(&[tiny, tiny, 0.0]), tiny);
        assert_eq!(avg(&[1.0, 0.0, 0.0]), 1.0 / 3.0);
        let least = f64::MIN_POSITIVE;
        assert_eq!(sum(&[least, -tiny], 1).divided(1), least - tiny);
    }

    #[test]
    fn a_sum_is_as_narrow_with_zeros_as_without() {
        let mut sum = ExactSum::default();
        assert!(!sum.add(1e300));
        assert!(!sum.add(0.0) && !sum.add(-0.0));
        assert_eq!((sum.is_wide(), sum.divided(1)), (false, 1e300));
        assert!(sum.add(f64::from_bits(1)));
    }

    #[test]
    fn sums_say_when_they_become_wide() {
        let of = |number| {
            let mut sum = ExactSum::default();
            assert!(!sum.add(number));
            sum
        };
        let mut sum = of(1.0);
        assert!(!sum.merge(&of(2.0)) && !sum.is_wide());
        assert!(sum.merge(&of(1e-300)) && sum.is_wide());
        assert!(!sum.merge(&of(1e300)));
        // What was wide in one segment is in all.
        let mut all = ExactSum::default();
        assert!(all.merge(&sum) && !all.merge(&sum));
    }

    #[test]
    fn whole_numbers_have_the_nearest_mean() {
        let mut sum = ExactSum::default();
        [i64::MAX, i64::MAX, i64::MIN]
            .iter()
            .for_each(|number| sum.add_whole(*number));
        assert_eq!(sum.whole(), (1 << 63) - 2);
        // (2⁶³ − 2) / 3, of which a double has 53 bits.
        assert_eq!(sum.divided(3), 3_074_457_345_618_258_602_i64 as f64);
        assert_eq!(ExactSum::default().divided(1), 0.0);
    }

    /// Whole numbers times a power of two, of which the true sum is known as a whole number.
    #[test]
    fn sums_are_the_nearest_double_in_every_order() {
        let mut rng = Rng::with_seed(11);
        for _ in 0..2_000 {
            let mut numbers = Vec::new();
            let mut exact = 0_i128;
            for _ in 0..rng.usize(1..40) {
                let whole = i128::from(rng.i64(-(1 << 53)..1 << 53) >> rng.u32(..53)) << rng.u32(..60);
                exact += whole;
                numbers.push(whole as f64);
            }
            let power = rng.i32(-1074..850);
            let scale = |number: f64| number * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2);
            numbers.iter_mut().for_each(|number| *number = scale(*number));
            let expected = scale(exact as f64);
            for part in [1, 3, 100] {
                rng.shuffle(&mut numbers);
                assert_eq!(sum(&numbers, part).divided(1), expected, "{numbers:?}");
            }
        }
    }
}
