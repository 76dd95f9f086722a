//! A database with something of everything, written at random.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use souk_kv::{FjallKv, FjallOptions, Kv, Mutation, Space};
use souk_storage::{
    ColumnChange, Condition, Database, DatabaseOptions, KeyKind, ManualClock, PrimaryKey, RequestRecord,
    RowOperation, RowWrite, SecondaryIndexSchema, Table, TableSchema, Value, WriteBatch,
};

use crate::commits::{END, all, scan, snapshot, unlogged};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
const ROWS: u64 = 60;

/// A database whose maintenance runs when a test says so.
pub(crate) struct Sample {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) database: Database,
    tables: Vec<Table>,
    random: fastrand::Rng,
    requests: u8,
}

fn options(clock: &Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock: clock.clone(),
        retention: HOUR,
        request_retention: HOUR,
        maintenance_interval: 1000 * HOUR,
        fjall: FjallOptions {
            memory_bytes: 16 << 20,
            ..FjallOptions::default()
        },
    }
}

/// Key of the mark that groups of commits carry.
const GROUP_MARK: &[u8] = &[0x08];
/// The key of the histories.
const HISTORIES: &[u8] = &[0x06];

impl Sample {
    pub(crate) async fn open(directory: &Path, random: fastrand::Rng) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
        let database = Database::open(directory, options(&clock)).await;
        Self::with(database.expect("a database"), clock, random).await
    }

    pub(crate) async fn in_memory(random: fastrand::Rng) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
        let database = Database::in_memory(options(&clock)).await;
        Self::with(database.expect("a database"), clock, random).await
    }

    async fn with(database: Database, clock: Arc<ManualClock>, random: fastrand::Rng) -> Self {
        let plain = TableSchema::new("plain").key("id", KeyKind::Integer);
        let indexed = TableSchema::new("indexed")
            .key("shop", KeyKind::String)
            .key("id", KeyKind::Integer)
            .max_versions(3)
            .index(SecondaryIndexSchema::new("by_a", ["a"]).include(["b"]))
            .index(SecondaryIndexSchema::new("by_b", ["b", "shop"]));
        let expiring = TableSchema::new("expiring")
            .key("id", KeyKind::Binary)
            .time_to_live(HOUR)
            .index(SecondaryIndexSchema::new("by_a", ["a"]));
        let mut tables = Vec::new();
        for schema in [plain, indexed, expiring] {
            tables.push(database.ensure_table(schema).await.expect("a table"));
        }
        database.consumer("reader").await.expect("a consumer");
        Self {
            clock,
            database,
            tables,
            random,
            requests: 0,
        }
    }

    /// Writes so many batches.
    pub(crate) async fn write(&mut self, batches: usize) {
        for _ in 0..batches {
            let mut batch = WriteBatch {
                writes: Vec::new(),
                ..WriteBatch::default()
            };
            let mut numbers: Vec<u64> = (0..ROWS).collect();
            self.random.shuffle(&mut numbers);
            numbers.truncate(self.random.usize(1..6));
            for number in numbers {
                // The first is a put: a batch that only deletes what isn't there is no change.
                let kind = if batch.writes.is_empty() {
                    5
                } else {
                    self.random.u8(..10)
                };
                let write = self.row(number, kind);
                batch.writes.push(write);
            }
            if self.random.u8(..4) == 0 {
                self.requests = self.requests.wrapping_add(1);
                batch.request = Some(RequestRecord {
                    id: [self.requests; 16],
                    fingerprint: 1,
                    reply: Bytes::from_static(b"reply"),
                });
            }
            self.database.write(batch).await.expect("a write");
            self.clock
                .advance(Duration::from_millis(self.random.u64(..20_000)));
        }
    }

    /// A write of one of the rows; `kind` below 10 says of what kind.
    fn row(&mut self, number: u64, kind: u8) -> RowWrite {
        let table = self.random.choice(&self.tables).expect("a table").clone();
        let id = i64::try_from(number).expect("a small number");
        let key = match table.name() {
            "plain" => PrimaryKey::integer(id),
            "indexed" => {
                PrimaryKey::new(vec![["x", "y", "z"][number as usize % 3].into(), id.into()]).expect("a key")
            }
            _ => PrimaryKey::new(vec![Bytes::copy_from_slice(&[0, number as u8]).into()]).expect("a key"),
        };
        let a = || Value::from("a".repeat(number as usize % 7));
        let operation = match kind {
            0 | 1 => RowOperation::Delete { key },
            2..=5 => RowOperation::Put {
                key,
                columns: vec![
                    ("a".into(), a()),
                    ("b".into(), Value::Integer(self.random.i64(-5..5))),
                    (
                        "c".into(),
                        Value::Binary(vec![7; self.random.usize(..300)].into()),
                    ),
                ],
            },
            _ => RowOperation::Update {
                key,
                changes: vec![
                    ColumnChange::Put {
                        column: "b".to_owned(),
                        value: Value::Integer(self.random.i64(-5..5)),
                        version: None,
                    },
                    ColumnChange::DeleteAll {
                        column: "a".to_owned(),
                    },
                ],
            },
        };
        RowWrite::new(&table, operation, Condition::none())
    }

    pub(crate) async fn close(self) {
        self.database.close().await.expect("a close");
    }
}

/// All that a closed database holds.
pub(crate) async fn dump(directory: &Path) -> Vec<(Space, Bytes, Bytes)> {
    let store = FjallKv::open(directory, &FjallOptions::default())
        .await
        .expect("a store");
    let cut = snapshot(&store).await;
    let mut dump = Vec::new();
    for space in Space::ALL {
        let mut entries = scan(&*cut, all(space, &[], &END)).await.entries;
        // The mark of the last group belongs to one store's journals, and a restore begins another history.
        let own = |key: &[u8]| space == Space::Catalog && (key == GROUP_MARK || key == HISTORIES);
        entries.retain(|(key, _)| !own(key));
        dump.extend(entries.into_iter().map(|(key, value)| (space, key, value)));
    }
    dump
}

/// Does something to a closed database behind its back.
pub(crate) async fn tamper(directory: &Path, mutations: Vec<Mutation>) {
    let store = FjallKv::open(directory, &FjallOptions::default())
        .await
        .expect("a store");
    store.commit(unlogged(mutations)).await.expect("a commit");
    store.close().await.expect("a close");
}
