//! Clauses whose cost is noted when they are opened, for profiles.

use std::sync::Arc;
use std::time::Instant;

use tantivy::SegmentReader;

use super::clause::Clause;
use super::selection::{Opened, Select};
use crate::profile::{self, Cost};

/// The same clause, its openings noted.
pub(super) fn clause(clause: Clause, cost: &Arc<Cost>) -> Clause {
    Clause {
        query: profile::measured(clause.query, cost),
        score: clause.score,
        select: clause.select.map(|select| -> Arc<dyn Select> {
            let cost = Arc::clone(cost);
            Arc::new(MeasuredSelect { select, cost })
        }),
    }
}

#[derive(Debug)]
struct MeasuredSelect {
    select: Arc<dyn Select>,
    cost: Arc<Cost>,
}

impl Select for MeasuredSelect {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Opened> {
        let began = Instant::now();
        let opened = self.select.open(reader)?;
        let candidates = match &opened {
            Opened::Nothing => 0,
            Opened::Everything => reader.max_doc(),
            Opened::Values(selection) => selection.estimate()?.0,
            Opened::Documents(documents) => documents.len(),
        };
        self.cost.opened(reader, candidates, began.elapsed());
        Ok(opened)
    }
}
