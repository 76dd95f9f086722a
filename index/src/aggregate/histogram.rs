//! Groups that are intervals of numbers or times.

use tantivy::columnar::MonotonicallyMappableToU64;

use super::calendar::Calendar;
use super::column::Kind;
use super::ranges::{OPEN, first_from};
use crate::request::{QueryValue, ValueRange};
use crate::result::Datum;

/// Width that wider whole intervals are treated as, 2⁶⁸: at most one boundary of theirs lies among all integers of 64 bits.
const WIDEST: f64 = (1_i128 << 68) as f64;

/// The intervals of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Intervals {
    /// Intervals with whole numbers as boundaries: one is `offset`, the others are multiples of `interval` from it.
    Whole {
        interval: i128,
        offset: i128,
        /// The greatest double that isn't above the beginning of the first interval with numbers, and the least one that
        /// isn't below the end of the last.
        reach: (f64, f64),
    },
    /// Intervals with doubles as boundaries. The offset is less than an interval from 0. `long`: the values are integers.
    Real {
        interval: f64,
        offset: f64,
        long: bool,
    },
    Calendar(Calendar),
}

impl Intervals {
    /// The intervals of a LONG, whole ones if they can be.
    pub(super) fn of_long(interval: f64, offset: f64) -> Self {
        // Remainders of doubles are exact.
        let offset = offset % interval;
        if interval.fract() == 0.0 && offset.fract() == 0.0 {
            Self::whole(interval, offset)
        } else {
            Self::Real {
                interval,
                offset,
                long: true,
            }
        }
    }

    pub(super) fn of_double(interval: f64, offset: f64) -> Self {
        Self::Real {
            interval,
            offset: offset % interval,
            long: false,
        }
    }

    fn whole(interval: f64, offset: f64) -> Self {
        // The boundary that is nearest to 0. The difference is exact: neither is more than twice the other.
        let nearest = if offset.abs() <= interval / 2.0 {
            offset
        } else {
            offset - interval.copysign(offset)
        };
        // Of wider intervals at most one boundary lies among the numbers, whatever their width.
        let width = interval.min(WIDEST) as i128;
        let begin = nearest.clamp(-WIDEST / 2.0, WIDEST / 2.0) as i128;
        let reach = if interval <= WIDEST {
            let first = whole_begin(i64::MIN.into(), width, begin);
            let end = whole_begin(i64::MAX.into(), width, begin) + width;
            let (low, high) = (first as f64, end as f64);
            (down(low, first < low as i128), up(high, end > high as i128))
        } else {
            let (low, high) = (nearest - interval, nearest + interval);
            let low = down(low, nearest < low + interval);
            let high = up(high, nearest > high - interval);
            let (inside_low, inside_high) = (nearest > i64::MIN as f64, nearest < i64::MAX as f64);
            (
                if inside_low { low } else { nearest },
                if inside_high { high } else { nearest },
            )
        };
        Self::Whole {
            interval: width,
            offset: begin,
            reach,
        }
    }

    /// The key of the interval that holds a number: its beginning. All are mapped so that the order is kept.
    pub(super) fn key(&self, number: u64) -> u64 {
        match self {
            Self::Whole { interval, offset, .. } => {
                let begin = whole_begin(i64::from_u64(number).into(), *interval, *offset);
                i64::try_from(begin).unwrap_or(i64::MIN).to_u64()
            }
            Self::Real { long: true, .. } => self.real_key(i64::from_u64(number) as f64),
            Self::Real { long: false, .. } => self.real_key(f64::from_u64(number)),
            Self::Calendar(calendar) => calendar.begin(i64::from_u64(number)).to_u64(),
        }
    }

    fn real_key(&self, value: f64) -> u64 {
        let step = self.real_step(value).floor();
        self.real_begin(step).unwrap_or(value + 0.0).to_u64()
    }

    /// How many intervals a number lies behind the offset, with a fraction.
    fn real_step(&self, value: f64) -> f64 {
        match self {
            // The difference of the greatest numbers is infinite, that of their halves isn't.
            Self::Real { interval, offset, .. } if (value - offset).is_infinite() => {
                (value / 2.0 - offset / 2.0) / (interval / 2.0)
            }
            Self::Real { interval, offset, .. } => (value - offset) / interval,
            Self::Whole { .. } | Self::Calendar(_) => value,
        }
    }

    /// Where the interval of a step begins; `None` of an infinite step.
    fn real_begin(&self, step: f64) -> Option<f64> {
        let begin = match self {
            Self::Real { interval, offset, .. } => {
                let begin = step * interval + offset;
                // The product alone may be infinite.
                let begin = if begin.is_finite() {
                    begin
                } else {
                    step.mul_add(*interval, *offset)
                };
                begin.clamp(f64::MIN, f64::MAX) + 0.0
            }
            Self::Whole { .. } | Self::Calendar(_) => step,
        };
        step.is_finite().then_some(begin)
    }

    /// The key of the interval behind that of `key`; `None` behind the last.
    pub(super) fn next(&self, key: u64) -> Option<u64> {
        let next = match self {
            // The first interval may begin before all numbers.
            Self::Whole { interval, offset, .. } => {
                let begin = whole_begin(i64::from_u64(key).into(), *interval, *offset);
                i64::try_from(begin + interval).ok()?.to_u64()
            }
            // Where intervals are narrower than doubles are apart, each double is one.
            Self::Real { .. } => {
                let begin = f64::from_u64(key);
                let step = self.real_step(begin).round();
                // The first interval may begin before all numbers, nearer to the boundary behind it.
                let passed = self.real_begin(step).is_some_and(|boundary| boundary > begin);
                let step = if passed { step - 1.0 } else { step };
                let next = self.real_begin(step + 1.0).unwrap_or(begin);
                (next.max(begin.next_up()).min(f64::MAX) + 0.0).to_u64()
            }
            Self::Calendar(calendar) => calendar.next(i64::from_u64(key))?.to_u64(),
        };
        (next > key).then_some(next)
    }

    /// The value that a key stands for.
    pub(super) fn datum(&self, key: u64) -> Datum {
        match self {
            Self::Whole { .. } => Datum::Long(i64::from_u64(key)),
            Self::Real { .. } => Datum::Double(f64::from_u64(key)),
            Self::Calendar(_) => Datum::Date(i64::from_u64(key)),
        }
    }
}

/// The number, or if `further` the double before it.
fn down(number: f64, further: bool) -> f64 {
    if further { number.next_down() } else { number }
}

/// The number, or if `further` the double behind it.
fn up(number: f64, further: bool) -> f64 {
    if further { number.next_up() } else { number }
}

/// Where the interval of a whole number begins.
fn whole_begin(number: i128, interval: i128, offset: i128) -> i128 {
    (number - offset).div_euclid(interval) * interval + offset
}

/// Which intervals are shown: those that overlap a range of real numbers, whichever numbers the field can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntervalBounds {
    pub(super) first: u64,
    /// The first key behind; [`OPEN`] when there is none.
    end: u128,
    /// Whether the range has both ends.
    pub(super) closed: bool,
}

impl IntervalBounds {
    /// The intervals of a field's numbers that overlap `range`, whose ends were checked.
    pub(super) fn new(intervals: &Intervals, kind: Kind, range: &ValueRange) -> Self {
        // Keys of real intervals are doubles, whatever the numbers in them are.
        let of_keys = match intervals {
            Intervals::Real { .. } => Kind::Double,
            Intervals::Whole { .. } | Intervals::Calendar(_) => kind,
        };
        let first_from = |value: &QueryValue| first_from(of_keys, value).map_or(OPEN, |(first, _)| first);
        let number = |first: u128| u64::try_from(first).unwrap_or(u64::MAX);
        // The interval that holds the lower end; none that begins behind all numbers.
        let first = match (intervals, &range.from) {
            (_, None) => Some(0),
            // What lies before all numbers is where they begin.
            (Intervals::Whole { reach, .. }, Some(QueryValue::Double(from))) => {
                (*from < reach.1).then(|| intervals.key((from.floor() as i64).to_u64()))
            }
            (Intervals::Real { .. }, Some(from)) => {
                Some(intervals.real_key(f64::from_u64(number(first_from(from)))))
            }
            (_, Some(from)) => Some(intervals.key(number(first_from(from)))),
        };
        Self {
            first: first.unwrap_or(u64::MAX),
            end: match (first, &range.to) {
                (None, _) => 0,
                (Some(_), None) => OPEN,
                (Some(_), Some(to)) => {
                    // Before all numbers there is a part of the first interval.
                    let part = match (intervals, to) {
                        (Intervals::Whole { reach, .. }, QueryValue::Double(before)) => *before > reach.0,
                        (Intervals::Whole { reach, .. }, _) => i64::MIN as f64 > reach.0,
                        (Intervals::Calendar(calendar), _) => calendar.moved(i64::MIN, 0) < i64::MIN.into(),
                        (Intervals::Real { .. }, _) => false,
                    };
                    first_from(to).max(part.into())
                }
            },
            closed: range.from.is_some() && range.to.is_some(),
        }
    }

    pub(super) fn contains(&self, key: u64) -> bool {
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
    /// [`Intervals::key`], quicker for values of the same interval.
    pub(super) fn key(&mut self, intervals: &Intervals, number: u64) -> u64 {
        if !matches!(intervals, Intervals::Calendar(_)) {
            return intervals.key(number);
        }
        if !(self.begin..self.end).contains(&number) {
            self.begin = intervals.key(number);
            self.end = intervals.next(self.begin).unwrap_or(self.begin);
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
    use crate::request::{CalendarUnit, TimeZone};

    #[test]
    fn whole_numbers_are_exact_at_the_ends() {
        let intervals = Intervals::of_long(10.0, 23.0);
        assert!(matches!(
            intervals,
            Intervals::Whole {
                interval: 10,
                offset: 3,
                ..
            }
        ));
        for (number, begin) in [
            (3, 3),
            (12, 3),
            (13, 13),
            (2, -7),
            (i64::MAX, 9_223_372_036_854_775_803),
            (i64::MIN, i64::MIN),
        ] {
            assert_eq!(
                intervals.datum(intervals.key(number.to_u64())),
                Datum::Long(begin),
                "{number}"
            );
        }
        assert_eq!(intervals.next(intervals.key(i64::MAX.to_u64())), None);
    }

    #[test]
    fn offsets_far_from_the_numbers_are_those_of_a_boundary_among_them() {
        let key = |intervals: &Intervals, number: f64| f64::from_u64(intervals.key(number.to_u64()));
        let tens = Intervals::of_double(10.0, 1.7e18);
        assert_eq!(
            [5.0, 15.0, 100.0, 300.0].map(|number| key(&tens, number)),
            [0.0, 10.0, 100.0, 300.0]
        );
        assert_eq!(Intervals::of_long(10.0, 9.1e18), Intervals::of_long(10.0, 0.0));
        assert_eq!(
            Intervals::of_long(10.0, -9.3e18 - 2_048.0 * 5.0),
            Intervals::of_long(10.0, 0.0)
        );
        let widest = Intervals::of_double(1e308, 1e308);
        assert_eq!(
            [-1.2e308, -1.0, 5.0, 1e308].map(|number| key(&widest, number)),
            [f64::MIN, -1e308, 0.0, 1e308]
        );
        // Differences and products beyond all doubles, of boundaries within them.
        let apart = Intervals::of_double(1.7e308, -9e307);
        assert_eq!(
            [f64::MIN, -1e308, -9e307, 7.9e307, 8.1e307, f64::MAX].map(|number| key(&apart, number)),
            [
                f64::MIN,
                f64::MIN,
                -9e307,
                -9e307,
                1.7e308 - 9e307,
                1.7e308 - 9e307
            ]
        );
        let power = |exponent: i32| 2_f64.powi(exponent);
        let behind = Intervals::of_double(power(1023), power(1021));
        assert_eq!(key(&behind, -1.25 * power(1023)), -1.75 * power(1023));
    }

    #[test]
    fn whole_intervals_wider_than_all_numbers_have_whole_keys() {
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        let keys = |intervals: &Intervals| ends.map(|number| intervals.datum(intervals.key(number.to_u64())));
        let long = |keys: [i64; 5]| keys.map(Datum::Long);
        let negative = i64::MIN;
        for width in [9e18, 9.3e18, 1e19, 2e19, 1e30, 1e100, 1.7e308] {
            let intervals = Intervals::of_long(width, 0.0);
            let last = if width < 9.2e18 {
                9_000_000_000_000_000_000
            } else {
                0
            };
            let first = if width < 9.2e18 {
                -9_000_000_000_000_000_000
            } else {
                negative
            };
            assert_eq!(keys(&intervals), long([negative, first, 0, 0, last]), "{width}");
            // Of a boundary beside 0.
            assert_eq!(
                keys(&Intervals::of_long(width, 1.0)).first(),
                Some(&Datum::Long(negative)),
                "{width}"
            );
            assert_eq!(
                keys(&Intervals::of_long(width, width)),
                keys(&intervals),
                "an offset of {width}"
            );
        }
        assert_eq!(
            keys(&Intervals::of_long(1e300, 1.0)),
            long([negative, negative, negative, 1, 1])
        );
        // No boundary among the numbers.
        assert_eq!(keys(&Intervals::of_long(1e300, 4e299)), long([negative; 5]));
        assert_eq!(keys(&Intervals::of_long(1e300, -6e299)), long([negative; 5]));
        assert_eq!(
            Intervals::of_long(1e300, 1.0).next(negative.to_u64()),
            Some(1_i64.to_u64())
        );
        assert_eq!(Intervals::of_long(1e300, 1.0).next(1_i64.to_u64()), None);

        // What lies behind all numbers may lie in the interval of the last of them.
        for (interval, offset, from, expected) in [
            (1e300, 0.0, 9e299, vec![0]),
            (1e300, 0.0, 1e300, vec![]),
            (1e300, 0.0, 1e300_f64.next_down(), vec![0]),
            (1e300, 1.0, 1e300, vec![1]),
            (1e300, 1.0, 1e300_f64.next_up(), vec![]),
            (1e300, -1.0, 1e300, vec![]),
            (1e300, -1.0, 1e300_f64.next_down(), vec![-1]),
            (1e300, 4e299, 3e299, vec![negative]),
            (1e300, 4e299, 4e299, vec![]),
            (1e20, 0.0, 5e19, vec![0]),
            (1e20, 0.0, 1e20, vec![]),
            (1e20, 7.0, 1e20, vec![7]),
            (1e20, 7.0, 1e20_f64.next_up(), vec![]),
        ] {
            let intervals = Intervals::of_long(interval, offset);
            let all = [negative, -1, 0, 1, 7].map(|key| key.to_u64());
            let shown = shown(&intervals, Kind::Long, (Some(from.into()), None), &all);
            let expected: Vec<Datum> = expected.into_iter().map(Datum::Long).collect();
            // Those of later boundaries are no keys of these intervals.
            let last = intervals.datum(intervals.key(i64::MAX.to_u64()));
            let shown: Vec<Datum> = shown.into_iter().filter(|key| *key == last).collect();
            assert_eq!(shown, expected, "{interval} {offset} {from}");
        }
        for (interval, offset, to, is_shown) in [
            (1e300, 0.0, -1e300, false),
            (1e300, 0.0, (-1e300_f64).next_up(), true),
            (1e300, -1.0, -1e300, true),
            (1e300, -1.0, (-1e300_f64).next_down(), false),
            (1e300, 1.0, -1e300, false),
            (1e300, -4e299, -4e299, false),
            (1e300, -4e299, -3e299, true),
            (1e20, 0.0, -1e20, false),
            (1e20, 0.0, -9e19, true),
            (1e20, -7.0, -1e20, true),
        ] {
            let intervals = Intervals::of_long(interval, offset);
            let shown = shown(
                &intervals,
                Kind::Long,
                (None, Some(to.into())),
                &[negative.to_u64()],
            );
            assert_eq!(shown.len(), usize::from(is_shown), "{interval} {offset} {to}");
        }
    }

    fn shown(
        intervals: &Intervals,
        kind: Kind,
        range: (Option<QueryValue>, Option<QueryValue>),
        keys: &[u64],
    ) -> Vec<Datum> {
        let (from, to) = range;
        let bounds = IntervalBounds::new(intervals, kind, &ValueRange { from, to });
        let shown = keys.iter().filter(|key| bounds.contains(**key));
        shown.map(|key| intervals.datum(*key)).collect()
    }

    #[test]
    fn intervals_are_shown_that_overlap_a_range() {
        let whole = Intervals::of_long(10.0, 0.0);
        let real = Intervals::of_long(2.5, 0.0);
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
        // The first interval of tens begins at -2⁶³ - 2, of which bounds before all numbers overlap a part.
        let (before, lowest) = (Some(i64::MIN.into()), &[i64::MIN]);
        assert_eq!(
            long(None, Some((i64::MIN as f64).into()), lowest),
            [Datum::Long(i64::MIN)]
        );
        assert_eq!(long(None, Some((i64::MIN as f64).next_down().into()), lowest), []);
        assert_eq!(long(None, Some(i64::MIN.into()), lowest), [Datum::Long(i64::MIN)]);
        assert_eq!(
            long(before, Some((i64::MIN as f64).into()), lowest),
            [Datum::Long(i64::MIN)]
        );
        // 2⁶³ is behind every number.
        let (end, ends) = (9_223_372_036_854_775_808.0, [i64::MIN, i64::MAX]);
        let ones = Intervals::of_long(1.0, 0.0);
        let one = |from: Option<QueryValue>, to: Option<QueryValue>| {
            shown(&ones, Kind::Long, (from, to), &ends.map(|key| key.to_u64()))
        };
        assert_eq!(one(None, Some(end.into())), ends.map(Datum::Long));
        assert_eq!(one(Some((-end).into()), Some(end.into())), ends.map(Datum::Long));
        assert_eq!(one(Some(end.into()), None), []);
        assert_eq!(one(None, Some((-end).into())), []);
        assert_eq!(one(None, Some(i64::MIN.into())), []);
        // So does the first day of times, but not an interval that begins with them.
        let first = Some(QueryValue::Time(i64::MIN));
        for (unit, offset, expected) in [
            (CalendarUnit::Day, 0, &[Datum::Date(i64::MIN)][..]),
            (CalendarUnit::Millisecond, i64::MIN % 1_000_000, &[]),
        ] {
            let calendar = Intervals::Calendar(Calendar::new(1, unit, TimeZone::UTC, offset));
            let shown = shown(&calendar, Kind::Date, (None, first.clone()), &[i64::MIN.to_u64()]);
            assert_eq!(shown, expected, "{unit:?}");
        }
        let threes = shown(
            &Intervals::of_long(10.0, 3.0),
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
        let intervals = Intervals::Real {
            interval: 1e-10,
            offset: 0.0,
            long: false,
        };
        for number in [1e300, -1e300, f64::MAX, f64::MIN] {
            let key = intervals.key(number.to_u64());
            assert_eq!(intervals.datum(key), Datum::Double(number));
            let next = Some(number.next_up()).filter(|next| next.is_finite());
            assert_eq!(intervals.next(key).map(f64::from_u64), next, "{number}");
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
        let intervals = Intervals::of_long(0.1, 0.0);
        assert_eq!(intervals.datum(intervals.key(3_i64.to_u64())), Datum::Double(3.0));
        let mut key = intervals.key(0_i64.to_u64());
        for _ in 0..100 {
            let next = intervals.next(key).expect("there is another");
            assert!(next > key);
            key = next;
        }
        let Datum::Double(tenth) = intervals.datum(key) else {
            panic!("a double")
        };
        assert!((tenth - 10.0).abs() < 1e-9, "{tenth}");
    }
}
