//! Indexes that can't go on for a while, and indexes that fail: calls are answered, it is said, and it ends by itself.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use souk_api::{Error, Resources, indexes};
use souk_engine::observer::Observer;
use souk_engine::storage::{Error as StorageError, FreeSpace};
use souk_engine::{
    ColumnReader, Columns, CorruptRow, Engine, EngineConfig, EngineError, Health, Resource, TableDefinition,
    Tables,
};
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};
use crate::redesign::{self, add};

const RESERVE: u64 = 1 << 20;
const PLENTY: u64 = 1 << 40;
/// What comes by itself comes within that.
const WITHIN: Duration = Duration::from_secs(60);

/// Free bytes as a test wants them, for the store and for the indexes beside it.
#[derive(Debug)]
struct Scripted {
    store: AtomicU64,
    indexes: AtomicU64,
}

impl FreeSpace for Scripted {
    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        let is_store = directory.iter().any(|part| part == "store");
        let free = if is_store { &self.store } else { &self.indexes };
        Ok(free.load(Ordering::SeqCst))
    }
}

fn scripted(directory: &Path) -> (EngineConfig, Arc<Scripted>) {
    let disk = Arc::new(Scripted {
        store: PLENTY.into(),
        indexes: PLENTY.into(),
    });
    let mut config = EngineConfig::new(directory);
    config.storage.fjall.reserve_bytes = RESERVE;
    config.storage.fjall.free_space = Arc::clone(&disk) as _;
    (config, disk)
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(WITHIN, future).await;
    ended.unwrap_or_else(|_| panic!("{what} doesn't come by itself"))
}

/// Waits until the index of a table is as wanted.
async fn until(engine: &Engine, table: &str, what: &str, wanted: impl Fn(&pb::Index) -> bool) -> pb::Index {
    let seen = async {
        loop {
            let index = indexes::get(engine, table).await.expect("an index");
            if wanted(&index) {
                return index;
            }
            tokio::task::yield_now().await;
        }
    };
    within(what, seen).await
}

/// Writes notes until the store refuses them; the sequence of the last that it took.
async fn write_until_refused(notes: &Resources<Note>) -> i64 {
    let mut last = 0;
    for number in 0.. {
        let note = Note::new(&format!("f{number}"), "bob", number);
        match notes.create(note, None, false).await {
            Ok(written) => last = written.sequence,
            Err(Error::Engine(EngineError::Storage(StorageError::DiskFull { .. }))) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    last
}

/// Writes a note as soon as the store takes it.
async fn write_when_taken(notes: &Resources<Note>, id: &str) -> i64 {
    let taken = async {
        loop {
            match notes.create(Note::new(id, "eve", 1), None, false).await {
                Ok(written) => return written.sequence,
                Err(Error::Engine(EngineError::Storage(StorageError::DiskFull { .. }))) => {
                    tokio::task::yield_now().await
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    within("a write that is taken", taken).await
}

/// How many a search finds that sees a write, as soon as it does.
async fn seen<R: Resource>(notes: &Resources<R>, query: Option<pb::Query>, sequence: i64) -> i64 {
    let seen = async {
        loop {
            let search = redesign::counting(query.clone(), sequence);
            match notes.search(Some(search), "search").await {
                Ok(page) => return page.total.expect("a total").value,
                Err(
                    Error::Engine(EngineError::IndexStalled { .. })
                    | Error::Engine(EngineError::IndexBuilding { .. }),
                ) => {
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    within("a search that sees the write", seen).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_outlives_a_store_that_takes_nothing_for_want_of_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, disk) = scripted(directory.path());
    let (engine, notes) = note::open_with(config).await;
    let first = notes.create(Note::new("n1", "bob", 1), None, false).await;
    assert_eq!(seen(&notes, None, first.expect("created").sequence).await, 1);
    disk.store.store(RESERVE / 8, Ordering::SeqCst);
    let last = write_until_refused(&notes).await;
    // A checkpoint whose position the store doesn't take.
    until(&engine, "notes", "word of the log", |index| {
        !index.log_held.is_empty()
    })
    .await;
    let bobs = seen(&notes, note::term("author", "bob"), last).await;
    assert!(engine.health().borrow().is_serving(), "searches see all there is");
    disk.store.store(PLENTY, Ordering::SeqCst);
    let taken = write_when_taken(&notes, "n2").await;
    assert_eq!(seen(&notes, None, taken).await, bobs + 1);
    until(&engine, "notes", "the position", |index| {
        index.log_held.is_empty()
    })
    .await;
    assert!(engine.health().borrow().is_serving());
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_waits_for_room_and_takes_its_place_though_the_store_takes_nothing() {
    const NOTES: i64 = 1_000;
    let directory = tempfile::tempdir().expect("a directory");
    let (config, disk) = scripted(directory.path());
    let (engine, notes) = note::open_with(config).await;
    for from in (0..NOTES).step_by(200) {
        let batch = (from..from + 200).map(|rank| Note::new(&format!("n{rank}"), "ada", rank));
        notes
            .create_batch(batch.collect(), None, true)
            .await
            .expect("created");
    }
    disk.indexes.store(RESERVE / 2, Ordering::SeqCst);
    let change = [add("place", pb::IndexFieldType::Long, "rank")];
    note::update_index(&engine, "notes", &change, false)
        .await
        .expect("a change");
    let waits = |index: &pb::Index| {
        index
            .build
            .as_ref()
            .is_some_and(|build| !build.waiting.is_empty())
    };
    let waiting = until(&engine, "notes", "a build that waits", waits).await;
    let build = waiting.build.expect("a build");
    assert!(
        build.waiting.contains("reserve") && build.rows_done == 0,
        "{build:?}"
    );
    // It is promoted while the store takes no position of it, and keeps the feed that it was filled from.
    disk.store.store(RESERVE / 8, Ordering::SeqCst);
    let last = write_until_refused(&notes).await;
    disk.indexes.store(PLENTY, Ordering::SeqCst);
    let has_place = |index: &pb::Index| index.fields.iter().any(|field| field.field == "place");
    until(&engine, "notes", "the new index", |index| {
        has_place(index) && !index.log_held.is_empty()
    })
    .await;
    assert!(seen(&notes, None, last).await >= NOTES);
    assert!(engine.health().borrow().is_serving());
    disk.store.store(PLENTY, Ordering::SeqCst);
    let taken = write_when_taken(&notes, "e1").await;
    assert_eq!(seen(&notes, note::term("author", "eve"), taken).await, 1);
    let settled = |index: &pb::Index| index.log_held.is_empty() && index.build.is_none();
    until(&engine, "notes", "an end of what it replaced", settled).await;
    assert_eq!(engine.database().feeds().len(), 0);
    note::close(engine).await;
}

/// Stumbles over what an index takes in, on the thread of the index: as often as `pebbles` says, and always while there is a
/// `rock`.
#[derive(Debug, Default)]
struct Stones {
    pebbles: AtomicUsize,
    rock: AtomicBool,
}

impl Observer for Stones {
    /// Called with each commit, and when an index begins.
    fn holds_much(&self, _: &Arc<str>, _: u64) {
        let left = |left: usize| left.checked_sub(1);
        let pebble = self
            .pebbles
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        assert!(
            pebble.is_err() && !self.rock.load(Ordering::SeqCst),
            "a stone of the test"
        );
    }
}

/// An engine whose indexes stumble over stones.
async fn stony(directory: &Path) -> (Engine, Resources<Brittle>, Arc<Stones>) {
    let stones = Arc::new(Stones::default());
    let mut config = EngineConfig::new(directory);
    config.observer = Arc::clone(&stones) as _;
    // Every index is looked at when it begins.
    config.large_index_from = 0;
    let (engine, notes) = redesign::start_with(config).await;
    (engine, notes, stones)
}

/// Notes in a table of their own.
#[derive(Clone, Debug, PartialEq)]
struct Brittle(Note);

impl Resource for Brittle {
    type Record = Self;
    const TABLE: &'static str = "brittle";
    const NAME: &'static str = "note";
    const ID_FIELD: &'static str = "note_id";

    fn definition() -> TableDefinition {
        note::definition(Self::TABLE)
    }

    fn id(record: &Self) -> &str {
        Note::id(&record.0)
    }

    fn to_columns(record: &Self) -> Columns {
        Note::to_columns(&record.0)
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Note::from_columns(id, columns).map(Self)
    }
}

fn brittle(id: &str, author: &str) -> Brittle {
    Brittle(Note::new(id, author, 1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_goes_on_after_panics_that_pass() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes, stones) = stony(directory.path()).await;
    redesign::serving(&engine).await;
    notes
        .create(brittle("n1", "ada"), None, false)
        .await
        .expect("created");
    // The first ends in the opening of the same index, the second in one that is built anew.
    for panics in [1, 2] {
        stones.pebbles.store(panics, Ordering::SeqCst);
        let id = format!("p{panics}");
        let written = notes.create(brittle(&id, "pebble"), None, false).await;
        let written = written.expect("created").sequence;
        let found = seen(&notes, None, written).await;
        assert_eq!(usize::try_from(found), Ok(1 + panics));
        assert_eq!(stones.pebbles.load(Ordering::SeqCst), 0);
    }
    redesign::serving(&engine).await;
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_fails_again_and_again_says_so_and_holds_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes, stones) = stony(directory.path()).await;
    redesign::serving(&engine).await;
    stones.rock.store(true, Ordering::SeqCst);
    notes
        .create(brittle("n1", "rock"), None, false)
        .await
        .expect("created");
    let mut health = engine.health();
    let failed = |health: &Health| match health {
        Health::Serving => false,
        Health::NotServing { reason } => reason.contains("has failed"),
    };
    let health = within("word of the failure", health.wait_for(failed)).await;
    let health = format!("{:?}", *health.expect("the engine lives"));
    assert!(
        health.contains("brittle") && health.contains("a stone of the test"),
        "{health}"
    );
    let refused = notes.search(None, "search").await;
    assert!(
        matches!(refused, Err(Error::Engine(EngineError::IndexFailed { .. }))),
        "{refused:?}"
    );
    assert_eq!(
        notes.get("n1", 0).await.expect("read").value.resource.0.author,
        "rock"
    );
    let index = indexes::get(&engine, "brittle").await.expect("an index");
    assert_eq!(index.phase(), pb::IndexPhase::Failed);
    // What it says of itself is for everybody who may ask, what broke for the log.
    assert!(
        !index.failure.is_empty() && !index.failure.contains("stone"),
        "{}",
        index.failure
    );
    let released = async {
        while !engine.database().consumers().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within("the end of its hold on the log", released).await;
    // What it stumbles over goes, and the index is designed otherwise: that one is built, and holds the log again.
    notes.delete("n1", None).await.expect("deleted");
    stones.rock.store(false, Ordering::SeqCst);
    notes
        .create(brittle("n2", "ada"), None, false)
        .await
        .expect("created");
    let change = [add("place", pb::IndexFieldType::Long, "rank")];
    note::update_index(&engine, "brittle", &change, false)
        .await
        .expect("a change");
    let settled = |index: &pb::Index| {
        index.phase() == pb::IndexPhase::Serving && index.build.is_none() && index.log_held.is_empty()
    };
    until(&engine, "brittle", "the new index", settled).await;
    let written = notes.create(brittle("n3", "ada"), None, false).await;
    let written = written.expect("created").sequence;
    assert_eq!(seen(&notes, note::term("author", "ada"), written).await, 2);
    let holds = async {
        while engine.database().consumers().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within("its hold on the log", holds).await;
    within("the end", note::close(engine)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_isnt_declared_any_more_holds_nothing_of_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = Tables::new().table::<Note>().table::<Brittle>();
    let config = EngineConfig::new(directory.path());
    let engine = Engine::open(config, tables).await.expect("the engine opens");
    redesign::serving(&engine).await;
    let names = |engine: &Engine| -> Vec<String> {
        let consumers = engine.database().consumers();
        consumers
            .iter()
            .map(|consumer| consumer.name().to_owned())
            .collect()
    };
    assert_eq!(names(&engine), ["index_brittle", "index_notes"]);
    note::close(engine).await;
    let (engine, _notes) = note::open(directory.path()).await;
    assert_eq!(names(&engine), ["index_notes"]);
    note::close(engine).await;
}
