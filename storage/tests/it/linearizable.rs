//! Concurrent writers and readers leave histories; each partition's must be linearisable: as if every operation had
//! happened at one moment between its call and its answer. A transaction is one operation from its beginning to its
//! commit; writers that it refuses have done nothing. Writes carry request ids, and are tried again, by others at the same time
//! and after a restart: an attempt that finds the request applied gets the first answer, and does nothing.

mod checker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use souk_storage::{
    ColumnChange, CommitOptions, Committed, Comparison, Condition, Database, DatabaseOptions, Durability,
    Error, Existence, Filter, KeyKind, KeyValue, PrimaryKey, RequestRecord, ReturnRow, Row, RowOperation,
    RowWrite, Table, TableSchema, WriteBatch,
};

use self::checker::{Effect, Event, Must, Operation, Request, Seen, longest_run};

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
    let database = database.expect("a database");
    histories_are_linearisable(async || database.clone(), &[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_on_disk_are_linearisable() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = async || {
        let database = Database::open(directory.path(), DatabaseOptions::default()).await;
        database.expect("a database")
    };
    histories_are_linearisable(open, &[2, 1]).await;
}

/// Between two of the `parts`, of so many shares of the operations, the database is closed and opened again.
async fn histories_are_linearisable(open: impl AsyncFn() -> Database, parts: &[usize]) {
    let mut random = crate::commits::random();
    let clock = Arc::new(AtomicU64::new(0));
    let asked = Arc::new(Asked::default());
    let mut histories: BTreeMap<i64, Vec<Operation>> = BTreeMap::new();
    let (mut refused, mut reopened) = (0, u64::MAX);
    for part in parts {
        let database = open().await;
        let schema = TableSchema::new("t")
            .key("partition", KeyKind::Integer)
            .key("row", KeyKind::Integer)
            .transactions();
        let table = database.ensure_table(schema).await.expect("a table");
        reopened = clock.load(Ordering::SeqCst);
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let client = Client {
                    database: database.clone(),
                    table: table.clone(),
                    clock: clock.clone(),
                    asked: asked.clone(),
                    random: Rng::with_seed(random.u64(..)),
                    last_seen: BTreeMap::new(),
                };
                let operations = operations_per_task() * part / parts.iter().sum::<usize>();
                tokio::spawn(client.run(operations))
            })
            .collect();
        for task in tasks {
            let (history, conflicts) = task.await.expect("a client");
            refused += conflicts;
            for (partition, operation) in history {
                histories.entry(partition).or_default().push(operation);
            }
        }
        if parts.len() > 1 {
            database.close().await.expect("a close");
        }
    }
    assert_repeated(histories.values().flatten(), reopened);
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

/// Requests were repeated while the first attempt was under way, and some of those from before the last opening after it.
fn assert_repeated<'a>(history: impl Iterator<Item = &'a Operation>, reopened: u64) {
    let mut attempts: BTreeMap<u64, Vec<&Operation>> = BTreeMap::new();
    for operation in history {
        if let Some(request) = operation.request {
            attempts.entry(request.id).or_default().push(operation);
        }
    }
    let (mut repeated, mut at_once, mut later) = (0, 0, 0);
    for attempts in attempts.values() {
        let replayed = |attempt: &Operation| attempt.request.is_some_and(|request| request.replayed);
        let Some(first) = attempts.iter().find(|attempt| !replayed(attempt)) else {
            continue;
        };
        for attempt in attempts.iter().filter(|attempt| replayed(attempt)) {
            repeated += 1;
            at_once += u32::from(attempt.invoked < first.returned && first.invoked < attempt.returned);
            later += u32::from(first.returned < reopened && reopened <= attempt.invoked);
        }
    }
    println!("{repeated} requests were repeated, {at_once} at the same time, {later} after the restart");
    assert!(
        repeated > 0 && at_once > 0,
        "no request was repeated at the same time"
    );
    assert!(
        later > 0 || reopened == 0,
        "no request was repeated after the restart"
    );
}

/// The requests that clients have made, to make them again.
#[derive(Default)]
struct Asked(Mutex<Vec<Ask>>);

/// A request: a batch of one partition.
#[derive(Clone)]
struct Ask {
    id: u64,
    partition: i64,
    durability: Durability,
    /// Each with the number of its row.
    writes: Vec<(i64, (RowWrite, Must, Effect))>,
}

impl Asked {
    /// Notes a request, before anyone makes it.
    fn note(&self, mut ask: Ask) -> Ask {
        let mut asked = self.0.lock().expect("no client panicked");
        ask.id = asked.len() as u64;
        asked.push(ask.clone());
        ask
    }

    /// One of a partition: mostly one of the last.
    fn again(&self, partition: i64, random: &mut Rng) -> Option<Ask> {
        let asked = self.0.lock().expect("no client panicked");
        let far = if random.u8(0..4) == 0 { asked.len() } else { 2 };
        let of_partition = asked.iter().rev().filter(|ask| ask.partition == partition);
        let recent: Vec<_> = of_partition.take(far).collect();
        random.choice(recent).cloned()
    }
}

/// One of the tasks that work at the same time.
struct Client {
    database: Database,
    table: Table,
    clock: Arc<AtomicU64>,
    asked: Arc<Asked>,
    random: Rng,
    /// What it saw last of each row, to write conditions that often hold.
    last_seen: BTreeMap<(i64, i64), Seen>,
}

impl Client {
    /// What it did, and how many times a transaction was in the way.
    async fn run(mut self, operations: usize) -> (Vec<(i64, Operation)>, usize) {
        let mut history = Vec::new();
        let mut refused = 0;
        for _ in 0..operations {
            let partition = self.random.i64(0..PARTITIONS);
            let invoked = self.clock.fetch_add(1, Ordering::SeqCst);
            // Others may come in between: without this, operations in memory hardly ever meet.
            tokio::task::yield_now().await;
            let answer = match self.random.u8(0..16) {
                0..3 => Some((self.read(partition).await, None)),
                3..8 => self.write(partition, 1).await,
                8 => self.write(partition, ROWS).await,
                9..14 => self.repeat(partition).await,
                _ => self.transact(partition).await.map(|event| (event, None)),
            };
            let Some((event, request)) = answer else {
                refused += 1;
                continue;
            };
            let returned = self.clock.fetch_add(1, Ordering::SeqCst);
            let operation = Operation {
                invoked,
                returned,
                event,
                request,
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
    async fn write(&mut self, partition: i64, rows: i64) -> Option<(Event, Option<Request>)> {
        let first = self.random.i64(0..=ROWS - rows);
        let ask = Ask {
            id: 0,
            partition,
            durability: self.durability(),
            writes: (first..first + rows)
                .map(|row| (row, self.row_write(partition, row)))
                .collect(),
        };
        if self.random.u8(0..3) == 0 {
            return self.ask(ask, false).await;
        }
        let ask = self.asked.note(ask);
        self.ask(ask, true).await
    }

    /// Makes a request that somebody has made, or is about to.
    async fn repeat(&mut self, partition: i64) -> Option<(Event, Option<Request>)> {
        match self.asked.again(partition, &mut self.random) {
            Some(ask) => self.ask(ask, true).await,
            None => self.write(partition, 1).await,
        }
    }

    async fn ask(&mut self, ask: Ask, by_id: bool) -> Option<(Event, Option<Request>)> {
        let mut batch = WriteBatch::new().durability(ask.durability);
        let mut writes = Vec::new();
        for (row, (mut write, must, effect)) in ask.writes {
            writes.push((row, must, effect));
            // The handle may be one from before the restart.
            write.table = self.table.clone();
            batch = batch.row(write);
        }
        if by_id {
            batch = batch.request(RequestRecord {
                id: u128::from(ask.id).to_be_bytes(),
                fingerprint: ask.id,
                reply: Bytes::new(),
            });
        }
        let (event, replayed) = match self.database.write(batch).await {
            Ok(committed) => {
                let event = Event::Wrote {
                    saw: Vec::new(),
                    sequence: committed.sequence,
                    writes: told(writes, &committed),
                };
                (event, committed.replayed.is_some())
            }
            Err(Error::ConditionFailed { write, .. }) => {
                let (row, must, _) = writes[write];
                (Event::Refused(row, must), false)
            }
            Err(Error::TransactionConflict { .. }) => return None,
            Err(error) => panic!("a write failed: {error}"),
        };
        let request = Request { id: ask.id, replayed };
        Some((event, by_id.then_some(request)))
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
