//! Cells and rows that expire: they go with their index entries, and the log tells.

use souk_storage::ChangeKind;

use super::*;

const LIFETIME: Duration = Duration::from_secs(60);

fn expiring() -> TableSchema {
    schema().time_to_live(LIFETIME)
}

impl Store {
    /// Frees what has expired; the changes that were made: row, kind, columns left.
    async fn freed(&self) -> Vec<(i64, ChangeKind, Vec<String>)> {
        let before = self.database.last_sequence();
        self.database.maintain().await.expect("maintenance");
        let mut freed = Vec::new();
        for change in self.database.changes(before, 10_000).await.expect("changes") {
            for row in change.rows {
                assert_eq!(row.table, self.table.id());
                let columns = row.row.iter().flat_map(|row| row.columns().iter());
                let columns = columns.map(|(name, _)| name.to_owned()).collect();
                let id = row.key.values()[0].as_integer().expect("an id");
                freed.push((id, row.kind, columns));
            }
        }
        freed
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frees_what_has_expired() {
    for store in stores(&expiring()).await {
        store.write(put(1, "size", 1)).await;
        store.write(put(2, "size", 2)).await;
        store
            .write(RowOperation::Put {
                key: key(3),
                columns: vec![],
            })
            .await;
        store.clock.advance(LIFETIME / 2);
        store.write(set(2, "color", "red", None)).await;
        assert_eq!(store.freed().await, []);
        store.clock.advance(LIFETIME / 2 - Duration::from_nanos(1));
        assert_eq!(store.freed().await, []);
        store.clock.advance(Duration::from_nanos(1));
        let left = vec!["color".to_owned()];
        let mut freed = store.freed().await;
        freed.sort_by_key(|(id, ..)| *id);
        assert_eq!(
            freed,
            [
                (1, ChangeKind::Delete, vec![]),
                (2, ChangeKind::Update, left),
                (3, ChangeKind::Delete, vec![]),
            ]
        );
        // Not only hidden: with a longer life nothing comes back.
        store
            .update(TableUpdate::new().time_to_live(Some(LIFETIME * 10)))
            .await
            .expect("an update");
        assert_eq!(store.get(1).await, None);
        assert_eq!(store.get(3).await, None);
        let row = store.get(2).await.expect("a row");
        assert_eq!((row.get("size"), row.get("color")), (None, Some(&"red".into())));
        assert_eq!(row.revision, store.database.last_sequence());
        assert_eq!(store.index("by_size").await.expect("a page"), [0; 0]);
        assert_eq!(store.freed().await, []);
        store.clock.advance(LIFETIME * 10);
        assert_eq!(store.freed().await, [(2, ChangeKind::Delete, vec![])]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_life_only_moves_the_line() {
    for store in stores(&expiring()).await {
        store.write(put(1, "size", 1)).await;
        store.clock.advance(LIFETIME);
        assert_eq!(store.get(1).await, None, "hidden at once");
        let live = |lifetime| TableUpdate::new().time_to_live(lifetime);
        store.update(live(Some(LIFETIME * 2))).await.expect("an update");
        assert!(store.get(1).await.is_some(), "what isn't freed yet comes back");
        assert_eq!(store.index("by_size").await.expect("a page"), [1]);
        assert_eq!(store.freed().await, []);
        store.update(live(None)).await.expect("an update");
        store.clock.advance(LIFETIME * 100);
        assert_eq!(store.freed().await, []);
        assert!(store.get(1).await.is_some());
        // Back again, as soon as what it left behind is removed.
        store.update(live(Some(LIFETIME))).await.expect("an update");
        assert_eq!(store.get(1).await, None);
        store.database.jobs_done().await.expect("no jobs");
        assert_eq!(store.freed().await, [(1, ChangeKind::Delete, vec![])]);
        assert_eq!(store.index("by_size").await.expect("a page"), [0; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frees_old_versions_and_many_rows() {
    const ROWS: i64 = 1000;
    for store in stores(&expiring()).await {
        for id in 0..ROWS {
            let batch = WriteBatch::of(&store.table, put(id, "size", id % 10), Condition::none());
            let batch = batch.durability(souk_storage::Durability::Buffered);
            store.database.write(batch).await.expect("a write");
        }
        store.clock.advance(LIFETIME / 2);
        for id in 0..10 {
            store.write(set(id, "size", 100 + id, None)).await;
        }
        store.clock.advance(LIFETIME / 2);
        let freed = store.freed().await;
        let deleted = freed
            .iter()
            .filter(|(_, kind, _)| *kind == ChangeKind::Delete)
            .count();
        assert_eq!((deleted, freed.len()), (990, 1000));
        let row = store.get(3).await.expect("a row");
        assert_eq!(row.cells("size").len(), 1);
        assert_eq!(
            store.index("by_size").await.expect("a page"),
            Vec::from_iter(0..10)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaves_what_a_transaction_holds() {
    // More than one sweep's commit holds, behind the row that is held.
    const ROWS: i64 = 500;
    for store in stores(&expiring().transactions()).await {
        store.write(put(0, "size", 1)).await;
        store.clock.advance(Duration::from_millis(1));
        for id in 1..ROWS {
            store.write(put(id, "size", 1)).await;
        }
        store.clock.advance(LIFETIME);
        let held = store.database.begin(&store.table, 0.into()).await;
        let held = held.expect("a transaction");
        let freed = store.freed().await;
        assert_eq!(freed.len(), 499);
        assert!(freed.iter().all(|(id, ..)| *id > 0));
        assert_eq!(store.freed().await, []);
        held.abort();
        assert_eq!(store.freed().await, [(0, ChangeKind::Delete, vec![])]);
    }
}

/// Random writes with versions of all ages against a clock that moves on: after each sweep nothing that has expired
/// is left, as a longer life would show, and the log has told of everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frees_exactly_what_has_expired() {
    let mut random = crate::commits::random();
    for store in stores(&expiring()).await {
        let mut replica: std::collections::BTreeMap<PrimaryKey, Row> = std::collections::BTreeMap::new();
        let mut seen = 0;
        for _ in 0..60 {
            for _ in 0..random.usize(1..20) {
                let (id, now) = (
                    random.i64(0..30),
                    souk_storage::Clock::now(&*store.clock) / 1_000_000,
                );
                let column = *random.choice(&["size", "color", "note"]).expect("one");
                let operation = match random.u8(0..8) {
                    0 => RowOperation::Delete { key: key(id) },
                    1 => put(id, column, random.i64(0..5)),
                    2 => RowOperation::Put {
                        key: key(id),
                        columns: vec![],
                    },
                    _ => {
                        let version = random.bool().then(|| now - random.i64(-5_000..70_000));
                        set(id, column, random.i64(0..5), version)
                    }
                };
                store.write(operation).await;
            }
            store.clock.advance(Duration::from_millis(random.u64(0..20_000)));
            store.database.maintain().await.expect("maintenance");
            let visible = rows(&store).await;
            store
                .update(TableUpdate::new().time_to_live(Some(LIFETIME * 1000)))
                .await
                .expect("an update");
            assert_eq!(rows(&store).await, visible, "something expired is left");
            let mut indexed = store.index("by_size").await.expect("a page");
            indexed.sort_unstable();
            let expected: Vec<_> = visible
                .iter()
                .filter(|row| row.get("size").is_some())
                .filter_map(|row| row.key.values()[0].as_integer())
                .collect();
            assert_eq!(indexed, expected, "the index holds something else");
            store
                .update(TableUpdate::new().time_to_live(Some(LIFETIME)))
                .await
                .expect("an update");
            for change in store.database.changes(seen, 10_000).await.expect("changes") {
                seen = change.sequence;
                for row in change.rows {
                    match row.row {
                        Some(after) => drop(replica.insert(row.key, after)),
                        None => drop(replica.remove(&row.key)),
                    }
                }
            }
            assert!(replica.values().eq(&visible), "the log tells something else");
        }
    }
}

async fn rows(store: &Store) -> Vec<Row> {
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    let all = souk_storage::RangeRequest::all(Direction::Forward);
    snapshot.range(&store.table, &all).await.expect("a page").rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frees_by_itself() {
    let clock = Arc::new(ManualClock::new(START * 1_000_000));
    let options = DatabaseOptions {
        clock: clock.clone(),
        maintenance_interval: Duration::from_millis(10),
        ..DatabaseOptions::default()
    };
    let database = Database::in_memory(options).await.expect("a database");
    let table = database.create_table(expiring()).await.expect("a table");
    let batch = WriteBatch::of(&table, put(1, "size", 1), Condition::none());
    database.write(batch).await.expect("a write");
    let mut sequence = database.subscribe();
    sequence.mark_unchanged();
    clock.advance(LIFETIME);
    let changed = tokio::time::timeout(Duration::from_secs(60), sequence.changed()).await;
    changed.expect("a change in time").expect("a change");
    let changes = database.changes(1, 10).await.expect("changes");
    assert_eq!(changes[0].rows[0].kind, ChangeKind::Delete);
}
