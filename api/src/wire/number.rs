//! Numbers of requests, with their ranges.

use std::fmt::Display;
use std::ops::RangeInclusive;

use souk_chassis::status::{FieldPath, Violations};

/// Notes a violation unless `value` is in `range`; NaN is in none. What is absent is fine.
pub fn check_range<T: PartialOrd + Display>(
    value: impl Into<Option<T>>,
    range: &RangeInclusive<T>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) {
    if let Some(value) = value.into()
        && !range.contains(&value)
    {
        let message = format!(
            "is {value}, must lie between {} and {}",
            range.start(),
            range.end()
        );
        violations.push(path, "OUT_OF_RANGE", message);
    }
}

/// Notes a violation when `value` is negative: for amounts, sizes and prices. What is absent is fine.
pub fn check_not_negative<T: PartialOrd + Display + Default>(
    value: Option<T>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) {
    if let Some(value) = value.filter(|value| *value < T::default()) {
        violations.push(path, "OUT_OF_RANGE", format!("is {value}, must not be negative"));
    }
}

/// A number of things, or a sequence, on the wire. Above `i64::MAX` there is none.
#[must_use]
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
