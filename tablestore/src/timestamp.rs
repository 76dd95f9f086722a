//! Reads and writes the times in headers, and compares them with the server's.

use std::time::{Duration, SystemTime};

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime};

/// The time that a header says. Clients write any number of digits behind the second.
pub(crate) fn parse(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// How far a time lies from `now`, either way.
pub(crate) fn distance(time: OffsetDateTime, now: SystemTime) -> Duration {
    (time - OffsetDateTime::from(now)).unsigned_abs()
}

/// How many days lie between a date, as `20240808`, and `now`.
pub(crate) fn days(date: &str, now: SystemTime) -> Option<i64> {
    if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let month = Month::try_from(date.get(4..6)?.parse::<u8>().ok()?).ok()?;
    let date =
        Date::from_calendar_date(date.get(..4)?.parse().ok()?, month, date.get(6..)?.parse().ok()?).ok()?;
    Some((date - OffsetDateTime::from(now).date()).whole_days().abs())
}

/// Formats a time by RFC 3339, in UTC and with milliseconds, which the Python client requires.
pub(crate) fn format(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond()
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{days, distance, format, parse};

    #[test]
    fn times_are_read_as_all_clients_write_them() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_723_087_367_812);
        assert_eq!(format(at), "2024-08-08T03:22:47.812Z");
        for (text, off) in [
            ("2024-08-08T03:22:47.000Z", 812),
            ("2024-08-08T03:22:47.812Z", 0),
            ("2024-08-08T03:22:47Z", 812),
            ("2024-08-08T03:22:48.812Z", 1000),
        ] {
            let time = parse(text).expect("a time");
            assert_eq!(distance(time, at), Duration::from_millis(off), "{text}");
        }
        for text in [
            "",
            "2024-08-08",
            "Thu, 08 Aug 2024 03:22:47 GMT",
            "2024-13-08T03:22:47Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(days("20240808", at), Some(0));
        assert_eq!(days("20240801", at), Some(7));
        assert_eq!(days("20240901", at), Some(24));
        for text in ["", "2024808", "20241301", "20240832", "+2024080", "二〇"] {
            assert_eq!(days(text, at), None, "{text}");
        }
    }
}
