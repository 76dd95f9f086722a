use super::MAX_ROW_BYTES;
use crate::batch::{CellPut, Condition, RowOperation, WriteBatch};
use crate::catalog::Table;
use crate::clock::{Clock as _, SystemClock};
use crate::database::Database;
use crate::key;
use crate::options::DatabaseOptions;
use crate::read::Snapshot;
use crate::schema::{KeyKind, TableSchema};
use crate::tables::TableUpdate;
use crate::value::{PrimaryKey, Value};

async fn table_of(database: &Database) -> Table {
    let schema = TableSchema::new("t").key("id", KeyKind::Integer);
    database.create_table(schema).await.expect("a table")
}

async fn write(database: &Database, table: &Table, operation: RowOperation) {
    let batch = WriteBatch::of(table, operation, Condition::none()).durability(souk_kv::Durability::Buffered);
    database.write(batch).await.expect("a write");
}

fn put(id: i64, text: &str) -> RowOperation {
    RowOperation::Put {
        key: PrimaryKey::integer(id),
        columns: vec![("text".into(), text.into())],
    }
}

async fn text(snapshot: &Snapshot, table: &Table) -> Option<String> {
    let row = snapshot
        .get(table, &PrimaryKey::integer(1))
        .await
        .expect("a read")?;
    row.get("text").and_then(Value::as_str).map(str::to_owned)
}

fn is_cached(snapshot: &Snapshot, table: &Table) -> bool {
    let key = PrimaryKey::integer(1);
    let stored = key::row(table.id(), &key);
    let cache = &snapshot.shared.row_cache;
    cache.get(&*snapshot.kv, &stored, &key, 1).is_some()
}

async fn keeps_a_row_until_it_is_written(database: Database) {
    let table = table_of(&database).await;
    write(&database, &table, put(1, "first")).await;
    let first = database.snapshot().await.expect("a snapshot");
    assert!(!is_cached(&first, &table));
    assert_eq!(text(&first, &table).await.as_deref(), Some("first"));
    assert!(is_cached(&first, &table));

    write(&database, &table, put(2, "another")).await;
    let another = database.snapshot().await.expect("a snapshot");
    assert!(is_cached(&another, &table), "only another row was written");

    write(&database, &table, put(1, "second")).await;
    let second = database.snapshot().await.expect("a snapshot");
    assert!(!is_cached(&second, &table));
    assert_eq!(text(&second, &table).await.as_deref(), Some("second"));
    assert!(is_cached(&second, &table));
    // Cuts from before don't see it, and don't put theirs in its place.
    for before in [&first, &another] {
        assert_eq!(text(before, &table).await.as_deref(), Some("first"));
    }
    assert!(is_cached(&second, &table));

    let key = PrimaryKey::integer(1);
    write(&database, &table, RowOperation::Delete { key }).await;
    let deleted = database.snapshot().await.expect("a snapshot");
    assert_eq!(text(&deleted, &table).await, None);
    assert_eq!(text(&second, &table).await.as_deref(), Some("second"));
}

#[tokio::test]
async fn keeps_a_row_until_it_is_written_in_memory() {
    let database = Database::in_memory(DatabaseOptions::default()).await;
    keeps_a_row_until_it_is_written(database.expect("a database")).await;
}

#[tokio::test]
async fn keeps_a_row_until_it_is_written_on_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::open(directory.path(), DatabaseOptions::default()).await;
    keeps_a_row_until_it_is_written(database.expect("a database")).await;
}

#[tokio::test]
async fn keeps_rows_with_the_versions_that_a_table_has_now() {
    let database = Database::in_memory(DatabaseOptions::default())
        .await
        .expect("a database");
    let schema = TableSchema::new("t").key("id", KeyKind::Integer);
    let schema = schema.max_versions(2);
    let table = database.create_table(schema).await.expect("a table");
    let cell = |version| CellPut {
        column: "text".to_owned(),
        value: "a version".into(),
        version,
    };
    let key = PrimaryKey::integer(1);
    let now = SystemClock.now() / 1_000_000;
    let cells = vec![cell(Some(now)), cell(Some(now - 1))];
    write(&database, &table, RowOperation::PutCells { key, cells }).await;
    let snapshot = database.snapshot().await.expect("a snapshot");
    let versions = async || {
        let row = snapshot
            .get(&table, &PrimaryKey::integer(1))
            .await
            .expect("a read");
        row.map(|row| row.cells("text").len())
    };
    assert_eq!(versions().await, Some(2));
    let fewer = TableUpdate::new().max_versions(1);
    database.update_table(&table, fewer).await.expect("an update");
    assert_eq!(versions().await, Some(1));
}

/// Whichever rows are cached, a page has as many as without them.
#[tokio::test]
async fn pages_of_cached_rows_and_others_end_at_their_bytes() {
    const ROWS: i64 = 5;
    let database = Database::in_memory(DatabaseOptions::default())
        .await
        .expect("a database");
    let table = table_of(&database).await;
    for id in 0..ROWS {
        // The second isn't there.
        if id != 1 {
            let text = "x".repeat([40, 0, 5, 90, 1][usize::try_from(id).expect("a place")]);
            write(&database, &table, put(id, &text)).await;
        }
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let keys: Vec<_> = (0..ROWS).map(PrimaryKey::integer).collect();
    let all = snapshot
        .multi_get_within(&table, &keys, usize::MAX)
        .await
        .expect("a read");
    assert_eq!(all.iter().filter(|(row, _)| row.is_some()).count(), 4);
    let total: usize = all.iter().map(|(_, bytes)| bytes).sum();
    for cached in 0..1 << ROWS {
        for bytes_max in 0..=total + 1 {
            snapshot.shared.row_cache.rows.clear();
            for (place, key) in keys.iter().enumerate() {
                if cached & (1 << place) != 0 {
                    snapshot.get(&table, key).await.expect("a read");
                }
            }
            let page = snapshot
                .multi_get_within(&table, &keys, bytes_max)
                .await
                .expect("a read");
            let (mut sum, mut rows) = (0, 0);
            while rows < all.len() && (rows == 0 || sum + all[rows].1 <= bytes_max) {
                sum += all[rows].1;
                rows += 1;
            }
            if all[0].1 > bytes_max {
                rows = 1;
            }
            assert_eq!(page, all[..rows], "cached {cached:b}, {bytes_max} bytes");
        }
    }
}

#[tokio::test]
async fn keeps_no_large_rows() {
    let database = Database::in_memory(DatabaseOptions::default())
        .await
        .expect("a database");
    let table = table_of(&database).await;
    for (bytes, cached) in [(MAX_ROW_BYTES / 2, true), (MAX_ROW_BYTES, false)] {
        write(&database, &table, put(1, &"x".repeat(bytes))).await;
        let snapshot = database.snapshot().await.expect("a snapshot");
        assert_eq!(text(&snapshot, &table).await.map(|text| text.len()), Some(bytes));
        assert_eq!(is_cached(&snapshot, &table), cached, "{bytes} bytes");
    }
}

#[tokio::test]
async fn takes_no_more_than_its_bytes() {
    let mut options = DatabaseOptions::default();
    options.fjall.memory_bytes = 16 << 20;
    let database = Database::in_memory(options).await.expect("a database");
    let table = table_of(&database).await;
    let long = "x".repeat(4_000);
    for id in 0..1_000 {
        write(&database, &table, put(id, &long)).await;
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    for id in 0..1_000 {
        let row = snapshot
            .get(&table, &PrimaryKey::integer(id))
            .await
            .expect("a read");
        assert!(row.is_some());
    }
    let rows = &database.shared.row_cache.rows;
    assert!(rows.weight() <= 1 << 20, "{} bytes", rows.weight());
    assert!(
        (100..=260).contains(&rows.len()),
        "{} rows of 4,000 bytes",
        rows.len()
    );
}
