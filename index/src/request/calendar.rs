//! Units of time, and time zones.

use std::str::FromStr;

/// The furthest that a time zone is from UTC, in seconds.
const FURTHEST: i32 = 18 * 3_600;

/// A unit of time.
#[expect(missing_docs, reason = "units that need no words")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalendarUnit {
    Millisecond,
    Second,
    Minute,
    Hour,
    /// Days from midnight.
    Day,
    /// Weeks from Monday.
    Week,
    Month,
    /// Quarters of a year.
    Quarter,
    Year,
}

/// A distance from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// Seconds that local clocks are ahead of UTC.
    pub(crate) seconds: i32,
}

impl TimeZone {
    /// Coordinated universal time.
    pub const UTC: Self = Self { seconds: 0 };
}

/// A text that names no time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no distance from UTC from -18:00 to +18:00; write it like `+08:00`, or `Z`")]
pub struct NoTimeZone(String);

impl FromStr for TimeZone {
    type Err = NoTimeZone;

    /// Reads `+08:00`, `-03:30`, `+8`, `Z` or `UTC`; nothing is UTC.
    fn from_str(text: &str) -> Result<Self, NoTimeZone> {
        if matches!(text, "" | "Z" | "UTC") {
            return Ok(Self::UTC);
        }
        let none = || NoTimeZone(text.chars().take(64).collect());
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Err(none()),
        };
        let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
        let number = |digits: &str, longest: usize| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let plain = plain && digits.len() <= longest;
            plain.then(|| digits.parse::<i32>().ok()).flatten()
        };
        let minutes = number(minutes, 2).filter(|minutes| *minutes < 60);
        let both = number(hours, 2).zip(minutes);
        let seconds = both.map(|(hours, minutes)| sign * (hours * 3_600 + minutes * 60));
        let known = seconds.filter(|seconds| seconds.abs() <= FURTHEST);
        known.map(|seconds| Self { seconds }).ok_or_else(none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_distances_from_utc() {
        for (text, seconds) in [
            ("", 0),
            ("Z", 0),
            ("UTC", 0),
            ("+08:00", 28_800),
            ("-03:30", -12_600),
            ("+8", 28_800),
            ("+18:00", 64_800),
        ] {
            assert_eq!(text.parse(), Ok(TimeZone { seconds }), "{text}");
        }
        for text in [
            "8",
            "+",
            "+08:0a",
            "+18:01",
            "+08:60",
            "+-8",
            "+123",
            "08:00",
            "Asia/Nowhere",
            "+08:",
        ] {
            assert!(text.parse::<TimeZone>().is_err(), "{text}");
        }
        let zone: TimeZone = "-03:30".parse().expect("a zone");
        assert_eq!(zone.to_string(), "-03:30");
    }
}
