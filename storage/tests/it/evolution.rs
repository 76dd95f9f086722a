//! Tables that change while they are in use: schema, indexes, deletion, expiry. Each test runs on both engines.

mod crash;
mod expiry;
mod filling;

use std::sync::Arc;
use std::time::Duration;

use souk_storage::limits::{MAX_INDEXES, MAX_KEY_VALUE_BYTES, MAX_VERSIONS};
use souk_storage::{
    Backfill, ColumnChange, Condition, Database, DatabaseOptions, Direction, Error, ErrorKind, JobKind,
    KeyKind, KeyValue, ManualClock, PrimaryKey, Row, RowOperation, RowWrite, SecondaryIndexSchema,
    SecondaryIndexState, Table, TableSchema, TableUpdate, Value, WriteBatch,
};

/// The clock at the start, milliseconds.
const START: i64 = 1_700_000_000_000;

struct Store {
    clock: Arc<ManualClock>,
    database: Database,
    table: Table,
    /// Of the engine on the disk.
    _directory: Option<tempfile::TempDir>,
}

/// A store on each engine. Their maintenance runs only when it is asked for.
async fn stores(schema: &TableSchema) -> Vec<Store> {
    let mut stores = Vec::new();
    for on_disk in [false, true] {
        let clock = Arc::new(ManualClock::new(START * 1_000_000));
        let options = DatabaseOptions {
            clock: clock.clone(),
            maintenance_interval: Duration::from_secs(1_000_000),
            ..DatabaseOptions::default()
        };
        let directory = on_disk.then(|| tempfile::tempdir().expect("a directory"));
        let database = match &directory {
            Some(directory) => Database::open(directory.path(), options).await,
            None => Database::in_memory(options).await,
        };
        let database = database.expect("a database");
        let table = database.create_table(schema.clone()).await.expect("a table");
        stores.push(Store {
            clock,
            database,
            table,
            _directory: directory,
        });
    }
    stores
}

fn schema() -> TableSchema {
    TableSchema::new("t")
        .key("id", KeyKind::Integer)
        .max_versions(3)
        .index(SecondaryIndexSchema::new("by_size", ["size"]))
}

fn key(id: i64) -> PrimaryKey {
    PrimaryKey::integer(id)
}

fn put(id: i64, column: &str, value: impl Into<Value>) -> RowOperation {
    RowOperation::Put {
        key: key(id),
        columns: vec![(column.into(), value.into())],
    }
}

fn set(id: i64, column: &str, value: impl Into<Value>, version: Option<i64>) -> RowOperation {
    RowOperation::Update {
        key: key(id),
        changes: vec![ColumnChange::Put {
            column: column.to_owned(),
            value: value.into(),
            version,
        }],
    }
}

impl Store {
    async fn write(&self, operation: RowOperation) -> u64 {
        let batch = WriteBatch::of(&self.table, operation, Condition::none());
        self.database.write(batch).await.expect("a write").sequence
    }

    async fn get(&self, id: i64) -> Option<Row> {
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        snapshot.get(&self.table, &key(id)).await.expect("a read")
    }

    async fn index(&self, name: &str) -> Result<Vec<i64>, Error> {
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        let page = snapshot
            .index_range(&self.table, name, &[], None, Direction::Forward, 0)
            .await?;
        let id = |entry: souk_storage::IndexEntry| entry.key.values()[0].as_integer();
        Ok(page.entries.into_iter().filter_map(id).collect())
    }

    async fn update(&self, update: TableUpdate) -> Result<(), Error> {
        self.database.update_table(&self.table, update).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_what_may_change() {
    for store in stores(&schema()).await {
        let handle = store.table.clone();
        let late = set(1, "size", 1, Some(START + 10_000));
        let update = TableUpdate::new()
            .max_versions(2)
            .max_version_offset(Duration::from_secs(5))
            .allow_update(false);
        store.update(update.clone()).await.expect("an update");
        store.update(update).await.expect("the same again");
        let expected = schema()
            .max_versions(2)
            .max_version_offset(Duration::from_secs(5))
            .allow_update(false);
        assert_eq!(*handle.schema(), expected, "handles follow");
        let allowed = TableUpdate::new().allow_update(true);
        store.update(allowed).await.expect("an update");
        let batch = WriteBatch::of(&handle, late, Condition::none());
        let refused = store.database.write(batch).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
        for refused in [
            TableUpdate::new().max_versions(0),
            TableUpdate::new().max_versions(MAX_VERSIONS + 1),
            TableUpdate::new().time_to_live(Some(Duration::ZERO)),
        ] {
            let answer = store.update(refused.clone()).await;
            assert!(
                matches!(answer, Err(Error::Invalid { .. } | Error::LimitExceeded { .. })),
                "{refused:?}: {answer:?}"
            );
        }
        assert_eq!(
            *handle.schema(),
            expected.allow_update(true),
            "nothing of it stays"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_fewer_or_more_versions_at_once() {
    for store in stores(&schema()).await {
        for version in 0..3 {
            store.write(set(1, "size", version, Some(START + version))).await;
        }
        let versions = || async {
            let row = store.get(1).await.expect("a row");
            row.cells("size")
                .iter()
                .map(|cell| cell.version - START)
                .collect::<Vec<_>>()
        };
        assert_eq!(versions().await, [2, 1, 0]);
        store
            .update(TableUpdate::new().max_versions(1))
            .await
            .expect("an update");
        assert_eq!(versions().await, [2]);
        store.database.jobs_done().await.expect("no jobs");
        store
            .update(TableUpdate::new().max_versions(3))
            .await
            .expect("an update");
        assert_eq!(versions().await, [2], "the surplus is gone for good");
        store.write(set(1, "size", 5, Some(START + 5))).await;
        assert_eq!(versions().await, [5, 2]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_and_drops_indexes() {
    for store in stores(&schema()).await {
        store.write(put(1, "color", "red")).await;
        let by_color = SecondaryIndexSchema::new("by_color", ["color"]);
        let create = |index: SecondaryIndexSchema, backfill| {
            let (database, table) = (store.database.clone(), store.table.clone());
            async move { database.create_index(&table, index, backfill).await }
        };
        create(by_color.clone(), Backfill::Existing)
            .await
            .expect("an index");
        store
            .database
            .index_ready(&store.table, "by_color")
            .await
            .expect("a ready index");
        assert_eq!(
            store.table.index_state("by_color").expect("a state"),
            SecondaryIndexState::Ready
        );
        assert_eq!(store.index("by_color").await.expect("a page"), [1]);
        let again = create(by_color.clone(), Backfill::None).await;
        assert!(matches!(again, Err(Error::IndexExists { .. })), "{again:?}");
        let nameless = create(SecondaryIndexSchema::new("", ["color"]), Backfill::None).await;
        assert!(matches!(nameless, Err(Error::Invalid { .. })), "{nameless:?}");
        store
            .database
            .drop_index(&store.table, "by_color")
            .await
            .expect("a drop");
        let gone = store.index("by_color").await;
        assert!(matches!(gone, Err(Error::IndexNotFound { .. })), "{gone:?}");
        let again = store.database.drop_index(&store.table, "by_color").await;
        assert!(matches!(again, Err(Error::IndexNotFound { .. })), "{again:?}");
        // Without the rows there are; whatever the first index left behind is not in it.
        create(by_color.clone(), Backfill::None).await.expect("an index");
        assert_eq!(store.index("by_color").await.expect("a page"), [0; 0]);
        store.write(set(1, "size", 1, None)).await;
        assert_eq!(
            store.index("by_color").await.expect("a page"),
            [1],
            "any write adds a row"
        );
        for number in 2..MAX_INDEXES {
            let index = SecondaryIndexSchema::new(format!("i{number}"), ["size"]);
            create(index, Backfill::None).await.expect("an index");
        }
        let surplus = create(SecondaryIndexSchema::new("surplus", ["size"]), Backfill::None).await;
        assert!(matches!(surplus, Err(Error::LimitExceeded { .. })), "{surplus:?}");
        let state = store.table.index_state("surplus");
        assert!(matches!(state, Err(Error::IndexNotFound { .. })), "{state:?}");
        store.database.jobs_done().await.expect("no jobs");
        assert_eq!(store.index("by_size").await.expect("a page"), [1]);
    }
}

/// A value may be too long for an index that was created after it, without the rows there were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_keeps_what_is_too_long_for_a_later_index() {
    for store in stores(&schema().transactions()).await {
        let long = |letter: &str| letter.repeat(MAX_KEY_VALUE_BYTES + 1);
        store.write(put(1, "color", long("x"))).await;
        let by_color = SecondaryIndexSchema::new("by_color", ["color"]);
        let created = store
            .database
            .create_index(&store.table, by_color, Backfill::None)
            .await;
        created.expect("an index");
        store.write(set(1, "size", 1, None)).await;
        let mut transaction = store
            .database
            .begin(&store.table, KeyValue::from(1))
            .await
            .expect("a transaction");
        let write = RowWrite::new(&store.table, set(1, "size", 2, None), Condition::none());
        transaction.write(vec![write]).await.expect("a write");
        transaction.commit().await.expect("a commit");
        assert_eq!(store.index("by_size").await.expect("a page"), [1]);
        assert_eq!(store.index("by_color").await.expect("a page"), [0; 0]);
        let report = store.database.check().await.expect("a report");
        assert!(report.is_whole(), "{:#?}", report.problems);
        let refused = async |operation: RowOperation| {
            let batch = WriteBatch::of(&store.table, operation, Condition::none());
            let answer = store.database.write(batch).await;
            assert!(matches!(answer, Err(Error::LimitExceeded { .. })), "{answer:?}");
        };
        refused(set(1, "color", long("y"), None)).await;
        refused(put(2, "color", long("x"))).await;
        store.write(set(1, "color", "red", None)).await;
        assert_eq!(store.index("by_color").await.expect("a page"), [1]);
        refused(set(1, "color", long("x"), None)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_tables() {
    for store in stores(&schema()).await {
        store.write(put(1, "size", 1)).await;
        let (old, sequence) = (store.table.clone(), store.database.last_sequence());
        let early = store.database.snapshot().await.expect("a snapshot");
        store.database.delete_table(&old).await.expect("a deletion");
        assert!(store.database.table("t").is_none());
        assert!(store.database.table_by_id(old.id()).is_none());
        let answers = [
            store.database.delete_table(&old).await.err(),
            store.update(TableUpdate::new().max_versions(1)).await.err(),
            store.database.drop_index(&old, "by_size").await.err(),
            early.get(&old, &key(1)).await.err(),
            store.index("by_size").await.err(),
        ];
        for answer in answers {
            let kind = answer.map(|error| error.kind());
            assert_eq!(kind, Some(ErrorKind::NotFound));
        }
        let new = store.database.create_table(schema()).await.expect("a table");
        assert!(new.id() > old.id(), "numbers aren't used twice");
        let late = store.database.snapshot().await.expect("a snapshot");
        assert_eq!(late.get(&new, &key(1)).await.expect("a read"), None);
        assert_eq!(store.database.last_sequence(), sequence);
        let changes = store.database.changes(0, 10).await.expect("changes");
        assert_eq!(changes[0].rows[0].table, old.id(), "its changes stay in the log");
        store.database.jobs_done().await.expect("no jobs");
        store.database.delete_table(&new).await.expect("a deletion");
        let kinds: Vec<_> = store.database.jobs().iter().map(|job| job.kind).collect();
        assert!(
            kinds.iter().all(|kind| *kind == JobKind::RemoveTable),
            "{kinds:?}"
        );
        store.database.jobs_done().await.expect("no jobs");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tells_those_who_wait_that_it_is_closed() {
    for store in stores(&schema()).await {
        let clone = store.database.clone();
        store.database.close().await.expect("a close");
        clone.jobs_done().await.expect("there are none");
        clone.index_ready(&store.table, "by_size").await.expect("it is");
        let created = clone
            .create_index(
                &store.table,
                SecondaryIndexSchema::new("late", ["size"]),
                Backfill::Existing,
            )
            .await;
        assert!(matches!(created, Err(Error::Unavailable { .. })), "{created:?}");
        let waits = clone.index_ready(&store.table, "late").await;
        assert!(matches!(waits, Err(Error::IndexNotFound { .. })), "{waits:?}");
    }
}
