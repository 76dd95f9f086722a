//! Trace context across borders: in and out of gRPC metadata.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::baggage::{BaggageExt as _, KeyValueMetadata};
use opentelemetry::propagation::text_map_propagator::FieldIter;
use opentelemetry::propagation::{Extractor, Injector, TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceFlags};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// Name of the W3C header.
const TRACEPARENT: &str = "traceparent";

/// Name of the W3C header beside it.
const TRACESTATE: &str = "tracestate";

/// Length of a [`TRACEPARENT`], in bytes.
const TRACEPARENT_BYTES: usize = 55;

/// As hexadecimal numbers are written.
const DIGITS: [char; 16] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
];

/// How contexts come and go in this process. Not OpenTelemetry's global: that has a lock, which every call on every core would write to.
static PROPAGATOR: OnceLock<TextMapCompositePropagator> = OnceLock::new();

/// Has contexts come and go by `propagator` from now on; only the first of a process counts.
pub(crate) fn install(propagator: TextMapCompositePropagator) {
    // Telemetry is installed once; tests share theirs.
    let _ = PROPAGATOR.set(propagator);
}

/// The context a caller sent (trace and baggage). A malformed `traceparent` counts as none: a new trace starts.
pub fn extract(headers: &HeaderMap) -> Context {
    let propagator = PROPAGATOR.get();
    propagator.map_or_else(Context::current, |propagator| {
        propagator.extract(&HeaderExtractor(headers))
    })
}

/// Name of the W3C header of baggage, which says nothing of a trace.
const BAGGAGE: &str = "baggage";

/// Did a caller send the context of a trace?
pub(crate) fn is_told(headers: &HeaderMap) -> bool {
    let Some(propagator) = PROPAGATOR.get() else {
        return headers.contains_key(TRACEPARENT);
    };
    propagator
        .fields()
        .any(|name| name != BAGGAGE && headers.contains_key(name))
}

/// Takes the trace that a caller sent out of `headers`: what is left of its context, which is its baggage, and the span that it named.
pub(crate) fn take_trace(headers: &mut HeaderMap) -> (Context, Option<SpanContext>) {
    let told = extract(headers);
    let named = told.span().span_context().clone();
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
    for name in PROPAGATOR
        .get()
        .into_iter()
        .flat_map(|propagator| propagator.fields())
    {
        if name != BAGGAGE {
            headers.remove(name);
        }
    }
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
        propagator.inject_context(context, &mut Headers(headers));
    }
}

/// The headers of an outgoing call. What is empty isn't sent, as the standard of `tracestate` asks for. What differs on every call is
/// marked as what connections don't remember (RFC 7541, 6.2.3): it would only push out of their tables what comes again.
struct Headers<'a>(&'a mut HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, key: &str, value: String) {
        let name = match key {
            TRACEPARENT => HeaderName::from_static(TRACEPARENT),
            TRACESTATE => HeaderName::from_static(TRACESTATE),
            key => match HeaderName::from_bytes(key.as_bytes()) {
                Ok(name) => name,
                Err(_) => return,
            },
        };
        if value.is_empty() {
            self.0.remove(name);
        } else if let Ok(mut value) = HeaderValue::from_maybe_shared(Bytes::from(value)) {
            value.set_sensitive(name == TRACEPARENT);
            self.0.insert(name, value);
        }
    }
}

/// W3C's trace context: read by the SDK, and written as it writes it, but in one go.
#[derive(Debug, Default)]
pub(crate) struct TraceContext(TraceContextPropagator);

impl TextMapPropagator for TraceContext {
    fn inject_context(&self, context: &Context, injector: &mut dyn Injector) {
        let span = context.span();
        let context = span.span_context();
        if let Some(traceparent) = written(context) {
            injector.set(TRACEPARENT, traceparent);
            injector.set(TRACESTATE, context.trace_state().header());
        }
    }

    fn extract_with_context(&self, context: &Context, extractor: &dyn Extractor) -> Context {
        self.0.extract_with_context(context, extractor)
    }

    fn fields(&self) -> FieldIter<'_> {
        self.0.fields()
    }
}

/// A span as a [`TRACEPARENT`] of version 0; `None` when it isn't valid.
pub(crate) fn written(span: &SpanContext) -> Option<String> {
    if !span.is_valid() {
        return None;
    }
    let trace = span.trace_id().to_bytes();
    let id = span.span_id().to_bytes();
    let flags = [(span.trace_flags() & TraceFlags::SAMPLED).to_u8()];
    let mut text = String::with_capacity(TRACEPARENT_BYTES);
    for part in [&[0][..], &trace, &id, &flags] {
        if !text.is_empty() {
            text.push('-');
        }
        for byte in part {
            text.push(DIGITS[usize::from(byte >> 4)]);
            text.push(DIGITS[usize::from(byte & 15)]);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use opentelemetry::trace::{SpanId, TraceId, TraceState};

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
    fn contexts_are_written_as_the_sdk_writes_them() {
        let mut random = fastrand::Rng::with_seed(7);
        for case in 0..200 {
            // Without a trace or a span nothing is written.
            let trace = random.u128(..) * u128::from(case % 10 > 0);
            let span = random.u64(..) >> random.u32(..64) << u32::from(case % 7 == 0);
            let context = context(trace, span, random.u8(..), ["", "a=1", "a=1,b=2"][case % 3]);
            let (mut ours, mut theirs) = (HeaderMap::new(), HashMap::new());
            TraceContext::default().inject_context(&context, &mut Headers(&mut ours));
            TraceContextPropagator::new().inject_context(&context, &mut theirs);
            theirs.retain(|_, value: &mut String| !value.is_empty());
            let remembered = ours.iter().filter(|(_, value)| !value.is_sensitive());
            assert!(
                remembered.into_iter().all(|(name, _)| name != TRACEPARENT),
                "case {case}"
            );
            let ours: HashMap<_, _> = ours
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
                .collect();
            assert_eq!(ours, theirs, "case {case}");
        }
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
        TraceContext::default().inject_context(&context, &mut Headers(&mut headers));
        assert_eq!(headers.get(TRACESTATE), None);
        assert!(headers.contains_key(TRACEPARENT) && headers.contains_key("other"));
    }
}
