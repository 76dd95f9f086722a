use std::path::PathBuf;

use souk_index::{Field, Query, SearchRequest};
use souk_storage::{KeyKind, ManualClock, PrimaryKey, TableSchema};
use tempfile::TempDir;

use super::*;
use crate::call::Principal;
use crate::definition::TableDefinition;
use crate::engine::{Engine, EngineConfig, Health, Tables};
use crate::index_admin::IndexPhase;
use crate::index_state::Phase;
use crate::keeper::folder;
use crate::table::{Search, TableHandle, TableWrite};

/// Some time in 2023.
const START: i64 = 1_700_000_000_000_000_000;

/// Tables with an index each.
struct Shelf {
    engine: Engine,
    directory: TempDir,
    clock: Arc<ManualClock>,
    idle: Duration,
}

impl Shelf {
    /// With one row, `first`, in each of so many tables.
    async fn filled(tables: usize) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::new(START));
        let idle = Duration::from_secs(3_600);
        let engine = opened(&directory, &clock, idle).await;
        let shelf = Self {
            engine,
            directory,
            clock,
            idle,
        };
        for nth in 0..tables {
            let table = defined(&name(nth));
            shelf.engine.create_table(table).await.expect("created");
            shelf.writes(nth, "first").await;
        }
        // What an index has not taken in when the engine closes wakes it at the next start.
        let last = shelf.engine.database().last_sequence();
        in_time(shelf.engine.refreshed(last, None)).await.expect("seen");
        shelf
    }

    async fn started_again(self) -> Self {
        self.closed().await.opened_again().await
    }

    async fn closed(self) -> Self {
        let deadline = Instant::now() + Duration::from_secs(60);
        self.engine.close(deadline).await.expect("it closes");
        self
    }

    async fn opened_again(self) -> Self {
        let Self {
            engine,
            directory,
            clock,
            idle,
        } = self;
        // It holds the lock of the directory.
        drop(engine);
        let engine = opened(&directory, &clock, idle).await;
        Self {
            engine,
            directory,
            clock,
            idle,
        }
    }

    fn table(&self, nth: usize) -> TableHandle {
        self.engine.table(&name(nth)).expect("a table")
    }

    fn keeping(&self, nth: usize) -> Arc<Keeping> {
        self.engine.keeper(&name(nth)).expect("a keeper").keeping
    }

    fn folder(&self, nth: usize) -> PathBuf {
        let keeping = self.keeping(nth);
        folder::of(&keeping.folder, keeping.index.wanted().fingerprint())
    }

    fn is_open(&self, nth: usize) -> bool {
        self.keeping(nth).state().serving().is_some()
    }

    /// Which of so many indexes are neither open nor have a thread.
    fn asleep(&self, tables: usize) -> Vec<usize> {
        let is_asleep = |nth: &usize| {
            let keeping = self.keeping(*nth);
            let threads = keeping.threads.lock();
            let has_none = threads.opening.is_none() && threads.serving.is_none() && threads.draft.is_none();
            has_none && matches!(keeping.state().phase(), Phase::Unopened(_))
        };
        (0..tables).filter(is_asleep).collect()
    }

    async fn writes(&self, nth: usize, id: &str) -> u64 {
        let key = PrimaryKey::string(id).expect("a key");
        let put = TableWrite::put(key, vec![("word".into(), id.into())]);
        let written = self.table(nth).write(vec![put], None).await;
        written.expect("written").sequence.unsigned_abs()
    }

    /// How many rows a search finds that sees everything written so far.
    async fn finds(&self, nth: usize) -> usize {
        let mut search = Search::new(SearchRequest::new(Query::MatchAll));
        search.min_sequence = self.engine.database().last_sequence();
        let found = in_time(self.table(nth).search(search)).await;
        found.expect("found").hits.len()
    }

    fn positions(&self) -> Vec<u64> {
        let consumers = self.engine.database().consumers();
        consumers.iter().map(|consumer| consumer.position()).collect()
    }
}

fn name(nth: usize) -> String {
    format!("t{nth:03}")
}

fn defined(name: &str) -> TableDefinition {
    TableDefinition::new(TableSchema::new(name).key("id", KeyKind::String)).field(Field::keyword("word"))
}

async fn opened(directory: &TempDir, clock: &Arc<ManualClock>, idle: Duration) -> Engine {
    let mut config = EngineConfig::new(directory.path());
    config.storage.clock = Arc::clone(clock) as _;
    config.close_idle_after = idle;
    Engine::open(config, Tables::new()).await.expect("it opens")
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(Duration::from_secs(120), future).await;
    ended.expect("it comes by itself")
}

async fn until(is_so: impl Fn() -> bool) {
    in_time(async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_opened_by_the_first_search_or_change_of_its_table_and_by_nothing_else() {
    const TABLES: usize = 24;
    let shelf = Shelf::filled(TABLES).await.started_again().await;
    let mut health = shelf.engine.health();
    in_time(health.wait_for(Health::is_serving))
        .await
        .expect("it serves");
    assert_eq!(shelf.asleep(TABLES).len(), TABLES);

    assert_eq!(shelf.finds(3).await, 1);
    assert!(shelf.is_open(3));
    let asleep = shelf.asleep(TABLES);
    assert_eq!(asleep.len(), TABLES - 1);

    // A change of its table opens another, which catches up without being asked.
    let sequence = shelf.writes(5, "second").await;
    let changed = shelf.keeping(5);
    until(|| shelf.is_open(5) && changed.state().applied() >= sequence).await;
    assert_eq!(shelf.finds(5).await, 2);

    // All are up to date, and told to be, and are neither opened for that nor by being listed and measured.
    in_time(shelf.engine.refreshed(sequence, None))
        .await
        .expect("all see it");
    let described = shelf
        .engine
        .indexes(&Principal::Service)
        .await
        .expect("described");
    assert_eq!(described.len(), TABLES);
    for index in described {
        assert_eq!(index.phase, IndexPhase::Serving);
        assert!(index.fields.iter().any(|field| field.path == "word"));
        let serving = index.serving.expect("it would answer");
        let rows = 1 + u64::from(index.name == name(5));
        assert_eq!(
            (serving.size.documents, serving.lag_changes),
            (rows, 0),
            "{}",
            index.name
        );
    }
    let figures = shelf.engine.figures().await;
    assert!(figures.indexes.iter().all(|index| index.serving.is_some()));
    let asleep: Vec<usize> = asleep.into_iter().filter(|nth| *nth != 5).collect();
    assert_eq!(shelf.asleep(TABLES), asleep);
    assert!(health.borrow_and_update().is_serving());

    // The description of one opens it.
    shelf.engine.index(&name(7)).await.expect("described");
    assert!(shelf.is_open(7));

    // Each of all finds what it has.
    for nth in asleep {
        assert_eq!(shelf.finds(nth).await, 1, "{nth}");
    }
    shelf.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_isnt_kept_for_unopened_indexes_and_they_go_on_behind_what_was_trimmed() {
    const TABLES: usize = 4;
    let shelf = Shelf::filled(TABLES).await.started_again().await;
    assert_eq!(shelf.finds(0).await, 1);
    let mut last = 0;
    for nth in 0..20 {
        last = shelf.writes(0, &format!("more{nth}")).await;
    }
    in_time(shelf.engine.refreshed(last, None)).await.expect("seen");
    assert_eq!(shelf.asleep(TABLES), [1, 2, 3]);
    let markers: Vec<PathBuf> = (1..TABLES)
        .map(|nth| shelf.folder(nth).join("not built anew"))
        .collect();
    for marker in &markers {
        std::fs::write(marker, "").expect("written");
    }
    let context = &shelf.engine.inner().keeper_context;
    context.sleepers.move_on(&context.closing).await;
    // The one that is open moves on by its next checkpoint.
    until(|| shelf.positions().iter().all(|position| *position == last)).await;
    shelf.clock.advance(Duration::from_secs(2 * 86_400));
    let database = shelf.engine.database();
    let more = shelf.writes(0, "last").await;
    database.maintain().await.expect("trimmed");
    let oldest = {
        let snapshot = database.snapshot().await.expect("a snapshot");
        snapshot.oldest_change().await.expect("the log's begin")
    };
    assert!(oldest > last, "{oldest} of {more}");

    assert_eq!(shelf.finds(1).await, 1);
    let shelf = shelf.started_again().await;
    assert!(shelf.asleep(TABLES).contains(&2));
    let sequence = shelf.writes(2, "second").await;
    let changed = shelf.keeping(2);
    until(|| shelf.is_open(2) && changed.state().applied() >= sequence).await;
    assert_eq!((shelf.finds(2).await, shelf.finds(3).await), (2, 1));
    assert!(markers.iter().all(|marker| marker.exists()));
    shelf.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_nobody_uses_is_closed_and_opened_again_as_often_as_needed() {
    let mut shelf = Shelf::filled(2).await.closed().await;
    shelf.idle = Duration::from_millis(10);
    let shelf = shelf.opened_again().await;
    for nth in 2..5 {
        assert_eq!(
            shelf.writes(0, &format!("w{nth}")).await,
            shelf.engine.database().last_sequence()
        );
        assert_eq!(shelf.finds(0).await, nth);
        until(|| shelf.asleep(2) == [0, 1]).await;
        assert_eq!(shelf.finds(0).await, nth);
        until(|| shelf.asleep(2) == [0, 1]).await;
    }
    assert_eq!(shelf.finds(1).await, 1);
    shelf.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_isnt_whole_is_built_without_being_asked_for_or_when_it_is_opened() {
    let shelf = Shelf::filled(3).await.closed().await;
    let folders: Vec<PathBuf> = (0..3)
        .map(|nth| shelf.directory.path().join("index").join(name(nth)))
        .collect();
    std::fs::remove_dir_all(&folders[0]).expect("removed");
    let of = |nth: usize| {
        let mut inside = std::fs::read_dir(&folders[nth]).expect("a folder");
        inside.next().expect("an index").expect("an entry").path()
    };
    std::fs::write(of(1).join("meta.json"), "{}").expect("damaged");
    for entry in std::fs::read_dir(of(2)).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "store") {
            std::fs::write(path, "damaged").expect("damaged");
        }
    }
    let shelf = shelf.opened_again().await;
    until(|| shelf.is_open(0) && shelf.is_open(1)).await;
    assert_eq!((shelf.finds(0).await, shelf.finds(1).await), (1, 1));
    assert_eq!(shelf.asleep(3), [2]);
    let found = in_time(
        shelf
            .table(2)
            .search(Search::new(SearchRequest::new(Query::MatchAll))),
    )
    .await;
    assert!(
        matches!(found, Err(EngineError::IndexBuilding { .. }))
            || found.is_ok_and(|found| found.hits.len() == 1)
    );
    until(|| shelf.is_open(2)).await;
    assert_eq!(shelf.finds(2).await, 1);
    shelf.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_with_unopened_indexes_are_altered_and_dropped() {
    let shelf = Shelf::filled(2).await.started_again().await;
    let altered = defined(&name(0)).field(Field::keyword("other"));
    shelf.engine.alter_table(altered).await.expect("altered");
    let wanted = shelf.keeping(0).index.wanted().fingerprint();
    until(|| {
        let served = shelf.keeping(0).state().served_design();
        served.is_some_and(|design| design.fingerprint() == wanted)
    })
    .await;
    assert_eq!(shelf.finds(0).await, 1);
    shelf.engine.drop_table(&name(1)).await.expect("dropped");
    assert!(!shelf.directory.path().join("index").join(name(1)).exists());
    shelf
        .engine
        .create_table(defined(&name(1)))
        .await
        .expect("created");
    assert_eq!(shelf.finds(1).await, 0);
    shelf.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_got_no_thread_is_opened_by_itself() {
    let shelf = Shelf::filled(2).await.started_again().await;
    assert_eq!(shelf.asleep(2), [0, 1]);
    let sleepers = &shelf.engine.inner().keeper_context.sleepers;
    sleepers.open_later(&name(1));
    until(|| shelf.is_open(1)).await;
    assert_eq!(shelf.asleep(2), [0]);
    // It is open, and nobody is to open it.
    sleepers.open_later(&name(1));
    assert_eq!((shelf.finds(0).await, shelf.finds(1).await), (1, 1));
    shelf.closed().await;
}

#[test]
fn an_index_goes_on_behind_what_doesnt_concern_it_if_it_is_of_that_place() {
    let unchanged = Unchanged { from: 10, to: 20 };
    let behind = [9, 10, 15, 20, 25].map(|applied| unchanged.behind(applied));
    assert_eq!(behind, [9, 20, 20, 20, 25]);
}
