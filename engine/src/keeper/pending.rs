//! Changes that are applied to an index, but not seen by searches yet.

use std::time::Duration;

use souk_chassis::propagate;
use souk_index::Operation;
use souk_storage::Change;
use tokio::time::Instant;
use tracing::Span;

use crate::design::Design;
use crate::table::OpenTable;

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
    pub(super) fn take_in(
        &mut self,
        table: &OpenTable,
        design: &Design,
        changes: &[Change],
    ) -> Vec<Operation> {
        let mut operations = Vec::new();
        for change in changes {
            let before = operations.len();
            let rows = change.rows.iter().filter(|row| row.table == table.table.id());
            operations.extend(rows.map(|row| design.operation(table, row)));
            if operations.len() > before
                && self.traces.len() < LINKS_MAX
                && let Some(trace) = &change.trace
            {
                self.traces.push(trace.clone());
            }
        }
        if !operations.is_empty() {
            self.operations += operations.len();
            self.since.get_or_insert_with(Instant::now);
        }
        operations
    }

    /// Links the span of the commit to the writes.
    pub(super) fn link(&self, span: &Span) {
        for trace in &self.traces {
            propagate::link(span, trace);
        }
    }
}
