//! Requests that are repeated.

use bytes::Bytes;
use souk_storage::{Condition, Error, RequestRecord, RowOperation, WriteBatch};

use super::{increment, key, plain, put, store, update};

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
