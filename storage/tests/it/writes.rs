//! Writes one by one: conditions, versions, expiry, requests that are repeated, writers that meet.

mod appends;
mod requests;
mod returned;
mod side_by_side;

use std::sync::Arc;
use std::time::Duration;

use souk_storage::limits::{MAX_BATCH_ROWS, MAX_KEY_VALUE_BYTES, MAX_REPLY_BYTES, MAX_VALUE_BYTES};
use souk_storage::{
    ColumnChange, Committed, Comparison, Condition, ConditionFailure, Database, DatabaseOptions, Direction,
    Error, Filter, KeyKind, ManualClock, PrimaryKey, ReadOptions, RequestRecord, Row, RowOperation, RowWrite,
    SecondaryIndexSchema, Table, TableSchema, Value, WriteBatch,
};

/// The clock at the start, milliseconds.
const START: i64 = 1_700_000_000_000;

struct Store {
    clock: Arc<ManualClock>,
    database: Database,
    table: Table,
}

async fn store(schema: TableSchema) -> Store {
    let clock = Arc::new(ManualClock::new(START * 1_000_000));
    let options = DatabaseOptions {
        clock: clock.clone(),
        ..DatabaseOptions::default()
    };
    let database = Database::in_memory(options).await.expect("a database");
    let table = database.create_table(schema).await.expect("a table");
    Store {
        clock,
        database,
        table,
    }
}

fn plain() -> TableSchema {
    TableSchema::new("t").key("id", KeyKind::Integer)
}

fn key(id: i64) -> PrimaryKey {
    PrimaryKey::integer(id)
}

fn put(id: i64, column: &str, value: impl Into<Value>) -> RowOperation {
    RowOperation::Put {
        key: key(id),
        columns: vec![(column.into(), value.into())],
    }
}

fn update(id: i64, change: ColumnChange) -> RowOperation {
    RowOperation::Update {
        key: key(id),
        changes: vec![change],
    }
}

fn set(value: impl Into<Value>, version: Option<i64>) -> ColumnChange {
    ColumnChange::Put {
        column: "c".to_owned(),
        value: value.into(),
        version,
    }
}

fn increment(by: i64) -> ColumnChange {
    ColumnChange::Increment {
        column: "c".to_owned(),
        by,
    }
}

impl Store {
    fn batch(&self, operation: RowOperation) -> WriteBatch {
        WriteBatch::of(&self.table, operation, Condition::none())
    }

    async fn try_write(&self, operation: RowOperation, condition: Condition) -> Result<Committed, Error> {
        let batch = WriteBatch::of(&self.table, operation, condition);
        self.database.write(batch).await
    }

    async fn write(&self, operation: RowOperation) -> u64 {
        let committed = self.try_write(operation, Condition::none()).await;
        committed.expect("a write").sequence
    }

    async fn refused(&self, operation: RowOperation, condition: Condition) -> ConditionFailure {
        match self.try_write(operation, condition).await {
            Err(Error::ConditionFailed { write: 0, reason }) => reason,
            other => panic!("expected a failed condition, got {other:?}"),
        }
    }

    async fn get(&self, id: i64) -> Option<Row> {
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        snapshot.get(&self.table, &key(id)).await.expect("a read")
    }

    async fn index(&self) -> Vec<i64> {
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        let page = snapshot.index_range(&self.table, "by_c", &[], None, Direction::Forward, 0);
        let entries = page.await.expect("a page").entries;
        let id = |entry: souk_storage::IndexEntry| entry.key.values()[0].as_integer();
        entries.into_iter().filter_map(id).collect()
    }

    /// Versions (from the start) and integers of column `c`.
    async fn versions(&self, id: i64) -> Vec<(i64, i64)> {
        let row = self.get(id).await.expect("a row");
        let cells = row.cells("c").iter();
        cells
            .map(|cell| (cell.version - START, cell.value.as_integer().expect("a number")))
            .collect()
    }
}

#[tokio::test]
async fn checks_conditions() {
    let store = store(plain()).await;
    let not_found = ConditionFailure::NotFound;
    assert_eq!(
        store.refused(put(1, "c", 1), Condition::must_exist()).await,
        not_found
    );
    assert_eq!(
        store.refused(put(1, "c", 1), Condition::revision(1)).await,
        not_found
    );
    let created = store.try_write(put(1, "c", 1), Condition::must_not_exist()).await;
    assert_eq!(created.expect("a row").sequence, 1);
    assert_eq!(
        store.refused(put(1, "c", 2), Condition::must_not_exist()).await,
        ConditionFailure::AlreadyExists
    );
    assert_eq!(
        store.refused(put(1, "c", 2), Condition::revision(7)).await,
        ConditionFailure::RevisionMismatch {
            expected: 7,
            actual: 1
        }
    );
    let is_two = Condition {
        columns: Some(Filter::column("c", Comparison::Equal, 2)),
        ..Condition::none()
    };
    assert_eq!(
        store.refused(put(1, "c", 3), is_two.clone()).await,
        ConditionFailure::Column
    );
    assert_eq!(
        store.refused(put(2, "c", 3), is_two).await,
        ConditionFailure::Column
    );
    let revised = store.try_write(put(1, "c", 2), Condition::revision(1)).await;
    assert_eq!(revised.expect("a row").sequence, 2);
    assert_eq!(store.get(1).await.expect("a row").revision, 2);
}

/// Of a row that is hidden from its writer nothing can be told from what becomes of a write, but that its key is taken.
#[tokio::test]
async fn a_hidden_row_is_as_a_missing_one_and_stays() {
    let store = store(plain()).await;
    let revision = store.write(put(1, "c", 1)).await;
    let column = |filter: Filter| Condition {
        columns: Some(filter),
        ..Condition::none()
    };
    let conditions = [
        Condition::none(),
        Condition::must_exist(),
        Condition::must_not_exist(),
        Condition::revision(revision),
        Condition::revision(revision + 1),
        column(Filter::column("c", Comparison::Equal, 1)),
        column(Filter::exists("c")),
        column(Filter::missing("c")),
    ];
    let taken = |outcome: &Result<Committed, Error>| {
        matches!(
            outcome,
            Err(Error::ConditionFailed {
                reason: ConditionFailure::AlreadyExists,
                ..
            })
        )
    };
    let told = |outcome: Result<Committed, Error>| {
        let cost = outcome.map(|written| written.rows.iter().map(|row| row.consumed).collect::<Vec<_>>());
        format!("{cost:?}")
    };
    let delete_column = ColumnChange::DeleteAll {
        column: "c".to_owned(),
    };
    let operations = |id| {
        [
            RowOperation::Delete { key: key(id) },
            update(id, delete_column.clone()),
            update(id, increment(1)),
            put(id, "c", 2),
        ]
    };
    for condition in conditions {
        for (hidden, missing) in operations(1).into_iter().zip(operations(2)) {
            let at = format!("{hidden:?} {condition:?}");
            let mut write = RowWrite::new(&store.table, hidden, condition.clone());
            write.hidden = Some(revision);
            let last = store.database.last_sequence();
            let hidden = store.database.write(WriteBatch::new().row(write)).await;
            let missing = store.try_write(missing, condition.clone()).await;
            if store.database.last_sequence() > last {
                assert!(missing.is_ok() && taken(&hidden), "{at}: {hidden:?}");
                store.write(RowOperation::Delete { key: key(2) }).await;
            } else {
                assert_eq!(told(hidden), told(missing), "{at}");
            }
            assert_eq!(store.versions(1).await, [(0, 1)], "{at}");
        }
    }
    // By another revision it isn't the row that was hidden.
    let mut write = RowWrite::new(&store.table, put(1, "c", 2), Condition::must_not_exist());
    write.hidden = Some(revision + 1);
    let seen = store.database.write(WriteBatch::new().row(write)).await;
    assert!(taken(&seen), "{seen:?}");
}

#[tokio::test]
async fn what_has_expired_is_not_there_for_who_may_not_meet_it() {
    let store = store(plain().time_to_live(Duration::from_secs(1))).await;
    store.write(put(1, "c", 1)).await;
    store.clock.advance(Duration::from_secs(1));
    let last = store.database.last_sequence();
    for hidden in [Some(0), None] {
        let mut write = RowWrite::new(
            &store.table,
            RowOperation::Delete { key: key(1) },
            Condition::none(),
        );
        write.hidden = hidden;
        let deleted = store.database.write(WriteBatch::new().row(write)).await;
        deleted.expect("a write");
        assert_eq!(
            store.database.last_sequence() > last,
            hidden.is_none(),
            "{hidden:?}"
        );
    }
}

#[tokio::test]
async fn writes_all_of_a_batch_or_nothing() {
    let store = store(plain()).await;
    store.write(put(2, "c", 1)).await;
    let batch = store
        .batch(put(1, "c", 1))
        .write(&store.table, put(2, "c", 2), Condition::must_not_exist());
    match store.database.write(batch).await {
        Err(Error::ConditionFailed {
            write: 1,
            reason: ConditionFailure::AlreadyExists,
        }) => {}
        other => panic!("expected a failed condition, got {other:?}"),
    }
    assert_eq!(store.get(1).await, None);
    assert_eq!(store.database.last_sequence(), 1);
}

#[tokio::test]
async fn takes_no_sequence_for_nothing() {
    let store = store(plain()).await;
    store.write(put(1, "c", 1)).await;
    assert_eq!(store.write(RowOperation::Delete { key: key(2) }).await, 1);
    let delete = ColumnChange::DeleteAll {
        column: "c".to_owned(),
    };
    assert_eq!(store.write(update(2, delete)).await, 1);
    assert_eq!(store.get(2).await, None);
    assert_eq!(
        store
            .database
            .write(WriteBatch::new())
            .await
            .expect("nothing")
            .sequence,
        1
    );
    assert_eq!(store.database.last_sequence(), 1);
}

#[tokio::test]
async fn keeps_the_newest_versions() {
    let store = store(plain().max_versions(2)).await;
    store.write(update(1, set(1, None))).await;
    store.write(update(1, set(2, Some(START - 5)))).await;
    assert_eq!(store.versions(1).await, [(0, 1), (-5, 2)]);
    store.write(update(1, set(3, Some(START - 9)))).await;
    assert_eq!(
        store.versions(1).await,
        [(0, 1), (-5, 2)],
        "older than all that are kept"
    );
    store.write(update(1, set(4, Some(START + 3)))).await;
    assert_eq!(store.versions(1).await, [(3, 4), (0, 1)]);
    store.write(update(1, set(5, None))).await;
    assert_eq!(
        store.versions(1).await,
        [(3, 5), (0, 1)],
        "never below the newest"
    );
    store.clock.set((START + 9) * 1_000_000);
    store.write(update(1, set(6, None))).await;
    assert_eq!(store.versions(1).await, [(9, 6), (3, 5)]);
    let delete = ColumnChange::DeleteVersion {
        column: "c".to_owned(),
        version: START + 9,
    };
    store.write(update(1, delete)).await;
    assert_eq!(store.versions(1).await, [(3, 5)]);
}

#[tokio::test]
async fn hides_what_has_expired() {
    let schema = plain()
        .time_to_live(Duration::from_millis(10))
        .index(SecondaryIndexSchema::new("by_c", ["c"]));
    let store = store(schema).await;
    store.write(put(1, "c", 1)).await;
    store.write(put(2, "c", 2)).await;
    store.clock.advance(Duration::from_millis(9));
    store.write(update(2, set(3, None))).await;
    assert_eq!(store.index().await, [1, 2]);
    store.clock.advance(Duration::from_millis(1));
    assert_eq!(store.get(1).await, None);
    assert_eq!(
        store.get(2).await.expect("a row").get("c"),
        Some(&Value::Integer(3))
    );
    assert_eq!(store.index().await, [2]);
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    let selected = ReadOptions::new().columns(["id"]);
    let found = snapshot.read(&store.table, &key(1), &selected).await;
    assert_eq!(found.expect("a read").row, None);
    // It doesn't exist any more, and comes back without its past.
    assert_eq!(
        store.refused(put(1, "c", 4), Condition::must_exist()).await,
        ConditionFailure::NotFound
    );
    let created = store
        .try_write(update(1, increment(5)), Condition::must_not_exist())
        .await;
    created.expect("a row");
    assert_eq!(store.versions(1).await, [(10, 5)]);
    assert_eq!(store.index().await, [2, 1]);
}

#[tokio::test]
async fn increments() {
    let store = store(plain()).await;
    store.write(update(1, increment(5))).await;
    store.write(update(1, increment(-7))).await;
    assert_eq!(store.versions(1).await, [(0, -2)]);
    store.write(update(1, set(i64::MAX, None))).await;
    let overflow = store.try_write(update(1, increment(1)), Condition::none()).await;
    assert!(matches!(overflow, Err(Error::Invalid { .. })), "{overflow:?}");
    store.write(update(1, set("text", None))).await;
    let text = store.try_write(update(1, increment(1)), Condition::none()).await;
    assert!(matches!(text, Err(Error::Invalid { .. })), "{text:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_no_increment() {
    let store = store(plain()).await;
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let batch = store.batch(update(1, increment(1))).write(
                &store.table,
                update(2, increment(2)),
                Condition::none(),
            );
            let database = store.database.clone();
            tokio::spawn(async move { database.write(batch).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task").expect("a write");
    }
    assert_eq!(store.versions(1).await, [(0, 100)]);
    assert_eq!(store.versions(2).await, [(0, 200)]);
    assert_eq!(store.database.last_sequence(), 100);
}

#[tokio::test]
async fn refuses_what_is_invalid() {
    let store = store(plain().index(SecondaryIndexSchema::new("by_c", ["c"]))).await;
    let twice = |first: ColumnChange, second: ColumnChange| RowOperation::Update {
        key: key(1),
        changes: vec![first, second],
    };
    let wrong = [
        put(1, "id", 1),
        put(1, "", 1),
        put(1, "c", f64::NAN),
        RowOperation::Put {
            key: key(1),
            columns: vec![("c".into(), 1.into()), ("c".into(), 2.into())],
        },
        RowOperation::Delete {
            key: PrimaryKey::string("text").expect("a key"),
        },
        twice(set(1, None), increment(1)),
        twice(set(1, None), set(1, Some(START))),
        twice(set(1, Some(START)), set(2, Some(START))),
        update(1, set(1, Some(START + 86_400_001))),
        update(1, set(1, Some(i64::MIN))),
    ];
    for operation in wrong {
        let refused = store.try_write(operation.clone(), Condition::none()).await;
        assert!(
            matches!(refused, Err(Error::Invalid { .. })),
            "{operation:?}: {refused:?}"
        );
    }
    let same_row = store.batch(put(1, "c", 1)).write(
        &store.table,
        RowOperation::Delete { key: key(1) },
        Condition::none(),
    );
    let refused = store.database.write(same_row).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    store
        .write(twice(set(1, Some(START)), set(2, Some(START - 1))))
        .await;
}

/// A row that lacks a column of an index isn't in it, in whichever order the index has its columns.
#[tokio::test]
async fn takes_what_is_too_large_for_an_index_that_lacks_the_row() {
    for columns in [["c", "d"], ["d", "c"]] {
        let store = store(plain().index(SecondaryIndexSchema::new("by_c", columns))).await;
        let large = "x".repeat(MAX_KEY_VALUE_BYTES + 1);
        store.write(put(1, "c", large)).await;
        assert!(store.index().await.is_empty());
        let into_it = ColumnChange::Put {
            column: "d".to_owned(),
            value: 1.into(),
            version: None,
        };
        let refused = store.try_write(update(1, into_it), Condition::none()).await;
        assert!(matches!(refused, Err(Error::LimitExceeded { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn refuses_what_is_too_large() {
    let store = store(plain().index(SecondaryIndexSchema::new("by_c", ["c"]))).await;
    let limit = |result: Result<Committed, Error>| match result {
        Err(Error::LimitExceeded { limit, .. }) => limit,
        other => panic!("expected a limit, got {other:?}"),
    };
    let large = "x".repeat(MAX_VALUE_BYTES + 1);
    let refused = store.try_write(put(1, "d", large), Condition::none()).await;
    assert_eq!(limit(refused), "MAX_VALUE_BYTES");
    let indexed = "x".repeat(MAX_KEY_VALUE_BYTES + 1);
    let refused = store.try_write(put(1, "c", indexed), Condition::none()).await;
    assert_eq!(limit(refused), "MAX_KEY_VALUE_BYTES");
    let rows = i64::try_from(MAX_BATCH_ROWS).expect("a number");
    let many = |count: i64, value: &str| {
        (0..count).fold(WriteBatch::new(), |batch, id| {
            batch.write(&store.table, put(id, "d", value), Condition::none())
        })
    };
    let refused = store.database.write(many(rows + 1, "")).await;
    assert_eq!(limit(refused), "MAX_BATCH_ROWS");
    let refused = store.database.write(many(3, &"x".repeat(MAX_VALUE_BYTES))).await;
    assert_eq!(limit(refused), "MAX_BATCH_BYTES");
    let reply = RequestRecord {
        reply: vec![0; MAX_REPLY_BYTES + 1].into(),
        ..requests::request(1, "")
    };
    let refused = store.database.write(many(1, "").request(reply)).await;
    assert_eq!(limit(refused), "MAX_REPLY_BYTES");
    assert_eq!(store.database.last_sequence(), 0);
    let all = store.database.write(many(rows, "")).await.expect("a full batch");
    assert_eq!(all.sequence, 1);
}
