//! Concurrent writers and readers leave histories; each partition's must be linearisable: as if every operation had
//! happened at one moment between its call and its answer. A transaction is one operation from its beginning to its
//! commit; writers that it refuses have done nothing.

mod checker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use souk_storage::{
    ColumnChange, CommitOptions, Committed, Comparison, Condition, Database, DatabaseOptions, Durability,
    Error, Existence, Filter, KeyKind, KeyValue, PrimaryKey, ReturnRow, Row, RowOperation, RowWrite, Table,
    TableSchema, WriteBatch,
};

use self::checker::{Effect, Event, Must, Operation, Seen, longest_run};

const TASKS: u64 = 8;
const PARTITIONS: i64 = 3;
const ROWS: i64 = 2;
const NUMBER: &str = "number";

fn operations_per_task() -> usize {
    if std::env::var_os("SOUK_LONG").is_some() {
        5000
    } else {
        400
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_in_memory_are_linearisable() {
    let database = Database::in_memory(DatabaseOptions::default()).await;
    histories_are_linearisable(database.expect("a database")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_on_disk_are_linearisable() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::open(directory.path(), DatabaseOptions::default()).await;
    histories_are_linearisable(database.expect("a database")).await;
}

async fn histories_are_linearisable(database: Database) {
    let mut random = crate::commits::random();
    let schema = TableSchema::new("t")
        .key("partition", KeyKind::Integer)
        .key("row", KeyKind::Integer)
        .transactions();
    let table = database.ensure_table(schema).await.expect("a table");
    let clock = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let client = Client {
                database: database.clone(),
                table: table.clone(),
                clock: clock.clone(),
                random: Rng::with_seed(random.u64(..)),
                last_seen: BTreeMap::new(),
            };
            tokio::spawn(client.run())
        })
        .collect();
    let mut histories: BTreeMap<i64, Vec<Operation>> = BTreeMap::new();
    let mut refused = 0;
    for task in tasks {
        let (history, conflicts) = task.await.expect("a client");
        refused += conflicts;
        for (partition, operation) in history {
            histories.entry(partition).or_default().push(operation);
        }
    }
    println!("{refused} writers and transactions were refused by transactions");
    assert!(refused > 0, "no transaction met another writer");
    for (partition, history) in histories {
        let of_transactions = history.iter().filter(|each| match &each.event {
            Event::Wrote { saw, .. } => !saw.is_empty(),
            _ => false,
        });
        assert!(of_transactions.count() > 0, "no transaction was committed");
        let run = longest_run(&history);
        let concurrent = history
            .iter()
            .filter(|each| each.returned > each.invoked + 1)
            .count();
        println!(
            "partition {partition}: {} operations, {concurrent} overlapping",
            history.len()
        );
        assert!(concurrent > 0, "nothing happened at the same time");
        assert_eq!(run, history.len(), "partition {partition} is not linearisable");
    }
}

/// One of the tasks that work at the same time.
struct Client {
    database: Database,
    table: Table,
    clock: Arc<AtomicU64>,
    random: Rng,
    /// What it saw last of each row, to write conditions that often hold.
    last_seen: BTreeMap<(i64, i64), Seen>,
}

impl Client {
    /// What it did, and how many times a transaction was in the way.
    async fn run(mut self) -> (Vec<(i64, Operation)>, usize) {
        let mut history = Vec::new();
        let mut refused = 0;
        for _ in 0..operations_per_task() {
            let partition = self.random.i64(0..PARTITIONS);
            let invoked = self.clock.fetch_add(1, Ordering::SeqCst);
            // Others may come in between: without this, operations in memory hardly ever meet.
            tokio::task::yield_now().await;
            let event = match self.random.u8(0..12) {
                0..3 => Some(self.read(partition).await),
                3..9 => self.write(partition, 1).await,
                9 => self.write(partition, ROWS).await,
                _ => self.transact(partition).await,
            };
            let Some(event) = event else {
                refused += 1;
                continue;
            };
            let returned = self.clock.fetch_add(1, Ordering::SeqCst);
            let operation = Operation {
                invoked,
                returned,
                event,
            };
            history.push((partition, operation));
        }
        (history, refused)
    }

    /// Reads one or all rows of a partition in one snapshot.
    async fn read(&mut self, partition: i64) -> Event {
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        let rows = if self.random.bool() {
            0..ROWS
        } else {
            let row = self.random.i64(0..ROWS);
            row..row + 1
        };
        let mut saw = Vec::new();
        for row in rows {
            let found = snapshot.get(&self.table, &key(partition, row)).await;
            let seen = found.expect("a read").as_ref().map(seen);
            self.last_seen.insert((partition, row), seen);
            saw.push((row, seen));
        }
        Event::Saw(saw)
    }

    /// Writes so many rows of a partition in one batch; `None` when a transaction holds it.
    async fn write(&mut self, partition: i64, rows: i64) -> Option<Event> {
        let first = self.random.i64(0..=ROWS - rows);
        let mut batch = WriteBatch::new().durability(self.durability());
        let mut writes = Vec::new();
        for row in first..first + rows {
            let (write, must, effect) = self.row_write(partition, row);
            batch = batch.row(write);
            writes.push((row, must, effect));
        }
        match self.database.write(batch).await {
            Ok(committed) => Some(Event::Wrote {
                saw: Vec::new(),
                sequence: committed.sequence,
                writes: told(writes, &committed),
            }),
            Err(Error::ConditionFailed { write, .. }) => {
                let (row, must, _) = writes[write];
                Some(Event::Refused(row, must))
            }
            Err(Error::TransactionConflict { .. }) => None,
            Err(error) => panic!("a write failed: {error}"),
        }
    }

    /// Reads all rows of a partition and writes all or one of them, in a transaction; `None` when another one holds
    /// the partition.
    async fn transact(&mut self, partition: i64) -> Option<Event> {
        let begun = self
            .database
            .begin(&self.table, KeyValue::Integer(partition))
            .await;
        let mut transaction = match begun {
            Ok(transaction) => transaction,
            Err(Error::TransactionConflict { .. }) => return None,
            Err(error) => panic!("a transaction didn't begin: {error}"),
        };
        let mut saw = Vec::new();
        for row in 0..ROWS {
            let found = transaction.get(&key(partition, row)).await;
            let seen = found.expect("a read").as_ref().map(seen);
            self.last_seen.insert((partition, row), seen);
            saw.push((row, seen));
            // Others try to write meanwhile.
            tokio::task::yield_now().await;
        }
        if self.random.u8(0..8) == 0 {
            transaction.abort();
            return Some(Event::Saw(saw));
        }
        let first = self.random.i64(0..ROWS);
        let mut writes = Vec::new();
        for row in first..ROWS {
            let (write, must, effect) = self.row_write(partition, row);
            match transaction.write(vec![write]).await {
                Ok(rows) => {
                    let written = Committed {
                        rows,
                        ..Committed::default()
                    };
                    writes.extend(told(vec![(row, must, effect)], &written));
                }
                // It changes nothing, and the transaction goes on.
                Err(Error::ConditionFailed { .. }) => {}
                Err(error) => panic!("a write failed: {error}"),
            }
            tokio::task::yield_now().await;
        }
        let options = CommitOptions {
            durability: self.durability(),
            ..CommitOptions::default()
        };
        let committed = transaction.commit_with(options).await.expect("a commit");
        if writes.is_empty() {
            return Some(Event::Saw(saw));
        }
        Some(Event::Wrote {
            saw,
            writes,
            sequence: committed.sequence,
        })
    }

    fn durability(&mut self) -> Durability {
        if self.random.u8(0..8) == 0 {
            Durability::Disk
        } else {
            Durability::Buffered
        }
    }

    /// A write of a row, its condition and its effect.
    fn row_write(&mut self, partition: i64, row: i64) -> (RowWrite, Must, Effect) {
        let must = self.condition(partition, row);
        let (effect, operation) = self.operation(partition, row);
        let mut write = RowWrite::new(&self.table, operation, condition(must));
        if let Effect::Add(..) = effect {
            write = write.returning(ReturnRow::AfterModify(vec![NUMBER.to_owned()]));
        }
        (write, must, effect)
    }

    fn condition(&mut self, partition: i64, row: i64) -> Must {
        let last = self.last_seen.get(&(partition, row)).copied().flatten();
        match (self.random.u8(0..8), last) {
            (0, _) => Must::Exist,
            (1, _) => Must::NotExist,
            (2..5, Some((revision, _))) => Must::Revision(revision),
            (5, Some((_, number))) => Must::Number(number),
            _ => Must::Anything,
        }
    }

    fn operation(&mut self, partition: i64, row: i64) -> (Effect, RowOperation) {
        let key = key(partition, row);
        let number = self.random.i64(0..1000);
        let column = NUMBER.to_owned();
        match self.random.u8(0..5) {
            0 => (Effect::Delete, RowOperation::Delete { key }),
            1..3 => {
                let columns = vec![(column.into(), number.into())];
                (Effect::Put(number), RowOperation::Put { key, columns })
            }
            _ => {
                let changes = vec![ColumnChange::Increment { column, by: number }];
                (Effect::Add(number, None), RowOperation::Update { key, changes })
            }
        }
    }
}

/// The writes with the sums that were given back.
fn told(writes: Vec<(i64, Must, Effect)>, committed: &Committed) -> Vec<(i64, Must, Effect)> {
    let writes = writes.into_iter().zip(&committed.rows);
    let told = writes.map(|((row, must, effect), written)| match effect {
        Effect::Add(by, _) => {
            let after = written.row.as_ref().expect("the row that was asked for");
            (row, must, Effect::Add(by, Some(seen(after).1)))
        }
        effect @ (Effect::Put(_) | Effect::Delete) => (row, must, effect),
    });
    told.collect()
}

fn key(partition: i64, row: i64) -> PrimaryKey {
    PrimaryKey::new(vec![KeyValue::Integer(partition), KeyValue::Integer(row)]).expect("a key")
}

fn seen(row: &Row) -> (u64, i64) {
    let number = row.get(NUMBER).and_then(souk_storage::Value::as_integer);
    (row.revision, number.expect("a number"))
}

fn condition(must: Must) -> Condition {
    match must {
        Must::Anything => Condition::none(),
        Must::Exist => Condition::must_exist(),
        Must::NotExist => Condition::must_not_exist(),
        Must::Revision(revision) => Condition::revision(revision),
        Must::Number(number) => Condition {
            existence: Existence::Ignore,
            revision: None,
            columns: Some(Filter::column(NUMBER, Comparison::Equal, number)),
        },
    }
}
