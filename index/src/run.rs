//! What the parts of one search share while it runs: its limits, and what earlier searches have found out.

use std::ops::Deref;
use std::sync::Arc;

use crate::allowance::Allowance;
use crate::cancel::Cancellation;
use crate::columns::ColumnCache;
use crate::execution::Execution;
use crate::statistics::Statistics;

/// The context of one search.
#[derive(Debug)]
pub(crate) struct Run {
    execution: Execution,
    columns: Arc<ColumnCache>,
    statistics: Arc<Statistics>,
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
            columns: Arc::default(),
            statistics: Arc::default(),
        }
    }

    /// The run with the memory of another.
    pub(crate) fn within(mut self, allowance: &Allowance) -> Self {
        self.execution.allowance = allowance.clone();
        self
    }

    /// The run with the columns that earlier searches have opened.
    pub(crate) fn with_columns(mut self, columns: Arc<ColumnCache>) -> Self {
        self.columns = columns;
        self
    }

    /// The columns of segments.
    pub(crate) fn columns(&self) -> &ColumnCache {
        &self.columns
    }

    /// The same run, measured or not.
    pub(crate) fn measuring(mut self, measured: bool) -> Self {
        self.execution.measured = measured;
        self
    }

    /// The run with what is known of the index's segments already.
    pub(crate) fn knowing(mut self, statistics: Arc<Statistics>) -> Self {
        self.statistics = statistics;
        self
    }

    /// What scores of texts depend on besides the document.
    pub(crate) fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }
}
