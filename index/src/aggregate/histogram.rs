//! Groups that are intervals of numbers or times.

use tantivy::columnar::MonotonicallyMappableToU64;

use super::calendar::Calendar;
use super::column::Kind;
use super::ranges::{OPEN, first_from};
use crate::request::QueryValue;
use crate::request::ValueRange;
use crate::result::Datum;

/// How values become intervals.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Steps {
    /// Whole numbers, from `offset`, which is below the interval and not negative.
    Whole {
        interval: i64,
        offset: i64,
    },
    /// Numbers of which the intervals are doubles; `long` when the values are not.
    Real {
        interval: f64,
        offset: f64,
        long: bool,
    },
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
                let begin = whole_begin(i64::from_u64(number).into(), *interval, *offset);
                i64::try_from(begin).unwrap_or(i64::MIN).to_u64()
            }
            Self::Real { long, .. } => {
                let value = if *long {
                    i64::from_u64(number) as f64
                } else {
                    f64::from_u64(number)
                };
                self.real_key(value)
            }
            Self::Calendar(calendar) => calendar.begin(i64::from_u64(number)).to_u64(),
        }
    }

    fn real_key(&self, value: f64) -> u64 {
        let step = match self {
            Self::Real { interval, offset, .. } => ((value - offset) / interval).floor(),
            Self::Whole { .. } | Self::Calendar(_) => value,
        };
        self.real_begin(step).unwrap_or(value + 0.0).to_u64()
    }

    /// Where the interval of a step begins; none that is so far that steps are infinite.
    fn real_begin(&self, step: f64) -> Option<f64> {
        let begin = match self {
            Self::Real { interval, offset, .. } => (step * interval + offset).clamp(f64::MIN, f64::MAX) + 0.0,
            Self::Whole { .. } | Self::Calendar(_) => step,
        };
        step.is_finite().then_some(begin)
    }

    /// The key of the interval behind that of `key`; `None` at the end of all.
    pub(super) fn next(&self, key: u64) -> Option<u64> {
        let next = match self {
            // The first interval may begin before all numbers.
            Self::Whole { interval, offset } => {
                let begin = whole_begin(i64::from_u64(key).into(), *interval, *offset);
                i64::try_from(begin + i128::from(*interval)).ok()?.to_u64()
            }
            // Where intervals are narrower than doubles are apart, each double is one.
            Self::Real { interval, offset, .. } => {
                let begin = f64::from_u64(key);
                let step = ((begin - offset) / interval).round();
                let next = self.real_begin(step + 1.0).unwrap_or(begin);
                (next.max(begin.next_up()).min(f64::MAX) + 0.0).to_u64()
            }
            Self::Calendar(calendar) => calendar.next(i64::from_u64(key))?.to_u64(),
        };
        (next > key).then_some(next)
    }

    pub(super) fn datum(&self, key: u64) -> Datum {
        match self {
            Self::Whole { .. } => Datum::Long(i64::from_u64(key)),
            Self::Real { .. } => Datum::Double(f64::from_u64(key)),
            Self::Calendar(_) => Datum::Date(i64::from_u64(key)),
        }
    }
}

/// Where the interval of a whole number begins.
fn whole_begin(number: i128, interval: i64, offset: i64) -> i128 {
    let (interval, offset) = (i128::from(interval), i128::from(offset));
    (number - offset).div_euclid(interval) * interval + offset
}

/// Which intervals are shown: those that overlap a range of real numbers, whichever numbers the field can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) first: u64,
    /// The first key behind; [`OPEN`] when there is none.
    end: u128,
    /// Whether the range has both ends.
    pub(super) closed: bool,
}

impl Bounds {
    /// The intervals of a field's numbers that overlap `range`, whose ends were checked.
    pub(super) fn new(steps: &Steps, kind: Kind, range: &ValueRange) -> Self {
        // Keys of real intervals are doubles, whatever the numbers in them are.
        let of_keys = match steps {
            Steps::Real { .. } => Kind::Double,
            Steps::Whole { .. } | Steps::Calendar(_) => kind,
        };
        let first_from = |value: &QueryValue| first_from(of_keys, value).map_or(OPEN, |(first, _)| first);
        let number = |first: u128| u64::try_from(first).unwrap_or(u64::MAX);
        // The interval that holds the lower end; none that begins behind all numbers.
        let first = match (steps, &range.from) {
            (_, None) => Some(0),
            (Steps::Whole { interval, offset }, Some(QueryValue::Double(from))) => {
                // What lies before all numbers is where they begin.
                let from = from.max(i64::MIN as f64).floor() as i128;
                let begin = whole_begin(from, *interval, *offset);
                let lowest = begin.max(i64::MIN.into());
                i64::try_from(lowest).ok().map(MonotonicallyMappableToU64::to_u64)
            }
            (Steps::Real { .. }, Some(from)) => Some(steps.real_key(f64::from_u64(number(first_from(from))))),
            (_, Some(from)) => Some(steps.key(number(first_from(from)))),
        };
        Self {
            first: first.unwrap_or(u64::MAX),
            end: match (first, &range.to) {
                (None, _) => 0,
                (Some(_), None) => OPEN,
                (Some(_), Some(to)) => first_from(to),
            },
            closed: range.from.is_some() && range.to.is_some(),
        }
    }

    pub(super) fn hold(&self, key: u64) -> bool {
        key >= self.first && u128::from(key) < self.end
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

    fn shown(
        steps: &Steps,
        kind: Kind,
        range: (Option<QueryValue>, Option<QueryValue>),
        keys: &[u64],
    ) -> Vec<Datum> {
        let (from, to) = range;
        let bounds = Bounds::new(steps, kind, &ValueRange { from, to });
        let shown = keys.iter().filter(|key| bounds.hold(**key));
        shown.map(|key| steps.datum(*key)).collect()
    }

    #[test]
    fn intervals_are_shown_that_overlap_a_range() {
        let whole = Steps::of_long(10.0, 0.0);
        let real = Steps::of_long(2.5, 0.0);
        let long = |from: Option<QueryValue>, to: Option<QueryValue>, keys: &[i64]| {
            let keys: Vec<u64> = keys.iter().map(|key| key.to_u64()).collect();
            shown(&whole, Kind::Long, (from, to), &keys)
        };
        let double = |from: Option<QueryValue>, to: Option<QueryValue>| {
            let keys: Vec<u64> = [2.5, 5.0, 7.5, 10.0].map(|key: f64| key.to_u64()).to_vec();
            let shown = shown(&real, Kind::Long, (from, to), &keys);
            shown.iter().map(double_of).collect::<Vec<_>>()
        };
        // Seven and a bit: the interval from 7.5 doesn't overlap it, though eight is the next whole number.
        assert_eq!(double(None, Some(7.2.into())), [2.5, 5.0]);
        assert_eq!(double(None, Some(7.6.into())), [2.5, 5.0, 7.5]);
        assert_eq!(double(Some(7.2.into()), None), [5.0, 7.5, 10.0]);
        assert_eq!(double(Some(7.into()), Some(8.into())), [5.0, 7.5]);
        let tens = [0, 10, 20];
        assert_eq!(long(Some(9.5.into()), None, &tens).len(), 3);
        assert_eq!(
            long(Some(10.0.into()), Some(10.5.into()), &tens),
            [Datum::Long(10)]
        );
        assert_eq!(long(None, Some(10.0.into()), &tens), [Datum::Long(0)]);
        // 2⁶³ is behind every number.
        let (end, ends) = (9_223_372_036_854_775_808.0, [i64::MIN, i64::MAX]);
        let ones = Steps::of_long(1.0, 0.0);
        let one = |from: Option<QueryValue>, to: Option<QueryValue>| {
            shown(&ones, Kind::Long, (from, to), &ends.map(|key| key.to_u64()))
        };
        assert_eq!(one(None, Some(end.into())), ends.map(Datum::Long));
        assert_eq!(one(Some((-end).into()), Some(end.into())), ends.map(Datum::Long));
        assert_eq!(one(Some(end.into()), None), []);
        assert_eq!(one(None, Some((-end).into())), []);
        let threes = shown(
            &Steps::of_long(10.0, 3.0),
            Kind::Long,
            (Some(f64::MIN.into()), Some(f64::MAX.into())),
            &[-7, 3].map(|key: i64| key.to_u64()),
        );
        assert_eq!(threes, [Datum::Long(-7), Datum::Long(3)]);
        assert_eq!(one(None, Some(i64::MAX.into())), [Datum::Long(i64::MIN)]);
        assert_eq!(one(Some(i64::MAX.into()), None), [Datum::Long(i64::MAX)]);
    }

    #[test]
    fn doubles_are_intervals_of_their_own_where_intervals_are_narrower_than_they_are_apart() {
        let steps = Steps::Real {
            interval: 1e-10,
            offset: 0.0,
            long: false,
        };
        for number in [1e300, -1e300, f64::MAX, f64::MIN] {
            let key = steps.key(number.to_u64());
            assert_eq!(steps.datum(key), Datum::Double(number));
            let next = Some(number.next_up()).filter(|next| next.is_finite());
            assert_eq!(steps.next(key).map(f64::from_u64), next, "{number}");
        }
    }

    fn double_of(datum: &Datum) -> f64 {
        match datum {
            Datum::Double(number) => *number,
            other => panic!("no double: {other:?}"),
        }
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
