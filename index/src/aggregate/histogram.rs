//! Groups that are intervals of numbers or times.

use tantivy::columnar::MonotonicallyMappableToU64;

use super::Datum;
use super::calendar::Calendar;

/// How values become intervals.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Steps {
    /// Whole numbers, from `offset`, which is below the interval and not negative.
    Whole { interval: i64, offset: i64 },
    /// Numbers of which the intervals are doubles; `long` when the values are not.
    Real { interval: f64, offset: f64, long: bool },
    /// Times.
    Calendar(Calendar),
}

impl Steps {
    /// The steps of a LONG, whole ones if they can be.
    pub(super) fn of_long(interval: f64, offset: f64) -> Self {
        let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9.0e18).then_some(number as i64);
        match (whole(interval), whole(offset)) {
            (Some(interval), Some(offset)) if interval > 0 => Self::Whole {
                interval,
                offset: offset.rem_euclid(interval),
            },
            _ => Self::Real {
                interval,
                offset,
                long: true,
            },
        }
    }

    /// The key of the interval that holds a number: its beginning. All are mapped so that the order is kept.
    pub(super) fn key(&self, number: u64) -> u64 {
        match self {
            Self::Whole { interval, offset } => {
                let from_offset = i128::from(i64::from_u64(number)) - i128::from(*offset);
                let step = from_offset.div_euclid(i128::from(*interval));
                let begin = step * i128::from(*interval) + i128::from(*offset);
                i64::try_from(begin).unwrap_or(i64::MIN).to_u64()
            }
            Self::Real {
                interval,
                offset,
                long,
            } => {
                let value = if *long {
                    i64::from_u64(number) as f64
                } else {
                    f64::from_u64(number)
                };
                self.real_begin(((value - offset) / interval).floor()).to_u64()
            }
            Self::Calendar(calendar) => calendar.begin(i64::from_u64(number)).to_u64(),
        }
    }

    fn real_begin(&self, step: f64) -> f64 {
        match self {
            Self::Real { interval, offset, .. } => (step * interval + offset).clamp(f64::MIN, f64::MAX) + 0.0,
            Self::Whole { .. } | Self::Calendar(_) => step,
        }
    }

    /// The key of the interval behind that of `key`; `None` at the end of all.
    pub(super) fn next(&self, key: u64) -> Option<u64> {
        let next = match self {
            Self::Whole { interval, .. } => i64::from_u64(key).checked_add(*interval)?.to_u64(),
            Self::Real { interval, offset, .. } => {
                let step = ((f64::from_u64(key) - offset) / interval).round();
                self.real_begin(step + 1.0).to_u64()
            }
            Self::Calendar(calendar) => calendar.next(i64::from_u64(key))?.to_u64(),
        };
        (next > key).then_some(next)
    }

    /// A key as it is shown.
    pub(super) fn datum(&self, key: u64) -> Datum {
        match self {
            Self::Whole { .. } => Datum::Long(i64::from_u64(key)),
            Self::Real { .. } => Datum::Double(f64::from_u64(key)),
            Self::Calendar(_) => Datum::Date(i64::from_u64(key)),
        }
    }
}

/// Which intervals are shown: those that overlap a range. Ends are mapped numbers, absent where open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The first key.
    pub(super) first: Option<u64>,
    /// Keys from here on are outside.
    pub(super) end: Option<u64>,
}

impl Bounds {
    pub(super) fn hold(&self, key: u64) -> bool {
        self.first.is_none_or(|first| key >= first) && self.end.is_none_or(|end| key < end)
    }
}

/// The interval of the value before: values near each other are often in one.
#[derive(Clone, Copy, Default)]
pub(super) struct Recent {
    begin: u64,
    end: u64,
}

impl Recent {
    /// [`Steps::key`], quicker for values of the same interval.
    pub(super) fn key(&mut self, steps: &Steps, number: u64) -> u64 {
        if !matches!(steps, Steps::Calendar(_)) {
            return steps.key(number);
        }
        if !(self.begin..self.end).contains(&number) {
            self.begin = steps.key(number);
            self.end = steps.next(self.begin).unwrap_or(self.begin);
            // Where clocks go back, the next interval may begin before a number of this one.
            if !(self.begin..self.end).contains(&number) {
                let begin = self.begin;
                *self = Self::default();
                return begin;
            }
        }
        self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_at_the_ends() {
        let steps = Steps::of_long(10.0, 23.0);
        assert_eq!(
            steps,
            Steps::Whole {
                interval: 10,
                offset: 3
            }
        );
        for (number, begin) in [
            (3, 3),
            (12, 3),
            (13, 13),
            (2, -7),
            (i64::MAX, 9_223_372_036_854_775_803),
            (i64::MIN, i64::MIN),
        ] {
            assert_eq!(
                steps.datum(steps.key(number.to_u64())),
                Datum::Long(begin),
                "{number}"
            );
        }
        assert_eq!(steps.next(steps.key(i64::MAX.to_u64())), None);
    }

    #[test]
    fn intervals_follow_each_other() {
        let steps = Steps::of_long(0.1, 0.0);
        assert_eq!(steps.datum(steps.key(3_i64.to_u64())), Datum::Double(3.0));
        let mut key = steps.key(0_i64.to_u64());
        for _ in 0..100 {
            let next = steps.next(key).expect("there is another");
            assert!(next > key);
            key = next;
        }
        let Datum::Double(tenth) = steps.datum(key) else {
            panic!("a double")
        };
        assert!((tenth - 10.0).abs() < 1e-9, "{tenth}");
    }
}
