//! Rows that are written one by one in one call.

use souk_storage::limits::{MAX_BATCH_ROWS, MAX_MATCHED_BYTES, MAX_VALUE_BYTES};
use souk_storage::{
    Cast, ColumnChange, Comparison, Condition, ConditionFailure, Error, Filter, RequestRecord, ReturnRow,
    RowOperation, RowWrite, SecondaryIndexSchema, TableSchema, Value, ValueRule, WriteBatch, WrittenRow,
};

use super::{Store, increment, key, plain, put, store, update};
use crate::engines::on_both;

#[tokio::test]
async fn writes_or_refuses_each_row_by_itself() {
    on_both(async |engine| {
        let table = plain().index(SecondaryIndexSchema::new("by_c", ["c"]));
        let table = engine.table(table).await;
        let text = WriteBatch::of(&table, put(4, "c", "text"), Condition::none());
        engine.database.write(text).await.expect("a write");
        let batch = WriteBatch::new()
            .write(&table, put(1, "c", 1), Condition::none())
            .write(&table, put(2, "c", 2), Condition::must_exist())
            .row(
                RowWrite::new(&table, update(3, increment(3)), Condition::none())
                    .returning(ReturnRow::AfterModify(vec!["c".to_owned()])),
            )
            .write(&table, update(4, increment(1)), Condition::none())
            .write(&table, put(5, "c", "x".repeat(2000)), Condition::none())
            .write(&table, RowOperation::Delete { key: key(6) }, Condition::none());
        let rows = engine.database.write_rows(batch).await.expect("rows");
        let [one, two, three, four, five, six] = &rows[..] else {
            panic!("six rows, got {rows:?}");
        };
        let sequence = |row: &Result<WrittenRow, Error>| row.as_ref().ok().and_then(|row| row.sequence);
        assert_eq!([one, three, six].map(sequence), [Some(2); 3], "in one commit");
        assert!(
            matches!(
                two,
                Err(Error::ConditionFailed {
                    write: 1,
                    reason: ConditionFailure::NotFound
                })
            ),
            "{two:?}"
        );
        let sum = three.as_ref().ok().and_then(|row| row.row.as_ref()?.get("c"));
        assert_eq!(sum, Some(&Value::Integer(3)));
        assert!(matches!(four, Err(Error::Invalid { .. })), "{four:?}");
        assert!(matches!(five, Err(Error::LimitExceeded { .. })), "{five:?}");
        let changes = engine.database.changes(1, 10).await.expect("changes");
        let keys: Vec<_> = changes[0].rows.iter().map(|row| row.key.clone()).collect();
        assert_eq!((changes.len(), keys), (1, vec![key(1), key(3)]));
    })
    .await;
}

#[tokio::test]
async fn writes_no_row_when_one_can_not_be_right() {
    let store = store(plain()).await;
    let good = || store.batch(put(1, "c", 1));
    let with = |operation| good().write(&store.table, operation, Condition::none());
    for batch in [
        with(put(2, "", 1)),
        with(put(1, "c", 2)),
        good().request(RequestRecord {
            id: [1; 16],
            fingerprint: 1,
            reply: bytes::Bytes::new(),
        }),
    ] {
        let refused = store.database.write_rows(batch).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    let many = (0..=MAX_BATCH_ROWS as i64).fold(WriteBatch::new(), |batch, id| {
        batch.write(&store.table, put(id, "c", 1), Condition::none())
    });
    let refused = store.database.write_rows(many).await;
    assert!(matches!(refused, Err(Error::LimitExceeded { .. })), "{refused:?}");
    assert_eq!(store.database.last_sequence(), 0);
    let none = store.database.write_rows(WriteBatch::new()).await.expect("rows");
    assert!(none.is_empty());
}

#[tokio::test]
async fn tells_each_row_what_stopped_it() {
    on_both(async |engine| {
        let table = engine.table(plain()).await;
        engine.database.close().await.expect("a close");
        let batch = WriteBatch::new()
            .write(&table, put(1, "c", 1), Condition::none())
            .write(&table, put(2, "c", 1), Condition::none());
        let rows = engine.database.write_rows(batch).await.expect("rows");
        let stopped = |row: &Result<_, Error>| matches!(row, Err(Error::Unavailable { .. }));
        assert!(rows.len() == 2 && rows.iter().all(stopped), "{rows:?}");
    })
    .await;
}

/// Writes rows of which five make a commit.
async fn write_large_rows(store: &Store, rows: i64) {
    let value = Value::from("x".repeat(MAX_VALUE_BYTES - 100));
    for id in 0..rows {
        for columns in [["c1", "c2"], ["c3", "c4"]] {
            let change = |column: &str| ColumnChange::Put {
                column: column.to_owned(),
                value: value.clone(),
                version: None,
            };
            let changes = columns.map(change).to_vec();
            store
                .write(RowOperation::Update {
                    key: key(id),
                    changes,
                })
                .await;
        }
    }
}

/// However many commits there are.
#[tokio::test]
async fn gives_back_what_a_message_holds() {
    const ROWS: i64 = 10;
    const GIVEN_BACK: usize = 500 << 10;
    let store = store(plain()).await;
    write_large_rows(&store, ROWS).await;
    let value = Value::from("x".repeat(GIVEN_BACK));
    let batch = (0..ROWS).fold(WriteBatch::new(), |batch, id| {
        let put = ColumnChange::Put {
            column: "d".to_owned(),
            value: value.clone(),
            version: None,
        };
        // Less than 4 MiB are sent.
        let change = if id < 5 { put } else { increment(1) };
        let returned = if id < 5 { "d" } else { "c1" };
        let write = RowWrite::new(&store.table, update(id, change), Condition::none());
        batch.row(write.returning(ReturnRow::AfterModify(vec![returned.to_owned()])))
    });
    let rows = store.database.write_rows(batch).await.expect("rows");
    for (nth, row) in rows.into_iter().enumerate() {
        match row {
            Ok(row) => assert!(nth < 5, "{:?}", row.sequence),
            Err(Error::LimitExceeded { limit, .. }) => {
                assert_eq!((limit, nth >= 5), ("MAX_SHOWN_BYTES", true))
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Patterns look at as much text in a call as in a row, whatever it writes.
#[tokio::test]
async fn bounds_what_patterns_of_conditions_look_at() {
    let store = store(plain().transactions()).await;
    let text = "x".repeat(MAX_MATCHED_BYTES / 3);
    for id in 0..5 {
        store.write(put(id, "c", text.clone())).await;
    }
    let rule = ValueRule::new("x", Cast::String).expect("a pattern");
    let condition = Condition {
        columns: Some(Filter::with_rule("c", rule, Comparison::Equal, "x")),
        ..Condition::none()
    };
    let batch = |ids: std::ops::Range<i64>| {
        ids.fold(WriteBatch::new(), |batch, id| {
            batch.write(&store.table, put(id, "c", 1), condition.clone())
        })
    };
    let of = |error: &Error| match error {
        Error::MatchedTooMuch { key } => key.clone(),
        other => panic!("{other}"),
    };
    let whole = store.database.write(batch(0..5)).await;
    let named = |id| format!("{:?}", key(id));
    assert_eq!(of(&whole.expect_err("too much")), named(3));
    let rows = store.database.write_rows(batch(0..5)).await.expect("rows");
    let refused: Vec<_> = rows.iter().filter_map(|row| row.as_ref().err().map(of)).collect();
    assert_eq!(refused, [3, 4].map(named));
    store.database.write(batch(3..5)).await.expect("less");
}

/// Small updates of large rows: their after images don't fit one change.
#[tokio::test]
async fn takes_as_many_commits_as_it_needs() {
    const ROWS: i64 = 10;
    let store = store(plain()).await;
    write_large_rows(&store, ROWS).await;
    let before = store.database.last_sequence();
    let increments = || {
        (0..ROWS).fold(WriteBatch::new(), |batch, id| {
            batch.write(&store.table, update(id, increment(1)), Condition::none())
        })
    };
    let whole = store.database.write(increments()).await;
    assert!(matches!(whole, Err(Error::LimitExceeded { .. })), "{whole:?}");
    let rows = store.database.write_rows(increments()).await.expect("rows");
    let sequences: Vec<_> = rows
        .into_iter()
        .map(|row| row.expect("a row").sequence.expect("a sequence"))
        .collect();
    assert!(sequences.is_sorted(), "{sequences:?}");
    assert_eq!(sequences.last(), Some(&store.database.last_sequence()));
    assert!(store.database.last_sequence() - before < 5, "{sequences:?}");
    for id in 0..ROWS {
        assert_eq!(
            store.get(id).await.expect("a row").get("c"),
            Some(&Value::Integer(1))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_no_increment_of_rows_that_meet() {
    const WRITERS: usize = 12;
    const ROUNDS: usize = 10;
    on_both(async |engine| {
        let table = engine.table(plain()).await;
        let numbered = engine.table(TableSchema {
            name: "numbered".to_owned(),
            ..plain().auto_increment_key("number")
        });
        let numbered = numbered.await;
        let tasks: Vec<_> = (0..WRITERS)
            .map(|_| {
                let (database, table, numbered) = (engine.database.clone(), table.clone(), numbered.clone());
                tokio::spawn(async move {
                    for _ in 0..ROUNDS {
                        let append = || RowOperation::Append {
                            key: vec![1.into()],
                            columns: Vec::new(),
                        };
                        let batch = WriteBatch::new()
                            .write(&table, update(1, increment(1)), Condition::none())
                            .write(&table, put(9, "c", 1), Condition::must_exist())
                            .write(&numbered, append(), Condition::none())
                            .write(&table, update(2, increment(2)), Condition::none())
                            .write(&numbered, append(), Condition::none());
                        let rows = database.write_rows(batch).await.expect("rows");
                        let written: Vec<_> = rows.iter().map(Result::is_ok).collect();
                        assert_eq!(written, [true, false, true, true, true], "{rows:?}");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a task");
        }
        let snapshot = engine.database.snapshot().await.expect("a snapshot");
        let rounds = (WRITERS * ROUNDS) as i64;
        for (id, sum) in [(1, rounds), (2, 2 * rounds)] {
            let row = snapshot.get(&table, &key(id)).await.expect("a read");
            assert_eq!(row.expect("a row").get("c"), Some(&Value::Integer(sum)));
        }
        let all = souk_storage::RangeRequest::all(souk_storage::Direction::Forward);
        let page = snapshot.range(&numbered, &all).await.expect("a page");
        assert_eq!(page.rows.len() as i64, 2 * rounds);
        assert_eq!(
            engine.database.last_sequence() as i64,
            rounds,
            "one commit for a call"
        );
    })
    .await;
}
