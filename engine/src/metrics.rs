//! What an engine measures: all of it is in the table [`ALL`], which `docs/TELEMETRY.md` has for readers.
//!
//! What can be looked at whenever somebody asks is in `observed`; what must be noted as it happens is noted by
//! `EngineMetrics`.

mod observed;
pub mod table;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use souk_chassis::telemetry::instrument::Histogram;
use souk_storage::{CommitGroup, Observer};

pub(crate) use observed::observe;
pub use table::ALL;

use crate::error::EngineError;

/// The name of the store in telemetry.
const SYSTEM: &str = "souk";

/// What an engine notes as it happens. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct EngineMetrics {
    operations: Histogram,
    applies: Histogram,
}

impl EngineMetrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            operations: table::OPERATION_DURATION.histogram(meter),
            applies: table::APPLY_DURATION.histogram(meter),
        }
    }

    /// An access to a table has ended.
    pub(crate) fn accessed(
        &self,
        operation: &'static str,
        table: &'static str,
        error: Option<&'static str>,
        took: Duration,
    ) {
        let labels = [
            KeyValue::new("db.system.name", SYSTEM),
            KeyValue::new("db.operation.name", operation),
            KeyValue::new("db.collection.name", table),
            KeyValue::new("error.type", error.unwrap_or_default()),
        ];
        let labels = labels.get(..3 + usize::from(error.is_some()));
        self.operations
            .record(took.as_secs_f64(), labels.unwrap_or_default());
    }

    /// An index was let see changes.
    pub(crate) fn applied(&self, table: &'static str, took: Duration) {
        let labels = [KeyValue::new("db.collection.name", table)];
        self.applies.record(took.as_secs_f64(), &labels);
    }
}

/// An error as `error.type` names it: few words, and never what a client sent.
pub(crate) trait ErrorType {
    /// `None` for what is no failure of the access, such as a row that isn't there.
    fn error_type(&self) -> Option<&'static str>;
}

impl ErrorType for souk_storage::Error {
    fn error_type(&self) -> Option<&'static str> {
        Some(self.code())
    }
}

impl ErrorType for EngineError {
    fn error_type(&self) -> Option<&'static str> {
        match self {
            Self::Storage(error) => Some(error.code()),
            Self::DeadlineExceeded(_) => Some("DEADLINE_EXCEEDED"),
            Self::IndexStalled { .. } => Some("INDEX_STALLED"),
            _ => None,
        }
    }
}

/// Notes what the committer of a store writes.
#[derive(Debug)]
pub(crate) struct Commits {
    syncs: Histogram,
    groups: Histogram,
}

impl Commits {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            syncs: table::SYNC_DURATION.histogram(meter),
            groups: table::GROUP_COMMITS.histogram(meter),
        }
    }
}

impl Observer for Commits {
    fn committed(&self, group: CommitGroup) {
        if group.synced {
            self.syncs.record(group.took.as_secs_f64(), &[]);
        }
        if group.commits > 0 {
            // Groups are far below where a double stops being exact.
            self.groups.record(group.commits as f64, &[]);
        }
    }
}
