//! Observable instruments of an engine: they are read at each collection of metrics. All values of a collection are of one
//! moment, which costs a listing of the store's folder and a walk over the segments of each index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use parking_lot::Mutex;
use souk_chassis::telemetry::instrument::{Instrument, whole};
use souk_engine::Engine;
use souk_engine::engine::WeakEngine;
use souk_engine::figures::{EngineFigures, IndexFigures, ServingFigures};
use souk_engine::storage::{Space, Statistics};
use souk_index::IndexMemory;
use tokio::runtime::Handle;

use super::table;

/// Age up to which figures are reused: all instruments of one collection are read in less.
const FIGURES_AGE_MAX: Duration = Duration::from_millis(200);

/// Caches the figures of an engine for one collection, without keeping the engine open.
struct FigureCache {
    engine: WeakEngine,
    runtime: Handle,
    last: Mutex<Option<(Instant, Arc<EngineFigures>)>>,
}

impl FigureCache {
    /// The present figures; `None` when the engine has gone.
    fn figures(&self) -> Option<Arc<EngineFigures>> {
        let mut last = self.last.lock();
        if let Some((read_at, figures)) = &*last
            && read_at.elapsed() < FIGURES_AGE_MAX
        {
            return Some(Arc::clone(figures));
        }
        let engine = self.engine.upgrade()?;
        // Blocking is allowed: collections run on threads of their own, outside of the runtime on which the store answers.
        let figures = Arc::new(self.runtime.block_on(engine.figures()));
        *last = Some((Instant::now(), Arc::clone(&figures)));
        Some(figures)
    }
}

/// Registers all observable instruments of an engine with a meter. Must be called inside a tokio runtime.
pub(super) fn observe(engine: &Engine, meter: &Meter) {
    let cache = Arc::new(FigureCache {
        engine: engine.downgrade(),
        runtime: Handle::current(),
        last: Mutex::default(),
    });
    let registry = Registry { cache, meter };
    registry.engine();
    registry.store();
    registry.indexes();
}

/// Figures, each with the value of an attribute.
type ByAttribute = Vec<(&'static str, u64)>;

/// Registers instruments with a meter.
struct Registry<'a> {
    cache: Arc<FigureCache>,
    meter: &'a Meter,
}

impl Registry<'_> {
    fn engine(&self) {
        self.number(table::SEQUENCE, |figures| figures.sequence);
        self.number(table::WRITABLE, |figures| u64::from(figures.writable));
        self.number(table::SEARCHES_ACTIVE, |figures| whole(figures.searches_active));
        self.number(table::SEARCHES_WAITING, |figures| whole(figures.searches_waiting));
        self.number(table::VIEWS, |figures| whole(figures.views));
        self.number(table::SNAPSHOTS, |figures| whole(figures.snapshots));
        self.number(table::WATCHES, |figures| whole(figures.watches));
        self.number(table::WATCHED_AHEAD, |figures| whole(figures.watched_ahead));
        self.number(table::LOG_WINDOW, |figures| whole(figures.log_window));
    }

    fn store(&self) {
        self.statistic(table::COMMITS_WAITING, |store| Some(whole(store.waiting_commits)));
        self.statistic(table::JOURNAL_SIZE, |store| Some(store.journals.bytes));
        self.statistic(table::FLUSHES_WAITING, |store| {
            Some(whole(store.compactions.flushes_waiting))
        });
        self.statistic(table::COMPACTIONS_ACTIVE, |store| {
            Some(whole(store.compactions.active))
        });
        self.statistic(table::DISK_USED, |store| Some(store.disk.as_ref()?.used));
        self.statistic(table::DISK_FREE, |store| store.disk.as_ref()?.free);
        self.statistic(table::DISK_RESERVE, |store| Some(store.disk.as_ref()?.reserve));
        self.statistics(table::MEMORY_USAGE, "souk.store.part", |store| {
            let memory = &store.memory;
            vec![
                ("cache", memory.cache),
                ("memtables", memory.memtables),
                ("pinned", memory.pinned),
            ]
        });
        self.statistics(table::MEMORY_LIMIT, "souk.store.part", |store| {
            let memory = &store.memory;
            vec![
                ("cache", memory.cache_limit),
                ("memtables", memory.memtables_limit),
            ]
        });
        self.statistics(table::TABLE_SIZE, "souk.store.space", |store| {
            let spaces = store.spaces.iter();
            spaces
                .map(|space| (space_name(space.space), space.table_bytes))
                .collect()
        });
        self.statistics(table::GARBAGE, "souk.store.space", |store| {
            let spaces = store.spaces.iter();
            spaces
                .map(|space| (space_name(space.space), space.garbage_bytes))
                .collect()
        });
        self.figures_in_seconds(table::COMPACTION_TIME, |figures, observer| {
            if let Some(store) = &figures.store {
                observer.observe(store.compactions.time.as_secs_f64(), &[]);
            }
        });
    }

    fn indexes(&self) {
        self.index(table::LAG_CHANGES, |index| index.lag_changes);
        self.index(table::DOCUMENTS, |index| index.size.documents);
        self.index(table::DELETED, |index| index.size.deleted);
        self.index(table::SEGMENTS, |index| whole(index.size.segments));
        self.index(table::INDEX_SIZE, |index| index.size.bytes);
        self.index(table::MERGES_ACTIVE, |index| whole(index.merges.active));
        self.index(table::MERGES, |index| index.merges.done);
        self.index(table::MISFITS, |index| index.misfits);
        self.index_parts(table::INDEX_MEMORY_USAGE, |memory| {
            vec![
                ("documents", memory.documents),
                ("removals", memory.removals),
                ("kept", memory.kept),
            ]
        });
        self.index_parts(table::INDEX_MEMORY_LIMIT, |memory| {
            vec![
                ("documents", memory.writer_limit),
                ("removals", memory.writer_limit),
            ]
        });
        self.each(table::SERVING, |index| Some(u64::from(index.serving.is_some())));
        self.each(table::WEIGHT, |index| Some(u64::from(index.weight)));
        self.each(table::DAMAGES, |index| Some(index.damages));
        self.each(table::LOG_HELD, |index| Some(index.log_held));
        self.each_seconds(table::STALLED, |index| Some(index.stalled));
        self.each_seconds(table::LAG_TIME, |index| Some(index.serving.as_ref()?.lag));
        self.each_seconds(table::MERGE_TIME, |index| {
            Some(index.serving.as_ref()?.merges.time)
        });
    }

    fn number(&self, instrument: Instrument, figure: fn(&EngineFigures) -> u64) {
        self.figures(instrument, move |figures, observer| {
            observer.observe(figure(figures), &[]);
        });
    }

    fn statistic(&self, instrument: Instrument, figure: fn(&Statistics) -> Option<u64>) {
        self.figures(instrument, move |figures, observer| {
            if let Some(figure) = figures.store.as_ref().and_then(figure) {
                observer.observe(figure, &[]);
            }
        });
    }

    /// Statistics by an attribute.
    fn statistics(
        &self,
        instrument: Instrument,
        attribute: &'static str,
        statistics: fn(&Statistics) -> ByAttribute,
    ) {
        self.figures(instrument, move |figures, observer| {
            for (value, figure) in figures.store.as_ref().map(statistics).unwrap_or_default() {
                observer.observe(figure, &[KeyValue::new(attribute, value)]);
            }
        });
    }

    /// A figure of each index that answers.
    fn index(&self, instrument: Instrument, figure: fn(&ServingFigures) -> u64) {
        self.each(instrument, move |index| index.serving.as_ref().map(figure));
    }

    /// Memory of each index that answers, by its parts.
    fn index_parts(&self, instrument: Instrument, parts: fn(&IndexMemory) -> ByAttribute) {
        self.figures(instrument, move |figures, observer| {
            for index in &figures.indexes {
                for (part, bytes) in index.serving.iter().flat_map(|serving| parts(&serving.memory)) {
                    let mut attributes = attributes(index);
                    attributes.push(KeyValue::new("souk.index.part", part));
                    observer.observe(bytes, &attributes);
                }
            }
        });
    }

    /// A figure of each index that has it.
    fn each(
        &self,
        instrument: Instrument,
        figure: impl Fn(&IndexFigures) -> Option<u64> + Send + Sync + 'static,
    ) {
        self.figures(instrument, move |figures, observer| {
            for index in &figures.indexes {
                if let Some(figure) = figure(index) {
                    observer.observe(figure, &attributes(index));
                }
            }
        });
    }

    /// A duration of each index that has it.
    fn each_seconds(&self, instrument: Instrument, duration: fn(&IndexFigures) -> Option<Duration>) {
        self.figures_in_seconds(instrument, move |figures, observer| {
            for index in &figures.indexes {
                if let Some(duration) = duration(index) {
                    observer.observe(duration.as_secs_f64(), &attributes(index));
                }
            }
        });
    }

    fn figures(
        &self,
        instrument: Instrument,
        observe: impl Fn(&EngineFigures, &dyn AsyncInstrument<u64>) + Send + Sync + 'static,
    ) {
        let cache = Arc::clone(&self.cache);
        instrument.observe(self.meter, move |observer| {
            if let Some(figures) = cache.figures() {
                observe(&figures, observer);
            }
        });
    }

    fn figures_in_seconds(
        &self,
        instrument: Instrument,
        observe: impl Fn(&EngineFigures, &dyn AsyncInstrument<f64>) + Send + Sync + 'static,
    ) {
        let cache = Arc::clone(&self.cache);
        instrument.observe_seconds(self.meter, move |observer| {
            if let Some(figures) = cache.figures() {
                observe(&figures, observer);
            }
        });
    }
}

/// The attributes of an index: its table, and its own name where that differs.
fn attributes(index: &IndexFigures) -> Vec<KeyValue> {
    let mut attributes = vec![KeyValue::new("db.collection.name", Arc::clone(&index.table))];
    if index.name != index.table {
        attributes.push(KeyValue::new("souk.index.name", Arc::clone(&index.name)));
    }
    attributes
}

fn space_name(space: Space) -> &'static str {
    match space {
        Space::Rows => "rows",
        Space::Log => "log",
        Space::Index => "index",
        Space::Catalog => "catalog",
    }
}
