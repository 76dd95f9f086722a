//! How what an attacker asks for ends, in an attacker's eyes, and how often.

use std::collections::HashMap;
use std::fmt;

use parking_lot::Mutex;
use souk_e2e::rejection::Rejection;
use tonic::{Code, Status};

/// How one call, or one connection, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    /// A gRPC status, `Ok` included.
    Ended(Code),
    /// An HTTP status of a call that isn't gRPC.
    Http(u16),
    /// Refused since its caller, or its address, calls too often.
    OverRate,
    /// Its stream has begun, and is open.
    Open,
    /// The stream was reset or the connection closed.
    Cut,
    /// Nothing came in a time in which something has to.
    Silent,
}

impl Outcome {
    pub(super) fn of(status: &Status) -> Self {
        match Rejection::of(status) {
            Ok(rejection) if rejection.reason == OVER_RATE => Self::OverRate,
            _ => Self::Ended(status.code()),
        }
    }
}

/// The reason of a refusal by the rate of a caller or an address.
pub(super) const OVER_RATE: &str = "CALLER_RATE_LIMIT";

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(code) => write!(f, "{code:?}"),
            Self::Http(code) => write!(f, "HTTP {code}"),
            Self::OverRate => f.write_str("over its rate"),
            Self::Open => f.write_str("open"),
            Self::Cut => f.write_str("cut"),
            Self::Silent => f.write_str("silent"),
        }
    }
}

/// How often there was which outcome.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<HashMap<Outcome, u64>>);

impl Tally {
    pub(super) fn count(&self, outcome: Outcome) {
        *self.0.lock().entry(outcome).or_default() += 1;
    }

    /// Was there one of these?
    pub(super) fn has(&self, outcomes: &[Outcome]) -> bool {
        let counted = self.0.lock();
        outcomes.iter().any(|outcome| counted.contains_key(outcome))
    }

    /// Those that aren't among these.
    pub(super) fn others(&self, outcomes: &[Outcome]) -> Vec<Outcome> {
        let counted = self.0.lock();
        let others = counted.keys().filter(|outcome| !outcomes.contains(outcome));
        others.copied().collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counted: Vec<_> = self
            .0
            .lock()
            .iter()
            .map(|(outcome, count)| (*count, outcome.to_string()))
            .collect();
        counted.sort_unstable_by(|one, other| other.cmp(one));
        let parts: Vec<_> = counted
            .iter()
            .map(|(count, outcome)| format!("{count} {outcome}"))
            .collect();
        f.write_str(&parts.join(", "))
    }
}
