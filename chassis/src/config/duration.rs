//! Durations as people write them: `200us`, `250ms`, `30s`, `5m`, `2h`.
//!
//! For `#[serde(with = "souk_chassis::config::duration")]`.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Largest accepted duration: a hundred years, so that adding it to a point in time can't overflow.
const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Units, largest first, in microseconds.
const UNITS: [(&str, u64); 5] = [
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Reads `<integer><unit>` with the units `us`, `ms`, `s`, `m` and `h`.
///
/// # Errors
/// Says what is expected when the text is something else or more than a hundred years.
pub fn parse(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is not a duration; expected for example 250ms, 30s, 5m or 2h");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, factor) = known.ok_or_else(expected)?;
    number
        .checked_mul(*factor)
        .map(Duration::from_micros)
        .filter(|duration| *duration <= MAX)
        .ok_or_else(|| format!("`{text}` is more than a hundred years"))
}

/// Writes a duration in the largest unit that keeps it whole; parts below a microsecond are dropped.
pub fn format(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let (unit, factor) = UNITS
        .iter()
        .find(|(_, factor)| micros != 0 && micros % factor == 0)
        .unwrap_or(&("ms", 1_000));
    format!("{}{unit}", micros / factor)
}

/// See [`format()`].
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// See [`parse`].
///
/// # Errors
/// Those of [`parse`] and of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}
