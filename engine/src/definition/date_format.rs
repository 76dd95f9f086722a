//! How times are written in a column: as a number of time since the Unix epoch, or as text by a pattern.
//!
//! Patterns are Tablestore's, which are a part of those of Java's `DateTimeFormatter`: letters stand for parts of a time, what is
//! between single quotes and what is no letter for itself.
//!
//! | letters | part |
//! |---|---|
//! | `y` | year: as many digits as letters, 1 to 4 for one letter |
//! | `M`, `d`, `H`, `K`, `m`, `s` | month, day, hour of the day, hour from 0 to 11, minute, second: 2 digits, 1 or 2 for one letter |
//! | `a` | `AM` or `PM`, of the hour from 0 to 11 |
//! | `S` to `SSSSSSSSS` | fraction of the second: as many digits |
//! | `X` to `XXXXX`, `x` to `xxxxx` | distance from UTC: `+08`, `+0800`, `+08:00`, with seconds for 4 and 5 letters; of `X` also `Z` |
//!
//! A time without distance is UTC; what is missing behind the year is the first month, the first day, midnight.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

use super::TimeUnit;

/// Most formats of one field: each value is tried by them in turn.
pub const MAX_DATE_FORMATS: usize = 16;
/// Longest pattern, bytes.
const MAX_PATTERN_BYTES: usize = 128;

/// How the dates of a column are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DateFormat {
    text: String,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Epoch(TimeUnit),
    Pattern(Box<[PatternItem]>),
}

/// Small, since a pattern has up to one for each of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternItem {
    Literal(char),
    /// A number of at least and at most so many digits.
    Number(Unit, u8, u8),
    /// A fraction of a second of so many digits.
    Fraction(u8),
    HalfDay,
    Offset {
        letters: u8,
        takes_z: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Year,
    Month,
    Day,
    Hour,
    HourOfHalf,
    Minute,
    Second,
}

/// A text that is no format of dates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no format of dates: give epoch_second, epoch_millis, epoch_micros, epoch_nanos, or a pattern like yyyy-MM-dd HH:mm:ss.SSS"
)]
pub struct NoDateFormat(String);

impl DateFormat {
    /// The format as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The time that a number stands for, in nanoseconds since the Unix epoch; `None` of patterns.
    #[must_use]
    pub fn of_integer(&self, number: i64) -> Option<i64> {
        match self.form {
            Form::Epoch(unit) => number.checked_mul(unit.nanos()),
            Form::Pattern(_) => None,
        }
    }

    /// The time that a text stands for, in nanoseconds since the Unix epoch; `None` of numbers, and of texts that aren't written so.
    #[must_use]
    pub fn of_text(&self, text: &str) -> Option<i64> {
        match &self.form {
            Form::Epoch(_) => None,
            Form::Pattern(items) => read(items, text),
        }
    }
}

impl FromStr for DateFormat {
    type Err = NoDateFormat;

    fn from_str(text: &str) -> Result<Self, NoDateFormat> {
        let form = match text {
            "epoch_second" => Some(Form::Epoch(TimeUnit::Seconds)),
            "epoch_millis" => Some(Form::Epoch(TimeUnit::Millis)),
            "epoch_micros" => Some(Form::Epoch(TimeUnit::Micros)),
            "epoch_nanos" => Some(Form::Epoch(TimeUnit::Nanos)),
            pattern if pattern.len() <= MAX_PATTERN_BYTES => items(pattern).map(Form::Pattern),
            _ => None,
        };
        let none = || NoDateFormat(text.chars().take(MAX_PATTERN_BYTES).collect());
        let text = text.to_owned();
        form.map(|form| Self { text, form }).ok_or_else(none)
    }
}

impl TryFrom<String> for DateFormat {
    type Error = NoDateFormat;

    fn try_from(text: String) -> Result<Self, NoDateFormat> {
        text.parse()
    }
}

impl From<DateFormat> for String {
    fn from(format: DateFormat) -> Self {
        format.text
    }
}

impl fmt::Display for DateFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The items of a pattern; `None` of what is none, or has no year.
fn items(pattern: &str) -> Option<Box<[PatternItem]>> {
    let mut items = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '\'' {
            if rest.next_if_eq(&'\'').is_some() {
                items.push(PatternItem::Literal('\''));
                continue;
            }
            loop {
                match rest.next()? {
                    '\'' if rest.next_if_eq(&'\'').is_some() => items.push(PatternItem::Literal('\'')),
                    '\'' => break,
                    quoted => items.push(PatternItem::Literal(quoted)),
                }
            }
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            if "[]{}#".contains(letter) {
                return None;
            }
            items.push(PatternItem::Literal(letter));
            continue;
        }
        let mut letters = 1_u8;
        while rest.next_if_eq(&letter).is_some() {
            letters += 1;
        }
        let number = |unit, longest: u8| match letters {
            1 => Some(PatternItem::Number(unit, 1, longest)),
            letters if letters <= longest => Some(PatternItem::Number(unit, letters, letters)),
            _ => None,
        };
        items.push(match letter {
            // Two digits would be of a century that nobody names.
            'y' if letters == 2 => return None,
            'y' => number(Unit::Year, 4)?,
            'M' => number(Unit::Month, 2)?,
            'd' => number(Unit::Day, 2)?,
            'H' => number(Unit::Hour, 2)?,
            'K' => number(Unit::HourOfHalf, 2)?,
            'm' => number(Unit::Minute, 2)?,
            's' => number(Unit::Second, 2)?,
            'S' if letters <= 9 => PatternItem::Fraction(letters),
            'a' if letters == 1 => PatternItem::HalfDay,
            'X' | 'x' if letters <= 5 => PatternItem::Offset {
                letters,
                takes_z: letter == 'X',
            },
            _ => return None,
        });
    }
    let has_year = items
        .iter()
        .any(|item| matches!(item, PatternItem::Number(Unit::Year, ..)));
    has_year.then(|| items.into())
}

/// What is left of a text.
struct Text<'a>(&'a str);

impl Text<'_> {
    fn take(&mut self, wanted: char) -> Option<()> {
        self.0 = self.0.strip_prefix(wanted)?;
        Some(())
    }

    /// A number of at least and at most so many digits.
    fn number(&mut self, least: u8, most: u8) -> Option<u32> {
        let bytes = self.0.bytes().take(most.into());
        let digits = bytes.take_while(u8::is_ascii_digit).count();
        let long_enough = digits >= usize::from(least);
        let (number, rest) = self.0.split_at_checked(digits).filter(|_| long_enough)?;
        self.0 = rest;
        number.parse().ok()
    }

    fn half(&mut self) -> Option<u32> {
        let (half, rest) = self.0.split_at_checked(2)?;
        self.0 = rest;
        match half.to_ascii_uppercase().as_str() {
            "AM" => Some(0),
            "PM" => Some(12),
            _ => None,
        }
    }

    /// A distance from UTC.
    fn offset(&mut self, letters: u8, takes_z: bool) -> Option<UtcOffset> {
        if takes_z && self.take('Z').is_some() {
            return Some(UtcOffset::UTC);
        }
        let sign = if self.take('+').is_some() {
            1
        } else {
            self.take('-').map(|()| -1)?
        };
        let colon = matches!(letters, 3 | 5);
        let hours = self.number(2, 2)?;
        let is_next = |text: &Self| match colon {
            true => text.0.starts_with(':'),
            false => text.0.starts_with(|next: char| next.is_ascii_digit()),
        };
        let part = |text: &mut Self| {
            if colon {
                text.take(':')?;
            }
            text.number(2, 2)
        };
        let minutes = match letters == 1 && !is_next(self) {
            true => 0,
            false => part(self)?,
        };
        let seconds = match letters >= 4 && is_next(self) {
            true => part(self)?,
            false => 0,
        };
        let signed = |part: u32| i8::try_from(part).ok().map(|part| sign * part);
        UtcOffset::from_hms(signed(hours)?, signed(minutes)?, signed(seconds)?).ok()
    }
}

fn read(items: &[PatternItem], text: &str) -> Option<i64> {
    let mut text = Text(text);
    let (mut year, mut month, mut day) = (1970, 1, 1);
    let (mut hour, mut of_half, mut half, mut minute, mut second, mut nanos) = (None, 0, 0, 0, 0, 0);
    let mut offset = UtcOffset::UTC;
    for item in items {
        match *item {
            PatternItem::Literal(wanted) => text.take(wanted)?,
            PatternItem::Number(unit, least, most) => {
                let number = text.number(least, most)?;
                match unit {
                    Unit::Year => year = number,
                    Unit::Month => month = number,
                    Unit::Day => day = number,
                    Unit::Hour => hour = Some(number),
                    Unit::HourOfHalf if number > 11 => return None,
                    Unit::HourOfHalf => of_half = number,
                    Unit::Minute => minute = number,
                    Unit::Second => second = number,
                }
            }
            PatternItem::Fraction(digits) => {
                nanos = text.number(digits, digits)? * 10_u32.pow((9 - digits).into());
            }
            PatternItem::HalfDay => half = text.half()?,
            PatternItem::Offset { letters, takes_z } => offset = text.offset(letters, takes_z)?,
        }
    }
    if !text.0.is_empty() {
        return None;
    }
    let byte = |number: u32| u8::try_from(number).ok();
    let month = Month::try_from(byte(month)?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, byte(day)?).ok()?;
    let hour = hour.unwrap_or(of_half + half);
    let time = Time::from_hms_nano(byte(hour)?, byte(minute)?, byte(second)?, nanos).ok()?;
    let at = PrimitiveDateTime::new(date, time).assume_offset(offset);
    i64::try_from(at.unix_timestamp_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::{DateFormat, Form, MAX_PATTERN_BYTES, PatternItem};

    const SECOND: i64 = 1_000_000_000;
    /// 2021-02-03 04:05:06 UTC.
    const AT: i64 = 1_612_325_106 * SECOND;

    fn of_text(format: &str, text: &str) -> Option<i64> {
        let format: DateFormat = format.parse().expect(format);
        format.of_text(text)
    }

    #[test]
    fn texts_are_times_by_patterns() {
        for (format, text, at) in [
            ("yyyy-MM-dd HH:mm:ss", "2021-02-03 04:05:06", AT),
            ("yyyyMMdd HHmmss", "20210203 040506", AT),
            (
                "yyyy-MM-dd HH:mm:ss.SSS",
                "2021-02-03 04:05:06.250",
                AT + SECOND / 4,
            ),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2021-02-03T04:05:06.000Z", AT),
            ("yyyy-MM-dd'T'HH:mm:ssXXX", "2021-02-03T12:05:06+08:00", AT),
            ("yyyy-MM-dd'T'HH:mm:ssxx", "2021-02-03T00:35:06-0330", AT),
            (
                "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
                "2021-02-03 04:05:06.000000001",
                AT + 1,
            ),
            ("y/M/d H:m:s", "2021/2/3 4:5:6", AT),
            ("yyyy-MM-dd K:mm:ss a", "2021-02-03 4:05:06 AM", AT),
            (
                "yyyy-MM-dd K:mm:ss a",
                "2021-02-03 4:05:06 pm",
                AT + 12 * 3_600 * SECOND,
            ),
            ("yyyy-MM-dd", "1970-01-02", 86_400 * SECOND),
            ("yyyy'''year'", "1970'year", 0),
        ] {
            assert_eq!(of_text(format, text), Some(at), "{format} {text}");
        }
    }

    #[test]
    fn what_is_written_otherwise_is_none() {
        for (format, text) in [
            ("yyyy-MM-dd", "2021-02-30"),
            ("yyyy-MM-dd", "2021-2-3"),
            ("yyyy-MM-dd", "2021-02-03 "),
            ("yyyy-MM-dd", ""),
            ("yyyy-MM-dd HH", "2021-02-03 24"),
            ("yyyy-MM-dd K a", "2021-02-03 12 PM"),
            ("yyyy-MM-ddxxx", "2021-02-03Z"),
            ("yyyy-MM-ddXXX", "2021-02-03+0800"),
            ("yyyy-MM-dd", "9999-01-01"),
        ] {
            assert_eq!(of_text(format, text), None, "{format} {text}");
        }
        for wrong in [
            "",
            "MM-dd",
            "yyyy-MMM",
            "yyyy-QQ",
            "yyyy'",
            "yy-MM",
            "yyyy[MM]",
            "epoch",
            "yyyySSSSSSSSSS",
        ] {
            assert!(wrong.parse::<DateFormat>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_takes_eight_times_its_bytes_at_most() {
        let longest = "y".to_owned() + &"-".repeat(MAX_PATTERN_BYTES - 1);
        let format: DateFormat = longest.parse().expect("a format");
        let Form::Pattern(items) = &format.form else {
            panic!("{format:?}");
        };
        assert!(size_of_val(&**items) <= 8 * longest.len());
        assert_eq!(size_of::<PatternItem>(), 8);
        assert!((longest + "-").parse::<DateFormat>().is_err());
    }

    #[test]
    fn numbers_are_times_by_units() {
        for (format, number) in [
            ("epoch_second", 1_612_325_106),
            ("epoch_millis", 1_612_325_106_000),
            ("epoch_micros", 1_612_325_106_000_000),
            ("epoch_nanos", AT),
        ] {
            let format: DateFormat = format.parse().expect(format);
            assert_eq!(format.of_integer(number), Some(AT));
            assert_eq!(format.of_text("1"), None);
        }
        let seconds: DateFormat = "epoch_second".parse().expect("a format");
        assert_eq!(seconds.of_integer(i64::MAX), None);
        let pattern: DateFormat = "yyyy".parse().expect("a format");
        assert_eq!(pattern.of_integer(1), None);
    }
}
