//! Numbers of one type compared with a column of another, exactly: no rounding decides a match.

use std::cmp::Ordering;
use std::ops::{Bound, RangeInclusive};

use tantivy::columnar::MonotonicallyMappableToU64;

use crate::request::QueryValue;

/// A number of a query. Doubles are finite, and -0.0 is 0.0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i64),
    Double(f64),
}

impl Number {
    /// The number of a value, if it is one that can be compared.
    pub(crate) fn of(value: &QueryValue) -> Option<Self> {
        match value {
            QueryValue::Integer(number) | QueryValue::Time(number) => Some(Self::Integer(*number)),
            QueryValue::Double(number) if number.is_finite() => Some(Self::Double(*number + 0.0)),
            QueryValue::Double(_) | QueryValue::String(_) | QueryValue::Boolean(_) | QueryValue::Bytes(_) => {
                None
            }
        }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => a.total_cmp(&b),
            (Self::Integer(a), Self::Double(b)) => compare(a, b),
            (Self::Double(a), Self::Integer(b)) => compare(b, a).reverse(),
        }
    }

    /// The integer that equals it.
    pub(crate) fn as_integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Double(number) if number.fract() == 0.0 => i64::try_from(number as i128).ok(),
            Self::Double(_) => None,
        }
    }

    /// The double that equals it.
    pub(crate) fn as_double(self) -> Option<f64> {
        match self {
            Self::Integer(number) => {
                let rounded = number as f64;
                (compare(number, rounded) == Ordering::Equal).then_some(rounded)
            }
            Self::Double(number) => Some(number),
        }
    }
}

/// Compares an integer with a finite double.
fn compare(integer: i64, double: f64) -> Ordering {
    // Doubles beyond i128 become its ends; below, the cast cuts towards zero, and the fraction decides ties.
    i128::from(integer)
        .cmp(&(double as i128))
        .then_with(|| 0.0_f64.total_cmp(&(double.fract() + 0.0)))
}

/// The integers between two bounds; `None` when there are none.
pub(crate) fn integers(lower: Bound<Number>, upper: Bound<Number>) -> Option<RangeInclusive<i64>> {
    let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
    // A cast to i128 cuts off at its ends, which are far enough from those of i64 to add one.
    let whole = |number: Number, round: fn(f64) -> f64| match number {
        Number::Integer(number) => i128::from(number),
        Number::Double(number) => (round(number) as i128).clamp(min - 2, max + 2),
    };
    let floor = |number: Number| whole(number, f64::floor);
    let ceiling = |number: Number| whole(number, f64::ceil);
    let from = match lower {
        Bound::Included(number) => ceiling(number),
        Bound::Excluded(number) => floor(number) + 1,
        Bound::Unbounded => min,
    };
    let to = match upper {
        Bound::Included(number) => floor(number),
        Bound::Excluded(number) => ceiling(number) - 1,
        Bound::Unbounded => max,
    };
    let (from, to) = (from.max(min), to.min(max));
    match (i64::try_from(from), i64::try_from(to)) {
        (Ok(from), Ok(to)) if from <= to => Some(from..=to),
        _ => None,
    }
}

/// The doubles between two bounds, as numbers whose order is theirs; `None` when there are none.
pub(crate) fn double_positions(lower: Bound<Number>, upper: Bound<Number>) -> Option<RangeInclusive<u64>> {
    let from = match edge(lower, Ordering::Less) {
        Bound::Included(double) => double.to_u64(),
        Bound::Excluded(double) => double.to_u64().checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let to = match edge(upper, Ordering::Greater) {
        Bound::Included(double) => double.to_u64(),
        Bound::Excluded(double) => double.to_u64().checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    (from <= to).then_some(from..=to)
}

/// A bound on doubles. An integer that no double equals lies between its rounding and the next double: the rounding
/// belongs to the range unless it lies `outside`.
fn edge(bound: Bound<Number>, outside: Ordering) -> Bound<f64> {
    let (number, included) = match bound {
        Bound::Included(number) => (number, true),
        Bound::Excluded(number) => (number, false),
        Bound::Unbounded => return Bound::Unbounded,
    };
    let (rounded, included) = match number {
        Number::Double(number) => (number, included),
        Number::Integer(number) => {
            let rounded = number as f64;
            let inside = match compare(number, rounded).reverse() {
                Ordering::Equal => included,
                side => side != outside,
            };
            (rounded, inside)
        }
    };
    if included {
        Bound::Included(rounded)
    } else {
        Bound::Excluded(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [Number; 14] = [
        Number::Integer(i64::MIN),
        Number::Integer(-9_007_199_254_740_993),
        Number::Integer(-1),
        Number::Integer(0),
        Number::Integer(7),
        Number::Integer(9_007_199_254_740_993),
        Number::Integer(i64::MAX),
        Number::Double(f64::MIN),
        Number::Double(-9_223_372_036_854_775_808.0),
        Number::Double(-0.5),
        Number::Double(0.0),
        Number::Double(6.999),
        Number::Double(9_223_372_036_854_775_808.0),
        Number::Double(f64::MAX),
    ];

    fn bounds() -> impl Iterator<Item = Bound<Number>> {
        NUMBERS
            .into_iter()
            .flat_map(|number| [Bound::Included(number), Bound::Excluded(number)])
            .chain([Bound::Unbounded])
    }

    fn within(number: Number, lower: Bound<Number>, upper: Bound<Number>) -> bool {
        let above = match lower {
            Bound::Included(bound) => number.compare(bound).is_ge(),
            Bound::Excluded(bound) => number.compare(bound).is_gt(),
            Bound::Unbounded => true,
        };
        let below = match upper {
            Bound::Included(bound) => number.compare(bound).is_le(),
            Bound::Excluded(bound) => number.compare(bound).is_lt(),
            Bound::Unbounded => true,
        };
        above && below
    }

    #[test]
    fn integers_and_doubles_compare_exactly() {
        let less = |a: Number, b: Number| {
            assert_eq!(
                (a.compare(b), b.compare(a)),
                (Ordering::Less, Ordering::Greater),
                "{a:?} {b:?}"
            );
        };
        less(
            Number::Integer(9_007_199_254_740_992),
            Number::Integer(9_007_199_254_740_993),
        );
        less(
            Number::Double(9_007_199_254_740_992.0),
            Number::Integer(9_007_199_254_740_993),
        );
        less(
            Number::Integer(i64::MAX),
            Number::Double(9_223_372_036_854_775_808.0),
        );
        less(Number::Double(-0.5), Number::Integer(0));
        less(Number::Integer(0), Number::Double(0.5));
        less(Number::Double(f64::MIN), Number::Integer(i64::MIN));
        assert_eq!(Number::Integer(7).compare(Number::Double(7.0)), Ordering::Equal);
        assert_eq!(
            Number::of(&QueryValue::Double(-0.0)),
            Number::of(&QueryValue::Double(0.0))
        );
        assert_eq!(Number::of(&QueryValue::Double(f64::NAN)), None);
    }

    #[test]
    fn ranges_hold_exactly_the_numbers_between_their_bounds() {
        let integers_near = |number: Number| {
            let center = match number {
                Number::Integer(number) => number,
                Number::Double(number) => number as i64,
            };
            [center.saturating_sub(1), center, center.saturating_add(1)]
        };
        for lower in bounds() {
            for upper in bounds() {
                let range = integers(lower, upper);
                let (from, to) = (edge(lower, Ordering::Less), edge(upper, Ordering::Greater));
                let positions = double_positions(lower, upper);
                for number in NUMBERS.into_iter().flat_map(integers_near) {
                    let expected = within(Number::Integer(number), lower, upper);
                    let actual = range.as_ref().is_some_and(|range| range.contains(&number));
                    assert_eq!(actual, expected, "{number} in {lower:?} {upper:?}");
                    for double in [
                        (number as f64).next_down(),
                        number as f64,
                        (number as f64).next_up(),
                    ] {
                        let expected = within(Number::Double(double + 0.0), lower, upper);
                        let actual = std::ops::RangeBounds::contains(&(from, to), &double);
                        assert_eq!(actual, expected, "{double} in {lower:?} {upper:?}");
                        let position = (double + 0.0).to_u64();
                        let actual = positions.as_ref().is_some_and(|range| range.contains(&position));
                        assert_eq!(
                            actual, expected,
                            "the position of {double} in {lower:?} {upper:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn equal_numbers_of_the_other_type() {
        assert_eq!(Number::Double(7.0).as_integer(), Some(7));
        assert_eq!(Number::Double(7.5).as_integer(), None);
        assert_eq!(Number::Double(9_223_372_036_854_775_808.0).as_integer(), None);
        assert_eq!(Number::Integer(9_007_199_254_740_993).as_double(), None);
        assert_eq!(Number::Integer(-8).as_double(), Some(-8.0));
    }
}
