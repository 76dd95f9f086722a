//! Numbers of requests, with their ranges.

use std::fmt::Display;
use std::ops::RangeInclusive;

use souk_chassis::status::{FieldPath, Violations};

/// Notes a violation unless `value` is in `range`; NaN is in none.
pub fn check_range<T: PartialOrd + Display>(
    value: T,
    range: &RangeInclusive<T>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) {
    if !range.contains(&value) {
        let message = format!(
            "is {value}, must lie between {} and {}",
            range.start(),
            range.end()
        );
        violations.push(path, "OUT_OF_RANGE", message);
    }
}

/// Notes a violation when `value` is negative: for amounts, sizes and prices.
pub fn check_not_negative<T: PartialOrd + Display + Default>(
    value: T,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) {
    if value < T::default() {
        violations.push(path, "OUT_OF_RANGE", format!("is {value}, must not be negative"));
    }
}
