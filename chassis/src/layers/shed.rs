//! What is turned away for lack of room is counted by its reason: `souk.server.sheds`.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

/// The counter. Clones share it.
#[derive(Clone, Debug)]
pub struct Sheds(Counter<u64>);

impl Sheds {
    /// `souk.server.sheds` on `meter`.
    pub fn new(meter: &Meter) -> Self {
        let counter = meter
            .u64_counter("souk.server.sheds")
            .with_unit("{call}")
            .with_description("Calls turned away because of a limit of the server or of their caller");
        Self(counter.build())
    }

    /// One more, for the `ErrorInfo` reason `reason`.
    pub fn count(&self, reason: &'static str) {
        self.0.add(1, &[KeyValue::new("error.type", reason)]);
    }
}
