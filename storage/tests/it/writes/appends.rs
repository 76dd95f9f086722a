//! Rows that the store numbers.

use std::collections::BTreeMap;

use bytes::Bytes;
use souk_storage::{
    ColumnChange, Committed, Comparison, Condition, Database, Error, Filter, KeyKind, KeyValue, PrimaryKey,
    RequestRecord, ReturnRow, RowOperation, RowWrite, Table, TableSchema, WriteBatch,
};

use crate::engines::{Engine, on_both};

fn messages() -> TableSchema {
    TableSchema::new("messages")
        .key("chat", KeyKind::String)
        .auto_increment_key("number")
        .key("device", KeyKind::String)
}

fn append(table: &Table, chat: &str) -> RowWrite {
    let operation = RowOperation::Append {
        key: vec![chat.into(), "phone".into()],
        columns: vec![("text".into(), "hello".into())],
    };
    RowWrite::new(table, operation, Condition::none()).returning(ReturnRow::Key)
}

fn key(chat: &str, number: i64) -> PrimaryKey {
    PrimaryKey::new(vec![chat.into(), number.into(), "phone".into()]).expect("a key")
}

/// The numbers of the rows that were given back.
fn numbers(committed: &Committed) -> Vec<i64> {
    let number = |key: &PrimaryKey| key.values()[1].as_integer().expect("a number");
    let keys = committed.rows.iter().filter_map(|row| row.key.as_ref());
    keys.map(number).collect()
}

async fn write(database: &Database, writes: impl IntoIterator<Item = RowWrite>) -> Committed {
    let batch = writes.into_iter().fold(WriteBatch::new(), WriteBatch::row);
    database.write(batch).await.expect("a write")
}

async fn refused(database: &Database, write: RowWrite) {
    let refused = database.write(WriteBatch::new().row(write)).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[tokio::test]
async fn number_each_partition_key_by_itself() {
    on_both(async |engine| {
        let table = engine.table(messages()).await;
        let first = write(&engine.database, ["a", "b", "a"].map(|chat| append(&table, chat))).await;
        assert_eq!(numbers(&first), [1, 1, 2]);
        let second = write(&engine.database, [append(&table, "a")]).await;
        assert_eq!(numbers(&second), [3]);
        let snapshot = engine.database.snapshot().await.expect("a snapshot");
        let row = snapshot.get(&table, &key("a", 2)).await.expect("a read");
        assert_eq!(row.expect("a row").revision, first.sequence);
        let changes = engine.database.changes(0, 10).await.expect("changes");
        let keys: Vec<_> = changes[0].rows.iter().map(|row| row.key.clone()).collect();
        assert_eq!(keys, [key("a", 1), key("b", 1), key("a", 2)]);
    })
    .await;
}

#[tokio::test]
async fn never_give_a_number_twice() {
    on_both(async |mut engine: Engine| {
        let table = engine.table(messages()).await;
        write(&engine.database, [append(&table, "a"), append(&table, "a")]).await;
        let delete = RowOperation::Delete { key: key("a", 2) };
        write(
            &engine.database,
            [RowWrite::new(&table, delete, Condition::none())],
        )
        .await;
        drop(table);
        engine.reopen().await;
        let table = engine.table(messages()).await;
        let next = write(&engine.database, [append(&table, "a")]).await;
        assert_eq!(numbers(&next), [3]);
    })
    .await;
}

#[tokio::test]
async fn are_changed_by_their_number() {
    on_both(async |engine| {
        let table = engine.table(messages()).await;
        write(&engine.database, [append(&table, "a")]).await;
        let put = |number| RowOperation::Put {
            key: key("a", number),
            columns: vec![("text".into(), "changed".into())],
        };
        let change = RowWrite::new(&table, put(1), Condition::must_exist());
        write(&engine.database, [change]).await;
        let absent = WriteBatch::of(&table, put(2), Condition::must_exist());
        let absent = engine.database.write(absent).await;
        assert!(matches!(absent, Err(Error::ConditionFailed { .. })), "{absent:?}");
        // A number that the store didn't give could meet one that it will give.
        for condition in [Condition::none(), Condition::must_not_exist()] {
            refused(&engine.database, RowWrite::new(&table, put(2), condition.clone())).await;
            let update = RowOperation::Update {
                key: key("a", 2),
                changes: vec![ColumnChange::Increment {
                    column: "n".to_owned(),
                    by: 1,
                }],
            };
            refused(&engine.database, RowWrite::new(&table, update, condition)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn are_refused_where_nothing_is_numbered() {
    on_both(async |engine| {
        let table = engine.table(messages()).await;
        let on = |condition| RowWrite {
            condition,
            ..append(&table, "a")
        };
        refused(&engine.database, on(Condition::must_not_exist())).await;
        refused(&engine.database, on(Condition::revision(1))).await;
        let filter = Condition {
            columns: Some(Filter::column("c", Comparison::Equal, 1)),
            ..Condition::none()
        };
        refused(&engine.database, on(filter)).await;
        let of = |key: Vec<KeyValue>| RowWrite {
            operation: RowOperation::Append {
                key,
                columns: Vec::new(),
            },
            ..append(&table, "a")
        };
        refused(&engine.database, of(Vec::new())).await;
        refused(&engine.database, of(vec!["a".into()])).await;
        refused(&engine.database, of(vec!["a".into(), 1.into()])).await;
        let plain = TableSchema::new("plain").key("id", KeyKind::String);
        let plain = engine.table(plain).await;
        refused(&engine.database, append(&plain, "a")).await;
        assert_eq!(engine.database.last_sequence(), 0);
        assert_eq!(
            numbers(&write(&engine.database, [append(&table, "a")]).await),
            [1]
        );
    })
    .await;
}

#[tokio::test]
async fn answer_a_repeated_request_with_the_first_number() {
    on_both(async |engine| {
        let table = engine.table(messages()).await;
        let batch = || {
            WriteBatch::new().row(append(&table, "a")).request(RequestRecord {
                id: [1; 16],
                fingerprint: 1,
                reply: Bytes::new(),
            })
        };
        let first = engine.database.write(batch()).await.expect("a write");
        write(&engine.database, [append(&table, "a")]).await;
        let second = engine.database.write(batch()).await.expect("a replay");
        assert_eq!(second.replayed, Some(Bytes::new()));
        assert_eq!((numbers(&first), numbers(&second)), (vec![1], vec![1]));
        assert_eq!(second.rows[0].sequence, Some(first.sequence));
    })
    .await;
}

/// The numbers rise with the order in which the rows become visible: a reader that goes on after the highest number
/// it has seen misses none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rise_over_many_writers_deletes_and_restarts() {
    const WRITERS: usize = 8;
    const APPENDS: usize = 30;
    const CHATS: [&str; 2] = ["a", "b"];
    on_both(async |mut engine: Engine| {
        let mut seen: BTreeMap<&str, Vec<(u64, i64)>> = BTreeMap::new();
        for _ in 0..3 {
            let table = engine.table(messages()).await;
            let tasks: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (database, table) = (engine.database.clone(), table.clone());
                    tokio::spawn(appends(database, table, CHATS[writer % 2], APPENDS))
                })
                .collect();
            for (task, writer) in tasks.into_iter().zip(0..) {
                let given = task.await.expect("a task");
                let own: Vec<_> = given.iter().map(|(_, number)| *number).collect();
                assert!(own.is_sorted_by(|left, right| left < right), "{own:?}");
                seen.entry(CHATS[writer % 2]).or_default().extend(given);
            }
            drop(table);
            engine.reopen().await;
        }
        for (chat, mut given) in seen {
            given.sort_unstable();
            assert_eq!(given.len(), 3 * WRITERS / 2 * APPENDS);
            let rising = given.is_sorted_by(|left, right| left.1 < right.1);
            assert!(rising, "numbers of {chat} don't follow the sequence: {given:?}");
        }
    })
    .await;
}

/// Appends rows and deletes every third of them; gives sequence and number of each.
async fn appends(database: Database, table: Table, chat: &str, count: usize) -> Vec<(u64, i64)> {
    let mut given = Vec::new();
    for step in 0..count {
        let committed = write(&database, [append(&table, chat)]).await;
        let number = numbers(&committed)[0];
        given.push((committed.sequence, number));
        if step % 3 == 0 {
            let delete = RowOperation::Delete {
                key: key(chat, number),
            };
            write(&database, [RowWrite::new(&table, delete, Condition::none())]).await;
        }
    }
    given
}
