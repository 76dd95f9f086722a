//! Intervals of time: units of fixed length, and days, weeks, months, quarters and years of a time zone.
//!
//! Dates are of the proleptic Gregorian calendar; the arithmetic is Howard Hinnant's ("chrono-compatible low-level date
//! algorithms"). Leap seconds don't exist, as in Unix time.

use crate::request::{CalendarUnit, TimeZone};

const MILLISECOND: i128 = 1_000_000;
const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;

/// Intervals of several units, in a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    interval: i128,
    unit: CalendarUnit,
    /// Local clocks, and groups that begin later, are ahead of UTC by so many nanoseconds.
    ahead: i128,
}

impl Calendar {
    pub(super) fn new(interval: u32, unit: CalendarUnit, zone: TimeZone, offset: i64) -> Self {
        Self {
            interval: i128::from(interval.max(1)),
            unit,
            ahead: i128::from(zone.seconds) * SECOND - i128::from(offset),
        }
    }

    pub(super) fn begin(&self, time: i64) -> i64 {
        let begin = self.moved(time, 0);
        i64::try_from(begin).unwrap_or(if begin < 0 { i64::MIN } else { i64::MAX })
    }

    /// When the interval behind that of `time` begins; `None` when that is after all times.
    pub(super) fn next(&self, time: i64) -> Option<i64> {
        i64::try_from(self.moved(time, 1)).ok()
    }

    /// The beginning of the interval of a time, so many intervals later.
    pub(super) fn moved(&self, time: i64, later: i128) -> i128 {
        let local = i128::from(time) + self.ahead;
        let steps = |unit: i128, from: i128| {
            let width = unit * self.interval;
            ((local - from).div_euclid(width) + later) * width + from
        };
        let begin = match self.unit {
            CalendarUnit::Millisecond => steps(MILLISECOND, 0),
            CalendarUnit::Second => steps(SECOND, 0),
            CalendarUnit::Minute => steps(MINUTE, 0),
            CalendarUnit::Hour => steps(HOUR, 0),
            CalendarUnit::Day => steps(DAY, 0),
            // The Unix epoch was a Thursday.
            CalendarUnit::Week => steps(7 * DAY, -3 * DAY),
            CalendarUnit::Month => self.months(local, 1, later),
            CalendarUnit::Quarter => self.months(local, 3, later),
            CalendarUnit::Year => self.months(local, 12, later),
        };
        begin - self.ahead
    }

    fn months(&self, local: i128, unit: i128, later: i128) -> i128 {
        let width = unit * self.interval;
        let month = (month_of(local.div_euclid(DAY)).div_euclid(width) + later) * width;
        days_before(month) * DAY
    }
}

/// The month that a day is in, counted from January of the year 0. Days are counted from the Unix epoch.
fn month_of(day: i128) -> i128 {
    // Years begin in March here, so that leap days come last.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    (era * 400 + year) * 12 + month_from_march + 2
}

/// Days from the Unix epoch to the first of a month.
fn days_before(month: i128) -> i128 {
    let from_march = month - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NANOS: i64 = 86_400_000_000_000;
    const HOUR_NANOS: i64 = 3_600_000_000_000;

    #[test]
    fn months_agree_with_a_walk_over_all_days() {
        let (mut year, mut month, mut left) = (1583, 1, 31);
        // From 1 January 1583 to beyond 2400.
        for day in -141_349_i128..160_000 {
            assert_eq!(month_of(day), i128::from(year * 12 + month - 1), "{day}");
            if left == 31 || (left == 30 && [4, 6, 9, 11].contains(&month)) {
                assert!(days_before(month_of(day)) <= day);
            }
            left -= 1;
            if left == 0 {
                assert_eq!(days_before(month_of(day) + 1), day + 1);
                (year, month) = if month == 12 {
                    (year + 1, 1)
                } else {
                    (year, month + 1)
                };
                let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
                left = match month {
                    2 if leap => 29,
                    2 => 28,
                    4 | 6 | 9 | 11 => 30,
                    _ => 31,
                };
            }
        }
    }

    #[test]
    fn intervals_begin_on_local_clocks() {
        let china: TimeZone = "+08:00".parse().expect("a zone");
        let day = |day: i64| day * DAY_NANOS;
        // 2024-02-29T17:00:00Z is 1 March in China.
        let time = day(19_782) + 17 * HOUR_NANOS;
        let begin = |unit, interval, zone, offset| Calendar::new(interval, unit, zone, offset).begin(time);
        assert_eq!(begin(CalendarUnit::Day, 1, TimeZone::UTC, 0), day(19_782));
        assert_eq!(
            begin(CalendarUnit::Day, 1, china, 0),
            day(19_783) - 8 * HOUR_NANOS
        );
        assert_eq!(begin(CalendarUnit::Month, 1, TimeZone::UTC, 0), day(19_754));
        assert_eq!(
            begin(CalendarUnit::Month, 1, china, 0),
            day(19_783) - 8 * HOUR_NANOS
        );
        assert_eq!(begin(CalendarUnit::Quarter, 1, TimeZone::UTC, 0), day(19_723));
        assert_eq!(begin(CalendarUnit::Year, 1, TimeZone::UTC, 0), day(19_723));
        // The decade from 2020.
        assert_eq!(begin(CalendarUnit::Year, 10, TimeZone::UTC, 0), day(18_262));
        // The Monday before.
        assert_eq!(begin(CalendarUnit::Week, 1, TimeZone::UTC, 0), day(19_779));
        assert_eq!(
            begin(CalendarUnit::Hour, 12, TimeZone::UTC, 0),
            day(19_782) + 12 * HOUR_NANOS
        );
        assert_eq!(
            begin(CalendarUnit::Day, 1, TimeZone::UTC, 18 * HOUR_NANOS),
            day(19_781) + 18 * HOUR_NANOS
        );
        let month = Calendar::new(1, CalendarUnit::Month, china, 0);
        assert_eq!(month.next(time), Some(day(19_814) - 8 * HOUR_NANOS));
        assert_eq!(month.next(i64::MAX), None);
        assert_eq!(month.begin(i64::MIN), i64::MIN);
    }
}
