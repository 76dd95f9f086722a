//! Ranges of more rows than are read at a time.

use souk_storage::limits::MAX_SCANNED_ROWS;
use souk_storage::{
    ColumnName, Condition, Direction, Durability, Filter, KeyKind, PrimaryKey, RangeRequest, ReadOptions,
    Row, RowOperation, Snapshot, Table, TableSchema, Value, WriteBatch,
};

use crate::engines::on_both;

/// More than a page, and no multiple of what is read at a time.
const ROWS: i64 = 5_130;

/// Rows that follow each other have different columns.
fn columns(id: i64) -> Vec<(ColumnName, Value)> {
    let mut columns = vec![("number".into(), Value::Integer(id))];
    let other = if id % 3 == 0 { "fizz" } else { "none" };
    columns.push((other.into(), Value::from(id.to_string())));
    if id % 7 == 0 {
        columns.insert(0, ("a".into(), Value::Boolean(true)));
    }
    columns
}

fn assert_is(row: &Row, id: i64) {
    assert_eq!(row.key, PrimaryKey::integer(id));
    let found: Vec<_> = row
        .columns()
        .newest()
        .map(|(name, value)| (ColumnName::new(name), value.clone()))
        .collect();
    let mut expected = columns(id);
    expected.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(found, expected);
}

/// How many rows each page has; their rows must be these.
async fn pages(
    snapshot: &Snapshot,
    table: &Table,
    mut request: RangeRequest,
    expected: &[i64],
) -> Vec<usize> {
    let mut counts = Vec::new();
    let mut expected = expected.iter();
    loop {
        let page = snapshot.range(table, &request).await.expect("a page");
        counts.push(page.rows.len());
        for row in &page.rows {
            assert_is(row, *expected.next().expect("no more rows"));
        }
        match page.next {
            Some(next) => request = request.resume(next),
            None => break,
        }
    }
    assert_eq!(expected.next(), None, "all rows");
    counts
}

#[tokio::test]
async fn pages_end_where_they_are_asked_to() {
    on_both(async |engine| {
        let table = engine
            .table(TableSchema::new("long").key("id", KeyKind::Integer))
            .await;
        let ids: Vec<_> = (0..ROWS).collect();
        for ids in ids.chunks(200) {
            let batch = ids.iter().fold(WriteBatch::new(), |batch, id| {
                let (key, columns) = (PrimaryKey::integer(*id), columns(*id));
                batch.write(&table, RowOperation::Put { key, columns }, Condition::none())
            });
            let batch = batch.durability(Durability::Buffered);
            engine.database.write(batch).await.expect("a write");
        }
        let snapshot = engine.database.snapshot().await.expect("a snapshot");
        for direction in [Direction::Forward, Direction::Backward] {
            let mut ids = ids.clone();
            if direction == Direction::Backward {
                ids.reverse();
            }
            for limit in [499, 500, 501, 1000, 1300, MAX_SCANNED_ROWS] {
                let request = RangeRequest::all(direction).limit(limit);
                let counts = pages(&snapshot, &table, request, &ids).await;
                let expected: Vec<_> = ids.chunks(limit).map(<[i64]>::len).collect();
                assert_eq!(counts, expected, "{limit} {direction:?}");
            }
            let mut bounded = RangeRequest::all(direction);
            bounded.bytes = 100_000;
            let counts = pages(&snapshot, &table, bounded, &ids).await;
            let (last, full) = counts.split_last().expect("a page");
            assert!(
                full.iter()
                    .all(|count| count.abs_diff(full[0]) < 100 && count > last)
            );
            assert!(full[0] > 1000, "{counts:?}");

            ids.retain(|id| id % 3 == 0);
            for limit in [499, 500, 501, 1300] {
                let options = ReadOptions::new().filter(Filter::exists("fizz"));
                let request = RangeRequest::all(direction).limit(limit).options(options);
                let counts = pages(&snapshot, &table, request, &ids).await;
                let expected: Vec<_> = ids.chunks(limit).map(<[i64]>::len).collect();
                assert_eq!(counts, expected, "{limit} {direction:?}, filtered");
            }
        }
    })
    .await;
}
