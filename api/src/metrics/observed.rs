//! What is looked at whenever somebody asks. All of one asking comes from one look, which costs a listing of the store's
//! folder and a walk over the segments of each index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use parking_lot::Mutex;
use souk_chassis::telemetry::instrument::{Instrument, whole};
use souk_engine::Engine;
use souk_engine::engine::WeakEngine;
use souk_engine::figures::{Figures, IndexFigures, ServingFigures};
use souk_engine::storage::{Space, Statistics};
use souk_index::IndexMemory;
use tokio::runtime::Handle;

use super::table;

/// How long a look is good for: all instruments are asked within that.
const FRESH: Duration = Duration::from_millis(200);

/// Looks at an engine, without keeping it open.
struct Observatory {
    engine: WeakEngine,
    runtime: Handle,
    last: Mutex<Option<(Instant, Arc<Figures>)>>,
}

impl Observatory {
    /// What there is to see now; `None` when the engine has gone.
    fn look(&self) -> Option<Arc<Figures>> {
        let mut last = self.last.lock();
        if let Some((at, look)) = &*last
            && at.elapsed() < FRESH
        {
            return Some(Arc::clone(look));
        }
        let engine = self.engine.upgrade()?;
        // Those who ask have threads of their own; the store answers on the runtime's.
        let look = Arc::new(self.runtime.block_on(engine.figures()));
        *last = Some((Instant::now(), Arc::clone(&look)));
        Some(look)
    }
}

/// Has everything that an engine holds observed on `meter`. Must be called inside a tokio runtime.
pub(super) fn observe(engine: &Engine, meter: &Meter) {
    let observatory = Arc::new(Observatory {
        engine: engine.downgrade(),
        runtime: Handle::current(),
        last: Mutex::default(),
    });
    let observed = Observed { observatory, meter };
    observed.whole_engine();
    observed.store();
    observed.indexes();
}

type ByLabel = Vec<(&'static str, u64)>;

struct Observed<'a> {
    observatory: Arc<Observatory>,
    meter: &'a Meter,
}

impl Observed<'_> {
    fn whole_engine(&self) {
        self.number(table::SEQUENCE, |look| Some(look.sequence));
        self.number(table::WRITABLE, |look| Some(u64::from(look.writable)));
        self.number(table::SEARCHES_ACTIVE, |look| Some(whole(look.searches_active)));
        self.number(table::SEARCHES_WAITING, |look| Some(whole(look.searches_waiting)));
        self.number(table::VIEWS, |look| Some(whole(look.views)));
        self.number(table::SNAPSHOTS, |look| Some(whole(look.snapshots)));
        self.number(table::WATCHES, |look| Some(whole(look.watches)));
        self.number(table::WATCHED_AHEAD, |look| Some(whole(look.watched_ahead)));
        self.number(table::LOG_WINDOW, |look| Some(whole(look.log_window)));
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
        self.labelled(table::MEMORY_USAGE, "souk.store.part", |store| {
            let memory = &store.memory;
            vec![
                ("cache", memory.cache),
                ("memtables", memory.memtables),
                ("pinned", memory.pinned),
            ]
        });
        self.labelled(table::MEMORY_LIMIT, "souk.store.part", |store| {
            let memory = &store.memory;
            vec![
                ("cache", memory.cache_limit),
                ("memtables", memory.memtables_limit),
            ]
        });
        self.labelled(table::TABLE_SIZE, "souk.store.space", |store| {
            let spaces = store.spaces.iter();
            spaces
                .map(|space| (word(space.space), space.table_bytes))
                .collect()
        });
        self.labelled(table::GARBAGE, "souk.store.space", |store| {
            let spaces = store.spaces.iter();
            spaces
                .map(|space| (word(space.space), space.garbage_bytes))
                .collect()
        });
        let observatory = Arc::clone(&self.observatory);
        table::COMPACTION_TIME.observe_seconds(self.meter, move |now| {
            if let Some(look) = observatory.look()
                && let Some(store) = &look.store
            {
                now.observe(store.compactions.time.as_secs_f64(), &[]);
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
        self.index_seconds(table::LAG_TIME, |index| index.lag);
        self.index_seconds(table::MERGE_TIME, |index| index.merges.time);
        let observatory = Arc::clone(&self.observatory);
        table::SERVING.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                now.observe(u64::from(index.serving.is_some()), &of(index));
            }
        });
        let observatory = Arc::clone(&self.observatory);
        table::WEIGHT.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                now.observe(u64::from(index.weight), &of(index));
            }
        });
        let observatory = Arc::clone(&self.observatory);
        table::DAMAGES.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                now.observe(index.damages, &of(index));
            }
        });
        let observatory = Arc::clone(&self.observatory);
        table::LOG_HELD.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                now.observe(index.log_held, &of(index));
            }
        });
        let observatory = Arc::clone(&self.observatory);
        table::STALLED.observe_seconds(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                now.observe(index.stalled.as_secs_f64(), &of(index));
            }
        });
    }

    fn number(&self, instrument: Instrument, figure: fn(&Figures) -> Option<u64>) {
        let observatory = Arc::clone(&self.observatory);
        instrument.observe(self.meter, move |now| {
            if let Some(figure) = observatory.look().and_then(|look| figure(&look)) {
                now.observe(figure, &[]);
            }
        });
    }

    fn statistic(&self, instrument: Instrument, figure: fn(&Statistics) -> Option<u64>) {
        let observatory = Arc::clone(&self.observatory);
        instrument.observe(self.meter, move |now| {
            if let Some(figure) = observatory.look().and_then(|look| figure(look.store.as_ref()?)) {
                now.observe(figure, &[]);
            }
        });
    }

    fn labelled(&self, instrument: Instrument, label: &'static str, figures: fn(&Statistics) -> ByLabel) {
        let observatory = Arc::clone(&self.observatory);
        instrument.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for (word, figure) in look.store.as_ref().map(figures).unwrap_or_default() {
                now.observe(figure, &[KeyValue::new(label, word)]);
            }
        });
    }

    fn index(&self, instrument: Instrument, figure: fn(&ServingFigures) -> u64) {
        let observatory = Arc::clone(&self.observatory);
        instrument.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                if let Some(serving) = &index.serving {
                    now.observe(figure(serving), &of(index));
                }
            }
        });
    }

    fn index_parts(&self, instrument: Instrument, figures: fn(&IndexMemory) -> ByLabel) {
        let observatory = Arc::clone(&self.observatory);
        instrument.observe(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                for (word, figure) in index.serving.iter().flat_map(|serving| figures(&serving.memory)) {
                    let mut labels = of(index);
                    labels.push(KeyValue::new("souk.index.part", word));
                    now.observe(figure, &labels);
                }
            }
        });
    }

    fn index_seconds(&self, instrument: Instrument, figure: fn(&ServingFigures) -> Duration) {
        let observatory = Arc::clone(&self.observatory);
        instrument.observe_seconds(self.meter, move |now| {
            let Some(look) = observatory.look() else { return };
            for index in &look.indexes {
                if let Some(serving) = &index.serving {
                    now.observe(figure(serving).as_secs_f64(), &of(index));
                }
            }
        });
    }
}

/// Which index it is: that of its table, or by its name too where it is another than the first.
fn of(index: &IndexFigures) -> Vec<KeyValue> {
    let mut labels = vec![KeyValue::new("db.collection.name", Arc::clone(&index.table))];
    if index.name != index.table {
        labels.push(KeyValue::new("souk.index.name", Arc::clone(&index.name)));
    }
    labels
}

fn word(space: Space) -> &'static str {
    match space {
        Space::Rows => "rows",
        Space::Log => "log",
        Space::Index => "index",
        Space::Catalog => "catalog",
    }
}
