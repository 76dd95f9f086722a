//! Rows that don't fit one read.

use souk_storage::limits::MAX_READ_BYTES;
use souk_storage::{Comparison, Filter, KeyKind, PrimaryKey, RangeRequest, ReadOptions, TableSchema, Value};

use super::{add, oracle, put, simple};

const MEGABYTE: usize = 1 << 20;

fn text(fill: &str, bytes: usize) -> Value {
    Value::from(fill.repeat(bytes))
}

#[tokio::test]
async fn a_wide_row_comes_in_pieces() {
    let (database, table) = simple().await;
    put(&database, &table, 1, vec![("small".into(), 5.into())]).await;
    for column in 0..12 {
        let columns = vec![(format!("c{column:02}").into(), text("x", MEGABYTE))];
        add(&database, &table, 1, columns).await;
    }
    let key = PrimaryKey::integer(1);
    let snapshot = database.snapshot().await.expect("a snapshot");
    let whole = snapshot.get(&table, &key).await.expect("a read").expect("a row");
    assert_eq!(whole.columns().len(), 13);
    // The filter sees the row, whatever the piece.
    let mut options = ReadOptions::new().filter(Filter::column("small", Comparison::Equal, 5));
    let (mut pieces, mut sizes, mut units) = (Vec::new(), Vec::new(), 0);
    loop {
        let read = snapshot.read(&table, &key, &options).await.expect("a read");
        let piece = oracle::cells(&read.row.expect("a row"));
        let bytes = piece
            .iter()
            .map(|(name, cells)| name.len() + oracle::value_bytes(&cells[0].value));
        assert!(bytes.sum::<usize>() <= MAX_READ_BYTES);
        sizes.push(piece.len());
        units += read.consumed.read;
        pieces.extend(piece);
        match read.next_column {
            Some(next) => options = options.resume(next),
            None => break,
        }
    }
    assert_eq!(pieces, oracle::cells(&whole));
    assert_eq!(sizes, [3, 3, 3, 4], "the names count, too");
    // 12 MB, and a unit begun by each piece.
    assert_eq!(units, 12 * 256 + 4);
    // Ranges don't cut rows, nor does a read of few columns.
    let page = snapshot
        .range(&table, &RangeRequest::default())
        .await
        .expect("a page");
    assert_eq!((page.rows, page.next), (vec![whole], None));
    let few = ReadOptions::new().columns(["c03", "c11", "small"]);
    let read = snapshot.read(&table, &key, &few).await.expect("a read");
    assert_eq!(
        (read.row.expect("a row").columns().len(), read.next_column),
        (3, None)
    );
}

#[tokio::test]
async fn a_larger_column_comes_alone() {
    let (database, _) = simple().await;
    let schema = TableSchema::new("versions")
        .key("id", KeyKind::Integer)
        .max_versions(3);
    let table = database.create_table(schema).await.expect("a table");
    for fill in ["x", "y", "z"] {
        for column in ["a", "b"] {
            let version = souk_storage::ColumnChange::Put {
                column: column.to_owned(),
                value: text(fill, 2 * MEGABYTE),
                version: Some(now() + i64::from(fill.as_bytes()[0])),
            };
            let update = souk_storage::RowOperation::Update {
                key: PrimaryKey::integer(1),
                changes: vec![version],
            };
            let batch = souk_storage::WriteBatch::of(&table, update, souk_storage::Condition::none());
            database.write(batch).await.expect("a write");
        }
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let key = PrimaryKey::integer(1);
    let read = snapshot
        .read(&table, &key, &ReadOptions::new())
        .await
        .expect("a read");
    let row = read.row.expect("a row");
    assert_eq!((row.columns().len(), row.cells("a").len()), (1, 3));
    assert_eq!(read.next_column.as_deref(), Some("b"));
    let rest = ReadOptions::new().resume("b".to_owned());
    let read = snapshot.read(&table, &key, &rest).await.expect("a read");
    assert_eq!(
        (read.row.expect("a row").cells("b").len(), read.next_column),
        (3, None)
    );
    let newest = ReadOptions::new().max_versions(1);
    let read = snapshot.read(&table, &key, &newest).await.expect("a read");
    assert_eq!(read.row.expect("a row").get("a"), Some(&text("z", 2 * MEGABYTE)));
}

fn now() -> i64 {
    souk_storage::Clock::now(&souk_storage::SystemClock) / 1_000_000
}
