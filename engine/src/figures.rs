//! What there is to measure of an engine at one moment. A look costs a listing of the store's folder and a walk over the
//! segments of each index.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use souk_index::{IndexMemory, IndexSize, MergeFigures};
use souk_storage::Statistics;
use souk_storage::{Database, Health};

use crate::index_state::{IndexState, Phase, Serving};
use crate::inner::Inner;
use crate::keeper;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct EngineFigures {
    /// Of the store; `None` when it can't tell.
    pub store: Option<Statistics>,
    /// The last sequence.
    pub sequence: u64,
    /// Whether the store takes writes.
    pub writable: bool,
    /// Of the search indexes, table by table.
    pub indexes: Vec<IndexFigures>,
    /// Bytes of the log that indexes share.
    pub log_window: usize,
    /// Searches on places of their own.
    pub searches_active: usize,
    /// Searches that wait for a place.
    pub searches_waiting: usize,
    /// Views that are kept for searches.
    pub views: usize,
    /// Snapshots that are kept for exports.
    pub snapshots: usize,
    /// Watches that are open.
    pub watches: usize,
    /// Bytes that were read for watches and not taken yet.
    pub watched_ahead: usize,
}

/// Of one search index.
#[derive(Clone, Debug)]
pub struct IndexFigures {
    /// Its table.
    pub table: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// [`crate::SearchIndexDefinition::weight`].
    pub weight: u8,
    /// How often it was found damaged.
    pub damages: u64,
    /// How long it hasn't been able to advance.
    pub stalled: Duration,
    /// Changes that the log keeps for it.
    pub log_held: u64,
    /// While it answers.
    pub serving: Option<ServingFigures>,
}

/// Of an index that answers.
#[derive(Clone, Debug)]
pub struct ServingFigures {
    /// Changes that searches don't see yet.
    pub lag_changes: u64,
    /// Age of the first of them.
    pub lag: Duration,
    /// How large it is.
    pub size: IndexSize,
    /// Memory.
    pub memory: IndexMemory,
    /// Merges of segments.
    pub merges: MergeFigures,
    /// Values that don't fit their fields.
    pub misfits: u64,
}

impl EngineFigures {
    pub(crate) async fn of(engine: &Inner) -> Self {
        let database = &engine.database;
        let held = keeper::logs_held(database);
        let mut indexes = Vec::new();
        for table in engine.tables() {
            for index in table.indexes().iter() {
                let stall = index.state.current_stall();
                indexes.push(IndexFigures {
                    table: Arc::clone(table.shared_name()),
                    name: Arc::clone(index.shared_name()),
                    weight: index.weight(),
                    damages: index.damages.load(Ordering::Relaxed),
                    stalled: stall.map(|stall| stall.age()).unwrap_or_default(),
                    log_held: held.get(index.name()).copied().unwrap_or_default(),
                    serving: serving(engine, &index.state).await,
                });
            }
        }
        Self {
            store: database.statistics().await.ok(),
            sequence: database.last_sequence(),
            writable: matches!(database.health(), Health::Serving),
            indexes,
            log_window: engine.tail.bytes(),
            searches_active: engine.searches.active(),
            searches_waiting: engine.searches.waiting(),
            views: engine.views.len(),
            snapshots: engine.snapshots.len(),
            watches: engine.watches.taken(),
            watched_ahead: engine.read_ahead.bytes(),
        }
    }
}

async fn serving(engine: &Inner, index: &IndexState) -> Option<ServingFigures> {
    // First what searches see, then how far the log is: the lag may be too long by what happens in between, never too
    // short.
    let applied = index.applied();
    let last = engine.database.last_sequence();
    let (size, memory, merges, misfits) = match index.phase() {
        Phase::Serving(Serving { index, .. }) => (
            index.size().unwrap_or_default(),
            index.memory(),
            index.merges(),
            index.misfits().count,
        ),
        Phase::Unopened(unopened) => (
            unopened.size,
            IndexMemory::default(),
            MergeFigures::default(),
            unopened.misfits.count,
        ),
        Phase::Absent | Phase::Building | Phase::Failed(_) => return None,
    };
    Some(ServingFigures {
        lag_changes: last.saturating_sub(applied),
        lag: age_of_next(&engine.database, applied, last, engine.clock.now()).await,
        size,
        memory,
        merges,
        misfits,
    })
}

/// How long the first change behind a position has been there.
async fn age_of_next(database: &Database, position: u64, last: u64, now: i64) -> Duration {
    if position >= last {
        return Duration::ZERO;
    }
    let next = database.changes(position, 1).await.unwrap_or_default();
    let age = next.first().map_or(0, |change| now.saturating_sub(change.time));
    Duration::from_nanos(u64::try_from(age).unwrap_or_default())
}
