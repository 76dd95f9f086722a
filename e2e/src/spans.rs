//! A trace as a tree of spans, with what tests ask of it.

use std::collections::BTreeMap;
use std::fmt;

/// Where a span stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside a process.
    Internal,
    /// The receiving end of a call.
    Server,
    /// The calling end of a call.
    Client,
    /// Anything else.
    Other,
}

impl SpanKind {
    pub(crate) fn from_wire(kind: i32) -> Self {
        match kind {
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            _ => Self::Other,
        }
    }
}

/// A reference from one trace into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The other trace, in hexadecimal.
    pub trace_id: String,
    /// The span in it, in hexadecimal.
    pub span_id: String,
}

/// One finished span.
#[derive(Clone, Debug)]
pub struct Span {
    /// `service.name` of the process.
    pub service: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// Its trace, in hexadecimal.
    pub trace_id: String,
    /// Its id, in hexadecimal.
    pub span_id: String,
    /// Its parent's id.
    pub parent_id: Option<String>,
    /// When it started, in nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// When it ended, in nanoseconds since the Unix epoch.
    pub end_ns: u64,
    /// Its attributes as text.
    pub attributes: BTreeMap<String, String>,
    /// Whether its status is ERROR.
    pub error: bool,
    /// Its links.
    pub links: Vec<Link>,
    /// Its `tracestate`.
    pub trace_state: String,
}

impl Span {
    /// An attribute's text; empty when there is none.
    #[must_use]
    pub fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    /// How long it took, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// All spans of one trace.
#[derive(Clone, Debug)]
pub struct Trace {
    spans: Vec<Span>,
}

impl Trace {
    pub(crate) fn new(mut spans: Vec<Span>) -> Self {
        spans.sort_by_key(|span| (span.start_ns, span.end_ns));
        Self { spans }
    }

    /// The spans by start time.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The spans with a name and a kind, by start time.
    #[must_use]
    pub fn named(&self, name: &str, kind: SpanKind) -> Vec<&Span> {
        self.spans
            .iter()
            .filter(|span| span.name == name && span.kind == kind)
            .collect()
    }

    /// The one child of `parent` (a span id) with a name and a kind.
    ///
    /// # Errors
    /// When there is none or more than one; the message shows the tree.
    pub fn child(&self, parent: &str, name: &str, kind: SpanKind) -> anyhow::Result<&Span> {
        let children: Vec<_> = self
            .named(name, kind)
            .into_iter()
            .filter(|span| span.parent_id.as_deref() == Some(parent))
            .collect();
        match children.as_slice() {
            [child] => Ok(child),
            _ => anyhow::bail!(
                "{} children {kind:?} `{name}` below {parent}, expected one:\n{self}",
                children.len()
            ),
        }
    }

    /// The span that another one is below, if it is of this trace.
    #[must_use]
    pub fn parent(&self, span: &Span) -> Option<&Span> {
        let id = span.parent_id.as_deref()?;
        self.spans.iter().find(|other| other.span_id == id)
    }

    /// The spans right below one, by start time.
    #[must_use]
    pub fn below(&self, id: &str) -> Vec<&Span> {
        let below = self.spans.iter();
        below
            .filter(|span| span.parent_id.as_deref() == Some(id))
            .collect()
    }

    /// Spans whose parent is neither in the trace nor `root`, the id that the caller sent.
    #[must_use]
    pub fn orphans(&self, root: &str) -> Vec<&Span> {
        let known = |id: &str| id == root || self.spans.iter().any(|span| span.span_id == id);
        self.spans
            .iter()
            .filter(|span| !span.parent_id.as_deref().is_some_and(known))
            .collect()
    }

    fn write_below(&self, parent: Option<&str>, depth: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for span in self
            .spans
            .iter()
            .filter(|span| span.parent_id.as_deref() == parent)
        {
            self.write_span(span, depth, out)?;
        }
        Ok(())
    }

    fn write_span(&self, span: &Span, depth: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = span.duration_ns() / 1_000;
        let indent = "  ".repeat(depth);
        writeln!(
            out,
            "{indent}{:?} {} [{}] {micros} µs {:?}",
            span.kind, span.name, span.service, span.attributes
        )?;
        self.write_below(Some(&span.span_id), depth + 1, out)
    }
}

impl fmt::Display for Trace {
    /// The tree, a span a line; spans whose parent isn't there stand at the top.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for span in &self.spans {
            let parent_is_here = self
                .spans
                .iter()
                .any(|other| Some(other.span_id.as_str()) == span.parent_id.as_deref());
            if !parent_is_here {
                self.write_span(span, 0, out)?;
            }
        }
        Ok(())
    }
}
