//! Changes that are applied to an index, but not seen by searches yet.

use std::time::Duration;

use souk_index::Operation;
use souk_storage::LogEntry;
use tokio::time::Instant;
use tracing::Span;

use crate::design::Design;
use crate::error::Result;
use crate::open_table::OpenTable;
use crate::trace;

/// Most writes that a span links to.
const LINKS_MAX: usize = 128;

/// What one commit of an index will let searches see.
#[derive(Debug, Default)]
pub(super) struct Pending {
    operations: usize,
    /// When the first of them was taken in.
    since: Option<Instant>,
    /// The traces of the writes.
    traces: Vec<String>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.operations == 0
    }

    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn age(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The operations of changes, of which it then knows.
    ///
    /// # Errors
    /// When an entry of the log is damaged.
    pub(super) fn take_in(
        &mut self,
        table: &OpenTable,
        design: &Design,
        entries: &[LogEntry],
    ) -> Result<Vec<Operation>> {
        let mut operations = Vec::new();
        for entry in entries {
            let change = entry.change_of(table.table.id())?;
            operations.extend(change.rows.iter().map(|row| design.operation(row)));
            if !change.rows.is_empty()
                && self.traces.len() < LINKS_MAX
                && let Some(trace) = change.trace
            {
                self.traces.push(trace);
            }
        }
        if !operations.is_empty() {
            self.operations += operations.len();
            self.since.get_or_insert_with(Instant::now);
        }
        Ok(operations)
    }

    /// Links the span of the commit to the writes.
    pub(super) fn link(&self, span: &Span) {
        for traceparent in &self.traces {
            trace::link(span, traceparent);
        }
    }
}
