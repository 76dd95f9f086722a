//! What a transaction sees: its own writes on top of what is committed.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_storage::limits::{MAX_TRANSACTION_BYTES, MAX_VALUE_BYTES};
use souk_storage::{
    CapacityUnits, CommitOptions, Condition, ConditionFailure, Database, Direction, Durability, Error,
    KeyBound, KeyKind, RangeRequest, ReturnRow, RowOperation, RowWrite, Snapshot, Table, TableSchema, Value,
};

use super::*;

#[tokio::test]
async fn stack_writes_on_writes() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        outside(database, put(&table, "a", 1, 10)).await.expect("a write");
        let mut transaction = begin(database, &table, "a").await;
        let returning = ReturnRow::AfterModify(vec!["balance".to_owned()]);
        let sum = stage(
            &mut transaction,
            add(&table, "a", 1, 5).returning(returning.clone()),
        )
        .await;
        assert_eq!((balance(sum.row.as_ref()), sum.sequence), (Some(15), None));
        // Versions are of the time of the write.
        engine.clock.advance(std::time::Duration::from_millis(5));
        let sum = stage(&mut transaction, add(&table, "a", 1, 5).returning(returning)).await;
        let cells = sum.row.as_ref().expect("a row").cells("balance");
        let versions: Vec<_> = cells
            .iter()
            .map(|cell| cell.version - crate::engines::START / 1_000_000)
            .collect();
        assert_eq!((balance(sum.row.as_ref()), versions), (Some(20), vec![5, 0]));
        // Conditions see own writes, and one that fails leaves all as it was.
        let taken = RowWrite {
            condition: Condition::must_not_exist(),
            ..put(&table, "a", 2, 0)
        };
        let mut both = vec![put(&table, "a", 3, 3), taken.clone()];
        stage(&mut transaction, taken).await;
        match transaction.write(both.clone()).await {
            Err(Error::ConditionFailed {
                write: 1,
                reason: ConditionFailure::AlreadyExists,
            }) => {}
            other => panic!("expected a failed condition, got {other:?}"),
        }
        assert_eq!(transaction.get(&key("a", 3)).await.expect("a read"), None);
        let rows = transaction.write_rows(both.split_off(0)).await.expect("rows");
        assert_eq!(rows.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false]);
        let row = transaction.get(&key("a", 3)).await.expect("a read");
        assert_eq!(balance(row.as_ref()), Some(3));
        let done = transaction.commit_with(CommitOptions {
            trace: Some("trace".to_owned()),
            durability: Durability::Buffered,
            ..CommitOptions::default()
        });
        assert_eq!(done.await.expect("a commit").sequence, 2);
        let changes = database.changes(1, 1).await.expect("changes");
        assert_eq!(changes[0].trace.as_deref(), Some("trace"));
    })
    .await;
}

#[tokio::test]
async fn read_beyond_their_partition() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        let mut transaction = begin(database, &table, "b").await;
        stage(&mut transaction, put(&table, "b", 1, 2)).await;
        // Others go on, and are seen.
        outside(database, put(&table, "a", 1, 1)).await.expect("a write");
        outside(database, put(&table, "c", 1, 3)).await.expect("a write");
        let all = RangeRequest::all(Direction::Forward);
        let page = transaction.range(&all).await.expect("a page");
        let balances: Vec<_> = page.rows.iter().map(|row| balance(Some(row))).collect();
        assert_eq!(balances, [Some(1), Some(2), Some(3)]);
        let row = transaction.get(&key("a", 1)).await.expect("a read");
        assert_eq!(balance(row.as_ref()), Some(1));
    })
    .await;
}

/// Random writes in a transaction; every way of reading sees what the same writes leave without one.
#[tokio::test]
async fn see_what_the_same_writes_leave() {
    on_both(async |engine| {
        let mut random = crate::commits::random();
        let held = engine.table(accounts()).await;
        let plain = TableSchema {
            name: "plain".to_owned(),
            transactions: false,
            ..accounts()
        };
        let plain = engine.table(plain).await;
        for _ in 0..4 {
            let mut transaction = begin(&engine.database, &held, "b").await;
            for step in 0..150 {
                engine.clock.advance(std::time::Duration::from_millis(1));
                let seed = random.u64(..);
                let of = |table: &Table| random_write(&mut Rng::with_seed(seed), table);
                stage(&mut transaction, of(&held)).await;
                outside(&engine.database, of(&plain)).await.expect("a write");
                if step % 10 == 0 {
                    let view = transaction.snapshot().await.expect("a snapshot");
                    assert_same(&mut random, &engine.database, (&view, &held), &plain).await;
                }
            }
            transaction.commit().await.expect("a commit");
            let view = engine.database.snapshot().await.expect("a snapshot");
            assert_same(&mut random, &engine.database, (&view, &held), &plain).await;
        }
    })
    .await;
}

fn random_write(random: &mut Rng, table: &Table) -> RowWrite {
    let number = random.i64(0..20);
    match random.u8(0..4) {
        0 | 1 => put(table, "b", number, random.i64(0..5)),
        2 => add(table, "b", number, random.i64(0..5)),
        _ => delete(table, "b", number),
    }
}

/// Compares pages of random ranges, and of the index.
async fn assert_same(random: &mut Rng, database: &Database, view: (&Snapshot, &Table), plain: &Table) {
    let snapshot = database.snapshot().await.expect("a snapshot");
    for direction in [Direction::Forward, Direction::Backward] {
        let limit = random.usize(1..6);
        let bounds = [random.i64(0..20), random.i64(0..20)].map(|number| key("b", number));
        let [first, second] = bounds;
        let request = RangeRequest {
            start: KeyBound::Before(first),
            end: KeyBound::After(second),
            ..RangeRequest::all(direction)
        };
        for request in [request, RangeRequest::all(direction)] {
            let expected = all_rows(&snapshot, plain, &request, 0).await;
            assert_eq!(all_rows(view.0, view.1, &request, limit).await, expected);
        }
        let expected = all_entries(&snapshot, plain, direction, 0).await;
        assert_eq!(all_entries(view.0, view.1, direction, limit).await, expected);
    }
    for number in 0..20 {
        let expected = snapshot.get(plain, &key("b", number)).await.expect("a read");
        let seen = view.0.get(view.1, &key("b", number)).await.expect("a read");
        assert_eq!(seen.map(without_revision), expected.map(without_revision));
    }
}

/// All rows of a range by pages of so many.
async fn all_rows(snapshot: &Snapshot, table: &Table, request: &RangeRequest, limit: usize) -> Vec<Row> {
    let mut request = request.clone().limit(limit);
    let mut rows = Vec::new();
    loop {
        let page = snapshot.range(table, &request).await.expect("a page");
        rows.extend(page.rows.into_iter().map(without_revision));
        match page.next {
            Some(next) => request = request.resume(next),
            None => return rows,
        }
    }
}

async fn all_entries(
    snapshot: &Snapshot,
    table: &Table,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<Value>, PrimaryKey)> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = snapshot.index_range(table, "by_balance", &[], after.as_ref(), direction, limit);
        let page = page.await.expect("a page");
        entries.extend(page.entries.into_iter().map(|entry| (entry.values, entry.key)));
        after = page.next;
        if after.is_none() {
            return entries;
        }
    }
}

/// Rows of a transaction have no revision of their own yet.
fn without_revision(mut row: Row) -> Row {
    row.revision = 0;
    row
}

#[tokio::test]
async fn stop_at_their_size() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        let mut transaction = begin(&engine.database, &table, "a").await;
        let large = |bytes: usize| {
            let operation = RowOperation::Put {
                key: key("a", 1),
                columns: vec![("c".into(), "x".repeat(bytes).into())],
            };
            RowWrite::new(&table, operation, Condition::none())
        };
        // A write counts its key of 9 bytes and the name of 1.
        stage(&mut transaction, large(MAX_VALUE_BYTES)).await;
        let left = MAX_TRANSACTION_BYTES - MAX_VALUE_BYTES - 10;
        match transaction.write(vec![large(left - 9)]).await {
            Err(Error::LimitExceeded { limit, max, actual }) => {
                assert_eq!(limit, "MAX_TRANSACTION_BYTES");
                assert_eq!((max, actual), (MAX_TRANSACTION_BYTES, MAX_TRANSACTION_BYTES + 1));
            }
            other => panic!("expected a limit, got {other:?}"),
        }
        // It goes on with what fits.
        stage(&mut transaction, large(left - 10)).await;
        transaction.commit().await.expect("a commit");
    })
    .await;
}

#[tokio::test]
async fn number_appended_rows() {
    on_both(async |engine| {
        let schema = TableSchema::new("messages")
            .key("chat", KeyKind::String)
            .auto_increment_key("number")
            .transactions();
        let table = engine.table(schema).await;
        let append = || {
            let operation = RowOperation::Append {
                key: vec!["a".into()],
                columns: Vec::new(),
            };
            RowWrite::new(&table, operation, Condition::none()).returning(ReturnRow::Key)
        };
        let number = |row: WrittenRow| row.key.and_then(|key| key.values()[1].as_integer());
        let outside = async || {
            let committed = engine.database.write(WriteBatch::new().row(append())).await;
            number(committed.expect("a write").rows.remove(0))
        };
        assert_eq!(outside().await, Some(1));
        let mut transaction = begin(&engine.database, &table, "a").await;
        assert_eq!(number(stage(&mut transaction, append()).await), Some(2));
        let row = stage(&mut transaction, append()).await;
        let key = row.key.clone().expect("a key");
        assert_eq!(number(row), Some(3));
        let delete = RowWrite::new(&table, RowOperation::Delete { key }, Condition::none());
        stage(&mut transaction, delete).await;
        transaction.commit().await.expect("a commit");
        assert_eq!(outside().await, Some(4), "the number of a deleted row stays used");
        // Even when nothing else is left of the transaction.
        let mut transaction = begin(&engine.database, &table, "a").await;
        let key = stage(&mut transaction, append()).await.key.expect("a key");
        let delete = RowWrite::new(&table, RowOperation::Delete { key }, Condition::none());
        stage(&mut transaction, delete).await;
        let before = engine.database.last_sequence();
        let done = transaction.commit().await.expect("a commit");
        assert_eq!(done.sequence, before);
        assert_eq!(outside().await, Some(6));
    })
    .await;
}

#[tokio::test]
async fn are_metered() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        let mut transaction = begin(&engine.database, &table, "a").await;
        assert_eq!(transaction.consumed(), CapacityUnits::TRANSACTION_STEP);
        let row = stage(&mut transaction, put(&table, "a", 1, 1)).await;
        assert_eq!(row.consumed, CapacityUnits { read: 0, write: 1 });
        assert_eq!(transaction.consumed(), CapacityUnits { read: 0, write: 2 });
        let done = transaction.commit().await.expect("a commit");
        assert_eq!(done.consumed, CapacityUnits::TRANSACTION_STEP);
    })
    .await;
}

#[tokio::test]
async fn commit_nothing_without_a_sequence() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        outside(&engine.database, put(&table, "a", 1, 1))
            .await
            .expect("a write");
        let mut transaction = begin(&engine.database, &table, "a").await;
        stage(&mut transaction, delete(&table, "a", 2)).await;
        assert_eq!(transaction.commit().await.expect("a commit").sequence, 1);
        assert_eq!(engine.database.last_sequence(), 1);
    })
    .await;
}

/// The sum over a partition as one reader sees it.
pub(super) async fn sum(snapshot: &Snapshot, table: &Table, owner: &str) -> (usize, i64) {
    let prefix = PrimaryKey::string(owner).expect("a key");
    let request = RangeRequest::prefix(prefix, Direction::Forward);
    let page = snapshot.range(table, &request).await.expect("a page");
    let balances: BTreeMap<_, _> = page
        .rows
        .iter()
        .map(|row| (&row.key, balance(Some(row)).unwrap_or_default()))
        .collect();
    (balances.len(), balances.values().sum())
}
