//! Jobs that are stopped after every step by closing the database, and go on after it is opened again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use souk_kv::{Direction, Scan, Space};

use super::*;
use crate::batch::{ColumnChange, Condition, RowOperation, WriteBatch};
use crate::catalog::SecondaryIndexState;
use crate::clock::ManualClock;
use crate::database::Database;
use crate::key;
use crate::options::DatabaseOptions;
use crate::read::RangeRequest;
use crate::schema::{KeyKind, SecondaryIndexSchema, TableSchema};
use crate::secondary::EXPIRY_INDEX;
use crate::tables::{Backfill, TableUpdate};
use crate::value::PrimaryKey;

/// The clock at the start, milliseconds.
const START: i64 = 1_700_000_000_000;
const ROWS: i64 = 300;
/// Rows a step handles here.
const STEP: usize = 40;

/// A database whose jobs make a step only when they are told to.
struct Store {
    clock: Arc<ManualClock>,
    options: DatabaseOptions,
    database: Database,
    table: Table,
}

fn schema() -> TableSchema {
    TableSchema::new("t")
        .key("id", KeyKind::Integer)
        .max_versions(3)
        .index(SecondaryIndexSchema::new("by_size", ["size"]))
}

impl Store {
    async fn open(directory: &Path, schema: TableSchema) -> Self {
        let clock = Arc::new(ManualClock::new(START * 1_000_000));
        let options = DatabaseOptions {
            clock: clock.clone(),
            maintenance_interval: Duration::from_secs(1_000_000),
            ..DatabaseOptions::default()
        };
        let database = Database::open(directory, options.clone()).await.unwrap();
        stop(&database);
        let table = database.ensure_table(schema).await.unwrap();
        Self {
            clock,
            options,
            database,
            table,
        }
    }

    async fn reopen(self, directory: &Path) -> Self {
        let Self { clock, options, .. } = self;
        self.database.close().await.unwrap();
        drop((self.database, self.table));
        let database = Database::open(directory, options.clone()).await.unwrap();
        stop(&database);
        let table = database.table("t").unwrap();
        Self {
            clock,
            options,
            database,
            table,
        }
    }

    /// Writes rows with these ids, a batch at a time.
    async fn fill(&self, ids: std::ops::Range<i64>) {
        let ids: Vec<i64> = ids.collect();
        for ids in ids.chunks(100) {
            let mut batch = WriteBatch::new().durability(Durability::Buffered);
            for id in ids {
                batch = batch.write(&self.table, put(*id, id % 7), Condition::none());
            }
            self.database.write(batch).await.unwrap();
        }
    }

    async fn write(&self, operation: RowOperation) {
        let batch = WriteBatch::of(&self.table, operation, Condition::none());
        self.database.write(batch).await.unwrap();
    }

    /// One step of the only job; whether there was one.
    async fn step(&self) -> bool {
        let Some(job) = self.database.shared.jobs.after(None) else {
            return false;
        };
        step(&self.database.shared, job, STEP).await.unwrap();
        true
    }

    /// How many keys lie in a range.
    async fn count(&self, space: Space, low: Bytes, high: Bytes) -> usize {
        let scan = Scan {
            space,
            low,
            high,
            direction: Direction::Forward,
            entries: usize::MAX,
            bytes: usize::MAX,
        };
        let snapshot = self.database.shared.kv.snapshot().await.unwrap();
        snapshot.scan(scan).await.unwrap().entries.len()
    }

    async fn entries(&self, number: u16) -> usize {
        let (low, high) = key::entries_of_index(self.table.id(), number);
        self.count(Space::Index, low, high).await
    }

    /// What the index must hold, from the rows; and what it holds.
    async fn index(&self, column: &str, index: &str) -> [BTreeSet<(i64, i64)>; 2] {
        let snapshot = self.database.snapshot().await.unwrap();
        let all = RangeRequest::all(Direction::Forward);
        let rows = snapshot.range(&self.table, &all).await.unwrap().rows;
        let id = |key: &PrimaryKey| key.values()[0].as_integer().unwrap();
        let expected = rows
            .iter()
            .filter_map(|row| Some((row.get(column)?.as_integer()?, id(&row.key))));
        let page = snapshot
            .index_range(&self.table, index, &[], None, Direction::Forward, 0)
            .await;
        let entries = page.unwrap().entries.into_iter();
        let found = entries.map(|entry| (entry.values[0].as_integer().unwrap(), id(&entry.key)));
        [expected.collect(), found.collect()]
    }
}

fn stop(database: &Database) {
    for task in database.shared.background.lock().drain(..) {
        task.abort();
    }
}

fn put(id: i64, size: i64) -> RowOperation {
    RowOperation::Put {
        key: PrimaryKey::integer(id),
        columns: vec![("size".into(), size.into()), ("age".into(), (id % 11).into())],
    }
}

fn set(id: i64, column: &str, value: i64, version: i64) -> RowOperation {
    RowOperation::Update {
        key: PrimaryKey::integer(id),
        changes: vec![ColumnChange::Put {
            column: column.to_owned(),
            value: value.into(),
            version: Some(version),
        }],
    }
}

#[tokio::test]
async fn fills_an_index_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), schema()).await;
    store.fill(0..ROWS).await;
    let by_age = SecondaryIndexSchema::new("by_age", ["age"]).include(["size"]);
    let created = store
        .database
        .create_index(&store.table, by_age, Backfill::Existing)
        .await;
    created.unwrap();
    let mut steps = 0;
    let mut early = store.database.snapshot().await.unwrap();
    while !store.database.jobs().is_empty() {
        assert_eq!(
            store.table.index_state("by_age").unwrap(),
            SecondaryIndexState::Building
        );
        let page = early
            .index_range(&store.table, "by_age", &[], None, Direction::Forward, 0)
            .await;
        assert!(matches!(page, Err(Error::IndexNotReady { .. })), "{page:?}");
        // Rows before and after the place of the job change, appear and go.
        let (done, open) = (steps * 7, ROWS - 1 - steps * 7);
        store.write(set(done, "age", 100 + steps, START)).await;
        store.write(set(open, "age", 200 + steps, START)).await;
        store.write(put(ROWS + steps, steps)).await;
        store.write(put(-1 - steps, steps)).await;
        let key = PrimaryKey::integer(ROWS / 2 + steps);
        store.write(RowOperation::Delete { key }).await;
        store.step().await;
        steps += 1;
        drop(early);
        store = store.reopen(directory.path()).await;
        early = store.database.snapshot().await.unwrap();
    }
    assert_eq!(steps, 8);
    assert_eq!(
        store.table.index_state("by_age").unwrap(),
        SecondaryIndexState::Ready
    );
    store.database.index_ready(&store.table, "by_age").await.unwrap();
    let [expected, found] = store.index("age", "by_age").await;
    assert_eq!(found, expected);
    assert_eq!(store.entries(1).await, expected.len());
}

#[tokio::test]
async fn refuses_snapshots_from_before_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), schema()).await;
    store.fill(0..10).await;
    let early = store.database.snapshot().await.unwrap();
    for (name, backfill) in [("a", Backfill::Existing), ("b", Backfill::None)] {
        let index = SecondaryIndexSchema::new(name, ["age"]);
        store
            .database
            .create_index(&store.table, index, backfill)
            .await
            .unwrap();
    }
    while store.step().await {}
    let late = store.database.snapshot().await.unwrap();
    for (name, entries) in [("a", 10), ("b", 0)] {
        let page = early
            .index_range(&store.table, name, &[], None, Direction::Forward, 0)
            .await;
        assert!(matches!(page, Err(Error::IndexNotReady { .. })), "{page:?}");
        let page = late
            .index_range(&store.table, name, &[], None, Direction::Forward, 0)
            .await;
        assert_eq!(page.unwrap().entries.len(), entries);
    }
}

#[tokio::test]
async fn removes_an_index_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), schema()).await;
    store.fill(0..ROWS).await;
    store.database.drop_index(&store.table, "by_size").await.unwrap();
    // The name is free at once; the new index is another.
    let again = SecondaryIndexSchema::new("by_size", ["size"]);
    store
        .database
        .create_index(&store.table, again, Backfill::None)
        .await
        .unwrap();
    store.write(put(0, 70)).await;
    let mut steps = 0;
    while store.step().await {
        steps += 1;
        store = store.reopen(directory.path()).await;
    }
    assert_eq!(steps, 8);
    assert_eq!(store.entries(0).await, 0);
    assert_eq!(store.entries(1).await, 1);
    assert_eq!(store.index("size", "by_size").await[1], BTreeSet::from([(70, 0)]));
    // A row gets its entry with any write, even if that leaves the column alone.
    store.write(set(3, "age", 1, START)).await;
    assert_eq!(
        store.index("size", "by_size").await[1],
        BTreeSet::from([(3, 3), (70, 0)])
    );
}

#[tokio::test]
async fn removes_a_table_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let lifetime = Duration::from_secs(60);
    let mut store = Store::open(directory.path(), schema().time_to_live(lifetime)).await;
    store.fill(0..ROWS).await;
    let old = store.table.clone();
    // Its job goes with it.
    let index = SecondaryIndexSchema::new("by_age", ["age"]);
    store
        .database
        .create_index(&old, index, Backfill::Existing)
        .await
        .unwrap();
    store.database.delete_table(&old).await.unwrap();
    assert_eq!(store.database.jobs().len(), 1);
    let write = WriteBatch::of(&old, put(1, 1), Condition::none());
    let write = store.database.write(write).await;
    assert!(matches!(write, Err(Error::TableNotFound { .. })), "{write:?}");
    let waits = store.database.index_ready(&old, "by_age").await;
    assert!(matches!(waits, Err(Error::TableNotFound { .. })), "{waits:?}");
    store.table = store.database.create_table(schema()).await.unwrap();
    assert_ne!(store.table.id(), old.id());
    store.fill(0..10).await;
    let mut steps = 0;
    while store.step().await {
        steps += 1;
        store = store.reopen(directory.path()).await;
    }
    // The rows, then entries of two indexes and the hidden one.
    assert!(steps >= 3 * ROWS as usize / STEP, "{steps}");
    for (space, low, high) in key::ranges_of_table(old.id()) {
        assert_eq!(store.count(space, low, high).await, 0, "{space:?}");
    }
    let [expected, found] = store.index("size", "by_size").await;
    assert_eq!((found.len(), &found), (10, &expected));
}

#[tokio::test]
async fn removes_the_counters_of_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let numbered = TableSchema::new("t")
        .key("thread", KeyKind::Integer)
        .auto_increment_key("seq");
    let store = Store::open(directory.path(), numbered).await;
    for thread in 0..3 {
        store
            .write(RowOperation::Append {
                key: vec![thread.into()],
                columns: vec![],
            })
            .await;
    }
    let ranges = key::ranges_of_table(store.table.id());
    let (space, low, high) = ranges.last().unwrap().clone();
    assert_eq!(store.count(space, low, high).await, 3);
    store.database.delete_table(&store.table).await.unwrap();
    while store.step().await {}
    for (space, low, high) in ranges {
        assert_eq!(store.count(space, low, high).await, 0, "{space:?}");
    }
}

#[tokio::test]
async fn never_reuses_the_number_of_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), schema()).await;
    let mut seen = BTreeSet::from([store.table.id()]);
    for _ in 0..4 {
        let other = store
            .database
            .create_table(TableSchema::new("u").key("k", KeyKind::Binary));
        let other = other.await.unwrap();
        assert!(seen.insert(other.id()), "{:?} of {seen:?}", other.id());
        store.database.delete_table(&other).await.unwrap();
        store = store.reopen(directory.path()).await;
    }
}

#[tokio::test]
async fn trims_versions_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let lifetime = Duration::from_secs(60);
    let mut store = Store::open(directory.path(), schema().time_to_live(lifetime)).await;
    for id in 0..100 {
        for version in 0..3 {
            store.write(set(id, "size", version, START - 10 + version)).await;
        }
    }
    let before = store.database.last_sequence();
    let fewer = TableUpdate::new().max_versions(1);
    store.database.update_table(&store.table, fewer).await.unwrap();
    let versions = |store: &Store, id: i64| {
        let (database, table) = (store.database.clone(), store.table.clone());
        async move {
            let snapshot = database.snapshot().await.unwrap();
            let row = snapshot
                .get(&table, &PrimaryKey::integer(id))
                .await
                .unwrap()
                .unwrap();
            (row.revision, row.cells("size").len())
        }
    };
    assert_eq!(
        versions(&store, 99).await,
        (before, 1),
        "the surplus is invisible at once"
    );
    assert!(store.step().await);
    store = store.reopen(directory.path()).await;
    // What isn't trimmed yet comes back.
    let more = TableUpdate::new().max_versions(2);
    store.database.update_table(&store.table, more).await.unwrap();
    assert_eq!(
        (versions(&store, 0).await.1, versions(&store, 99).await.1),
        (1, 2)
    );
    let fewer = TableUpdate::new().max_versions(1);
    store.database.update_table(&store.table, fewer).await.unwrap();
    let mut steps = 0;
    while store.step().await {
        steps += 1;
        store = store.reopen(directory.path()).await;
    }
    assert_eq!(steps, 3);
    let more = TableUpdate::new().max_versions(3);
    store.database.update_table(&store.table, more).await.unwrap();
    assert_eq!(
        versions(&store, 99).await,
        (before, 1),
        "trimmed, and the revision stays"
    );
    assert_eq!(store.database.last_sequence(), before, "the log doesn't tell");
    assert_eq!(store.entries(EXPIRY_INDEX).await, 100);
    // The hidden index followed: nothing is due before the newest version expires.
    store.clock.set((START - 8 + 60_000) * 1_000_000 - 1);
    store.database.maintain().await.unwrap();
    assert_eq!(store.database.last_sequence(), before);
    store.clock.advance(Duration::from_millis(1));
    store.database.maintain().await.unwrap();
    assert_eq!(store.entries(EXPIRY_INDEX).await, 0);
    let (low, high) = key::entries_of_index(store.table.id(), 0);
    assert_eq!(store.count(Space::Index, low, high).await, 0);
}

#[tokio::test]
async fn starts_to_expire_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), schema()).await;
    store.fill(0..ROWS).await;
    let lifetime = Duration::from_secs(60);
    let turn = |lifetime| TableUpdate::new().time_to_live(lifetime);
    store
        .database
        .update_table(&store.table, turn(Some(lifetime)))
        .await
        .unwrap();
    store.step().await;
    // Off and on again.
    store
        .database
        .update_table(&store.table, turn(None))
        .await
        .unwrap();
    store.write(put(0, 1)).await;
    while store.step().await {
        store = store.reopen(directory.path()).await;
    }
    assert_eq!(store.entries(EXPIRY_INDEX).await, 0);
    store
        .database
        .update_table(&store.table, turn(Some(lifetime)))
        .await
        .unwrap();
    let mut steps = 0;
    while store.step().await {
        steps += 1;
        store = store.reopen(directory.path()).await;
    }
    assert_eq!(steps, 8);
    assert_eq!(store.entries(EXPIRY_INDEX).await, ROWS as usize);
    store.clock.advance(lifetime / 2);
    store.write(put(7, 1)).await;
    store.clock.advance(lifetime / 2);
    store.database.maintain().await.unwrap();
    assert_eq!(store.entries(EXPIRY_INDEX).await, 1);
    let [expected, found] = store.index("size", "by_size").await;
    assert_eq!((&found, &expected), (&BTreeSet::from([(1, 7)]), &found));
    store
        .database
        .update_table(&store.table, turn(None))
        .await
        .unwrap();
    while store.step().await {}
    assert_eq!(store.entries(EXPIRY_INDEX).await, 0);
}

#[tokio::test]
async fn takes_over_a_table_from_before_hidden_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), schema()).await;
    store.fill(0..10).await;
    // The same table in format 1 with a time to live of a minute.
    let id = store.table.id();
    let definition = [
        &[1, 1, b't', 1, 2, b'i', b'd', 2, 3, 1, 60, 0, 60, 0][..],
        &[1, 7],
        b"by_size",
        &[1, 4],
        b"size",
        &[0],
    ]
    .concat();
    let commit = Commit {
        mutations: vec![Mutation::Put {
            space: Space::Catalog,
            key: key::table(id),
            value: definition,
            stamp: false,
        }],
        ..Commit::default()
    };
    store.database.shared.kv.commit(commit).await.unwrap();
    store = store.reopen(directory.path()).await;
    assert_eq!(store.database.jobs().len(), 1);
    // Written again before the job has made a step.
    let offset = TableUpdate::new().max_version_offset(Duration::from_secs(1));
    store.database.update_table(&store.table, offset).await.unwrap();
    store = store.reopen(directory.path()).await;
    while store.step().await {}
    assert_eq!(store.entries(EXPIRY_INDEX).await, 10);
    store.clock.advance(Duration::from_secs(60));
    store.database.maintain().await.unwrap();
    let (low, high) = key::entries_of_index(id, 0);
    assert_eq!(store.count(Space::Index, low, high).await, 0);
}

#[tokio::test]
async fn gives_up_an_index_that_a_row_cannot_stand_in() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path(), schema()).await;
    let long = RowOperation::Put {
        key: PrimaryKey::integer(5),
        columns: vec![("name".into(), "x".repeat(2000).into())],
    };
    store.write(long).await;
    let index = SecondaryIndexSchema::new("by_name", ["name"]);
    store
        .database
        .create_index(&store.table, index.clone(), Backfill::Existing)
        .await
        .unwrap();
    // While it is built, such a row can be deleted but not written.
    let update = WriteBatch::of(&store.table, set(5, "age", 1, START), Condition::none());
    let update = store.database.write(update).await;
    assert!(matches!(update, Err(Error::LimitExceeded { .. })), "{update:?}");
    while store.step().await {}
    store = store.reopen(directory.path()).await;
    let failed = store.database.index_ready(&store.table, "by_name").await;
    assert!(matches!(failed, Err(Error::IndexFailed { .. })), "{failed:?}");
    store.write(set(5, "age", 1, START)).await;
    store.database.drop_index(&store.table, "by_name").await.unwrap();
    let key = PrimaryKey::integer(5);
    store.write(RowOperation::Delete { key }).await;
    store
        .database
        .create_index(&store.table, index, Backfill::Existing)
        .await
        .unwrap();
    while store.step().await {}
    store.database.index_ready(&store.table, "by_name").await.unwrap();
}
