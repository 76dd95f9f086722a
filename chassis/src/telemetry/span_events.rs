//! Log lines in the span of a call.
//!
//! What is told within a span of tracing its OpenTelemetry layer puts into it. The spans of calls aren't tracing's, see
//! [`sampling`](super::sampling): here they get what is told directly in them.

use std::fmt;

use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, KeyValue};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as LayerContext;
use tracing_subscriber::registry::LookupSpan;

/// Adds events to the span of the current call.
pub(super) struct SpanEvents;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanEvents {
    fn on_event(&self, event: &Event<'_>, within: LayerContext<'_, S>) {
        let is_ours = event.is_contextual() && within.lookup_current().is_none();
        let context = Context::current();
        let span = context.span();
        if !is_ours || !span.is_recording() {
            return;
        }
        let metadata = event.metadata();
        let mut told = Told {
            name: metadata.name().to_owned(),
            attributes: vec![
                KeyValue::new("level", metadata.level().as_str()),
                KeyValue::new("target", metadata.target()),
            ],
        };
        event.record(&mut told);
        span.add_event(told.name, told.attributes);
    }
}

/// What an event says: its message is its name.
struct Told {
    name: String,
    attributes: Vec<KeyValue>,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.name),
            name => self.attributes.push(KeyValue::new(name, value.to_owned())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.push(KeyValue::new(field.name(), value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            // Attributes have no number that is larger.
            Err(_) => self.record_str(field, &value.to_string()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attributes.push(KeyValue::new(field.name(), value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.push(KeyValue::new(field.name(), value));
    }
}
