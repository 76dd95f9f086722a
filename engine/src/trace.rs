//! Traces across borders: into stored changes and out of them, and along to other threads.

use opentelemetry::context::FutureExt as _;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use opentelemetry::{Context, ContextGuard};
use tracing::span::Entered;
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::hex;

/// Bytes of a `traceparent`.
const TRACEPARENT_BYTES: usize = 55;

/// Creates a span unless the call that this code serves is unsampled: its context then has the ids of a span that isn't
/// recorded.
pub(crate) fn recorded(make: impl FnOnce() -> Span) -> Span {
    let is_unrecorded = |context: &Context| {
        let span = context.span();
        span.span_context().is_valid() && !span.is_recording()
    };
    match Context::map_current(is_unrecorded) {
        true => Span::none(),
        false => make(),
    }
}

/// The current span as a W3C `traceparent`, to be stored with what it writes; `None` outside a trace.
pub(crate) fn current_traceparent() -> Option<String> {
    Context::map_current(|context| {
        let span = context.span();
        let span = span.span_context();
        let flags = (span.trace_flags() & TraceFlags::SAMPLED).to_u8();
        span.is_valid().then(|| {
            let mut text = String::with_capacity(TRACEPARENT_BYTES);
            text.push_str("00-");
            hex::push_hex(&mut text, &span.trace_id().to_bytes());
            text.push('-');
            hex::push_hex(&mut text, &span.span_id().to_bytes());
            text.push('-');
            hex::push_hex(&mut text, &[flags]);
            text
        })
    })
}

/// Links `span` to the span that a stored `traceparent` names: the work is a consequence of it, but no part of its call.
pub(crate) fn link(span: &Span, traceparent: &str) {
    if let Some(origin) = parsed(traceparent) {
        span.add_link(origin);
    }
}

fn parsed(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.strip_prefix("00-")?.split('-');
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let span = SpanContext::new(trace, span, flags, true, TraceState::default());
    span.is_valid().then_some(span)
}

/// Where work belongs in a trace, to be taken along to another thread: in a span of tracing, or, on a call that isn't
/// recorded, in the call's context.
pub(crate) enum TraceScope {
    Span(Span),
    Context(Context),
}

impl TraceScope {
    /// That of the calling code.
    pub(crate) fn current() -> Self {
        let span = Span::current();
        match span.is_none() {
            true => Self::Context(Context::current()),
            false => Self::Span(span),
        }
    }

    /// Does `work` in it.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered: (Option<Entered<'_>>, Option<ContextGuard>) = match self {
            Self::Span(span) => (Some(span.enter()), None),
            Self::Context(context) => (None, Some(context.clone().attach())),
        };
        work()
    }
}

/// Work for a task of its own, where the calling code is in its trace: the span of a call is in the context alone.
pub fn brought<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    work.with_current_context().in_current_span()
}

/// The context of the calling code for threads that outlive it: whose telemetry theirs is, but none of its spans.
pub(crate) fn background() -> Context {
    let context = Context::current();
    match context.has_active_span() {
        true => Context::new(),
        false => context,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_survives_being_stored() {
        let span = SpanContext::new(
            TraceId::from(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c),
            SpanId::from(0x00f0_67aa_0ba9_02b7),
            TraceFlags::SAMPLED,
            true,
            TraceState::default(),
        );
        let _attached = Context::new().with_remote_span_context(span.clone()).attach();
        let text = current_traceparent().expect("a trace");
        assert_eq!(text, "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
        assert_eq!(parsed(&text), Some(span));
        assert!(recorded(|| panic!("it isn't recorded")).is_none());
        for other in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parsed(other), None, "{other:?}");
        }
    }
}
