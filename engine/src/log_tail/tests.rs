use std::sync::Arc;

use souk_storage::{
    Condition, Database, DatabaseOptions, KeyKind, PrimaryKey, RowOperation, Table, TableSchema, Value,
    WriteBatch,
};

use super::{LogTail, WINDOW_BYTES};

async fn table(database: &Database, name: &str) -> Table {
    let schema = TableSchema::new(name).key("id", KeyKind::Integer);
    database.ensure_table(schema).await.expect("a table")
}

async fn put(database: &Database, table: &Table, id: i64, bytes: usize) {
    let operation = RowOperation::Put {
        key: PrimaryKey::integer(id),
        columns: vec![("text".into(), Value::from("x".repeat(bytes)))],
    };
    let batch = WriteBatch::of(table, operation, Condition::none());
    database.write(batch).await.expect("written");
}

/// All sequences behind a position with the number of rows of the table in each.
async fn read(tail: &LogTail, table: &Table, mut position: u64) -> Vec<(u64, usize)> {
    let mut all = Vec::new();
    while let Some(block) = tail.read(position).await.expect("changes") {
        for entry in block.behind(position) {
            let change = entry.change_of(table.id()).expect("a change");
            assert!(change.rows.iter().all(|row| row.table == table.id()));
            all.push((change.sequence, change.rows.len()));
        }
        position = block.last();
    }
    all
}

#[tokio::test]
async fn everybody_reads_every_change_once_wherever_he_stands() {
    let database = Database::in_memory(DatabaseOptions::default())
        .await
        .expect("a store");
    let (ones, others) = (table(&database, "ones").await, table(&database, "others").await);
    let tail = LogTail::new(database.clone());
    assert!(tail.read(0).await.expect("read").is_none());
    for id in 0..2_500 {
        put(&database, if id % 3 == 0 { &ones } else { &others }, id, 1).await;
    }
    let first = database.last_sequence() - 2_499;
    let expected = |from: u64, rest: u64| -> Vec<(u64, usize)> {
        let last = database.last_sequence();
        (from + 1..=last)
            .map(|sequence| (sequence, usize::from((sequence - first) % 3 == rest)))
            .collect()
    };
    let of_others = |from: u64| -> Vec<(u64, usize)> {
        let mut all = expected(from, 0);
        all.iter_mut().for_each(|(_, rows)| *rows = 1 - *rows);
        all
    };
    // The first one in front of all others makes a window, which the one behind it doesn't reach any more.
    assert_eq!(
        read(&tail, &ones, first + 1_999).await,
        expected(first + 1_999, 0)
    );
    assert_eq!(read(&tail, &ones, first).await, expected(first, 0));
    assert_eq!(
        read(&tail, &others, first + 2_100).await,
        of_others(first + 2_100)
    );
    assert_eq!(read(&tail, &others, first + 7).await, of_others(first + 7));
}

#[tokio::test]
async fn what_one_has_read_others_find() {
    let database = Database::in_memory(DatabaseOptions::default())
        .await
        .expect("a store");
    let (ones, others) = (table(&database, "ones").await, table(&database, "others").await);
    for id in 0..10 {
        put(&database, if id % 2 == 0 { &ones } else { &others }, id, 1).await;
    }
    let from = database.last_sequence() - 10;
    let tail = LogTail::new(database);
    let block = tail.read(from).await.expect("read").expect("changes");
    let same = tail.read(from + 3).await.expect("read").expect("changes");
    assert!(Arc::ptr_eq(&block, &same));
    let rows = |table: &Table| {
        let changes = same.behind(from + 3).iter();
        let rows = changes.map(|entry| entry.change_of(table.id()).expect("a change").rows.len());
        rows.collect::<Vec<_>>()
    };
    assert_eq!(rows(&ones), [0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(rows(&others), [1, 0, 1, 0, 1, 0, 1]);
}

#[tokio::test]
async fn the_window_is_bounded_and_the_slow_go_on_without_it() {
    let database = Database::in_memory(DatabaseOptions::default())
        .await
        .expect("a store");
    let ones = table(&database, "ones").await;
    let tail = LogTail::new(database.clone());
    let first = database.last_sequence();
    let mut position = first;
    for id in 0..40 {
        put(&database, &ones, id, 1 << 20).await;
        let block = tail.read(position).await.expect("read").expect("a change");
        position = block.last();
        let window = tail.window.lock();
        assert!(window.bytes <= WINDOW_BYTES, "{} bytes", window.bytes);
        let bytes: usize = window.blocks.iter().map(|block| block.bytes).sum();
        assert_eq!(window.bytes, bytes);
    }
    assert!(tail.window.lock().blocks.len() < 20);
    assert_eq!(read(&tail, &ones, first).await.len(), 40);
}
