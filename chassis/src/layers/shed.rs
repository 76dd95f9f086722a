//! Counts calls that are shed, by reason: `souk.server.sheds`.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::telemetry::instruments::SHEDS;

/// The `ErrorInfo` reasons of shed calls.
pub(super) const REASONS: [&str; 10] = [
    "RATE_LIMIT",
    "CALLER_RATE_LIMIT",
    "CONCURRENCY_LIMIT",
    "CALLER_CONCURRENCY_LIMIT",
    "STREAM_LIMIT",
    "CALLER_STREAM_LIMIT",
    "RESPONSE_LIMIT",
    "CALLER_RESPONSE_LIMIT",
    "HEALTH_LIMIT",
    "CALLER_HEALTH_LIMIT",
];

/// The counter. Clones share it.
#[derive(Clone, Debug)]
pub struct Sheds(Counter<u64>);

impl Sheds {
    /// `souk.server.sheds` on `meter`.
    pub fn new(meter: &Meter) -> Self {
        let sheds = Self(SHEDS.counter(meter));
        // Series start at 0: the rate of one that starts with its first event can't be computed.
        for reason in REASONS {
            sheds.0.add(0, &[KeyValue::new("error.type", reason)]);
        }
        sheds
    }

    /// One more, for the `ErrorInfo` reason `reason`.
    pub fn count(&self, reason: &'static str) {
        self.0.add(1, &[KeyValue::new("error.type", reason)]);
    }
}
