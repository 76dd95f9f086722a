//! Counts calls that are shed, by reason: `souk.server.sheds`.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::telemetry::instruments::SHEDS;

/// Reasons of the `ErrorInfo` of calls that are turned away.
const REASONS: [&str; 8] = [
    "RATE_LIMIT",
    "CALLER_RATE_LIMIT",
    "CONCURRENCY_LIMIT",
    "CALLER_CONCURRENCY_LIMIT",
    "STREAM_LIMIT",
    "CALLER_STREAM_LIMIT",
    "RESPONSE_LIMIT",
    "CALLER_RESPONSE_LIMIT",
];

/// The counter. Clones share it.
#[derive(Clone, Debug)]
pub struct Sheds(Counter<u64>);

impl Sheds {
    /// `souk.server.sheds` on `meter`.
    pub fn new(meter: &Meter) -> Self {
        let sheds = Self(SHEDS.counter(meter));
        // Series from the beginning: of one that begins with its first event the rise can't be seen.
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
