//! Which calls are recorded, decided before a span of theirs is made.
//!
//! The OpenTelemetry layer of tracing builds a span with all that is told of it and asks the sampler then. Where one call in a
//! hundred is recorded, ninety-nine pay for attributes that nobody will see. So the layer that begins a call asks the
//! sampler first: work on a call that isn't recorded runs below ids alone, which log lines, stored records and the
//! calls that it makes carry as ever.

use std::cell::Cell;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceFlags, TraceId};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, SamplingResult, ShouldSample as _,
};
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context as LayerContext, Filter};

thread_local! {
    /// The id that the next trace of this thread has: a sampler may have decided by it already.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// In the context of work that isn't recorded.
#[derive(Clone, Copy, Debug)]
struct Unrecorded;

/// Does the current work belong to a call that isn't recorded?
pub(super) fn is_unrecorded() -> bool {
    Context::map_current(|context| context.get::<Unrecorded>().is_some())
}

/// What becomes a span: what the targets let pass. The sampler stands here for [`unrecorded`] to ask.
pub(super) struct Recorded {
    targets: Targets,
    sampler: Sampler,
    /// Does anybody take spans?
    exported: bool,
}

impl Recorded {
    pub(super) fn new(targets: Targets, sampler: Sampler, exported: bool) -> Self {
        Self {
            targets,
            sampler,
            exported,
        }
    }

    /// The context for the work on a call within `parent`, or `None` when a span is to be made.
    fn unrecorded(&self, parent: &Context, name: &str, kind: &SpanKind) -> Option<Context> {
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
            .should_sample(Some(parent), trace, name, kind, &[], &[]);
        let sampled = decision == SamplingDecision::RecordAndSample;
        if self.exported && sampled {
            if origin.is_none() {
                NEXT_TRACE.set(Some(trace));
            }
            return None;
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
        Some(parent.with_remote_span_context(own).with_value(Unrecorded))
    }
}

/// The context for the work on a call within `parent` that isn't to be recorded. `None` when its span is to be made, at once and
/// on this thread; also where no telemetry runs.
pub(crate) fn unrecorded(parent: &Context, name: &str, kind: &SpanKind) -> Option<Context> {
    tracing::dispatcher::get_default(|dispatch| {
        let recorded = dispatch.downcast_ref::<Recorded>()?;
        recorded.unrecorded(parent, name, kind)
    })
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
