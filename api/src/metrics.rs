//! The metrics of an engine. [`ALL`] has them all; `docs/TELEMETRY.md` describes them.
//!
//! `observed` reads gauges and counters when they are collected; `EngineMetrics` and `CommitMetrics` record durations and
//! sizes as they happen.

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

/// The `db.system.name` of the engine.
const SYSTEM: &str = "souk";

/// Opens an engine as [`Engine::open`] does, and records its metrics on the [`meter`] of the service that this is
/// called in. With an index as large as [`EngineConfig::large_index_from`] it allows the process
/// [huge pages](souk_chassis::huge_pages).
///
/// # Errors
/// As [`Engine::open`].
pub async fn open_measured(mut config: EngineConfig, tables: Tables) -> Result<Engine> {
    let meter = meter();
    config.observer = Arc::new(EngineMetrics::new(&meter));
    config.storage.fjall.observer = Arc::new(CommitMetrics::new(&meter));
    let engine = Engine::open(config, tables).await?;
    observed::observe(&engine, &meter);
    Ok(engine)
}

/// Records the durations of accesses to tables, and of commits of indexes.
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
        let attributes = [
            KeyValue::new("db.system.name", SYSTEM),
            KeyValue::new("db.operation.name", operation),
            KeyValue::new("db.collection.name", Arc::clone(table)),
            KeyValue::new("error.type", error.unwrap_or_default()),
        ];
        // Without an error, its type is left out.
        let attributes = attributes.get(..3 + usize::from(error.is_some()));
        self.operations
            .record(took.as_secs_f64(), attributes.unwrap_or_default());
    }

    fn applied(&self, table: &Arc<str>, took: Duration) {
        let attributes = [KeyValue::new("db.collection.name", Arc::clone(table))];
        self.applies.record(took.as_secs_f64(), &attributes);
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

/// Records the commit groups of a store.
#[derive(Debug)]
struct CommitMetrics {
    syncs: Histogram,
    groups: Histogram,
}

impl CommitMetrics {
    fn new(meter: &Meter) -> Self {
        Self {
            syncs: table::SYNC_DURATION.histogram(meter),
            groups: table::GROUP_COMMITS.histogram(meter),
        }
    }
}

impl StoreObserver for CommitMetrics {
    fn committed(&self, group: CommitGroup) {
        if group.synced {
            self.syncs.record(group.took.as_secs_f64(), &[]);
        }
        if group.commits > 0 {
            // Exact: a group has far fewer than 2^53 commits.
            self.groups.record(group.commits as f64, &[]);
        }
    }
}
