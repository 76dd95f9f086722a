//! Trace context across borders: in and out of gRPC metadata.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderValue};
use opentelemetry::Context;
use opentelemetry::baggage::{BaggageExt as _, KeyValueMetadata};
use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceState};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};

const TRACEPARENT: &str = "traceparent";

const TRACESTATE: &str = "tracestate";

/// Bytes of a caller's `tracestate`, which every span of its trace holds and sends; a longer one is left out. The standard asks for no
/// more to be handed on (W3C Trace Context, 3.3.1.5).
const STATE_BYTES_MAX: usize = 512;

/// How contexts come and go in this process. Not OpenTelemetry's global: that has a lock, which every call on every core would write to.
static PROPAGATOR: OnceLock<TextMapCompositePropagator> = OnceLock::new();

/// Has contexts come and go by `propagator` from now on; only the first of a process counts.
pub(crate) fn install(propagator: TextMapCompositePropagator) {
    // Telemetry is installed once; tests share theirs.
    let _ = PROPAGATOR.set(propagator);
}

/// The context a caller sent (trace and baggage). A malformed `traceparent` counts as none: a new trace starts.
pub fn extract(headers: &HeaderMap) -> Context {
    let Some(propagator) = PROPAGATOR.get() else {
        return Context::current();
    };
    let told = propagator.extract(&HeaderExtractor(headers));
    let state = headers.get_all(TRACESTATE).iter();
    if state.map(HeaderValue::len).sum::<usize>() <= STATE_BYTES_MAX {
        return told;
    }
    let stateless = without_state(told.span().span_context());
    // Without a trace there is no state of it, and a span that isn't valid would pass for one that isn't sampled.
    match stateless.is_valid() {
        true => told.with_remote_span_context(stateless),
        false => told,
    }
}

fn without_state(named: &SpanContext) -> SpanContext {
    let (trace, span, flags) = (named.trace_id(), named.span_id(), named.trace_flags());
    SpanContext::new(trace, span, flags, true, TraceState::NONE)
}

/// Did a caller send the context of a trace?
pub(crate) fn is_told(headers: &HeaderMap) -> bool {
    headers.contains_key(TRACEPARENT) || headers.contains_key(TRACESTATE)
}

/// Takes the trace that a caller sent out of `headers`: what is left of its context, which is its baggage, and the span that it named,
/// without the state of its trace.
pub(crate) fn take_trace(headers: &mut HeaderMap) -> (Context, Option<SpanContext>) {
    let told = extract(headers);
    let named = without_state(told.span().span_context());
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
    let baggage = told.baggage().iter();
    let baggage: Vec<_> = baggage
        .map(|(key, (value, metadata))| KeyValueMetadata::new(key.clone(), value.clone(), metadata.clone()))
        .collect();
    let left = Context::new().with_baggage(baggage);
    (left, named.is_valid().then_some(named))
}

/// Writes `context` into the headers of an outgoing call. Without telemetry what is there stays: the caller's
/// context passes through.
pub fn inject(context: &Context, headers: &mut HeaderMap) {
    if let Some(propagator) = PROPAGATOR.get() {
        write(propagator, context, headers);
    }
}

/// What is empty isn't sent, as the standard of `tracestate` asks for. What differs on every call is marked as what connections don't
/// remember (RFC 7541, 6.2.3): it would only push out of their tables what comes again.
fn write(propagator: &dyn TextMapPropagator, context: &Context, headers: &mut HeaderMap) {
    propagator.inject_context(context, &mut HeaderInjector(headers));
    if headers.get(TRACESTATE).is_some_and(HeaderValue::is_empty) {
        headers.remove(TRACESTATE);
    }
    if let Some(traceparent) = headers.get_mut(TRACEPARENT) {
        traceparent.set_sensitive(true);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use opentelemetry::trace::{SpanId, TraceFlags, TraceId};
    use opentelemetry_sdk::propagation::TraceContextPropagator;

    use super::*;

    fn context(trace: u128, span: u64, flags: u8, state: &str) -> Context {
        let span = SpanContext::new(
            TraceId::from(trace),
            SpanId::from(span),
            TraceFlags::new(flags),
            false,
            state.parse::<TraceState>().expect("a state"),
        );
        Context::new().with_remote_span_context(span)
    }

    #[test]
    fn a_state_that_ended_is_not_handed_on() {
        let mut headers = HeaderMap::from_iter([
            (
                HeaderName::from_static(TRACESTATE),
                HeaderValue::from_static("not a state"),
            ),
            (
                HeaderName::from_static("other"),
                HeaderValue::from_static("stays"),
            ),
        ]);
        let context = context(1, 2, 1, "");
        write(&TraceContextPropagator::new(), &context, &mut headers);
        assert_eq!(headers.get(TRACESTATE), None);
        assert!(headers.contains_key("other"));
        assert!(headers.get(TRACEPARENT).expect("a trace").is_sensitive());
    }
}
