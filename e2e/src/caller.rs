//! A tracing client: each call is made in a span of its own, in a trace of its own.

use tonic::Request;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};

use crate::collector::Collector;
use crate::spans::Trace;

/// The trace context and metadata of one call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The trace's id, 32 hexadecimal digits.
    pub trace_id: String,
    /// The id of the span that the call is made in, 16 hexadecimal digits.
    pub span_id: String,
    /// The sampled flag of the trace context.
    pub sampled: bool,
    /// Further metadata.
    pub metadata: Vec<(String, String)>,
}

impl Default for Caller {
    fn default() -> Self {
        Self {
            trace_id: format!("{:032x}", fastrand::u128(1..)),
            span_id: format!("{:016x}", fastrand::u64(1..)),
            sampled: true,
            metadata: Vec::new(),
        }
    }
}

impl Caller {
    /// A call in a trace of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A call that isn't sampled, in a trace of its own.
    #[must_use]
    pub fn unsampled() -> Self {
        Self {
            sampled: false,
            ..Self::default()
        }
    }

    /// Adds metadata to the call.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.metadata.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The `traceparent` that it sends (W3C Trace Context).
    #[must_use]
    pub fn traceparent(&self) -> String {
        let Self {
            trace_id, span_id, ..
        } = self;
        format!("00-{trace_id}-{span_id}-{:02x}", u8::from(self.sampled))
    }

    /// A request with the trace context and the metadata.
    ///
    /// # Errors
    /// When metadata isn't ASCII.
    pub fn request<T>(&self, message: T) -> anyhow::Result<Request<T>> {
        let mut request = Request::new(message);
        let traceparent = [("traceparent".to_owned(), self.traceparent())];
        for (name, value) in traceparent.iter().chain(&self.metadata) {
            let name = AsciiMetadataKey::from_bytes(name.as_bytes())?;
            request
                .metadata_mut()
                .insert(name, AsciiMetadataValue::try_from(value.as_str())?);
        }
        Ok(request)
    }

    /// Waits until the collector has `spans` spans of the trace, all below the caller's.
    ///
    /// # Errors
    /// When they don't come in time, there are more, or one is an orphan.
    pub async fn trace(&self, collector: &Collector, spans: usize) -> anyhow::Result<Trace> {
        let complete = |collector: &Collector| {
            let trace = collector.trace(&self.trace_id);
            (trace.spans().len() >= spans).then_some(trace)
        };
        let trace = collector.wait_for(&self.trace_id, complete).await?;
        anyhow::ensure!(
            trace.spans().len() == spans,
            "{} spans where {spans} were expected:\n{trace}",
            trace.spans().len()
        );
        anyhow::ensure!(trace.orphans(&self.span_id).is_empty(), "orphans:\n{trace}");
        Ok(trace)
    }
}
