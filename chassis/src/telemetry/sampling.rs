//! Head sampling of calls: whether a call is recorded is decided before its span is made.
//!
//! The OpenTelemetry layer of tracing builds a span with all that is told of it and asks the sampler then. Where one call in a
//! hundred is recorded, ninety-nine pay for attributes that nobody will see. So the layer that begins a call asks the
//! sampler first: work on a call that isn't recorded runs below ids alone, which log lines, stored records and the
//! calls that it makes carry as ever.
//!
//! Nor are the spans of calls made by tracing: it visits each field by its name, keeps the span in a registry for what may
//! be told of it later, and enters it at every poll, which costs more than all else that is done for a recorded call.
//! They are made by the SDK at once, and passed on in the context, where tracing's own spans find their parents.

use std::cell::Cell;

use opentelemetry::trace::{
    Link, SpanBuilder, SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceFlags, TraceId, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, SamplingResult, ShouldSample as _,
};
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context as LayerContext, Filter};

use super::role::RoleTracer;

thread_local! {
    /// The id that the next trace of this thread has: a sampler may have decided by it already.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// In the context of work that isn't recorded.
#[derive(Clone, Copy, Debug)]
struct Unrecorded;

/// Does the work in this context belong to a call that isn't recorded?
pub(crate) fn is_unrecorded(context: &Context) -> bool {
    context.get::<Unrecorded>().is_some()
}

/// What becomes a span: what the targets let pass. Sampler and tracer stand here for [`begin`] to find.
pub(super) struct Recorded {
    pub(super) targets: Targets,
    pub(super) sampler: Sampler,
    pub(super) tracer: RoleTracer,
    /// Does anybody take spans?
    pub(super) exported: bool,
}

impl Recorded {
    fn begin(
        &self,
        parent: &Context,
        linked: Option<SpanContext>,
        name: &str,
        kind: SpanKind,
        attributes: impl FnOnce() -> Vec<KeyValue>,
    ) -> Context {
        let ids = RandomIdGenerator::default();
        let span = parent.span();
        let origin = Some(span.span_context()).filter(|origin| origin.is_valid());
        let trace = origin.map_or_else(|| ids.new_trace_id(), SpanContext::trace_id);
        let SamplingResult {
            decision,
            trace_state,
            ..
        } = self
            .sampler
            .should_sample(Some(parent), trace, name, &kind, &[], &[]);
        let sampled = decision == SamplingDecision::RecordAndSample;
        if self.exported && sampled {
            if origin.is_none() {
                NEXT_TRACE.set(Some(trace));
            }
            let builder = SpanBuilder::from_name(name.to_owned());
            let mut builder = builder.with_kind(kind).with_attributes(attributes());
            builder.links = linked.map(|linked| vec![Link::with_context(linked)]);
            return parent.with_span(self.tracer.build_with_context(builder, parent));
        }
        // Told to the next process as it was decided, also where this one has nobody to send spans to.
        let flags = origin.map_or(TraceFlags::NOT_SAMPLED, SpanContext::trace_flags);
        let own = SpanContext::new(
            trace,
            ids.new_span_id(),
            flags.with_sampled(sampled),
            false,
            trace_state,
        );
        parent.with_remote_span_context(own).with_value(Unrecorded)
    }
}

/// The context for the work on a call within `parent`: with its span, which has these attributes and a link to what is `linked`, or,
/// when it isn't to be recorded, with ids alone; `parent` itself where no telemetry runs.
pub(crate) fn begin(
    parent: &Context,
    linked: Option<SpanContext>,
    name: &str,
    kind: SpanKind,
    attributes: impl FnOnce() -> Vec<KeyValue>,
) -> Context {
    // It calls once, but doesn't say so.
    let mut begun = Some((linked, kind, attributes));
    let context = tracing::dispatcher::get_default(|dispatch| {
        let recorded = dispatch.downcast_ref::<Recorded>()?;
        let (linked, kind, attributes) = begun.take()?;
        Some(recorded.begin(parent, linked, name, kind, attributes))
    });
    context.unwrap_or_else(|| parent.clone())
}

impl<S> Filter<S> for Recorded {
    fn enabled(&self, metadata: &Metadata<'_>, context: &LayerContext<'_, S>) -> bool {
        Filter::<S>::enabled(&self.targets, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        Filter::<S>::callsite_enabled(&self.targets, metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Filter::<S>::max_level_hint(&self.targets)
    }
}

/// Ids by lot, but for a trace that a sampler has decided by already.
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
