//! Random writers while a feed is read in small pages, with lost batches, restarts, old snapshots and trimming.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_storage::{
    Change, ColumnChange, Condition, Consumer, Database, Direction, Durability, Feed, FeedOptions, FeedPhase,
    FeedRecord, FeedStart, FeedToken, KeyKind, ManualClock, PrimaryKey, RangeRequest, RecordKind,
    RowOperation, Table, TableSchema, WriteBatch,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::replica::{Id, Judge, Replica};
use super::{HOUR, START, both, changes, options};

const WRITERS: usize = 3;
const KEYS: i64 = 400;
/// Rows and changes that are there before the feed.
const BEFORE: usize = 600;
const STEPS: usize = 1200;
/// Rounds in memory of each kind.
const ROUNDS: usize = 4;
/// Batches the writers may be behind.
const BEHIND: usize = 12;

/// What a round does.
#[derive(Debug, Clone)]
struct Round {
    directory: Option<PathBuf>,
    base: bool,
    all_tables: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivers_everything_once_in_memory() {
    let mut random = crate::commits::random();
    for (base, all_tables) in [(true, true), (true, false), (false, true), (false, false)] {
        for _ in 0..ROUNDS {
            let round = Round {
                directory: None,
                base,
                all_tables,
            };
            Run::play(round, &mut random).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivers_everything_once_on_disk() {
    let mut random = crate::commits::random();
    for (base, all_tables) in [(true, true), (true, false), (false, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let round = Round {
            directory: Some(directory.path().to_owned()),
            base,
            all_tables,
        };
        Run::play(round, &mut random).await;
    }
}

struct Run {
    round: Round,
    clock: Arc<ManualClock>,
    database: Database,
    feed: Feed,
    recorder: Consumer,
    /// One for each batch that may be written.
    budget: Arc<Semaphore>,
    writers: JoinSet<()>,
    log: Vec<Change>,
    replica: Replica,
    judge: Judge,
    /// The end of what was read and isn't acknowledged.
    ahead: Option<FeedToken>,
    counts: BTreeMap<&'static str, usize>,
}

async fn open(directory: Option<&Path>, clock: &Arc<ManualClock>) -> Database {
    let database = match directory {
        Some(directory) => Database::open(directory, options(clock)).await,
        None => Database::in_memory(options(clock)).await,
    };
    database.expect("a database")
}

async fn table(database: &Database, name: &str) -> Table {
    let schema = TableSchema::new(name).key("id", KeyKind::Integer);
    database.ensure_table(schema).await.expect("a table")
}

fn batch(random: &mut Rng, tables: &[Table]) -> WriteBatch {
    let mut ids: Vec<_> = (0..random.usize(1..4))
        .map(|_| (random.usize(..tables.len()), random.i64(0..KEYS)))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let mut batch = WriteBatch::default().durability(Durability::Buffered);
    for (table, id) in ids {
        let key = PrimaryKey::integer(id);
        let value = random.i64(..);
        let operation = match random.u8(..10) {
            0..=3 => RowOperation::Delete { key },
            4..=6 => RowOperation::Put {
                key,
                columns: vec![("a".into(), value.into())],
            },
            _ => RowOperation::Update {
                key,
                changes: vec![ColumnChange::Put {
                    column: "b".to_owned(),
                    value: value.into(),
                    version: None,
                }],
            },
        };
        batch = batch.write(&tables[table], operation, Condition::none());
    }
    batch
}

impl Run {
    async fn play(round: Round, random: &mut Rng) {
        let clock = Arc::new(ManualClock::new(START));
        let database = open(round.directory.as_deref(), &clock).await;
        let tables = [table(&database, "first").await, table(&database, "second").await];
        for _ in 0..BEFORE {
            database.write(batch(random, &tables)).await.expect("a write");
        }
        let recorder = database.consumer("recorder").await.expect("a consumer");
        let mut options = if round.base {
            both()
        } else {
            changes(FeedStart::Oldest)
        };
        if !round.all_tables {
            options = options.table(&tables[1]);
        }
        let feed = create(&database, options).await;
        let mut run = Self {
            round,
            clock,
            database,
            feed,
            recorder,
            budget: Arc::new(Semaphore::new(0)),
            writers: JoinSet::new(),
            log: Vec::new(),
            replica: Replica::default(),
            judge: Judge::default(),
            ahead: None,
            counts: BTreeMap::new(),
        };
        run.write(random);
        for _ in 0..STEPS {
            run.step(random).await;
        }
        run.finish(random).await;
    }

    /// Starts the writers.
    fn write(&mut self, random: &mut Rng) {
        let tables = self.database.tables();
        for _ in 0..WRITERS {
            let mut random = random.fork();
            let (database, budget, tables) = (self.database.clone(), self.budget.clone(), tables.clone());
            self.writers.spawn(async move {
                while let Ok(one) = budget.acquire().await {
                    one.forget();
                    let batch = batch(&mut random, &tables);
                    database.write(batch).await.expect("a write");
                }
            });
        }
    }

    async fn stop_writers(&mut self) {
        self.writers.shutdown().await;
    }

    async fn step(&mut self, random: &mut Rng) {
        self.budget.add_permits(random.usize(..6));
        while self.budget.available_permits() > BEHIND {
            tokio::task::yield_now().await;
        }
        let what = match random.u16(..1000) {
            0..6 if self.round.directory.is_some() => {
                self.restart(random).await;
                "restarts"
            }
            6..9 => {
                table(&self.database, "late").await;
                "tables"
            }
            9..40 => {
                self.lose();
                "losses"
            }
            40..80 => {
                self.clock.advance(Duration::from_secs(random.u64(1..90)));
                "delays"
            }
            80..85 => {
                self.record().await;
                self.clock.advance(HOUR * 3);
                self.database.maintain().await.expect("maintenance");
                "trimmings"
            }
            85..700 => {
                self.read(random.usize(1..8)).await;
                "reads"
            }
            _ => {
                self.acknowledge().await;
                "acknowledgements"
            }
        };
        *self.counts.entry(what).or_default() += 1;
    }

    async fn read(&mut self, limit: usize) -> bool {
        let batch = match &self.ahead {
            Some(token) => self.feed.read_after(token, limit).await,
            None => self.feed.read(limit).await,
        };
        let batch = batch.expect("a batch");
        let is_change = |record: &FeedRecord| record.kind != RecordKind::Base;
        if matches!(batch.phase, FeedPhase::Base { .. }) && batch.records.iter().any(is_change) {
            *self
                .counts
                .entry("batches of changes among the base rows")
                .or_default() += 1;
        }
        self.judge.take(&batch);
        self.replica.take(&batch);
        self.ahead = Some(batch.token);
        batch.caught_up
    }

    async fn acknowledge(&mut self) {
        if let Some(token) = self.ahead.take() {
            self.feed.acknowledge(&token).await.expect("an acknowledgement");
            self.judge.acknowledge();
        }
    }

    fn lose(&mut self) {
        self.ahead = None;
        self.judge.lose();
    }

    async fn restart(&mut self, random: &mut Rng) {
        self.stop_writers().await;
        if random.bool() {
            self.lose();
        }
        if random.bool() {
            self.database.close().await.expect("a close");
        }
        // All handles go before it is opened again.
        let elsewhere = Database::in_memory(options(&self.clock))
            .await
            .expect("a database");
        self.recorder = elsewhere.consumer("recorder").await.expect("a consumer");
        self.feed = create(&elsewhere, both()).await;
        self.database = elsewhere;
        self.database = open(self.round.directory.as_deref(), &self.clock).await;
        self.recorder = self.database.consumer("recorder").await.expect("a consumer");
        self.feed = self.database.feed("feed").expect("the feed");
        self.write(random);
    }

    /// Keeps the log, which will be trimmed.
    async fn record(&mut self) {
        loop {
            let after = self.log.last().map_or(0, |change| change.sequence);
            let more = self.database.changes(after, 1000).await.expect("changes");
            let Some(last) = more.last() else { return };
            self.recorder.advance(last.sequence).await.expect("an advance");
            self.log.extend(more);
        }
    }

    async fn finish(mut self, random: &mut Rng) {
        self.budget.close();
        while let Some(writer) = self.writers.join_next().await {
            writer.expect("a writer");
        }
        while !self.read(random.usize(1..50)).await {
            self.acknowledge().await;
        }
        self.acknowledge().await;
        self.record().await;
        let description = self.feed.describe().await.expect("a description");
        let phase = (description.phase, description.lag_changes);
        assert_eq!(phase, (FeedPhase::Changes, 0));
        let tables = self.database.tables();
        let has = |table| description.tables.is_empty() || description.tables.contains(&table);
        let delivered = self.judge.finish(&self.log, has);
        println!(
            "{:?}: {delivered:?} of {} changes, {:?}",
            self.round,
            self.log.len(),
            self.counts
        );
        let mut expected = BTreeMap::new();
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        for table in tables.iter().filter(|table| has(table.id())) {
            let request = RangeRequest::all(Direction::Forward);
            let page = snapshot.range(table, &request).await.expect("a page");
            assert_eq!(page.next, None);
            let rows = page.rows.into_iter();
            expected.extend(rows.map(|row| -> (Id, _) { ((table.id(), row.key.clone()), row) }));
        }
        assert_eq!(self.replica.rows, expected);
        assert!(!expected.is_empty());
    }
}

async fn create(database: &Database, options: FeedOptions) -> Feed {
    database.create_feed("feed", options).await.expect("a feed")
}
