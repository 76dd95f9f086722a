//! Transactions inside a partition key.

mod changed_tables;
mod concurrent;
mod leases;
mod views;

use souk_storage::{
    ColumnChange, Condition, Database, Error, KeyKind, KeyValue, PrimaryKey, Row, RowOperation, RowWrite,
    SecondaryIndexSchema, Table, TableSchema, Transaction, Value, WriteBatch, WrittenRow,
};

use crate::engines::on_both;

fn accounts() -> TableSchema {
    TableSchema::new("accounts")
        .key("owner", KeyKind::String)
        .key("number", KeyKind::Integer)
        .max_versions(2)
        .index(SecondaryIndexSchema::new("by_balance", ["balance"]))
        .transactions()
}

fn key(owner: &str, number: i64) -> PrimaryKey {
    PrimaryKey::new(vec![owner.into(), number.into()]).expect("a key")
}

fn put(table: &Table, owner: &str, number: i64, balance: i64) -> RowWrite {
    let operation = RowOperation::Put {
        key: key(owner, number),
        columns: vec![("balance".into(), balance.into())],
    };
    RowWrite::new(table, operation, Condition::none())
}

fn add(table: &Table, owner: &str, number: i64, by: i64) -> RowWrite {
    let operation = RowOperation::Update {
        key: key(owner, number),
        changes: vec![ColumnChange::Increment {
            column: "balance".to_owned(),
            by,
        }],
    };
    RowWrite::new(table, operation, Condition::none())
}

fn delete(table: &Table, owner: &str, number: i64) -> RowWrite {
    let operation = RowOperation::Delete {
        key: key(owner, number),
    };
    RowWrite::new(table, operation, Condition::none())
}

fn balance(row: Option<&Row>) -> Option<i64> {
    row?.get("balance").and_then(Value::as_integer)
}

async fn begin(database: &Database, table: &Table, owner: &str) -> Transaction {
    let transaction = database.begin(table, owner.into()).await;
    transaction.expect("a transaction")
}

async fn stage(transaction: &mut Transaction, write: RowWrite) -> WrittenRow {
    let rows = transaction.write(vec![write]).await.expect("a write");
    rows.into_iter().next().expect("a row")
}

/// Writes outside of transactions.
async fn outside(database: &Database, write: RowWrite) -> Result<u64, Error> {
    let committed = database.write(WriteBatch::new().row(write)).await?;
    Ok(committed.sequence)
}

async fn committed(database: &Database, table: &Table, owner: &str, number: i64) -> Option<i64> {
    let snapshot = database.snapshot().await.expect("a snapshot");
    let row = snapshot.get(table, &key(owner, number)).await.expect("a read");
    balance(row.as_ref())
}

fn assert_conflict<T: std::fmt::Debug>(result: Result<T, Error>, owner: &str) {
    match result {
        Err(error @ Error::TransactionConflict { .. }) => {
            assert!(error.retryable());
            assert_eq!(error.code(), "TRANSACTION_CONFLICT");
            let Error::TransactionConflict { table, partition } = error else {
                return;
            };
            let held = format!("{:?}", KeyValue::from(owner));
            assert_eq!((table.as_str(), partition), ("accounts", held));
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[tokio::test]
async fn the_log_tells_what_is_asked_for_of_deleted_rows() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        for number in 1..=3 {
            outside(database, put(&table, "a", number, 10 * number))
                .await
                .expect("a write");
        }
        let parting = |number| delete(&table, "a", number).parting(["balance", "absent"]);
        outside(database, parting(1)).await.expect("a write");
        let mut transaction = begin(database, &table, "a").await;
        // As it was last, also by the transaction's own writes; what is there in the end isn't deleted.
        stage(&mut transaction, add(&table, "a", 2, 1)).await;
        stage(&mut transaction, parting(2)).await;
        stage(&mut transaction, parting(3)).await;
        stage(&mut transaction, put(&table, "a", 3, 3)).await;
        transaction.commit().await.expect("a commit");
        outside(database, delete(&table, "a", 3)).await.expect("a write");
        outside(database, parting(4)).await.expect("nothing to delete");
        let changes = database.changes(3, 10).await.expect("changes");
        let rows = changes.iter().flat_map(|change| &change.rows);
        let told: Vec<_> = rows
            .map(|row| (row.key.clone(), row.row.is_some(), balance(row.parting.as_ref())))
            .collect();
        let expected = [
            (key("a", 1), false, Some(10)),
            (key("a", 2), false, Some(21)),
            (key("a", 3), true, None),
            (key("a", 3), false, None),
        ];
        assert_eq!(told, expected);
    })
    .await;
}

#[tokio::test]
async fn happen_as_a_whole() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        outside(database, put(&table, "a", 1, 10)).await.expect("a write");
        outside(database, put(&table, "a", 3, 30)).await.expect("a write");
        let mut transaction = begin(database, &table, "a").await;
        stage(&mut transaction, add(&table, "a", 1, -5)).await;
        stage(&mut transaction, put(&table, "a", 2, 0)).await;
        stage(&mut transaction, add(&table, "a", 2, 5)).await;
        stage(&mut transaction, delete(&table, "a", 3)).await;
        stage(&mut transaction, put(&table, "a", 4, 4)).await;
        stage(&mut transaction, delete(&table, "a", 4)).await;
        for (number, expected) in [(1, Some(10)), (2, None), (3, Some(30)), (4, None)] {
            assert_eq!(committed(database, &table, "a", number).await, expected);
        }
        assert_eq!(database.last_sequence(), 2);
        let done = transaction.commit().await.expect("a commit");
        assert_eq!(done.sequence, 3);
        for (number, expected) in [(1, Some(5)), (2, Some(5)), (3, None), (4, None)] {
            assert_eq!(committed(database, &table, "a", number).await, expected);
        }
        let changes = database.changes(2, 10).await.expect("changes");
        let rows = changes[0].rows.iter();
        let rows: Vec<_> = rows.map(|row| (row.key.clone(), row.kind)).collect();
        use souk_storage::ChangeKind::{Delete, Put, Update};
        let expected = [(key("a", 1), Update), (key("a", 2), Put), (key("a", 3), Delete)];
        assert_eq!((changes.len(), rows.as_slice()), (1, &expected[..]));
        let snapshot = database.snapshot().await.expect("a snapshot");
        let row = snapshot.get(&table, &key("a", 2)).await.expect("a read");
        assert_eq!(row.expect("a row").revision, 3);
        let five = [Value::Integer(5)];
        let page = snapshot.index_range(&table, "by_balance", &five, None, Default::default(), 0);
        let entries = page.await.expect("a page").entries;
        let keys: Vec<_> = entries.into_iter().map(|entry| entry.key).collect();
        assert_eq!(keys, [key("a", 1), key("a", 2)]);
    })
    .await;
}

#[tokio::test]
async fn leave_nothing_when_they_are_aborted_or_dropped() {
    on_both(async |mut engine| {
        let table = engine.table(accounts()).await;
        for drops in [true, false] {
            let mut transaction = begin(&engine.database, &table, "a").await;
            stage(&mut transaction, put(&table, "a", 1, 1)).await;
            if drops {
                drop(transaction);
            } else {
                transaction.abort();
            }
            assert_eq!(committed(&engine.database, &table, "a", 1).await, None);
        }
        outside(&engine.database, put(&table, "a", 2, 2))
            .await
            .expect("the partition is free");
        // The end of the process is another way of being dropped.
        let mut transaction = begin(&engine.database, &table, "a").await;
        stage(&mut transaction, put(&table, "a", 1, 1)).await;
        let id = transaction.detach();
        drop(table);
        engine.reopen().await;
        let table = engine.table(accounts()).await;
        if engine.is_on_disk() {
            let gone = engine.database.transaction(id);
            assert!(matches!(gone, Err(Error::TransactionNotFound { .. })), "{gone:?}");
            assert_eq!(committed(&engine.database, &table, "a", 2).await, Some(2));
            outside(&engine.database, put(&table, "a", 3, 3))
                .await
                .expect("the partition is free");
        }
        assert_eq!(committed(&engine.database, &table, "a", 1).await, None);
    })
    .await;
}

#[tokio::test]
async fn keep_others_out_of_their_partition() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        let mut transaction = begin(database, &table, "a").await;
        assert_conflict(outside(database, put(&table, "a", 1, 1)).await, "a");
        assert_conflict(outside(database, delete(&table, "a", 1)).await, "a");
        assert_conflict(database.begin(&table, "a".into()).await, "a");
        let both = WriteBatch::new()
            .row(put(&table, "b", 1, 1))
            .row(put(&table, "a", 1, 1));
        assert_conflict(database.write(both.clone()).await, "a");
        let rows = database.write_rows(both).await.expect("rows");
        let [written, refused] = <[_; 2]>::try_from(rows).expect("two rows");
        assert_eq!(written.expect("a row").sequence, Some(1));
        assert_conflict(refused, "a");
        let other = begin(database, &table, "b").await;
        drop(other);
        stage(&mut transaction, put(&table, "a", 1, 7)).await;
        transaction.commit().await.expect("a commit");
        outside(database, add(&table, "a", 1, 1)).await.expect("a write");
        assert_eq!(committed(database, &table, "a", 1).await, Some(8));
    })
    .await;
}

#[tokio::test]
async fn write_only_what_they_hold() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        let other = TableSchema {
            name: "other".to_owned(),
            ..accounts()
        };
        let other = engine.table(other).await;
        let mut transaction = begin(database, &table, "a").await;
        for wrong in [put(&table, "b", 1, 1), put(&other, "a", 1, 1)] {
            let refused = transaction.write(vec![put(&table, "a", 1, 1), wrong]).await;
            match refused {
                Err(Error::OutsidePartition {
                    write,
                    table,
                    partition,
                }) => {
                    let held = format!("{:?}", KeyValue::from("a"));
                    assert_eq!((write, table.as_str(), partition), (1, "accounts", held));
                }
                other => panic!("expected a refusal, got {other:?}"),
            }
        }
        assert_eq!(transaction.get(&key("a", 1)).await.expect("a read"), None);
    })
    .await;
}

#[tokio::test]
async fn are_refused_by_a_closed_database() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        let mut transaction = begin(&engine.database, &table, "a").await;
        stage(&mut transaction, put(&table, "a", 1, 1)).await;
        engine.database.close().await.expect("a close");
        let refused = transaction.commit().await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    })
    .await;
}

#[tokio::test]
async fn need_a_table_that_has_them() {
    on_both(async |engine| {
        let plain = TableSchema {
            transactions: false,
            ..accounts()
        };
        let table = engine.table(plain).await;
        let wrong = engine.database.begin(&table, "a".into()).await;
        assert!(matches!(wrong, Err(Error::Invalid { .. })), "{wrong:?}");
        let table = TableSchema {
            name: "held".to_owned(),
            ..accounts()
        };
        let table = engine.table(table).await;
        for partition in [KeyValue::from(1), "x".repeat(2000).as_str().into()] {
            let wrong = engine.database.begin(&table, partition).await;
            assert!(
                matches!(wrong, Err(Error::Invalid { .. } | Error::LimitExceeded { .. })),
                "{wrong:?}"
            );
        }
    })
    .await;
}
