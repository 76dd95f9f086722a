//! `google.protobuf.Timestamp` and `Duration` as nanoseconds.

use prost_types::{Duration, Timestamp};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A timestamp as nanoseconds since the Unix epoch; `None` outside of 1677-09-21 to 2262-04-11.
#[must_use]
pub fn time(value: &Timestamp) -> Option<i64> {
    nanos(value.seconds, value.nanos)
}

/// Nanoseconds since the Unix epoch as a timestamp.
#[must_use]
pub fn time_to_wire(nanos: i64) -> Timestamp {
    Timestamp {
        seconds: nanos.div_euclid(NANOS_PER_SECOND),
        nanos: below_second(nanos.rem_euclid(NANOS_PER_SECOND)),
    }
}

/// A duration in nanoseconds; `None` when it is negative, malformed or above 292 years.
#[must_use]
pub fn duration(value: &Duration) -> Option<i64> {
    nanos(value.seconds, value.nanos).filter(|nanos| *nanos >= 0)
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
    let nanos = i64::from(nanos);
    if !(0..NANOS_PER_SECOND).contains(&nanos) {
        return None;
    }
    i64::try_from(i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nanos)).ok()
}

/// The rest of a division by [`NANOS_PER_SECOND`] always fits.
fn below_second(rest: i64) -> i32 {
    i32::try_from(rest).unwrap_or_default()
}
