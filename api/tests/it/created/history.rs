//! Random histories of a table that is created at run time, against a map: writes of all kinds, ranges, searches, lists, exports
//! and watches, while its index, options and secondary indexes change, the engine restarts, the log is trimmed, and the table
//! is dropped and created again. Now and then its index is compared, document by document, with one that is built anew.

mod changes;
mod reads;
mod writes;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_engine::index::{Field, Query, SearchRequest};
use souk_engine::index_admin::IndexPhase;
use souk_engine::storage::{KeyValue, ManualClock, PrimaryKey, RangeRequest};
use souk_engine::{Engine, EngineConfig, EngineError, Health, Search, TableDefinition, TableHandle, Tables};
use tempfile::TempDir;

use super::visit::{TABLE, Visit, visits};
use crate::note::{self, Note};
use crate::{holdings, rounds, seed};

const HOUR: Duration = Duration::from_secs(3_600);

/// What happened, so that a history that does nothing is none.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    writes: usize,
    refused: usize,
    batches: usize,
    searches: usize,
    hits: usize,
    ranges: usize,
    lists: usize,
    exports: usize,
    watched: usize,
    changed_indexes: usize,
    changed_options: usize,
    failed_changes: usize,
    versions: usize,
    long_keys: usize,
    restarts: usize,
    trimmed: usize,
    compared: usize,
    dropped: usize,
}

struct History {
    random: Rng,
    directory: TempDir,
    clock: Arc<ManualClock>,
    engine: Option<Engine>,
    definition: TableDefinition,
    model: BTreeMap<PrimaryKey, Visit>,
    last: i64,
    /// A sequence that the log continues, and the table as it was then.
    watched: Option<(u64, BTreeMap<PrimaryKey, Visit>)>,
    met: Met,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_table_agrees_with_a_map_through_all_that_can_happen_to_it() {
    let mut random = Rng::with_seed(seed("created tables"));
    for _ in 0..rounds(2, 24) {
        let mut history = History::begin(random.fork()).await;
        for _ in 0..rounds(250, 1_000) {
            history.step().await;
        }
        // Once each at least, whatever was drawn.
        history.compare().await;
        history.replay().await;
        history.export().await;
        history.trim().await;
        history.restart().await;
        history.drop_and_create().await;
        history.list().await;
        history.change_options().await;
        history.fail_to_change().await;
        history.write_too_long_a_key().await;
        history.close().await;
        let met = history.met;
        println!("{met:?}");
        let counts = [
            met.writes,
            met.refused,
            met.batches,
            met.hits,
            met.ranges,
            met.lists,
            met.exports,
            met.watched,
            met.changed_indexes,
            met.changed_options,
            met.failed_changes,
            met.versions,
            met.long_keys,
            met.restarts,
            met.trimmed,
            met.compared,
            met.dropped,
        ];
        assert!(counts.iter().all(|count| *count > 0), "{met:?}");
    }
}

impl History {
    async fn begin(random: Rng) -> Self {
        let mut history = Self {
            random,
            directory: tempfile::tempdir().expect("a directory"),
            clock: Arc::new(ManualClock::new(1_700_000_000_000_000_000)),
            engine: None,
            definition: visits(),
            model: BTreeMap::new(),
            last: 0,
            watched: None,
            met: Met::default(),
        };
        history.open().await;
        let created = history.engine().create_table(visits()).await;
        created.expect("created");
        history.remember();
        history
    }

    /// Has [`Self::replay`] begin here.
    fn remember(&mut self) {
        self.watched = Some((self.engine().database().last_sequence(), self.model.clone()));
    }

    async fn open(&mut self) {
        let mut config = EngineConfig::new(self.directory.path());
        config.storage.clock = Arc::clone(&self.clock) as _;
        config.storage.retention = HOUR;
        config.storage.maintenance_interval = 1_000 * HOUR;
        // Beside a table of code.
        let engine = Engine::open(config, Tables::new().table::<Note>()).await;
        self.engine = Some(engine.expect("the engine opens"));
    }

    async fn close(&mut self) {
        note::close(self.engine.take().expect("open")).await;
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    fn table(&self) -> TableHandle {
        self.engine().table(TABLE).expect("the table")
    }

    fn indexes(&self) -> PathBuf {
        self.directory.path().join("index").join(TABLE)
    }

    fn key(&mut self) -> PrimaryKey {
        let shop = self.random.choice(["a", "b", "c"]).expect("one");
        let nth = self.random.i64(-4..8);
        PrimaryKey::new([KeyValue::from(shop), nth.into()]).expect("short")
    }

    /// Waits until the index answers by what the table is.
    async fn settle(&self) {
        let mut health = self.engine().health();
        health
            .wait_for(Health::is_serving)
            .await
            .expect("the engine lives");
        let wanted = self.definition.search().expect("it is searched");
        let wanted: Vec<&str> = wanted.fields.iter().map(Field::name).collect();
        loop {
            let index = self.engine().index(TABLE).await.expect("an index");
            let has = |name: &&str| index.fields.iter().any(|field| field.path == **name);
            let kept = |path: &str| path.contains('.') || wanted.contains(&path);
            let is_it = wanted.iter().all(has) && index.fields.iter().all(|field| kept(&field.path));
            if index.phase == IndexPhase::Serving && index.build.is_none() && is_it {
                return;
            }
            assert_ne!(index.phase, IndexPhase::Failed, "{index:?}");
            tokio::task::yield_now().await;
        }
    }

    async fn step(&mut self) {
        match self.random.u8(..42) {
            0..=11 => self.write().await,
            12..=15 => self.batch().await,
            16..=22 => self.search().await,
            23..=26 => self.range().await,
            27 | 28 => self.list().await,
            29 => self.export().await,
            30..=32 => self.change_index().await,
            33 => self.change_options().await,
            34 => self.replay().await,
            35 | 36 => self.restart().await,
            37 => self.trim().await,
            38 => self.compare().await,
            39 => self.fail_to_change().await,
            40 => self.write_too_long_a_key().await,
            _ if self.random.u8(..4) == 0 => self.drop_and_create().await,
            _ => {}
        }
    }

    async fn restart(&mut self) {
        self.close().await;
        self.open().await;
        assert_eq!(*self.table().definition(), self.definition, "it is as it was");
        self.met.restarts += 1;
    }

    async fn trim(&mut self) {
        self.clock.advance(2 * HOUR);
        self.engine().database().maintain().await.expect("maintenance");
        // The log may begin here.
        self.remember();
        self.met.trimmed += 1;
    }

    /// Compares the index with one that is built from the table, and goes on with the followed one.
    async fn compare(&mut self) {
        self.settle().await;
        // An engine that closes leaves to the next opening what its index hasn't taken yet.
        self.search().await;
        self.close().await;
        let aside = self.directory.path().join("followed");
        fs::rename(self.indexes(), &aside).expect("set aside");
        self.open().await;
        self.settle().await;
        self.close().await;
        let folders = holdings::folders(self.directory.path(), TABLE);
        let [folder] = folders.as_slice() else {
            panic!("one index: {folders:?}");
        };
        let built = holdings::of(folder);
        let followed = holdings::of(&aside.join(folder.file_name().expect("a name")));
        holdings::assert_same(&followed, &built);
        assert_eq!(followed.documents.len(), self.model.len());
        fs::remove_dir_all(self.indexes()).expect("removed");
        fs::rename(aside, self.indexes()).expect("put back");
        self.open().await;
        self.met.compared += 1;
    }

    /// The table goes with all it has, and one of its name comes that has nothing of it.
    async fn drop_and_create(&mut self) {
        let old = self.table();
        self.engine().drop_table(TABLE).await.expect("dropped");
        for gone in [
            old.get(&self.key(), 0).await.map(drop),
            old.search(Search::new(SearchRequest::new(Query::MatchAll)))
                .await
                .map(drop),
            self.engine().table(TABLE).map(drop),
            self.engine().drop_table(TABLE).await,
        ] {
            assert!(matches!(gone, Err(EngineError::TableNotFound { .. })), "{gone:?}");
        }
        assert!(!self.indexes().exists(), "its index is removed");
        let database = self.engine().database();
        let consumers = database.consumers();
        let of_table = consumers
            .iter()
            .filter(|consumer| consumer.name().ends_with(TABLE));
        assert_eq!(of_table.count(), 0, "the log isn't kept for it");
        assert!(database.table(TABLE).is_none());
        // Who has a handle of them keeps the engine's database open.
        drop((old, consumers));
        if self.random.bool() {
            self.close().await;
            self.open().await;
            assert!(self.engine().table(TABLE).is_err(), "it doesn't come back");
        }
        self.model.clear();
        self.definition = visits();
        let created = self.engine().create_table(visits()).await.expect("created again");
        let all = created.range(&RangeRequest::default(), 0).await.expect("a page");
        assert!(all.value.rows.is_empty());
        self.remember();
        self.settle().await;
        let found = created
            .search(Search::new(SearchRequest::new(Query::MatchAll)))
            .await;
        assert!(found.expect("a page").hits.is_empty());
        self.met.dropped += 1;
    }
}
