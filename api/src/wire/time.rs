//! `google.protobuf.Timestamp` and `Duration` as nanoseconds.

use prost_types::{Duration, Timestamp};
use souk_chassis::status::{FieldPath, Violations};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A timestamp as nanoseconds since the Unix epoch; `None`, and a violation, outside of 1677-09-21 to 2262-04-11.
pub fn time(value: &Timestamp, path: impl Into<FieldPath>, violations: &mut Violations) -> Option<i64> {
    if !(0..NANOS_PER_SECOND).contains(&i64::from(value.nanos)) {
        violations.push(
            path,
            "OUT_OF_RANGE",
            format!("nanos is {}, must be 0 to 999,999,999", value.nanos),
        );
        return None;
    }
    let nanos = nanos(value.seconds, value.nanos);
    if nanos.is_none() {
        violations.push(path, "OUT_OF_RANGE", "must lie between 1677-09-21 and 2262-04-11");
    }
    nanos
}

/// Nanoseconds since the Unix epoch as a timestamp.
#[must_use]
pub fn time_to_wire(nanos: i64) -> Timestamp {
    Timestamp {
        seconds: nanos.div_euclid(NANOS_PER_SECOND),
        nanos: below_second(nanos.rem_euclid(NANOS_PER_SECOND)),
    }
}

/// A duration in nanoseconds; `None`, and a violation, when it is negative, malformed or above 292 years.
pub fn duration(value: &Duration, path: impl Into<FieldPath>, violations: &mut Violations) -> Option<i64> {
    let well_formed = (0..NANOS_PER_SECOND).contains(&i64::from(value.nanos)) && value.seconds >= 0;
    let nanos = well_formed.then(|| nanos(value.seconds, value.nanos)).flatten();
    if nanos.is_none() {
        violations.push(
            path,
            "OUT_OF_RANGE",
            "must lie between 0 and 292 years, nanos between 0 and 999,999,999",
        );
    }
    nanos
}

/// Nanoseconds as a duration.
#[must_use]
pub fn duration_to_wire(nanos: i64) -> Duration {
    Duration {
        seconds: nanos / NANOS_PER_SECOND,
        nanos: below_second(nanos % NANOS_PER_SECOND),
    }
}

/// In 128 bits, so that the very first nanoseconds of the range, whose seconds alone are outside, are inside.
fn nanos(seconds: i64, nanos: i32) -> Option<i64> {
    i64::try_from(i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nanos)).ok()
}

/// The rest of a division by [`NANOS_PER_SECOND`] always fits.
fn below_second(rest: i64) -> i32 {
    i32::try_from(rest).unwrap_or_default()
}
