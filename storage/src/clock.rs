//! The clock as a parameter: everything that depends on time takes it from here.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NANOS_PER_MILLI: i64 = 1_000_000;

/// Where the store takes the time from: nanoseconds since the Unix epoch.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The present moment, nanoseconds since the Unix epoch.
    fn now(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => nanos(since),
            Err(before) => -nanos(before.duration()),
        }
    }
}

/// A clock that stands still until it is moved: for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`, nanoseconds since the Unix epoch.
    pub fn new(now: i64) -> Self {
        Self(AtomicI64::new(now))
    }

    /// Shows `now` from here on; may go back.
    pub fn set(&self, now: i64) {
        self.0.store(now, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(nanos(by), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A duration in nanoseconds, at most `i64::MAX` (292 years).
pub(crate) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// A duration in milliseconds, at most `i64::MAX`.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds of a time in nanoseconds.
pub(crate) fn milliseconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(NANOS_PER_MILLI)
}
