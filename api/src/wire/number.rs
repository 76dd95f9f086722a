//! Numbers of things and sequences.

/// A number of things, or a sequence, on the wire. Above `i64::MAX` there is none.
#[must_use]
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of things, or a sequence, of a request that keeps its rules: it isn't negative.
#[must_use]
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
