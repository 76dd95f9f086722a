//! The context of one search: its limits, and what earlier searches have found out of segments.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tantivy::SegmentReader;

use crate::allowance::Allowance;
use crate::cancel::Cancellation;
use crate::columns::ColumnCache;
use crate::execution::Execution;
use crate::join::ParentCache;
use crate::statistics::CollectionStatistics;

/// What searches keep of segments for the next ones. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct SegmentCaches {
    columns: Arc<ColumnCache>,
    statistics: Arc<CollectionStatistics>,
    parents: Arc<ParentCache>,
}

impl SegmentCaches {
    pub(crate) fn bytes(&self) -> usize {
        self.columns.bytes() + self.statistics.bytes() + self.parents.bytes()
    }

    /// Forgets segments that are gone.
    pub(crate) fn retain(&self, readers: &[SegmentReader]) {
        self.columns.retain(readers);
        self.statistics.retain(readers);
        self.parents.retain(readers);
    }
}

/// What the parts of one search share while it runs.
#[derive(Default)]
pub(crate) struct Run {
    execution: Execution,
    caches: SegmentCaches,
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").finish_non_exhaustive()
    }
}

impl Deref for Run {
    type Target = Execution;

    fn deref(&self) -> &Execution {
        &self.execution
    }
}

impl Run {
    pub(crate) fn new(cancellation: Cancellation) -> Self {
        Self {
            execution: Execution::new(cancellation),
            ..Self::default()
        }
    }

    /// The same with the memory of another.
    pub(crate) fn within(mut self, allowance: &Allowance) -> Self {
        self.execution.allowance = allowance.clone();
        self
    }

    /// The same with what earlier searches keep, measured or not.
    pub(crate) fn with_caches(mut self, caches: SegmentCaches, measured: bool) -> Self {
        self.caches = caches;
        self.execution.measured = measured;
        self
    }

    pub(crate) fn columns(&self) -> &ColumnCache {
        &self.caches.columns
    }

    pub(crate) fn statistics(&self) -> &Arc<CollectionStatistics> {
        &self.caches.statistics
    }

    pub(crate) fn parents(&self) -> &Arc<ParentCache> {
        &self.caches.parents
    }
}
