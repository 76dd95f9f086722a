//! Filling indexes while the table is written: in the end they hold exactly what the rows say.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastrand::Rng;
use souk_storage::{Durability, IndexEntry, KeyBound, RangeRequest};

use super::*;
use crate::commits::random;

const ROWS: i64 = 3000;
const WRITERS: usize = 4;
/// Writes of all writers before the next index is created, and after it is ready.
const WRITES: u64 = 50;

/// What an index must hold: value, row, included columns.
type Held = Vec<(Value, i64, Vec<(String, Value)>)>;

fn operation(random: &mut Rng) -> RowOperation {
    // Some rows are written all the time, so that steps meet writers.
    let id = if random.bool() {
        random.i64(0..20)
    } else {
        random.i64(0..ROWS + 500)
    };
    match random.u8(0..10) {
        0 => RowOperation::Delete { key: key(id) },
        1..4 => RowOperation::Put {
            key: key(id),
            columns: vec![
                ("size".into(), random.i64(0..9).into()),
                (
                    "color".into(),
                    (*random.choice(&["red", "blue"]).expect("one")).into(),
                ),
            ],
        },
        4 => RowOperation::Update {
            key: key(id),
            changes: vec![ColumnChange::DeleteAll {
                column: "size".to_owned(),
            }],
        },
        5..7 => set(id, "color", random.i64(0..3), None),
        _ => set(id, "size", random.i64(0..9), None),
    }
}

async fn write_until(store: Arc<Store>, mut random: Rng, stop: Arc<AtomicBool>, written: Arc<AtomicU64>) {
    while !stop.load(Ordering::Relaxed) {
        let mut batch = WriteBatch::new().durability(Durability::Buffered);
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..random.usize(1..5) {
            let operation = operation(&mut random);
            if ids.insert(operation.key().cloned()) {
                batch = batch.write(&store.table, operation, Condition::none());
            }
        }
        store.database.write(batch).await.expect("a write");
        written.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

/// Lets the writers go on for a while.
async fn more(written: &AtomicU64) {
    let until = written.load(Ordering::Relaxed) + WRITES;
    while written.load(Ordering::Relaxed) < until {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fills_indexes_under_writers() {
    let mut random = random();
    let base = schema().time_to_live(Duration::from_secs(1_000_000));
    for store in stores(&base).await {
        let store = Arc::new(store);
        let ids: Vec<i64> = (0..ROWS).collect();
        for ids in ids.chunks(200) {
            let mut batch = WriteBatch::new().durability(Durability::Buffered);
            for id in ids {
                batch = batch.write(&store.table, put(*id, "size", id % 9), Condition::none());
            }
            store.database.write(batch).await.expect("a write");
        }
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                tokio::spawn(write_until(
                    store.clone(),
                    random.fork(),
                    stop.clone(),
                    written.clone(),
                ))
            })
            .collect();
        let (database, table) = (&store.database, &store.table);
        for round in 0..4 {
            more(&written).await;
            let index = SecondaryIndexSchema::new("i", ["size"]).include(["color"]);
            database
                .create_index(table, index, Backfill::Existing)
                .await
                .expect("an index");
            if round == 1 {
                // Dropped half-way, and another of that name.
                more(&written).await;
                database.drop_index(table, "i").await.expect("a drop");
                let index = SecondaryIndexSchema::new("i", ["size"]).include(["color"]);
                database
                    .create_index(table, index, Backfill::Existing)
                    .await
                    .expect("an index");
            }
            database.index_ready(table, "i").await.expect("a ready index");
            // Under the writers still: any snapshot agrees with itself.
            agrees(database, table, "i", "size", &["color"]).await;
            more(&written).await;
            agrees(database, table, "i", "size", &["color"]).await;
            database.drop_index(table, "i").await.expect("a drop");
        }
        let index = SecondaryIndexSchema::new("j", ["color"]).include(["size"]);
        database
            .create_index(table, index, Backfill::Existing)
            .await
            .expect("an index");
        database.jobs_done().await.expect("no jobs");
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.expect("a writer");
        }
        agrees(database, table, "j", "color", &["size"]).await;
        agrees(database, table, "by_size", "size", &[]).await;
        println!("{} batches", written.load(Ordering::Relaxed));
    }
}

/// Compares an index with the rows of the same snapshot; gives the number of its entries.
pub(super) async fn agrees(
    database: &Database,
    table: &Table,
    index: &str,
    column: &str,
    included: &[&str],
) -> usize {
    let snapshot = database.snapshot().await.expect("a snapshot");
    let mut expected = Held::new();
    let mut request = RangeRequest::all(Direction::Forward);
    loop {
        let page = snapshot.range(table, &request).await.expect("a page");
        for row in page.rows {
            let Some(value) = row.get(column) else {
                continue;
            };
            let included = included.iter();
            let included = included.filter_map(|name| Some(((*name).to_owned(), row.get(name)?.clone())));
            let id = row.key.values()[0].as_integer().expect("an id");
            expected.push((value.clone(), id, included.collect()));
        }
        let Some(next) = page.next else {
            break;
        };
        request.start = KeyBound::Before(next);
    }
    expected.sort_by_key(|(_, id, _)| *id);
    let mut found = Held::new();
    let mut after = None;
    loop {
        let page = snapshot
            .index_range(table, index, &[], after.as_ref(), Direction::Forward, 0)
            .await
            .expect("a page");
        found.extend(page.entries.into_iter().map(|entry: IndexEntry| {
            let id = entry.key.values()[0].as_integer().expect("an id");
            (entry.values[0].clone(), id, entry.included)
        }));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort_by_key(|(_, id, _)| *id);
    assert_eq!(found.len(), expected.len());
    assert_eq!(found, expected);
    found.len()
}
