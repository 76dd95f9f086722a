//! What a write gives back, and what it costs.

use std::collections::BTreeSet;

use souk_storage::limits::{MAX_RETURNED_BYTES, MAX_SELECTED_COLUMNS, MAX_VALUE_BYTES};
use souk_storage::{
    CapacityUnits, CellPut, ColumnChange, Comparison, Condition, Error, Filter, KeyKind, PrimaryKey,
    ReturnRow, RowOperation, RowWrite, TableSchema, Value, WriteBatch,
};

use super::{START, increment, key, plain, put, store, update};
use crate::engines::on_both;

fn after(columns: &[&str]) -> ReturnRow {
    ReturnRow::AfterModify(columns.iter().map(|&column| column.to_owned()).collect())
}

#[tokio::test]
async fn gives_back_what_is_asked_for() {
    let store = store(plain().max_versions(2)).await;
    let row = |id, returning| {
        let changes = vec![
            increment(2),
            ColumnChange::Put {
                column: "d".to_owned(),
                value: "text".into(),
                version: None,
            },
        ];
        let operation = RowOperation::Update {
            key: key(id),
            changes,
        };
        RowWrite::new(&store.table, operation, Condition::none()).returning(returning)
    };
    let delete = RowWrite::new(
        &store.table,
        RowOperation::Delete { key: key(4) },
        Condition::none(),
    );
    let batch = WriteBatch::new()
        .row(row(1, ReturnRow::None))
        .row(row(2, ReturnRow::Key))
        .row(row(3, after(&["c", "absent"])))
        .row(delete.returning(after(&["c"])));
    let committed = store.database.write(batch).await.expect("a write");
    assert!(committed.rows.iter().all(|row| row.sequence == Some(1)));
    let keys: Vec<_> = committed.rows.iter().map(|row| row.key.clone()).collect();
    assert_eq!(keys, [None, Some(key(2)), Some(key(3)), Some(key(4))]);
    let [none, only_key, row, deleted] = &committed.rows[..] else {
        panic!("four rows");
    };
    assert_eq!(
        (none.row.as_ref(), only_key.row.as_ref(), deleted.row.as_ref()),
        (None, None, None)
    );
    let row = row.row.as_ref().expect("a row");
    assert_eq!((row.revision, row.columns().len()), (1, 1));
    assert_eq!(row.get("c"), Some(&Value::Integer(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gives_each_increment_its_own_sum() {
    const WRITERS: i64 = 16;
    const INCREMENTS: i64 = 25;
    on_both(async |engine| {
        let table = engine.table(plain()).await;
        let tasks: Vec<_> = (0..WRITERS)
            .map(|_| {
                let (database, table) = (engine.database.clone(), table.clone());
                tokio::spawn(async move {
                    let mut sums = Vec::new();
                    for _ in 0..INCREMENTS {
                        let write = RowWrite::new(&table, update(1, increment(1)), Condition::none());
                        let batch = WriteBatch::new().row(write.returning(after(&["c"])));
                        let committed = database.write(batch).await.expect("a write");
                        let row = committed.rows[0].row.as_ref().expect("a row");
                        assert_eq!(row.revision, committed.sequence);
                        sums.push(row.get("c").and_then(Value::as_integer).expect("a sum"));
                    }
                    sums
                })
            })
            .collect();
        let mut all = BTreeSet::new();
        for task in tasks {
            let sums = task.await.expect("a task");
            assert!(sums.is_sorted(), "{sums:?}");
            all.extend(sums);
        }
        let expected: BTreeSet<_> = (1..=WRITERS * INCREMENTS).collect();
        assert_eq!(all, expected, "each sum once");
    })
    .await;
}

#[tokio::test]
async fn refuses_to_give_back_too_much() {
    let store = store(plain()).await;
    let value = "x".repeat(MAX_VALUE_BYTES);
    for column in ["a", "b", "c", "d"] {
        let change = ColumnChange::Put {
            column: column.to_owned(),
            value: value.clone().into(),
            version: None,
        };
        store.write(update(1, change)).await;
    }
    let write = |columns: &[&str]| {
        let operation = update(
            1,
            ColumnChange::DeleteAll {
                column: "other".to_owned(),
            },
        );
        let write = RowWrite::new(&store.table, operation, Condition::none());
        WriteBatch::new().row(write.returning(after(columns)))
    };
    let refused = store.database.write(write(&["a", "b", "c", "d"])).await;
    match refused {
        Err(Error::LimitExceeded { limit, max, .. }) => {
            assert_eq!((limit, max), ("MAX_RETURNED_BYTES", MAX_RETURNED_BYTES));
        }
        other => panic!("expected a limit, got {other:?}"),
    }
    store
        .database
        .write(write(&["a", "b", "c"]))
        .await
        .expect("a write");
    let mut shown = write(&["a", "b"]);
    shown.shown = true;
    let refused = store.database.write(shown).await;
    assert!(
        matches!(
            refused,
            Err(Error::LimitExceeded {
                limit: "MAX_SHOWN_BYTES",
                ..
            })
        ),
        "{refused:?}"
    );
    let many = vec!["c"; MAX_SELECTED_COLUMNS + 1];
    let refused = store.database.write(write(&many)).await;
    assert!(matches!(refused, Err(Error::LimitExceeded { .. })), "{refused:?}");
    for columns in [&[][..], &[""]] {
        let refused = store.database.write(write(columns)).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn puts_cells_of_given_versions() {
    let store = store(plain().max_versions(2)).await;
    let cell = |value: i64, version| CellPut {
        column: "c".to_owned(),
        value: value.into(),
        version,
    };
    let put = |cells| RowOperation::PutCells { key: key(1), cells };
    store.write(self::put(1, "other", 1)).await;
    let three = [3, 1, 2].map(|number| cell(number, Some(START - number)));
    store.write(put(three.to_vec())).await;
    assert_eq!(store.versions(1).await, [(-1, 1), (-2, 2)]);
    assert!(
        store.get(1).await.expect("a row").get("other").is_none(),
        "the whole row is replaced"
    );
    store.write(put(vec![cell(5, None)])).await;
    assert_eq!(store.versions(1).await, [(0, 5)]);
    for cells in [
        vec![cell(1, Some(1))],
        vec![cell(1, Some(START)), cell(2, Some(START))],
        vec![cell(1, None), cell(2, Some(START - 1))],
        vec![cell(1, Some(START - 1)), cell(2, None)],
    ] {
        let refused = store.try_write(put(cells.clone()), Condition::none()).await;
        assert!(
            matches!(refused, Err(Error::Invalid { .. })),
            "{cells:?}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn refuses_updates_where_they_are_not_allowed() {
    let store = store(plain().allow_update(false)).await;
    store.write(put(1, "c", 1)).await;
    let refused = store.try_write(update(1, increment(1)), Condition::none()).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    store.write(put(1, "c", 2)).await;
    store.write(RowOperation::Delete { key: key(1) }).await;
}

#[tokio::test]
async fn meters_writes() {
    let store = store(plain()).await;
    let units = async |operation, condition| {
        let committed = store.try_write(operation, condition).await.expect("a write");
        assert_eq!(committed.rows[0].consumed, committed.consumed);
        (committed.consumed.read, committed.consumed.write)
    };
    // The key has 8 bytes, its name 2, the name of the column 1.
    let fits = "x".repeat(4096 - 11);
    let over = "x".repeat(4096 - 10);
    assert_eq!(units(put(1, "c", fits), Condition::none()).await, (0, 1));
    assert_eq!(units(put(1, "c", over), Condition::none()).await, (0, 2));
    let absent = Filter::Not(Box::new(Filter::column("d", Comparison::Equal, 1)));
    let looks = Condition {
        columns: Some(absent),
        ..Condition::none()
    };
    let two_units = units(update(1, increment_of("n")), looks).await;
    assert_eq!(two_units, (2, 1), "a column condition reads the row");
    let exists = Condition::must_exist();
    assert_eq!(units(update(1, increment_of("n")), exists).await, (1, 1));
    let delete = RowOperation::Delete { key: key(1) };
    assert_eq!(
        units(delete, Condition::none()).await,
        (0, 1),
        "a delete counts its key"
    );
    let batch = store
        .batch(put(1, "c", 1))
        .write(&store.table, put(2, "c", 1), Condition::none());
    let both = store.database.write(batch).await.expect("a write").consumed;
    assert_eq!(both, CapacityUnits { read: 0, write: 2 }, "each row by itself");
}

#[tokio::test]
async fn meters_versions_where_there_are_several() {
    let key = PrimaryKey::integer(1);
    for (versions, expected) in [(1, 1), (2, 2)] {
        let schema = TableSchema::new("t")
            .key("id", KeyKind::Integer)
            .max_versions(versions);
        let store = store(schema).await;
        let put = RowOperation::Put {
            key: key.clone(),
            columns: vec![("c".into(), "x".repeat(4096 - 11).into())],
        };
        let committed = store.try_write(put, Condition::none()).await.expect("a write");
        assert_eq!(committed.consumed.write, expected);
    }
}

fn increment_of(column: &str) -> ColumnChange {
    ColumnChange::Increment {
        column: column.to_owned(),
        by: 1,
    }
}
