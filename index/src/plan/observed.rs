//! Clauses that look whether their search has to stop, and whose cost is noted, when they are opened on a segment.
//!
//! Collectors look while they walk over documents. A thousand clauses may take long before there is a first document.

use std::sync::Arc;
use std::time::Instant;

use tantivy::query::{EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use super::clause::Clause;
use super::selection::{Select, Selected};
use crate::allowance::Grant;
use crate::profile::Cost;
use crate::run::Run;
use crate::unexplained::{Standing, unexplained};

/// Clauses of a tree from which on each of them looks.
pub(super) const MANY_NODES: usize = 32;

/// What is done when a clause is opened.
#[derive(Clone, Debug, Default)]
pub(super) struct ClauseObserver {
    /// The search that may have to stop, in large trees.
    pub(super) run: Option<Arc<Run>>,
    /// Where the cost is noted, for profiles.
    pub(super) cost: Option<Arc<Cost>>,
    /// What its scorers hold.
    pub(super) _held: Option<Arc<Grant>>,
}

impl ClauseObserver {
    /// The same clause, observed.
    pub(super) fn observe(self, clause: Clause) -> Clause {
        if self.run.is_none() && self.cost.is_none() {
            return clause;
        }
        let query = Arc::from(clause.query);
        let select = clause.select.map(|select| -> Arc<dyn Select> {
            let observer = self.clone();
            Arc::new(Observed { observer, of: select })
        });
        Clause {
            query: Box::new(Observed {
                observer: self,
                of: query,
            }),
            score: clause.score,
            select,
        }
    }

    fn check(&self) -> tantivy::Result<()> {
        self.run.as_ref().map_or(Ok(()), |run| run.check_inside())
    }

    /// Opens a clause, which tells how many candidates it has.
    fn open<T>(
        &self,
        reader: &SegmentReader,
        open: impl FnOnce() -> tantivy::Result<T>,
        candidates: impl FnOnce(&T) -> tantivy::Result<u32>,
    ) -> tantivy::Result<T> {
        self.check()?;
        let Some(cost) = &self.cost else {
            return open();
        };
        let began = Instant::now();
        let opened = open()?;
        cost.opened(reader, candidates(&opened)?, began.elapsed());
        Ok(opened)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Observed<T> {
    pub(super) observer: ClauseObserver,
    pub(super) of: T,
}

impl Query for Observed<Arc<dyn Query>> {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        self.observer.check()?;
        Ok(Box::new(Observed {
            observer: self.observer.clone(),
            of: self.of.weight(scoring)?,
        }))
    }
}

impl Weight for Observed<Box<dyn Weight>> {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let open = || self.of.scorer(reader, boost);
        self.observer.open(reader, open, |scorer| Ok(scorer.size_hint()))
    }

    fn scorer_danger(&self, reader: &SegmentReader, target: DocId, boost: Score) -> Standing {
        let open = || self.of.scorer_danger(reader, target, boost);
        self.observer
            .open(reader, open, |(_, scorer)| Ok(scorer.size_hint()))
    }

    unexplained!();

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.observer
            .open(reader, || self.of.count(reader), |count| Ok(*count))
    }
}

impl Select for Observed<Arc<dyn Select>> {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let open = || self.of.open(reader);
        self.observer.open(reader, open, |opened| {
            Ok(match opened {
                Selected::Nothing => 0,
                Selected::Everything => reader.max_doc(),
                Selected::Values(selection) => selection.estimate()?.0,
                Selected::Documents(documents) => documents.len(),
            })
        })
    }
}
