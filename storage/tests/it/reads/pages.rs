//! Rows and ranges of rows.

use fastrand::Rng;
use souk_storage::{
    ColumnPage, Direction, Error, Filter, KeyBound, PrimaryKey, RangeRequest, ReadOptions, Row, Snapshot,
    Table, TimeRange,
};

use super::oracle::{self, Cells};
use super::{MOST_PAGES, START, Store, put, random, simple};

const MILLIS: i64 = START / 1_000_000;

async fn rows(snapshot: &Snapshot, table: &Table) -> Vec<Row> {
    let all = snapshot
        .range(table, &RangeRequest::default())
        .await
        .expect("a page");
    assert_eq!(all.next, None);
    all.rows
}

#[tokio::test]
async fn reads_what_the_options_ask() {
    let mut random = crate::commits::random();
    let store = Store::random(&mut random).await;
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    for table in &store.tables {
        let all = rows(&snapshot, table).await;
        assert!(all.len() > 20, "there are rows to read");
        for _ in 0..3000 {
            let key = random::key(&mut random, table);
            let row = all.iter().find(|row| row.key == key);
            let whole = snapshot.get(table, &key).await.expect("a read");
            assert_eq!(whole.as_ref(), row);
            let options = random::options(&mut random, table, MILLIS);
            let read = snapshot.read(table, &key, &options).await.expect("a read");
            let expected = oracle::read(&table.schema(), row, &options);
            let found = read.row.as_ref().map(oracle::cells);
            assert_eq!(found, expected.columns, "{key:?} {options:?} of {row:?}");
            assert_eq!(
                read.next_column, expected.next_column,
                "{key:?} {options:?} of {row:?}"
            );
            assert_eq!(
                read.consumed,
                oracle::units(expected.bytes),
                "{key:?} {options:?} of {row:?}"
            );
            if let (Some(read), Some(row)) = (read.row, row) {
                assert_eq!(
                    (&read.key, read.revision, read.written),
                    (&row.key, row.revision, row.written)
                );
            }
        }
    }
}

fn bound(random: &mut Rng, table: &Table) -> KeyBound {
    let mut key = random::key(random, table).into_values();
    key.truncate(random.usize(1..=key.len()));
    let key = PrimaryKey::new(key).expect("a key");
    match random.u8(0..6) {
        0 | 1 => KeyBound::Min,
        2 | 3 => KeyBound::Max,
        4 => KeyBound::Before(key),
        _ => KeyBound::After(key),
    }
}

/// Whether a key lies above a cut.
fn is_above(key: &PrimaryKey, cut: &KeyBound) -> bool {
    let first = |prefix: &PrimaryKey| key.values()[..prefix.values().len()].cmp(prefix.values());
    match cut {
        KeyBound::Min => true,
        KeyBound::Max => false,
        KeyBound::Before(prefix) => first(prefix).is_ge(),
        KeyBound::After(prefix) => first(prefix).is_gt(),
    }
}

/// The visible rows of a request without its options, in its order.
fn inside<'a>(all: &'a [Row], request: &RangeRequest) -> Vec<&'a Row> {
    let (low, high) = match request.direction {
        Direction::Forward => (&request.start, &request.end),
        Direction::Backward => (&request.end, &request.start),
    };
    let rows = all.iter();
    let mut rows: Vec<_> = rows
        .filter(|row| is_above(&row.key, low) && !is_above(&row.key, high))
        .collect();
    if request.direction == Direction::Backward {
        rows.reverse();
    }
    rows
}

#[tokio::test]
async fn pages_through_ranges_with_options() {
    let mut random = crate::commits::random();
    let store = Store::random(&mut random).await;
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    let mut empty_pages = 0;
    for table in &store.tables {
        let schema = table.schema();
        let all = rows(&snapshot, table).await;
        for _ in 0..600 {
            let direction = *random
                .choice(&[Direction::Forward, Direction::Backward])
                .expect("one");
            let mut request = RangeRequest {
                start: bound(&mut random, table),
                end: bound(&mut random, table),
                direction,
                limit: random.usize(0..6),
                bytes: if random.bool() { 0 } else { random.usize(1..5000) },
                returned_bytes: if random.bool() { 0 } else { random.usize(1..5000) },
                options: random::options(&mut random, table, MILLIS),
            };
            let read = |row: &Row| oracle::read(&schema, Some(row), &request.options);
            let expected: Vec<_> = inside(&all, &request)
                .into_iter()
                .filter_map(|row| Some((row.key.clone(), read(row).columns?)))
                .collect();
            let mut found: Vec<(PrimaryKey, Cells)> = Vec::new();
            let first = request.clone();
            let mut pages = 0..MOST_PAGES;
            loop {
                assert!(pages.next().is_some(), "the pages don't end: {first:?}");
                let page = snapshot.range(table, &request).await.expect("a page");
                assert!(
                    request.limit == 0 || page.rows.len() <= request.limit,
                    "{request:?}"
                );
                // The rows from the start of the page to the start of the next.
                let mut scanned = RangeRequest {
                    options: ReadOptions::default(),
                    ..request.clone()
                };
                if let Some(next) = &page.next {
                    scanned.end = match direction {
                        Direction::Forward => KeyBound::Before(next.clone()),
                        Direction::Backward => KeyBound::After(next.clone()),
                    };
                }
                let scanned = inside(&all, &scanned);
                let bytes = scanned.into_iter().map(|row| {
                    let read = oracle::read(&schema, Some(row), &request.options);
                    read.bytes
                });
                assert_eq!(page.consumed, oracle::units(bytes.sum()), "{request:?}");
                empty_pages += usize::from(page.rows.is_empty() && page.next.is_some());
                found.extend(page.rows.iter().map(|row| (row.key.clone(), oracle::cells(row))));
                match page.next {
                    Some(next) => request = request.resume(next),
                    None => break,
                }
            }
            assert_eq!(found, expected, "{first:?}");
        }
    }
    assert!(empty_pages > 0, "some page is empty and has a next key");
}

#[tokio::test]
async fn a_window_goes_through_a_row_column_by_column() {
    let mut random = crate::commits::random();
    let store = Store::random(&mut random).await;
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    for table in &store.tables {
        for row in rows(&snapshot, table).await {
            let mut options = random::options(&mut random, table, MILLIS);
            options.column_page = None;
            let whole = snapshot.read(table, &row.key, &options).await.expect("a read");
            options.column_page = Some(ColumnPage {
                limit: random.usize(1..4),
                offset: 0,
            });
            let mut pieces: Option<Cells> = None;
            loop {
                let read = snapshot.read(table, &row.key, &options).await.expect("a read");
                if let Some(row) = &read.row {
                    pieces.get_or_insert_default().extend(oracle::cells(row));
                }
                match read.next_column {
                    Some(next) => options = options.resume(next),
                    None => break,
                }
            }
            assert_eq!(pieces, whole.row.as_ref().map(oracle::cells), "{options:?}");
            assert_eq!(whole.next_column, None);
        }
    }
}

#[tokio::test]
async fn refuses_options_that_can_not_be_right() {
    let (database, table) = simple().await;
    put(&database, &table, 1, vec![("a".into(), 1.into())]).await;
    let snapshot = database.snapshot().await.expect("a snapshot");
    let names = |count: usize| (0..count).map(|number| format!("c{number}"));
    let most = souk_storage::limits::MAX_SELECTED_COLUMNS;
    let wide = Filter::And(vec![Filter::exists("a"); souk_storage::limits::MAX_FILTER_NODES]);
    let refused = [
        (ReadOptions::new().columns(names(0)), "names no column"),
        (
            ReadOptions::new().columns(names(most + 1)),
            "MAX_SELECTED_COLUMNS is 1024, but 1025",
        ),
        (ReadOptions::new().max_versions(0), "max_versions is 0"),
        (
            ReadOptions::new().time(TimeRange { from: 5, to: 5 }),
            "is empty: from 5",
        ),
        (ReadOptions::new().time(TimeRange::exact(i64::MAX)), "is empty"),
        (
            ReadOptions::new().start_column("b").end_column("b"),
            "is empty: from \"b\"",
        ),
        (ReadOptions::new().page(0, 1), "limit is 0"),
        (ReadOptions::new().filter(wide), "MAX_FILTER_NODES is 64, but 65"),
        (
            ReadOptions::new().filter(Filter::column("a", souk_storage::Comparison::Less, f64::NAN)),
            "NaN",
        ),
    ];
    for (options, why) in refused {
        let key = PrimaryKey::integer(1);
        let read = snapshot.read(&table, &key, &options).await.expect_err(why);
        let request = RangeRequest::default().options(options.clone());
        let range = snapshot.range(&table, &request).await.expect_err(why);
        let batch = [souk_storage::TableKeys::new(&table, vec![key]).options(options)];
        let batch = snapshot.batch_get(&batch).await.expect_err(why);
        for error in [read, range, batch] {
            assert!(error.to_string().contains(why), "{error}");
            assert!(
                matches!(error, Error::Invalid { .. } | Error::LimitExceeded { .. }),
                "{error:?}"
            );
            assert!(!error.retryable());
        }
    }
    let most = ReadOptions::new().columns(names(most).chain(["a".to_owned()]).skip(1));
    let read = snapshot
        .read(&table, &PrimaryKey::integer(1), &most)
        .await
        .expect("a read");
    assert_eq!(read.row.expect("a row").columns().len(), 1);
}
