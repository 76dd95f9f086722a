//! Intervals of time: days, weeks from Monday, months, quarters and years of the Gregorian calendar in a time zone, and
//! units of fixed length. Several units in one are counted from 1970, months and years from the year 0.

use souk_index::{CalendarUnit, TimeZone};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// Intervals as they are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calendar {
    pub(crate) interval: u32,
    pub(crate) unit: CalendarUnit,
    pub(crate) zone: TimeZone,
    pub(crate) offset: i64,
}

fn is_leap(year: i128) -> bool {
    year % 400 == 0 || (year % 4 == 0 && year % 100 != 0)
}

fn days_of_year(year: i128) -> i128 {
    365 + i128::from(is_leap(year))
}

fn days_of_month(year: i128, month: i128) -> i128 {
    match month {
        1 => 28 + i128::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

/// The month of a day that is counted from 1970: counted from January of the year 0.
fn month_of(mut day: i128) -> i128 {
    let mut year = 1970;
    while day < 0 {
        year -= 1;
        day += days_of_year(year);
    }
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 0;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    year * 12 + month
}

/// The first day of a month.
fn first_day(month: i128) -> i128 {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    let years: i128 =
        (1970..year).map(days_of_year).sum::<i128>() - (year..1970).map(days_of_year).sum::<i128>();
    years + (0..month).map(|month| days_of_month(year, month)).sum::<i128>()
}

impl Calendar {
    /// How far local clocks, and groups that begin later, are ahead.
    fn ahead(self) -> i128 {
        let text = self.zone.to_string();
        let number = |digits: &str| digits.parse::<i128>().expect("digits");
        let minutes = number(&text[1..3]) * 60 + number(&text[4..6]);
        let ahead = if text.starts_with('-') { -minutes } else { minutes };
        ahead * 60 * SECOND - i128::from(self.offset)
    }

    /// The width of an interval and where one begins, if all are equally wide.
    fn fixed(self) -> Option<(i128, i128)> {
        let (width, begin) = match self.unit {
            CalendarUnit::Millisecond => (SECOND / 1_000, 0),
            CalendarUnit::Second => (SECOND, 0),
            CalendarUnit::Minute => (60 * SECOND, 0),
            CalendarUnit::Hour => (3_600 * SECOND, 0),
            CalendarUnit::Day => (DAY, 0),
            // 1970 began on a Thursday.
            CalendarUnit::Week => (7 * DAY, -3 * DAY),
            CalendarUnit::Month | CalendarUnit::Quarter | CalendarUnit::Year => return None,
        };
        Some((width * i128::from(self.interval), begin))
    }

    fn months(self) -> i128 {
        let months = match self.unit {
            CalendarUnit::Quarter => 3,
            CalendarUnit::Year => 12,
            _ => 1,
        };
        months * i128::from(self.interval)
    }

    /// Which interval a time is in.
    pub(crate) fn index(self, time: i128) -> i128 {
        let local = time + self.ahead();
        match self.fixed() {
            Some((width, begin)) => (local - begin).div_euclid(width),
            None => month_of(local.div_euclid(DAY)).div_euclid(self.months()),
        }
    }

    /// When an interval begins.
    pub(crate) fn begin(self, index: i128) -> i128 {
        let local = match self.fixed() {
            Some((width, begin)) => index * width + begin,
            None => first_day(index * self.months()) * DAY,
        };
        local - self.ahead()
    }
}
