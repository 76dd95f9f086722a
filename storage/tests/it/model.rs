//! The database against an oracle: random batches, then every way of reading.

mod oracle;
mod random;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_storage::{
    Clock, ColumnSelection, Database, DatabaseOptions, Direction, IndexEntry, KeyBound, KeyKind, ManualClock,
    PrimaryKey, RangeRequest, ReadOptions, Row, SecondaryIndexSchema, Snapshot, Table, TableSchema, Value,
};

use self::oracle::{Entry, Oracle, Stored};

const START: i64 = 1_700_000_000_000_000_000;
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

fn schemas() -> [TableSchema; 2] {
    [
        TableSchema::new("products")
            .key("shop", KeyKind::String)
            .key("number", KeyKind::Integer)
            .max_versions(3)
            .index(SecondaryIndexSchema::new("by_color", ["color"]).include(["note"]))
            .index(SecondaryIndexSchema::new("by_number", ["number", "size"])),
        TableSchema::new("offers")
            .key("id", KeyKind::Binary)
            .max_versions(2)
            .time_to_live(Duration::from_millis(20))
            .index(SecondaryIndexSchema::new("by_size", ["size", "color"]).include(["note"]))
            .index(SecondaryIndexSchema::new("by_id", ["id"]).include(["color", "size"])),
    ]
}

fn options(clock: &Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock: clock.clone(),
        maintenance_interval: Duration::from_secs(86_400),
        ..DatabaseOptions::default()
    }
}

async fn tables(database: &Database) -> Vec<Table> {
    let mut tables = Vec::new();
    for schema in schemas() {
        tables.push(database.ensure_table(schema).await.expect("a table"));
    }
    tables
}

async fn open(directory: Option<&Path>, clock: &Arc<ManualClock>) -> Database {
    let database = match directory {
        Some(directory) => Database::open(directory, options(clock)).await,
        None => Database::in_memory(options(clock)).await,
    };
    database.expect("a database")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_like_the_oracle_in_memory() {
    acts_like_the_oracle(None, 3000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_like_the_oracle_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    acts_like_the_oracle(Some(directory.path()), 1000).await;
}

async fn acts_like_the_oracle(directory: Option<&Path>, batches: usize) {
    let mut random = crate::commits::random();
    let clock = Arc::new(ManualClock::new(START));
    let mut oracle = Oracle::default();
    let mut database = open(directory, &clock).await;
    let mut tables = tables(&database).await;
    for step in 0..batches {
        clock.set(clock.now() + random.i64(-1..6) * 700_000);
        let now = clock.now();
        let batch = random::batch(&mut random, &tables, now.div_euclid(1_000_000), |table, key| {
            Some(oracle.tables.get(&table.id().0)?.get(key)?.revision)
        });
        let expected = oracle.write(&batch, now);
        let found = database.write(batch.clone()).await;
        let found = found
            .map(|committed| (committed.sequence, committed.replayed))
            .map_err(|error| oracle::ending(&error));
        assert_eq!(found, expected, "step {step}: {batch:#?}");
        assert_eq!(database.last_sequence(), oracle.sequence());
        if step % 16 == 0 {
            let snapshot = database.snapshot().await.expect("a snapshot");
            for table in &tables {
                check_rows(&snapshot, table, &oracle, &mut random, now).await;
                check_indexes(&snapshot, table, &oracle, &mut random, now).await;
            }
        }
        if directory.is_some() && random.usize(0..batches) < 8 {
            database.close().await.expect("a close");
            drop(database);
            database = open(directory, &clock).await;
            tables = self::tables(&database).await;
            assert_eq!(database.last_sequence(), oracle.sequence());
        }
    }
    check_log(&database, &tables, &oracle, &mut random).await;
}

fn cells(row: &Row) -> oracle::Cells {
    let columns = row.columns().iter();
    let cells = columns.map(|(name, cells)| {
        assert!(cells.is_sorted_by(|left, right| left.version > right.version));
        let cells = cells.iter().map(|cell| (cell.version, cell.value.clone()));
        (name.to_owned(), cells.collect())
    });
    cells.collect()
}

fn stored(row: &Row) -> Stored {
    Stored {
        revision: row.revision,
        written: row.written,
        cells: cells(row),
    }
}

/// The row under a selection.
fn select(row: &Stored, table: &Table, selection: &ColumnSelection) -> Option<Stored> {
    let mut row = row.clone();
    if let ColumnSelection::Named(names) = selection {
        row.cells.retain(|name, _| names.contains(name));
        let has_key = table.schema().key.iter().any(|(name, _)| names.contains(name));
        if row.cells.is_empty() && !has_key {
            return None;
        }
    }
    Some(row)
}

/// Columns and filter; the rest is tested where reads are.
fn options_of_read(random: &mut Rng, table: &Table) -> ReadOptions {
    ReadOptions {
        columns: random::selection(random, table),
        filter: random.bool().then(|| random::filter(random, 0)),
        ..ReadOptions::default()
    }
}

async fn check_rows(snapshot: &Snapshot, table: &Table, oracle: &Oracle, random: &mut Rng, now: i64) {
    let rows = oracle.rows(table, now);
    let keys: Vec<_> = (0..8).map(|_| random::key(random, table)).collect();
    let many = snapshot.multi_get(table, &keys).await.expect("rows");
    for (key, found) in keys.iter().zip(many) {
        assert_eq!(found.as_ref().map(stored).as_ref(), rows.get(key), "{key:?}");
        let one = snapshot.get(table, key).await.expect("a row");
        assert_eq!(one, found);
        assert!(one.is_none_or(|row| row.key == *key));
        let options = options_of_read(random, table);
        let found = snapshot.read(table, key, &options).await;
        let expected = rows.get(key).and_then(|row| select(row, table, &options.columns));
        let expected = expected.filter(|row| {
            let passes = |filter| oracle::passes(filter, Some(row));
            options.filter.as_ref().is_none_or(passes)
        });
        let found = found.expect("a read").row;
        assert_eq!(found.as_ref().map(stored), expected);
    }
    for direction in DIRECTIONS {
        let request = RangeRequest {
            start: random::bound(random, table),
            end: random::bound(random, table),
            direction,
            limit: random.usize(0..4),
            bytes: if random.bool() { 0 } else { random.usize(1..200) },
            options: options_of_read(random, table),
        };
        let found = read_range(snapshot, table, request.clone()).await;
        let (low, high) = match direction {
            Direction::Forward => (&request.start, &request.end),
            Direction::Backward => (&request.end, &request.start),
        };
        let mut expected = Vec::new();
        for (key, row) in &rows {
            let inside = is_above(key, low) && !is_above(key, high);
            let row = select(row, table, &request.options.columns).filter(|_| inside);
            let passes = |row: &Stored| {
                let filter = request.options.filter.as_ref();
                filter.is_none_or(|filter| oracle::passes(filter, Some(row)))
            };
            expected.extend(row.filter(passes).map(|row| (key.clone(), row)));
        }
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert_eq!(found, expected, "{request:?}");
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

async fn read_range(
    snapshot: &Snapshot,
    table: &Table,
    mut request: RangeRequest,
) -> Vec<(PrimaryKey, Stored)> {
    let mut rows = Vec::new();
    loop {
        let page = snapshot.range(table, &request).await.expect("a page");
        assert!(request.limit == 0 || page.rows.len() <= request.limit);
        rows.extend(page.rows.iter().map(|row| (row.key.clone(), stored(row))));
        match page.next {
            Some(next) => request = request.resume(next),
            None => return rows,
        }
    }
}

async fn check_indexes(snapshot: &Snapshot, table: &Table, oracle: &Oracle, random: &mut Rng, now: i64) {
    for index in &table.schema().indexes {
        let entries = oracle.index(table, &index.name, now);
        let some = random.choice(&entries).map(|(values, ..)| values.clone());
        let mut prefix = some.unwrap_or_else(|| vec![random::value(random)]);
        prefix.truncate(random.usize(0..=prefix.len()));
        for direction in DIRECTIONS {
            let limit = random.usize(0..4);
            let found = read_index(snapshot, table, &index.name, &prefix, direction, limit).await;
            let begins = |entry: &&Entry| entry.0.starts_with(&prefix);
            let mut expected: Vec<_> = entries.iter().filter(begins).cloned().collect();
            if direction == Direction::Backward {
                expected.reverse();
            }
            assert_eq!(found, expected, "{} {prefix:?} {direction:?}", index.name);
        }
    }
}

async fn read_index(
    snapshot: &Snapshot,
    table: &Table,
    index: &str,
    prefix: &[Value],
    direction: Direction,
    limit: usize,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = snapshot.index_range(table, index, prefix, after.as_ref(), direction, limit);
        let page = page.await.expect("a page");
        assert!(limit == 0 || page.entries.len() <= limit);
        let entry = |entry: IndexEntry| (entry.values, entry.key, entry.included);
        entries.extend(page.entries.into_iter().map(entry));
        after = page.next;
        if after.is_none() {
            return entries;
        }
    }
}

/// The log is dense, tells what happened, and rebuilds the tables.
async fn check_log(database: &Database, tables: &[Table], oracle: &Oracle, random: &mut Rng) {
    let snapshot = database.snapshot().await.expect("a snapshot");
    assert_eq!(snapshot.oldest_change().await.expect("a sequence"), 1);
    let mut rebuilt: BTreeMap<u32, BTreeMap<PrimaryKey, Stored>> = BTreeMap::new();
    let mut sequence = 0;
    loop {
        let changes = snapshot
            .changes(sequence, random.usize(0..50))
            .await
            .expect("changes");
        if changes.is_empty() {
            break;
        }
        for change in changes {
            sequence += 1;
            assert_eq!(change.sequence, sequence);
            let (time, logged) = &oracle.log[usize::try_from(sequence).expect("a place") - 1];
            let found: Vec<_> = change
                .rows
                .iter()
                .map(|row| {
                    (
                        row.table.0,
                        row.key.clone(),
                        row.kind,
                        row.row.as_ref().map(stored),
                    )
                })
                .collect();
            assert_eq!((change.time, &found), (*time, logged));
            for (table, key, _, row) in found {
                let rows = rebuilt.entry(table).or_default();
                match row {
                    Some(row) => rows.insert(key, row),
                    None => rows.remove(&key),
                };
            }
        }
    }
    assert_eq!(sequence, oracle.sequence());
    for table in tables {
        assert_eq!(rebuilt.get(&table.id().0), oracle.tables.get(&table.id().0));
    }
}
