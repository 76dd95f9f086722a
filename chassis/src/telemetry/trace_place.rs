//! Where work belongs in the trace of its call.

use opentelemetry::{Context, ContextGuard};
use tracing::Span;
use tracing::span::Entered;

use super::sampling;

/// In a span, or, on a call that isn't recorded, below its ids alone. Work that goes to another thread or task takes its place along.
#[derive(Clone, Debug)]
pub enum TracePlace {
    /// In this span.
    Span(Span),
    /// In no span; log lines and calls have the ids of this context.
    Unrecorded(Context),
}

/// As long as it is there, what is done on this thread is done in its place.
#[must_use = "a place is left when this is dropped"]
#[derive(Debug)]
pub struct InPlace<'a> {
    _span: Option<Entered<'a>>,
    _context: Option<ContextGuard>,
}

impl TracePlace {
    /// Where this code runs.
    pub fn current() -> Self {
        match sampling::is_unrecorded() {
            true => Self::Unrecorded(Context::current()),
            false => Self::Span(Span::current()),
        }
    }

    /// Enters it; not across an `await`.
    pub fn enter(&self) -> InPlace<'_> {
        let (span, context) = match self {
            Self::Span(span) => (Some(span.enter()), None),
            Self::Unrecorded(context) => (None, Some(context.clone().attach())),
        };
        InPlace {
            _span: span,
            _context: context,
        }
    }

    /// Does `work` in it.
    pub fn in_scope<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = self.enter();
        work()
    }
}

/// The span that `make` makes, or none within a call that isn't recorded: nobody would see what is told of it.
pub fn recorded(make: impl FnOnce() -> Span) -> Span {
    match sampling::is_unrecorded() {
        true => Span::none(),
        false => make(),
    }
}
