//! Tables that are created, changed and dropped at run time, where that doesn't go well.

use souk_engine::definition::MAX_TABLE_NAME_BYTES;
use souk_engine::index::{Field, Query, SearchRequest};
use souk_engine::storage::{KeyKind, PrimaryKey, TableSchema};
use souk_engine::{
    Engine, EngineConfig, EngineError, Health, Search, TableDefinition, TableHandle, TableWrite, Tables,
};
use tempfile::TempDir;

use crate::note;

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

async fn serves(engine: &Engine) {
    let mut health = engine.health();
    let settled = |health: &Health| match health {
        Health::Serving => true,
        Health::NotServing { reason } => reason.contains("failed"),
    };
    let health = health.wait_for(settled).await.expect("the engine lives").clone();
    assert_eq!(health, Health::Serving);
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
        let refused = engine.create_table(table(&format!("{long}{}", "n".repeat(more)))).await;
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
    serves(&engine).await;
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
