//! Trace context across borders: in and out of gRPC metadata, and as text in stored records.

use http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry::{Context, global};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Name of the W3C header.
const TRACEPARENT: &str = "traceparent";

/// The context a caller sent (trace and baggage). A malformed `traceparent` counts as none: a new trace starts.
pub fn extract(headers: &HeaderMap) -> Context {
    global::get_text_map_propagator(|propagator| propagator.extract(&HeaderExtractor(headers)))
}

/// Writes `context` into the headers of an outgoing call. Without telemetry what is there stays: the caller's
/// context passes through.
pub fn inject(context: &Context, headers: &mut HeaderMap) {
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(context, &mut HeaderInjector(headers));
    });
}

/// The current span as a W3C `traceparent`, to be stored with what it wrote, or what stands in the place of one on a call that isn't
/// recorded; `None` outside a trace.
pub fn current_traceparent() -> Option<String> {
    let context = Context::current();
    let mut carrier = std::collections::HashMap::new();
    // Always W3C, whatever OTEL_PROPAGATORS says: this text is a storage format.
    TraceContextPropagator::new().inject_context(&context, &mut carrier);
    carrier.remove(TRACEPARENT)
}

/// Links `span` to the span a stored `traceparent` names: the work is a consequence of it, but no part of its call.
/// `false` when the text is malformed or telemetry is off.
pub fn link(span: &Span, traceparent: &str) -> bool {
    let Some(origin) = parse(traceparent) else {
        return false;
    };
    span.add_link(origin);
    true
}

/// The span that a `traceparent` names.
pub fn parse(traceparent: &str) -> Option<SpanContext> {
    let carrier = std::collections::HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    let origin = context.span().span_context().clone();
    origin.is_valid().then_some(origin)
}
