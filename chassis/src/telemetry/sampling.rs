//! Head sampling of calls: the sampler is asked before a span is made.
//!
//! The OpenTelemetry layer of tracing asks it after building the span with its attributes, which most calls would pay for in vain. Here
//! the work on an unsampled call runs in a context with ids alone, which log lines, stored records and outgoing calls carry as ever.
//!
//! The spans of calls are made by the SDK directly, and passed on in the context, where tracing's own spans find their parents: tracing's
//! registry, and entering a span at every poll, would cost more than all else that is done for a recorded call.

use std::cell::Cell;

use opentelemetry::trace::{
    Link, SpanBuilder, SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceFlags, TraceId, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample as _,
};

use super::service_role::RoleTracer;

thread_local! {
    /// The id of the next trace that this thread begins, where a sampler has decided by it already.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// In the context of work that isn't recorded.
#[derive(Clone, Copy, Debug)]
struct Unrecorded;

/// Does the work in this context belong to a call that isn't recorded?
pub(crate) fn is_unrecorded(context: &Context) -> bool {
    context.get::<Unrecorded>().is_some()
}

/// Makes the spans of calls. It is a layer (see [`span_events`](super::span_events)): so [`begin`] finds it through the dispatcher.
pub(super) struct Recorded {
    pub(super) sampler: Sampler,
    pub(super) tracer: RoleTracer,
    /// Whether spans are exported at all.
    pub(super) exported: bool,
}

/// Begins the span of a call below `parent`, with these attributes and a link to `linked`, and returns the context to work in. An unsampled
/// call has ids alone in it; without telemetry it is `parent`.
pub(crate) fn begin(
    parent: &Context,
    linked: Option<SpanContext>,
    name: &str,
    kind: SpanKind,
    attributes: impl FnOnce() -> Vec<KeyValue>,
) -> Context {
    // `get_default` calls its closure once, but takes an `FnMut`.
    let mut arguments = Some((linked, kind, attributes));
    let context = tracing::dispatcher::get_default(|dispatch| {
        let recorded = dispatch.downcast_ref::<Recorded>()?;
        let (linked, kind, attributes) = arguments.take()?;
        let ids = RandomIdGenerator::default();
        let span = parent.span();
        let origin = Some(span.span_context()).filter(|origin| origin.is_valid());
        let trace = origin.map_or_else(|| ids.new_trace_id(), SpanContext::trace_id);
        let sampler = &recorded.sampler;
        let result = sampler.should_sample(Some(parent), trace, name, &kind, &[], &[]);
        let sampled = result.decision == SamplingDecision::RecordAndSample;
        if recorded.exported && sampled {
            if origin.is_none() {
                NEXT_TRACE.set(Some(trace));
            }
            let builder = SpanBuilder::from_name(name.to_owned());
            let mut builder = builder.with_kind(kind).with_attributes(attributes());
            builder.links = linked.map(|linked| vec![Link::with_context(linked)]);
            return Some(parent.with_span(recorded.tracer.build_with_context(builder, parent)));
        }
        // The next process learns the decision even where this one exports no spans.
        let flags = origin.map_or(TraceFlags::NOT_SAMPLED, SpanContext::trace_flags);
        let (flags, span) = (flags.with_sampled(sampled), ids.new_span_id());
        let own = SpanContext::new(trace, span, flags, false, result.trace_state);
        Some(parent.with_remote_span_context(own).with_value(Unrecorded))
    });
    context.unwrap_or_else(|| parent.clone())
}

/// Random ids, except for a trace by whose id a sampler has decided already.
#[derive(Debug, Default)]
pub(super) struct DecidedIds(RandomIdGenerator);

impl IdGenerator for DecidedIds {
    fn new_trace_id(&self) -> TraceId {
        NEXT_TRACE.take().unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}
