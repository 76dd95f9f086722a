//! What an engine measures: all of it is in the table [`ALL`], which `docs/TELEMETRY.md` has for readers.
//!
//! What can be looked at whenever somebody asks is in `observed`; what must be noted as it happens is noted by
//! `EngineMetrics`.

mod observed;
pub mod table;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use souk_chassis::huge_pages;
use souk_chassis::telemetry::instrument::{Histogram, meter};
use souk_engine::observer::Observer;
use souk_engine::storage::{CommitGroup, Observer as StoreObserver};
use souk_engine::{Engine, EngineConfig, Result, Tables};

pub use table::ALL;

/// The name of the store in telemetry.
const SYSTEM: &str = "souk";

/// Opens an engine, as [`Engine::open`] does, that is measured on the meter of the role that this is called in. With an index
/// as large as [`EngineConfig::large_index_from`] the process gets [huge pages](souk_chassis::huge_pages) of memory.
///
/// # Errors
/// What the engine refuses.
pub async fn open_measured(mut config: EngineConfig, tables: Tables) -> Result<Engine> {
    let meter = meter();
    config.observer = Arc::new(EngineMetrics::new(&meter));
    config.storage.fjall.observer = Arc::new(Commits::new(&meter));
    let engine = Engine::open(config, tables).await?;
    observed::observe(&engine, &meter);
    Ok(engine)
}

/// Notes what an engine does.
#[derive(Debug)]
struct EngineMetrics {
    operations: Histogram,
    applies: Histogram,
}

impl EngineMetrics {
    fn new(meter: &Meter) -> Self {
        Self {
            operations: table::OPERATION_DURATION.histogram(meter),
            applies: table::APPLY_DURATION.histogram(meter),
        }
    }
}

impl Observer for EngineMetrics {
    fn accessed(
        &self,
        operation: &'static str,
        table: &Arc<str>,
        error: Option<&'static str>,
        took: Duration,
    ) {
        let labels = [
            KeyValue::new("db.system.name", SYSTEM),
            KeyValue::new("db.operation.name", operation),
            KeyValue::new("db.collection.name", Arc::clone(table)),
            KeyValue::new("error.type", error.unwrap_or_default()),
        ];
        let labels = labels.get(..3 + usize::from(error.is_some()));
        self.operations
            .record(took.as_secs_f64(), labels.unwrap_or_default());
    }

    fn applied(&self, table: &Arc<str>, took: Duration) {
        let labels = [KeyValue::new("db.collection.name", Arc::clone(table))];
        self.applies.record(took.as_secs_f64(), &labels);
    }

    fn holds_much(&self, table: &Arc<str>, documents: u64) {
        if huge_pages::allow() {
            tracing::info!(
                table = &**table,
                documents,
                "the process gets huge pages of memory from now on"
            );
        }
    }
}

/// Notes what the committer of a store writes.
#[derive(Debug)]
struct Commits {
    syncs: Histogram,
    groups: Histogram,
}

impl Commits {
    fn new(meter: &Meter) -> Self {
        Self {
            syncs: table::SYNC_DURATION.histogram(meter),
            groups: table::GROUP_COMMITS.histogram(meter),
        }
    }
}

impl StoreObserver for Commits {
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
