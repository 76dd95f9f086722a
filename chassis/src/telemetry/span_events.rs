//! Adds log lines to the spans of calls, as span events.
//!
//! For tracing's own spans its OpenTelemetry layer does that. The spans of calls aren't tracing's, see [`sampling`](super::sampling): log
//! lines directly in them are added here.

use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, KeyValue, Value};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as LayerContext;
use tracing_subscriber::registry::LookupSpan;

use super::fields::{Fields, attribute};
use super::sampling::Recorded;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorded {
    fn on_event(&self, event: &Event<'_>, within: LayerContext<'_, S>) {
        // Within a span of tracing the line is that span's.
        let is_of_call = event.is_contextual() && within.lookup_current().is_none();
        let context = Context::current();
        let span = context.span();
        if !is_of_call || !span.is_recording() {
            return;
        }
        let metadata = event.metadata();
        let fields = Fields::of(event);
        let name = match fields.message.is_empty() {
            true => metadata.name().to_owned(),
            false => fields.message,
        };
        let mut attributes = vec![
            KeyValue::new("level", metadata.level().as_str()),
            KeyValue::new("target", metadata.target()),
        ];
        let others = fields.others.iter();
        attributes.extend(others.map(|(name, value)| KeyValue::new(name.clone(), attribute::<Value>(value))));
        span.add_event(name, attributes);
    }
}
