//! Columns of which several clauses of a union select ranges: a thousand ranges of one column read it once.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use tantivy::{DocId, TERMINATED};

use super::window::ClauseScorer;
use crate::columns::NumberColumn;

/// A column of which several clauses select ranges: read once.
pub(super) struct SharedColumn {
    column: Arc<NumberColumn>,
    /// The window that was read.
    window: Range<DocId>,
    /// Whose values these are, in order.
    docs: Vec<DocId>,
    values: Vec<u64>,
}

impl SharedColumn {
    /// Reads the window, if it isn't the one that was read last.
    pub(super) fn read(&mut self, window: &Range<DocId>) {
        if self.window != *window {
            self.docs.clear();
            self.values.clear();
            self.column.read(window.clone(), &mut self.docs, &mut self.values);
            self.window = window.clone();
        }
    }

    pub(super) fn select(&self, range: &RangeInclusive<u64>, mut found: impl FnMut(DocId)) {
        let mut last = TERMINATED;
        for (doc, value) in self.docs.iter().zip(&self.values) {
            if range.contains(value) && *doc != last {
                last = *doc;
                found(*doc);
            }
        }
    }
}

/// Finds the columns of which several of the clauses select ranges.
pub(super) fn share(clauses: &mut [ClauseScorer]) -> Vec<SharedColumn> {
    let mut selecting: HashMap<*const NumberColumn, (usize, Option<usize>)> = HashMap::new();
    let column = |clause: &ClauseScorer| match clause {
        ClauseScorer::Column { selection, .. } => selection.range().map(|(column, _)| Arc::clone(column)),
        ClauseScorer::Everything(_) | ClauseScorer::Constant { .. } | ClauseScorer::Scored(_) => None,
    };
    for column in clauses.iter().filter_map(column) {
        selecting.entry(Arc::as_ptr(&column)).or_default().0 += 1;
    }
    let mut all = Vec::new();
    for clause in clauses {
        let Some(column) = column(clause) else { continue };
        let known = selecting.get_mut(&Arc::as_ptr(&column));
        if let (ClauseScorer::Column { shared, .. }, Some((2.., place))) = (clause, known) {
            *shared = Some(*place.get_or_insert_with(|| {
                all.push(SharedColumn {
                    column,
                    window: 0..0,
                    docs: Vec::new(),
                    values: Vec::new(),
                });
                all.len() - 1
            }));
        }
    }
    all
}
