//! Everything a read can ask: against an oracle that works on whole rows, and at each limit.

mod batches;
mod indexes;
mod long;
pub(crate) mod oracle;
mod pages;
pub(crate) mod random;
mod splits;
mod wide;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_storage::{
    ColumnName, Condition, Database, DatabaseOptions, Durability, KeyKind, ManualClock, PrimaryKey,
    RowOperation, SecondaryIndexSchema, Table, TableSchema, Value, WriteBatch,
};

/// Nanoseconds; the versions of random cells lie around it.
const START: i64 = 1_700_000_000_000_000_000;

/// More pages than any range of the random tables has.
const MOST_PAGES: usize = 1000;

/// Two tables of random rows: one that keeps all, one whose cells expire.
struct Store {
    database: Database,
    tables: [Table; 2],
}

impl Store {
    async fn random(random: &mut Rng) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let options = DatabaseOptions {
            clock: clock.clone(),
            maintenance_interval: Duration::from_secs(86_400),
            ..DatabaseOptions::default()
        };
        let database = Database::in_memory(options).await.expect("a database");
        let kept = TableSchema::new("kept")
            .key("shop", KeyKind::String)
            .key("number", KeyKind::Integer)
            .max_versions(4)
            .index(SecondaryIndexSchema::new("by_a", ["a"]).include(["b", "c"]))
            .index(SecondaryIndexSchema::new("by_number", ["number", "b"]).include(["a"]));
        let expiring = TableSchema::new("expiring")
            .key("id", KeyKind::Integer)
            .max_versions(3)
            .time_to_live(Duration::from_millis(30))
            .index(SecondaryIndexSchema::new("by_a", ["a", "b"]).include(["c", "d"]));
        let tables = [
            database.create_table(kept).await.expect("a table"),
            database.create_table(expiring).await.expect("a table"),
        ];
        for _ in 0..6 {
            for table in &tables {
                let mut batch = WriteBatch::new().durability(Durability::Buffered);
                for key in random::keys(random, table, 30) {
                    let now = START / 1_000_000;
                    let update = RowOperation::Update {
                        key,
                        changes: random::changes(random, now),
                    };
                    batch = batch.write(table, update, Condition::none());
                }
                database.write(batch).await.expect("a write");
            }
        }
        // A half of what expires has expired.
        clock.advance(Duration::from_millis(15));
        Self { database, tables }
    }
}

/// A database with a table `t` by `id`.
async fn simple() -> (Database, Table) {
    let database = Database::in_memory(DatabaseOptions::default()).await;
    let database = database.expect("a database");
    let schema = TableSchema::new("t")
        .key("id", KeyKind::Integer)
        .index(SecondaryIndexSchema::new("by_a", ["a"]).include(["b"]));
    let table = database.create_table(schema).await.expect("a table");
    (database, table)
}

/// Puts a row of the simple table.
async fn put(database: &Database, table: &Table, id: i64, columns: Vec<(ColumnName, Value)>) {
    let key = PrimaryKey::integer(id);
    let batch = WriteBatch::of(table, RowOperation::Put { key, columns }, Condition::none());
    database.write(batch).await.expect("a write");
}

/// Adds columns to a row of the simple table.
async fn add(database: &Database, table: &Table, id: i64, columns: Vec<(ColumnName, Value)>) {
    let changes = columns
        .into_iter()
        .map(|(column, value)| souk_storage::ColumnChange::Put {
            column: column.into(),
            value,
            version: None,
        });
    let update = RowOperation::Update {
        key: PrimaryKey::integer(id),
        changes: changes.collect(),
    };
    let batch = WriteBatch::of(table, update, Condition::none());
    database.write(batch).await.expect("a write");
}
