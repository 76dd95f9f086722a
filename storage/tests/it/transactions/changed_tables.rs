//! Transactions on tables that change meanwhile.

use std::time::Duration;

use souk_storage::{Backfill, Direction, TableUpdate};

use super::*;

async fn indexed(database: &Database, table: &Table, index: &str) -> Vec<PrimaryKey> {
    let snapshot = database.snapshot().await.expect("a snapshot");
    let page = snapshot.index_range(table, index, &[], None, Direction::Forward, 0);
    let entries = page.await.expect("a page").entries;
    entries.into_iter().map(|entry| entry.key).collect()
}

/// What is committed has the entries of the table as it is at the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_with_the_indexes_of_the_moment() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        for number in 1..4 {
            outside(database, put(&table, "a", number, number))
                .await
                .expect("a write");
        }
        let mut transaction = begin(database, &table, "a").await;
        stage(&mut transaction, put(&table, "a", 1, 9)).await;
        stage(&mut transaction, delete(&table, "a", 2)).await;
        stage(&mut transaction, put(&table, "a", 4, 4)).await;
        let index = SecondaryIndexSchema::new("late", ["balance"]);
        let created = database.create_index(&table, index, Backfill::Existing).await;
        created.expect("an index");
        database
            .drop_index(&table, "by_balance")
            .await
            .expect("a dropped index");
        database
            .index_ready(&table, "late")
            .await
            .expect("a filled index");
        assert_eq!(
            indexed(database, &table, "late").await,
            [1, 2, 3].map(|number| key("a", number))
        );
        transaction.commit().await.expect("a commit");
        assert_eq!(
            indexed(database, &table, "late").await,
            [3, 4, 1].map(|number| key("a", number))
        );
        database.jobs_done().await.expect("the jobs");
        let again = SecondaryIndexSchema::new("again", ["balance"]);
        let created = database.create_index(&table, again, Backfill::None).await;
        created.expect("an index");
        assert_eq!(
            indexed(database, &table, "again").await,
            [],
            "nothing is left of the dropped one"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_with_their_table() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        let mut transaction = begin(database, &table, "a").await;
        stage(&mut transaction, put(&table, "a", 1, 1)).await;
        database.delete_table(&table).await.expect("a deleted table");
        let refused = transaction.write(vec![put(&table, "a", 2, 2)]).await;
        assert!(matches!(refused, Err(Error::TableNotFound { .. })), "{refused:?}");
        let refused = transaction.commit().await;
        assert!(matches!(refused, Err(Error::TableNotFound { .. })), "{refused:?}");
        assert_eq!(database.last_sequence(), 0);
    })
    .await;
}

/// The store takes surplus versions and expired cells out of rows by itself; transactions and it don't disturb each
/// other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn go_on_while_the_store_tidies_up() {
    const LIFETIME: Duration = Duration::from_secs(30);
    on_both(async |engine| {
        let database = &engine.database;
        let schema = accounts().max_versions(5).time_to_live(LIFETIME);
        let table = engine.table(schema).await;
        for _ in 0..5 {
            engine.clock.advance(Duration::from_secs(1));
            for number in 1..4 {
                let write = add(&table, "a", number, 1);
                outside(database, write).await.expect("a write");
            }
        }
        engine.clock.advance(LIFETIME - Duration::from_secs(3));
        // The versions of the first and second seconds have expired, three are left.
        let mut transaction = begin(database, &table, "a").await;
        stage(&mut transaction, add(&table, "a", 1, 10)).await;
        let before = database.last_sequence();
        database.maintain().await.expect("maintenance");
        assert_eq!(database.last_sequence(), before, "the partition is held");
        database
            .update_table(&table, TableUpdate::new().max_versions(2))
            .await
            .expect("an update");
        database.jobs_done().await.expect("the jobs");
        stage(&mut transaction, add(&table, "a", 2, 10)).await;
        transaction.commit().await.expect("a commit");
        database.maintain().await.expect("maintenance");
        let snapshot = database.snapshot().await.expect("a snapshot");
        for (number, expected) in [(1, vec![15, 5]), (2, vec![15, 5]), (3, vec![5, 4])] {
            let row = snapshot.get(&table, &key("a", number)).await.expect("a read");
            let row = row.expect("a row");
            let values = row.cells("balance").iter();
            let values: Vec<_> = values.filter_map(|cell| cell.value.as_integer()).collect();
            assert_eq!(values, expected);
        }
        // Each row has gone with its entries when all of it has expired.
        engine.clock.advance(LIFETIME);
        database.maintain().await.expect("maintenance");
        let longer = TableUpdate::new().time_to_live(Some(LIFETIME * 100));
        database.update_table(&table, longer).await.expect("an update");
        for number in 1..4 {
            assert_eq!(committed(database, &table, "a", number).await, None);
        }
        assert_eq!(indexed(database, &table, "by_balance").await, []);
    })
    .await;
}

/// A table that is created anew numbers its rows anew, and nothing is left of the counters before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn count_anew_in_a_new_table() {
    on_both(async |engine| {
        let database = &engine.database;
        let schema = TableSchema::new("messages")
            .key("chat", KeyKind::String)
            .auto_increment_key("number");
        let append = async |table: &Table| {
            let operation = RowOperation::Append {
                key: vec!["a".into()],
                columns: Vec::new(),
            };
            let write = RowWrite::new(table, operation, Condition::none());
            let write = write.returning(souk_storage::ReturnRow::Key);
            let batch = database.write(WriteBatch::new().row(write)).await;
            let key = batch.expect("a write").rows.remove(0).key.expect("a key");
            key.values()[1].as_integer()
        };
        let table = engine.table(schema.clone()).await;
        assert_eq!(append(&table).await, Some(1));
        assert_eq!(append(&table).await, Some(2));
        database.delete_table(&table).await.expect("a deleted table");
        let table = engine.table(schema).await;
        assert_eq!(append(&table).await, Some(1));
        database.jobs_done().await.expect("the jobs");
        assert_eq!(append(&table).await, Some(2));
    })
    .await;
}
