//! Tables that are created, changed and dropped at run time, where that doesn't go well.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use souk_access::{Identity, Role, RowAccess};
use souk_api::{Error, Rows, indexes};
use souk_engine::consumer_groups::{GroupOptions, SHARDS_DEFAULT};
use souk_engine::definition::MAX_TABLE_NAME_BYTES;
use souk_engine::index::{Field, FieldKind, Query, SearchRequest};
use souk_engine::index_admin::IndexPhase;
use souk_engine::storage::limits::MAX_CONSUMERS;
use souk_engine::storage::{
    Condition, Error as StoreError, FeedSource, FeedStart, FreeSpace, KeyKind, PrimaryKey, RowOperation,
    SecondaryIndexSchema, TableSchema, Value, WriteBatch,
};
use souk_engine::{
    DateFormat, Engine, EngineConfig, EngineError, Health, IndexChange, Search, Source, TableDefinition,
    TableHandle, TableWrite, Tables,
};
use tempfile::TempDir;

use crate::note::{self, Note};

const RESERVE: u64 = 1 << 20;
const PLENTY: u64 = 1 << 40;
const HOUR: Duration = Duration::from_secs(3_600);

/// Free bytes as a test wants them, for the store.
#[derive(Debug)]
struct Scripted(AtomicU64);

impl FreeSpace for Scripted {
    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::SeqCst))
    }
}

/// An engine on a device whose free bytes are the test's.
async fn scripted(directory: &TempDir) -> (Engine, Arc<Scripted>) {
    let disk = Arc::new(Scripted(PLENTY.into()));
    let mut config = EngineConfig::new(directory.path());
    config.storage.fjall.reserve_bytes = RESERVE;
    config.storage.fjall.free_space = Arc::clone(&disk) as _;
    (open_with(config).await, disk)
}

impl Scripted {
    /// Has so many free bytes, which the store knows when this returns.
    async fn has(&self, engine: &Engine, free: u64) {
        self.0.store(free, Ordering::SeqCst);
        // It looks now and then, and always while it is short of room.
        let filler = TableSchema::new("filler").key("id", KeyKind::String);
        let filler = engine.database().ensure_table(filler).await;
        let Ok(filler) = filler else {
            return;
        };
        for nth in 0..1_000 {
            let put = RowOperation::Put {
                key: key("a"),
                columns: vec![("nth".into(), Value::Integer(nth))],
            };
            let batch = WriteBatch::of(&filler, put, Condition::none());
            let written = engine.database().write(batch).await;
            if matches!(written, Err(StoreError::DiskFull { .. })) != (free >= RESERVE) {
                return;
            }
        }
        panic!("the store doesn't look");
    }
}

/// Makes of a table's entry in the catalog what no version has written.
async fn overwrite_entry(engine: &Engine, name: &str, columns: Vec<(&str, Value)>) {
    let catalog = engine.database().table("_tables").expect("the catalog");
    let columns = columns.into_iter().map(|(name, value)| (name.into(), value));
    let put = RowOperation::Put {
        key: key(name),
        columns: columns.collect(),
    };
    let batch = WriteBatch::of(&catalog, put, Condition::none());
    engine.database().write(batch).await.expect("written");
}

fn table(name: &str) -> TableDefinition {
    TableDefinition::new(TableSchema::new(name).key("id", KeyKind::String)).field(Field::keyword("word"))
}

/// An engine without tables of code.
async fn open(directory: &TempDir) -> Engine {
    open_with(EngineConfig::new(directory.path())).await
}

async fn open_with(config: EngineConfig) -> Engine {
    let engine = Engine::open(config, Tables::new()).await;
    engine.expect("the engine opens")
}

fn key(id: &str) -> PrimaryKey {
    PrimaryKey::string(id).expect("short")
}

async fn put(table: &TableHandle, id: &str, word: &str) -> u64 {
    let write = TableWrite::put(key(id), vec![("word".into(), word.into())]);
    let written = table.write(vec![write], None).await.expect("written");
    written.sequence.unsigned_abs()
}

/// How many rows a search finds that sees a write.
async fn found(table: &TableHandle, query: Query, min_sequence: u64) -> usize {
    let mut search = Search::new(SearchRequest::new(query).page_size(100));
    search.min_sequence = min_sequence;
    table.search(search).await.expect("a page").hits.len()
}

/// What is derived of a name, for the log, the feeds of builds and the folders of indexes, is a name as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_as_long_as_all_that_is_made_of_it_allows() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(&directory).await;
    let long = "n".repeat(MAX_TABLE_NAME_BYTES);
    for more in [1, 55, 56, 1_000] {
        let refused = engine
            .create_table(table(&format!("{long}{}", "n".repeat(more))))
            .await;
        assert!(
            matches!(
                refused,
                Err(EngineError::LimitExceeded {
                    limit: "MAX_TABLE_NAME_BYTES",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    let created = engine.create_table(table(&long)).await.expect("created");
    let last = put(&created, "a", "tea").await;
    assert_eq!(found(&created, Query::MatchAll, last).await, 1);
    // Built from the rows, by a feed.
    let other = table(&long).field(Field::keyword("id"));
    engine.alter_table(other).await.expect("altered");
    drop(created);
    note::close(engine).await;
    let engine = open(&directory).await;
    note::serves(&engine).await;
    while engine.index(&long).await.expect("an index").build.is_some() {
        tokio::task::yield_now().await;
    }
    let reopened = engine.table(&long).expect("it is there");
    let last = put(&reopened, "b", "tea").await;
    assert_eq!(found(&reopened, Query::MatchAll, last).await, 2);
    drop(reopened);
    engine.drop_table(&long).await.expect("dropped");
    let left = directory.path().join("index").read_dir().expect("the folder");
    assert_eq!(left.count(), 0);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_cant_be_opened_stays_closed_and_keeps_nothing_from_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(&directory).await;
    for name in ["broken", "whole"] {
        let created = engine.create_table(table(name)).await.expect("created");
        put(&created, "a", "tea").await;
        let options = GroupOptions::new(FeedSource::Changes(FeedStart::Newest));
        let group = created.create_consumer_group("copy", options).await;
        group.expect("a consumer group");
    }
    let broken = vec![("definition", "{".into()), ("complete", true.into())];
    overwrite_entry(&engine, "broken", broken).await;
    note::close(engine).await;
    for _ in 0..2 {
        let engine = open(&directory).await;
        let mut health = engine.health();
        let says = |health: &Health| matches!(health, Health::NotServing { reason } if reason.contains("broken") && reason.contains("definition"));
        health.wait_for(says).await.expect("it says so");
        let whole = engine.table("whole").expect("it is open");
        while matches!(
            engine.index("whole").await.expect("an index").phase,
            IndexPhase::Building
        ) {
            tokio::task::yield_now().await;
        }
        let last = put(&whole, "b", "tea").await;
        assert_eq!(found(&whole, Query::MatchAll, last).await, 2);
        for closed in [
            engine.table("broken").map(drop),
            engine.alter_table(table("broken")).await,
        ] {
            assert!(
                matches!(closed, Err(EngineError::TableClosed { .. })),
                "{closed:?}"
            );
        }
        // To callers who don't meet it, it isn't there.
        for (tables, is_met) in [("whole", false), ("bro*", true)] {
            let caller = Identity::new(Role::Admin, "").expect("an identity");
            let caller = caller.with_tables(Some(tables.parse().expect("a name")));
            let opening = async { Rows::open(&engine, "broken").map(drop) };
            let opened = caller.with_row_access(RowAccess::All).scope(opening).await;
            match opened {
                Err(Error::Engine(EngineError::TableNotFound { .. })) => assert!(!is_met),
                Err(Error::Engine(EngineError::TableClosed { .. })) => assert!(is_met),
                other => panic!("{other:?}"),
            }
        }
        let taken = engine.create_table(table("Broken")).await;
        assert!(matches!(taken, Err(EngineError::TableExists { .. })), "{taken:?}");
        drop(whole);
        note::close(engine).await;
    }
    let engine = open(&directory).await;
    // Nothing keeps the log for groups of a table that is gone.
    let shards = || {
        let feeds = engine.database().feeds();
        feeds
            .iter()
            .filter(|feed| feed.name().starts_with("group_"))
            .count()
    };
    assert_eq!(shards(), 2 * usize::from(SHARDS_DEFAULT));
    engine.drop_table("broken").await.expect("dropped");
    assert_eq!(shards(), usize::from(SHARDS_DEFAULT));
    // What the broken one was is told until the engine looks again.
    let mut health = engine.health();
    let serves = health.wait_for(|health| matches!(health, Health::Serving)).await;
    drop(serves.expect("the engine lives"));
    let again = engine.create_table(table("broken")).await.expect("created again");
    assert_eq!(found(&again, Query::MatchAll, 0).await, 0);
    drop(again);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_code_declares_is_no_created_tables_any_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(&directory).await;
    engine.create_table(table("notes")).await.expect("created");
    note::close(engine).await;
    let declared = || Tables::new().table::<Note>();
    let refused = Engine::open(EngineConfig::new(directory.path()), declared()).await;
    let refused = refused.map(drop).expect_err("whose is it?");
    assert!(
        matches!(refused, EngineError::TableOfCatalog { .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("drop it"), "{refused}");
    let engine = open(&directory).await;
    engine.drop_table("notes").await.expect("dropped");
    note::close(engine).await;
    let (engine, notes) = note::open(directory.path()).await;
    notes
        .create(Note::new("n1", "ada", 1), None, false)
        .await
        .expect("created");
    // What was left of the created one has no power over the rows of the declared one.
    overwrite_entry(
        &engine,
        "notes",
        vec![("definition", "{".into()), ("complete", false.into())],
    )
    .await;
    drop(notes);
    note::close(engine).await;
    for _ in 0..2 {
        let (engine, notes) = note::open(directory.path()).await;
        notes.get("n1", 0).await.expect("it is still there");
        drop(notes);
        note::close(engine).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_dropped_while_the_device_is_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, disk) = scripted(&directory).await;
    for name in ["first", "second"] {
        let created = engine.create_table(table(name)).await.expect("created");
        put(&created, "a", "tea").await;
    }
    disk.has(&engine, RESERVE / 2).await;
    engine.drop_table("first").await.expect("dropped");
    assert!(matches!(
        engine.table("first").map(drop),
        Err(EngineError::TableNotFound { .. })
    ));
    // What doesn't go by then goes later.
    disk.has(&engine, RESERVE / 2 - 1).await;
    let full = engine.drop_table("second").await;
    assert!(
        matches!(full, Err(EngineError::Storage(StoreError::DiskFull { .. }))),
        "{full:?}"
    );
    assert!(engine.database().table("second").is_none());
    disk.has(&engine, RESERVE / 2).await;
    engine.drop_table("second").await.expect("dropped");
    let gone = engine.drop_table("second").await;
    assert!(matches!(gone, Err(EngineError::TableNotFound { .. })), "{gone:?}");
    disk.has(&engine, PLENTY).await;
    engine.create_table(table("second")).await.expect("created again");
    note::close(engine).await;
}

/// Whoever asks again for what was there before gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_of_a_failed_change_is_told_and_taken_away_by_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, disk) = scripted(&directory).await;
    let created = engine.create_table(table("visits")).await.expect("created");
    let store = engine.database().table("visits").expect("the store's");
    let mut mortal = table("visits");
    mortal.schema.time_to_live = Some(HOUR);
    // Refused before anything changes.
    let mut wrong = mortal.clone();
    wrong.schema.indexes = vec![SecondaryIndexSchema::new("by_word", ["word"]).include(["id"])];
    let mut large = mortal.clone();
    for nth in 0..1_000 {
        let name = format!("{nth}{}", "x".repeat(300));
        large = large.column(name, souk_engine::ValueType::Json);
    }
    for refused in [wrong, large] {
        let refused = engine.alter_table(refused).await;
        assert!(refused.is_err());
        assert_eq!(store.schema().time_to_live, None, "{refused:?}");
        assert_eq!(*created.definition(), table("visits"));
    }
    // The options are there before there is no room for the definition.
    disk.has(&engine, RESERVE / 2).await;
    let full = engine.alter_table(mortal.clone()).await;
    assert!(
        matches!(full, Err(EngineError::Storage(StoreError::DiskFull { .. }))),
        "{full:?}"
    );
    assert_eq!(created.definition().schema, *store.schema());
    disk.has(&engine, PLENTY).await;
    engine.alter_table(table("visits")).await.expect("altered");
    assert_eq!(store.schema().time_to_live, None, "its rows would go");
    assert_eq!(*created.definition(), table("visits"));
    drop((created, store));
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_table_that_cant_be_created() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(&directory).await;
    let database = engine.database();
    let mut readers = Vec::new();
    for nth in database.consumers().len()..MAX_CONSUMERS {
        readers.push(
            database
                .consumer(&format!("reader_{nth}"))
                .await
                .expect("a reader"),
        );
    }
    for _ in 0..2 {
        // Its index would be one too many.
        let refused = engine.create_table(table("visits")).await;
        assert!(
            matches!(
                refused,
                Err(EngineError::Storage(StoreError::LimitExceeded {
                    limit: "MAX_CONSUMERS",
                    ..
                }))
            ),
            "{refused:?}"
        );
        assert!(database.table("visits").is_none());
        let gone = engine.drop_table("visits").await;
        assert!(matches!(gone, Err(EngineError::TableNotFound { .. })), "{gone:?}");
    }
    readers.pop().expect("one").remove().await.expect("removed");
    let created = engine.create_table(table("visits")).await.expect("created");
    let last = put(&created, "a", "tea").await;
    assert_eq!(found(&created, Query::MatchAll, last).await, 1);
    drop((created, readers));
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_half_dropped_is_dropped_again_or_created_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(&directory).await;
    // Where the index is to be moved to, so that it can't be removed.
    let in_the_way = directory.path().join("index").join("visits~removed");
    for creates in [false, true] {
        let created = engine.create_table(table("visits")).await.expect("created");
        put(&created, "a", "tea").await;
        std::fs::write(&in_the_way, "").expect("a file");
        for _ in 0..2 {
            let half = engine.drop_table("visits").await;
            assert!(matches!(half, Err(EngineError::Io { .. })), "{half:?}");
            assert!(matches!(
                created.get(&key("a"), 0).await,
                Err(EngineError::TableNotFound { .. })
            ));
        }
        let half = engine.create_table(table("visits")).await;
        assert!(matches!(half, Err(EngineError::Io { .. })), "{half:?}");
        std::fs::remove_file(&in_the_way).expect("removed");
        if creates {
            let again = engine.create_table(table("visits")).await.expect("created again");
            assert_eq!(found(&again, Query::MatchAll, 0).await, 0);
        }
        engine.drop_table("visits").await.expect("dropped");
        let gone = engine.drop_table("visits").await;
        assert!(matches!(gone, Err(EngineError::TableNotFound { .. })), "{gone:?}");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_tells_which_fields_are_json_and_how_their_times_are_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(&directory).await;
    let format = |text: &str| vec![text.parse::<DateFormat>().expect(text)];
    let steps = vec![Field::keyword("code"), Field::date("at")];
    let definition = table("visits")
        .field_from(Field::keyword("tags").array(), Source::column("tags").json())
        .field_from(
            Field::date("day"),
            Source::column("day").dates("", format("yyyy-MM-dd")),
        )
        .field_from(
            Field::nested("steps", steps),
            Source::column("steps").json().dates("at", format("epoch_second")),
        );
    engine.create_table(definition).await.expect("created");
    let index = indexes::get(&engine, "visits").await.expect("an index");
    // Whether it is built yet or not.
    let fields = [index.fields, index.fields_to_be].concat();
    let told = fields.iter().map(|field| {
        let formats = field.date_formats.iter().map(String::as_str).collect();
        (&*field.field, field.json, formats)
    });
    let told: Vec<(&str, bool, Vec<&str>)> = told.collect();
    assert_eq!(
        told,
        [
            ("word", false, vec![]),
            ("tags", true, vec![]),
            ("day", false, vec!["yyyy-MM-dd"]),
            ("steps", true, vec![]),
            ("steps.code", false, vec![]),
            ("steps.at", false, vec!["epoch_second"]),
        ]
    );
    note::close(engine).await;
}

/// What can be added can be read again: every later change of the table looks at all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_that_a_definition_couldnt_have_cant_be_added() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    engine.create_table(table("visits")).await.expect("created");
    for name in ["visits", "notes"] {
        let mut redesign = engine.redesign(name).await.expect("an index");
        let added = |names: usize| IndexChange::AddField {
            field: "deep".to_owned(),
            kind: FieldKind::Keyword,
            source: format!("data{}", ".x".repeat(names)),
        };
        for refused in [redesign.check(&added(17)), redesign.add(&added(17))] {
            let problems = refused.expect_err("too deep");
            assert_eq!(problems[0].reason, "LIMIT_EXCEEDED");
            assert!(problems[0].message.contains("MAX_PATH_NAMES"), "{problems:?}");
        }
        redesign.add(&added(16)).expect("just so");
        redesign.make(false).await.expect("made");
    }
    let definition = engine.table("visits").expect("a table").definition();
    let mut mortal = (*definition).clone();
    mortal.schema.time_to_live = Some(HOUR);
    engine.alter_table(mortal).await.expect("altered");
    note::close(engine).await;
}
