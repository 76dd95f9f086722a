//! Profiles: how a search was planned, and what each step of it cost.
//!
//! A clause is measured when its matches are opened on a segment: what it gathers, walks or looks up before its first
//! match, and how many candidates it then has. The walk that follows goes through all clauses at once and isn't split
//! among them, which would cost more than many searches; it is told for each segment. Nothing of this is done for
//! searches that don't ask.

mod describe;
mod trace;

use std::time::{Duration, Instant};

pub(crate) use trace::{Cost, Recorder, Trace};

/// Times the steps of a search, one after the other; does nothing when nobody asks.
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub(crate) fn begin(measured: bool) -> Self {
        Self(measured.then(Instant::now))
    }

    /// The time since the lap before.
    pub(crate) fn lap(&mut self) -> Duration {
        let Some(last) = &mut self.0 else {
            return Duration::ZERO;
        };
        let now = Instant::now();
        now.saturating_duration_since(std::mem::replace(last, now))
    }
}
