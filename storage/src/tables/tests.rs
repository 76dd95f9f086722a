use souk_kv::Direction;

use super::*;
use crate::batch::{Condition, RowOperation, WriteBatch};
use crate::options::DatabaseOptions;
use crate::schema::KeyKind;
use crate::value::PrimaryKey;

/// Lets all other tasks go as far as they can: the engine in memory never waits.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn waits_for_the_writes_on_their_way() {
    let database = Database::in_memory(DatabaseOptions::default()).await.unwrap();
    let schema = TableSchema::new("t").key("id", KeyKind::Integer);
    let table = database.create_table(schema).await.unwrap();
    let key = PrimaryKey::integer(1);
    // The write is validated, and waits for its row.
    let row = key::row(table.id(), &key);
    let held = database.shared.locks.lock([&row].into_iter()).await;
    let put = RowOperation::Put {
        key,
        columns: vec![("size".into(), 7.into())],
    };
    let batch = WriteBatch::of(&table, put, Condition::none());
    let writer = database.clone();
    let write = tokio::spawn(async move { writer.write(batch).await });
    settle().await;
    let (creator, of) = (database.clone(), table.clone());
    let create = tokio::spawn(async move {
        let index = SecondaryIndexSchema::new("by_size", ["size"]);
        creator.create_index(&of, index, Backfill::Existing).await
    });
    settle().await;
    assert!(!write.is_finished());
    assert!(!create.is_finished(), "the table changed under a write");
    drop(held);
    write.await.unwrap().unwrap();
    create.await.unwrap().unwrap();
    database.index_ready(&table, "by_size").await.unwrap();
    let snapshot = database.snapshot().await.unwrap();
    let page = snapshot.index_range(&table, "by_size", &[], None, Direction::Forward, 0);
    assert_eq!(page.await.unwrap().entries.len(), 1);
}

#[tokio::test]
async fn changes_to_the_end_when_the_caller_goes_away() {
    let database = Database::in_memory(DatabaseOptions::default()).await.unwrap();
    let schema = TableSchema::new("t").key("id", KeyKind::Integer);
    let table = database.create_table(schema).await.unwrap();
    // The change waits for a write.
    let writing = database.shared.schema_lock.read().await;
    let (updater, of) = (database.clone(), table.clone());
    let caller = tokio::spawn(async move {
        let update = TableUpdate::new().max_versions(9);
        updater.update_table(&of, update).await
    });
    settle().await;
    caller.abort();
    assert!(caller.await.is_err());
    assert_eq!(table.schema().max_versions, 1);
    drop(writing);
    settle().await;
    assert_eq!(table.schema().max_versions, 9);
}
