//! Requests that are repeated.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use souk_storage::limits::MIN_RETENTION;
use souk_storage::{
    Condition, Database, DatabaseOptions, Error, KeyValue, ManualClock, RequestRecord, ReturnRow,
    RowOperation, RowWrite, TableUpdate, WriteBatch,
};

use super::{START, increment, key, plain, put, set, store, update};

pub(super) fn request(fingerprint: u64, reply: &'static str) -> RequestRecord {
    RequestRecord {
        id: [9; 16],
        fingerprint,
        reply: Bytes::from_static(reply.as_bytes()),
    }
}

#[tokio::test]
async fn answers_a_repeated_request() {
    let store = store(plain()).await;
    store.write(put(7, "c", 7)).await;
    let batch = store.batch(update(1, increment(1)));
    let first = store
        .database
        .write(batch.clone().request(request(1, "first")))
        .await;
    let first = first.expect("a write");
    assert_eq!((first.sequence, first.replayed), (2, None));
    let second = store
        .database
        .write(batch.clone().request(request(1, "second")))
        .await;
    let second = second.expect("a replay");
    assert_eq!(
        (second.sequence, second.replayed),
        (2, Some(Bytes::from_static(b"first")))
    );
    let other = store.database.write(batch.request(request(2, "other"))).await;
    assert!(
        matches!(other, Err(Error::RequestIdReused { sequence: 2 })),
        "{other:?}"
    );
    assert_eq!(store.versions(1).await, [(0, 1)]);
}

#[tokio::test]
async fn remembers_a_request_that_changed_nothing() {
    let store = store(plain()).await;
    let batch = store.batch(RowOperation::Delete { key: key(1) });
    let batch = batch.request(request(1, "nothing"));
    let first = store.database.write(batch.clone()).await.expect("a write");
    assert_eq!((first.sequence, first.replayed), (0, None));
    store.write(put(1, "c", 1)).await;
    let second = store.database.write(batch).await.expect("a replay");
    assert_eq!(second.sequence, 0);
    assert!(second.replayed.is_some());
    assert!(store.get(1).await.is_some());
}

/// Replaced, changed and deleted rows, on the disk, after the change has left the log and the rows are others.
#[tokio::test]
async fn answers_from_what_was_written_when_the_log_is_trimmed() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(START * 1_000_000));
    let options = DatabaseOptions {
        clock: clock.clone(),
        retention: MIN_RETENTION,
        ..DatabaseOptions::default()
    };
    let database = Database::open(directory.path(), options.clone()).await;
    let database = database.expect("a database");
    let table = database
        .ensure_table(plain().max_versions(3))
        .await
        .expect("a table");
    let batch = |operations: Vec<RowOperation>| {
        operations
            .into_iter()
            .fold(WriteBatch::new(), |batch, operation| {
                let write = RowWrite::new(&table, operation, Condition::none());
                batch.row(write.returning(ReturnRow::All))
            })
    };
    let before = batch(vec![put(2, "c", 1), put(3, "c", 1)]);
    database.write(before).await.expect("a write");
    clock.advance(Duration::from_secs(1));
    let delete = |id| RowOperation::Delete { key: key(id) };
    let asked = batch(vec![
        put(1, "c", "one"),
        update(2, increment(4)),
        delete(3),
        delete(4),
    ]);
    let asked = asked.request(request(1, "done"));
    let first = database.write(asked.clone()).await.expect("a write");
    let of_two = first.rows[1].row.clone().expect("a row");
    assert_eq!((of_two.cells("c").len(), of_two.revision), (2, 2));
    let after = batch(vec![delete(1), put(2, "d", 9), put(3, "c", 2)]);
    database.write(after).await.expect("a write");
    clock.advance(2 * MIN_RETENTION);
    database.maintain().await.expect("maintenance");
    let trimmed = database.changes(1, 1).await;
    assert!(
        matches!(trimmed, Err(Error::ChangesTrimmed { .. })),
        "{trimmed:?}"
    );
    database.close().await.expect("a close");
    drop(database);

    let database = Database::open(directory.path(), options)
        .await
        .expect("a database");
    let table = database.table("t").expect("the table");
    let mut again = asked;
    for write in &mut again.writes {
        write.table = table.clone();
    }
    let again = database.write(again).await.expect("a replay");
    assert_eq!(again.replayed, Some(Bytes::from_static(b"done")));
    assert_eq!(again.sequence, first.sequence);
    let given = |rows: &[souk_storage::WrittenRow]| {
        let rows = rows
            .iter()
            .map(|row| (row.sequence, row.key.clone(), row.row.clone()));
        rows.collect::<Vec<_>>()
    };
    assert_eq!(given(&again.rows), given(&first.rows));
}

/// What the first request was answered is known before it is looked whether it would be right now.
#[tokio::test]
async fn answers_a_repeat_that_would_be_refused_by_now() {
    let store = store(plain().transactions().max_version_offset(Duration::from_secs(60))).await;
    let batch = store.batch(update(1, set(5, Some(START))));
    let asked = batch.clone().request(request(1, "done"));
    let first = store.database.write(asked.clone()).await.expect("a write");
    let repeated = async |refusal: &str| {
        let again = store.database.write(asked.clone()).await.expect(refusal);
        assert!(again.replayed.is_some());
        assert_eq!(again.sequence, first.sequence);
        let fresh = RequestRecord {
            id: [8; 16],
            ..request(1, "done")
        };
        let fresh = store.database.write(batch.clone().request(fresh)).await;
        assert_eq!(fresh.expect_err(refusal).code(), refusal);
    };
    let held = store.database.begin(&store.table, KeyValue::Integer(1)).await;
    let held = held.expect("a transaction");
    repeated("TRANSACTION_CONFLICT").await;
    held.abort();
    store.clock.advance(Duration::from_secs(61));
    repeated("INVALID_ARGUMENT").await;
    let update = TableUpdate {
        allow_update: Some(false),
        ..TableUpdate::default()
    };
    store
        .database
        .update_table(&store.table, update)
        .await
        .expect("a change");
    repeated("INVALID_ARGUMENT").await;
    store
        .database
        .delete_table(&store.table)
        .await
        .expect("a removal");
    repeated("TABLE_NOT_FOUND").await;
}

#[tokio::test]
async fn forgets_a_failed_request() {
    let store = store(plain()).await;
    let batch = WriteBatch::of(&store.table, put(1, "c", 1), Condition::must_exist());
    let batch = batch.request(request(1, ""));
    let refused = store.database.write(batch.clone()).await;
    assert!(
        matches!(refused, Err(Error::ConditionFailed { .. })),
        "{refused:?}"
    );
    store.write(put(1, "c", 0)).await;
    let written = store.database.write(batch).await.expect("a write");
    assert_eq!((written.sequence, written.replayed), (2, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applies_a_request_once() {
    let store = store(plain()).await;
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let batch = store.batch(update(1, increment(1))).request(request(1, "done"));
            let database = store.database.clone();
            tokio::spawn(async move { database.write(batch).await })
        })
        .collect();
    let mut first = 0;
    for task in tasks {
        let committed = task.await.expect("a task").expect("a write");
        assert_eq!(committed.sequence, 1);
        first += u32::from(committed.replayed.is_none());
    }
    assert_eq!(first, 1);
    assert_eq!(store.versions(1).await, [(0, 1)]);
}
