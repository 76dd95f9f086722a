//! Where work belongs in the trace of its call.

use opentelemetry::{Context, ContextGuard};
use tracing::Span;
use tracing::span::Entered;

/// In a span of tracing, or in the context of a call. Work that goes to another thread or task takes its place along.
#[derive(Clone, Debug)]
pub enum TracePlace {
    /// In this span.
    Span(Span),
    /// In this context: log lines, spans and calls belong to the span of a call that is in it, or, on a call that isn't recorded,
    /// have its ids.
    Call(Context),
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
        // Where calls aren't recorded there are no spans of tracing; they are always within those of calls.
        let span = Span::current();
        match span.is_none() {
            true => Self::Call(Context::current()),
            false => Self::Span(span),
        }
    }

    /// Enters it; not across an `await`.
    pub fn enter(&self) -> InPlace<'_> {
        let (span, context) = match self {
            Self::Span(span) => (Some(span.enter()), None),
            Self::Call(context) => (None, Some(context.clone().attach())),
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
