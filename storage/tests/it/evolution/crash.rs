//! Ends the process while tables change and jobs run, again and again: what was begun is finished after each start,
//! and nothing is left over that no table or index has.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use fastrand::Rng;
use souk_kv::{FjallKv, FjallOptions, Kv, Scan, Space};
use souk_storage::{Durability, RangeRequest};

use super::*;
use crate::commits::random;

/// Tells the worker where to work.
const DIRECTORY: &str = "SOUK_EVOLUTION_DIRECTORY";
/// Begins a line of the worker that tells of a change of the tables.
const CHANGED: &str = "changed ";
const ROUNDS: usize = 8;
const ROWS: i64 = 2_000;
const INDEXES: [(&str, &str); 2] = [("by_color", "color"), ("by_weight", "weight")];

fn options() -> DatabaseOptions {
    DatabaseOptions {
        fjall: FjallOptions {
            memory_bytes: 16 << 20,
            ..FjallOptions::default()
        },
        ..DatabaseOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finishes_what_was_begun_when_it_is_killed() {
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..ROUNDS {
        work_until_killed(directory.path(), random.usize(1..12), random.u64(..));
        let database = Database::open(directory.path(), options())
            .await
            .expect("a database");
        let unfinished = database.jobs();
        database.jobs_done().await.expect("no jobs");
        let mut entries = 0;
        let mut rows = 0;
        for table in database.tables() {
            let held = count(&database, &table).await;
            rows += held;
            if table.schema().time_to_live.is_some() {
                entries += held;
            }
            for index in &table.schema().indexes {
                assert_eq!(
                    table.index_state(&index.name).expect("a state"),
                    SecondaryIndexState::Ready
                );
                let column = &index.columns[0];
                entries += filling::agrees(&database, &table, &index.name, column, &[]).await;
            }
        }
        println!("round {round}: {rows} rows, {entries} entries, unfinished {unfinished:?}");
        database.close().await.expect("a close");
        drop(database);
        let store = FjallKv::open(directory.path(), &options().fjall)
            .await
            .expect("a store");
        assert_eq!(
            stored(&store, Space::Rows).await,
            rows,
            "rows are left over or lost"
        );
        assert_eq!(
            stored(&store, Space::Index).await,
            entries,
            "entries are left over or lost"
        );
        store.close().await.expect("a close");
    }
}

/// How many rows a table has.
async fn count(database: &Database, table: &Table) -> usize {
    let snapshot = database.snapshot().await.expect("a snapshot");
    let mut request = RangeRequest::all(Direction::Forward);
    let mut rows = 0;
    loop {
        let page = snapshot.range(table, &request).await.expect("a page");
        rows += page.rows.len();
        let Some(next) = page.next else {
            return rows;
        };
        request = request.resume(next);
    }
}

/// How many keys a space has.
async fn stored(store: &FjallKv, space: Space) -> usize {
    let snapshot = store.snapshot().await.expect("a snapshot");
    let scan = Scan {
        space,
        low: Bytes::new(),
        high: Bytes::from_static(&[0xff; 16]),
        direction: Direction::Forward,
        entries: usize::MAX,
        bytes: usize::MAX,
    };
    snapshot.scan(scan).await.expect("a page").entries.len()
}

/// Runs the worker until it has changed its tables so often, then kills it.
fn work_until_killed(directory: &Path, until: usize, seed: u64) {
    let mut worker = Command::new(std::env::current_exe().expect("the path of this binary"))
        .args(["--exact", "evolution::crash::worker", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env("SOUK_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a worker");
    let output = BufReader::new(worker.stdout.take().expect("its output"));
    let changes = output
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.contains(CHANGED));
    let changed = changes.take(until).count();
    worker.kill().expect("a kill");
    let status = worker.wait().expect("an end");
    assert_eq!(changed, until, "the worker ended by itself: {status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in the process that is killed"]
async fn worker() {
    let directory = std::env::var(DIRECTORY).expect("a directory to work in");
    let mut random = random();
    let database = Database::open(Path::new(&directory), options())
        .await
        .expect("a database");
    loop {
        let table = match database.table("t") {
            Some(table) => table,
            None => filled(&database).await,
        };
        for _ in 0..random.usize(0..100) {
            let batch = WriteBatch::of(&table, operation(&mut random), Condition::none());
            database
                .write(batch.durability(Durability::Buffered))
                .await
                .expect("a write");
        }
        let change = match random.u8(0..10) {
            0 => {
                database.delete_table(&table).await.expect("a deletion");
                "the table is deleted"
            }
            1 => {
                let fewer = TableUpdate::new().max_versions(random.u32(1..4));
                database.update_table(&table, fewer).await.expect("an update");
                "its versions are others"
            }
            2 | 3 => {
                let lifetime = match table.schema().time_to_live {
                    None => Some(Duration::from_secs(1_000_000)),
                    Some(_) => None,
                };
                let live = TableUpdate::new().time_to_live(lifetime);
                database.update_table(&table, live).await.expect("an update");
                "its time to live is another"
            }
            _ => {
                let (name, column) = *random.choice(&INDEXES).expect("one");
                if table.index_state(name).is_ok() {
                    database.drop_index(&table, name).await.expect("a drop");
                } else {
                    let index = SecondaryIndexSchema::new(name, [column]);
                    let created = database.create_index(&table, index, Backfill::Existing).await;
                    created.expect("an index");
                }
                name
            }
        };
        let line = format!("{CHANGED}{change}\n");
        std::io::stdout().write_all(line.as_bytes()).expect("a line");
    }
}

/// The table with its rows.
async fn filled(database: &Database) -> Table {
    let table = database.create_table(schema()).await.expect("a table");
    let ids: Vec<i64> = (0..ROWS).collect();
    for ids in ids.chunks(200) {
        let batch = ids.iter().fold(WriteBatch::new(), |batch, id| {
            let columns = ["size", "color", "weight"];
            let columns = columns.map(|name| (name.into(), Value::from(id % 7))).to_vec();
            let put = RowOperation::Put {
                key: key(*id),
                columns,
            };
            batch.write(&table, put, Condition::none())
        });
        database
            .write(batch.durability(Durability::Buffered))
            .await
            .expect("a write");
    }
    table
}

fn operation(random: &mut Rng) -> RowOperation {
    let id = random.i64(0..ROWS + 100);
    let column = *random.choice(&["size", "color", "weight"]).expect("one");
    match random.u8(0..5) {
        0 => RowOperation::Delete { key: key(id) },
        1 => put(id, column, random.i64(0..7)),
        _ => set(id, column, random.i64(0..7), None),
    }
}
