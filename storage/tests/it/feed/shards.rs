//! Shards: several readers share the rows of a table, and write what they make of them with what they acknowledge.

use std::collections::BTreeMap;
use std::path::Path;

use souk_storage::{
    Acknowledgement, ColumnChange, CommitOptions, Committed, Condition, Database, DatabaseOptions, Direction,
    Durability, Error, Feed, FeedBatch, FeedOptions, FeedPhase, FeedShard, FeedSource, FeedStart, FeedToken,
    KeyKind, KeyValue, PrimaryKey, RangeRequest, RequestRecord, RowOperation, RowWrite, Table, TableSchema,
    WriteBatch,
};

use super::replica::{Judge, Replica};

const SHARDS: u16 = 5;
const PARTITIONS: i64 = 40;
const STEPS: usize = 600;

fn name(shard: u16) -> String {
    format!("shard_{shard}")
}

fn shards(table: &Table, source: FeedSource) -> Vec<(String, FeedOptions)> {
    let shard = |index| {
        let shard = FeedShard { index, count: SHARDS };
        (name(index), FeedOptions::new(source).table(table).shard(shard))
    };
    (0..SHARDS).map(shard).collect()
}

fn key(partition: i64, id: i64) -> PrimaryKey {
    let partition = format!("partition \0 {partition}");
    PrimaryKey::new(vec![partition.as_str().into(), KeyValue::Integer(id)]).expect("a key")
}

fn put(key: PrimaryKey, value: i64) -> RowOperation {
    let columns = vec![("a".into(), value.into())];
    RowOperation::Put { key, columns }
}

async fn visits(database: &Database) -> Table {
    let schema = TableSchema::new("visits")
        .key("place", KeyKind::String)
        .key("id", KeyKind::Integer)
        .transactions();
    database.ensure_table(schema).await.expect("a table")
}

fn batch(random: &mut fastrand::Rng, table: &Table) -> WriteBatch {
    let mut batch = WriteBatch::new().durability(Durability::Buffered);
    let keys: std::collections::BTreeSet<_> = (0..random.usize(1..5))
        .map(|_| (random.i64(..PARTITIONS), random.i64(..4)))
        .collect();
    for (partition, id) in keys {
        let key = key(partition, id);
        let operation = match random.u8(..4) {
            0 => RowOperation::Delete { key },
            _ => put(key, random.i64(..)),
        };
        batch = batch.write(table, operation, Condition::none());
    }
    batch
}

/// A reader of a shard.
#[derive(Default)]
struct Reader {
    replica: Replica,
    judge: Judge,
    ahead: Option<FeedToken>,
}

impl Reader {
    /// Reads on; whether there was nothing more.
    async fn read(&mut self, feed: &Feed, limit: usize) -> bool {
        let batch = match &self.ahead {
            Some(token) => feed.read_after(token, limit).await,
            None => feed.read(limit).await,
        };
        let batch = batch.expect("a batch");
        self.judge.take(&batch);
        self.replica.take(&batch);
        self.ahead = Some(batch.token);
        batch.caught_up
    }

    async fn acknowledge(&mut self, feed: &Feed) {
        if let Some(token) = self.ahead.take() {
            feed.acknowledge(&token).await.expect("an acknowledgement");
            self.judge.acknowledge();
        }
    }

    fn lose(&mut self) {
        self.ahead = None;
        self.judge.lose();
    }
}

#[tokio::test]
async fn a_change_that_is_larger_than_an_answer_comes_in_parts() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = async || {
        let database = Database::open(directory.path(), DatabaseOptions::default()).await;
        database.expect("a database")
    };
    let database = open().await;
    let table = visits(&database).await;
    let text = "x".repeat(900 << 10);
    for id in 0..8 {
        let columns = vec![("a".into(), text.as_str().into())];
        let key = key(1, id);
        let batch = WriteBatch::of(&table, RowOperation::Put { key, columns }, Condition::none());
        database.write(batch).await.expect("a write");
    }
    let options = FeedOptions::new(FeedSource::Changes(FeedStart::Newest)).table(&table);
    let feed = database.create_feed("feed", options).await.expect("a feed");
    // A small write, of which the log has all of the rows.
    let mut batch = WriteBatch::new();
    for id in 0..8 {
        let change = ColumnChange::Put {
            column: "b".to_owned(),
            value: 1.into(),
            version: None,
        };
        let operation = RowOperation::Update {
            key: key(1, id),
            changes: vec![change],
        };
        batch = batch.write(&table, operation, Condition::none());
    }
    let change = database.write(batch).await.expect("a write").sequence;
    database
        .write(WriteBatch::of(&table, put(key(1, 9), 9), Condition::none()))
        .await
        .expect("a write");

    let told = |batch: &FeedBatch| {
        let records = batch.records.iter();
        let told = records.map(|record| (record.sequence, record.index));
        (batch.sequence, told.collect::<Vec<_>>())
    };
    let first = feed.read(0).await.expect("a batch");
    let of_change = |rows: std::ops::Range<usize>| rows.map(|index| (change, index)).collect::<Vec<_>>();
    assert_eq!(told(&first), (change - 1, of_change(0..3)));
    let second = feed.read_after(&first.token, 0).await.expect("a batch");
    assert_eq!(told(&second), (change - 1, of_change(3..6)));
    assert!(!second.caught_up);
    feed.acknowledge(&second.token).await.expect("an acknowledgement");
    let stale = feed.acknowledge(&first.token).await;
    assert!(matches!(stale, Err(Error::FeedTokenStale { .. })), "{stale:?}");
    drop((table, feed));
    database.close().await.expect("a close");
    drop(database);

    let database = open().await;
    let feed = database.feed("feed").expect("the feed");
    let third = feed.read(0).await.expect("a batch");
    assert_eq!(told(&third), (change, of_change(6..8)));
    assert!(!third.caught_up);
    let next = feed.read_after(&third.token, 0).await.expect("a batch");
    assert_eq!(told(&next), (change + 1, vec![(change + 1, 0)]));
}

#[tokio::test]
async fn only_a_feed_of_rows_alone_has_an_end() {
    let options = DatabaseOptions::default();
    let database = Database::in_memory(options).await.expect("a database");
    let create =
        async |name: &str, source: FeedSource| database.create_feed(name, FeedOptions::new(source)).await;
    let rows = create("rows", FeedSource::Base).await.expect("a feed");
    let end = rows.end().expect("an end");
    rows.acknowledge(&end).await.expect("an acknowledgement");
    let batch = rows.read(9).await.expect("a batch");
    assert_eq!(batch.phase, FeedPhase::Finished);
    assert_eq!((batch.records.len(), batch.token), (0, end));
    for (name, source) in [
        ("changes", FeedSource::Changes(FeedStart::Oldest)),
        ("both", FeedSource::BaseAndChanges),
    ] {
        let feed = create(name, source).await.expect("a feed");
        let refused = feed.end().expect_err(name);
        assert!(matches!(refused, Error::FeedTokenInvalid { .. }), "{refused:?}");
        assert!(refused.advice().contains("of rows alone"), "{refused:?}");
    }
}

#[tokio::test]
async fn each_partition_is_in_one_shard_and_all_of_it_there() {
    let mut random = crate::commits::random();
    let directory = tempfile::tempdir().expect("a directory");
    let open = async |directory: &Path| {
        let database = Database::open(directory, DatabaseOptions::default()).await;
        database.expect("a database")
    };
    let mut database = open(directory.path()).await;
    let mut table = visits(&database).await;
    for _ in 0..STEPS / 4 {
        database.write(batch(&mut random, &table)).await.expect("a write");
    }
    let before = database.last_sequence();
    let feeds = shards(&table, FeedSource::BaseAndChanges);
    database.create_feeds(feeds).await.expect("feeds");
    let mut readers: Vec<Reader> = (0..SHARDS).map(|_| Reader::default()).collect();
    let feed = |database: &Database, shard: usize| {
        let shard = u16::try_from(shard).expect("a shard");
        database.feed(&name(shard)).expect("a feed")
    };
    for _ in 0..STEPS {
        let shard = random.usize(..readers.len());
        match random.u8(..20) {
            0..8 => {
                database.write(batch(&mut random, &table)).await.expect("a write");
            }
            8..15 => {
                readers[shard]
                    .read(&feed(&database, shard), random.usize(1..9))
                    .await;
            }
            15..18 => readers[shard].acknowledge(&feed(&database, shard)).await,
            18 => readers[shard].lose(),
            _ if random.u8(..10) == 0 => {
                drop(table);
                database.close().await.expect("a close");
                drop(database);
                database = open(directory.path()).await;
                table = visits(&database).await;
            }
            _ => {}
        }
    }
    let log = database.changes(before, 10_000).await.expect("changes");
    let (mut rows, mut shard_of) = (BTreeMap::new(), BTreeMap::new());
    let mut delivered = (0, 0);
    for (shard, mut reader) in readers.into_iter().enumerate() {
        let feed = feed(&database, shard);
        while !reader.read(&feed, random.usize(1..50)).await {
            reader.acknowledge(&feed).await;
        }
        reader.acknowledge(&feed).await;
        for partition in 0..PARTITIONS {
            let shard = u16::try_from(shard).expect("a shard");
            let told = FeedShard {
                index: shard,
                count: SHARDS,
            };
            if told.has(&key(partition, 0)) {
                assert_eq!(shard_of.insert(partition, shard), None, "{partition} is in two");
            }
        }
        let of_shard = |key: &PrimaryKey| {
            let index = u16::try_from(shard).expect("a shard");
            FeedShard { index, count: SHARDS }.has(key)
        };
        for (_, key) in reader.replica.rows.keys() {
            assert!(of_shard(key), "{key:?} isn't of shard {shard}");
        }
        let mut log = log.clone();
        for change in &mut log {
            change.rows.retain(|row| of_shard(&row.key));
        }
        let (base, changes) = reader.judge.finish(&log, |_| true);
        delivered = (delivered.0 + base, delivered.1 + changes);
        rows.extend(reader.replica.rows);
    }
    assert_eq!(shard_of.len(), usize::try_from(PARTITIONS).expect("a number"));
    let snapshot = database.snapshot().await.expect("a snapshot");
    let page = snapshot
        .range(&table, &RangeRequest::all(Direction::Forward))
        .await;
    let expected = page.expect("a page").rows.into_iter();
    let expected = expected.map(|row| ((table.id(), row.key.clone()), row));
    assert_eq!(rows, expected.collect());
    println!("{delivered:?} of {} changes", log.len());
    assert!(delivered.0 > 0 && delivered.1 > 0, "{delivered:?}");
}

/// A database with a table, of which a feed has two records to tell.
struct Telling {
    database: Database,
    table: Table,
    feed: Feed,
}

impl Telling {
    async fn new() -> Self {
        let database = Database::in_memory(DatabaseOptions::default()).await;
        let database = database.expect("a database");
        let table = visits(&database).await;
        let options = FeedOptions::new(FeedSource::Changes(FeedStart::Newest)).table(&table);
        let feed = database.create_feed("feed", options).await.expect("a feed");
        for id in 0..2 {
            let batch = WriteBatch::of(&table, put(key(0, id), id), Condition::none());
            database.write(batch).await.expect("a write");
        }
        Self {
            database,
            table,
            feed,
        }
    }

    /// The token behind the next record.
    async fn next(&self) -> FeedToken {
        self.feed.read(1).await.expect("a batch").token
    }

    async fn position(&self) -> u64 {
        self.feed.describe().await.expect("a description").position
    }

    fn batch(&self, id: i64) -> WriteBatch {
        WriteBatch::of(&self.table, put(key(1, id), id), Condition::must_not_exist())
    }

    async fn write(&self, batch: WriteBatch, token: &FeedToken) -> Result<Committed, Error> {
        let acknowledgement = Acknowledgement::new(&self.feed, token);
        self.database.write_acknowledging(batch, acknowledgement).await
    }

    async fn is_there(&self, id: i64) -> bool {
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        let row = snapshot.get(&self.table, &key(1, id)).await;
        row.expect("a read").is_some()
    }
}

#[tokio::test]
async fn a_write_happens_with_what_it_acknowledges_or_not_at_all() {
    let telling = Telling::new().await;
    let (start, token) = (telling.position().await, telling.next().await);
    let both = telling.write(telling.batch(7), &token).await;
    both.expect("both happen");
    let moved = telling.position().await;
    assert!(moved > start && telling.is_there(7).await);

    // The same again, as of a reader who doesn't know what became of it: nothing happens.
    let again = telling.write(telling.batch(8), &token).await;
    assert!(matches!(again, Err(Error::FeedTokenStale { .. })), "{again:?}");
    assert!(!telling.is_there(8).await);
    // What is refused of the rows leaves the feed where it is.
    let token = telling.next().await;
    let refused = telling.write(telling.batch(7), &token).await;
    assert!(
        matches!(refused, Err(Error::ConditionFailed { .. })),
        "{refused:?}"
    );
    assert_eq!(telling.position().await, moved);
    // A write that changes no row moves it, too.
    let key = key(2, 0);
    let nothing = WriteBatch::of(&telling.table, RowOperation::Delete { key }, Condition::none());
    telling.write(nothing, &token).await.expect("it moves");
    assert!(telling.position().await > moved);
}

#[tokio::test]
async fn a_write_that_is_repeated_by_its_request_is_answered_as_the_first_time() {
    let telling = Telling::new().await;
    let token = telling.next().await;
    let request = RequestRecord {
        id: [7; 16],
        fingerprint: 1,
        reply: "done".into(),
    };
    let write = || telling.write(telling.batch(7).request(request.clone()), &token);
    let first = write().await.expect("a write");
    let position = telling.position().await;
    let second = write().await.expect("the same answer");
    assert_eq!((first.sequence, first.replayed), (second.sequence, None));
    assert_eq!(second.replayed, Some("done".into()));
    assert_eq!(telling.position().await, position);
}

#[tokio::test]
async fn a_transaction_commits_with_what_it_acknowledges_or_not_at_all() {
    let telling = Telling::new().await;
    let token = telling.next().await;
    let commit = async |id: i64| {
        let mut transaction = telling
            .database
            .begin(&telling.table, "partition \0 1".into())
            .await
            .expect("a transaction");
        let write = RowWrite::new(&telling.table, put(key(1, id), id), Condition::none());
        transaction.write(vec![write]).await.expect("a write");
        let options = CommitOptions {
            acknowledges: Some(Acknowledgement::new(&telling.feed, &token)),
            ..CommitOptions::default()
        };
        transaction.commit_with(options).await
    };
    let start = telling.position().await;
    commit(7).await.expect("both happen");
    let moved = telling.position().await;
    assert!(moved > start && telling.is_there(7).await);
    let again = commit(8).await;
    assert!(matches!(again, Err(Error::FeedTokenStale { .. })), "{again:?}");
    assert!(!telling.is_there(8).await);
}

#[tokio::test]
async fn are_created_and_removed_all_or_none() {
    let telling = Telling::new().await;
    let (database, table) = (&telling.database, &telling.table);
    let source = FeedSource::Changes(FeedStart::Newest);
    let names = || {
        database
            .feeds()
            .iter()
            .map(|feed| feed.name().to_owned())
            .collect::<Vec<_>>()
    };

    let mut feeds = shards(table, source);
    feeds.push(("feed".to_owned(), FeedOptions::new(source)));
    let taken = database.create_feeds(feeds).await;
    assert!(matches!(taken, Err(Error::FeedExists { .. })), "{taken:?}");
    assert_eq!(names(), ["feed"]);

    let feeds = database.create_feeds(shards(table, source)).await.expect("feeds");
    let (first, second) = (&feeds[0], &feeds[1]);
    let token = first.read(1).await.expect("a batch").token;
    let other = second.acknowledge(&token).await;
    assert!(
        matches!(other, Err(Error::FeedTokenInvalid { .. })),
        "of another shard: {other:?}"
    );
    let shard = first.describe().await.expect("a description").shard;
    let (index, count) = (0, SHARDS);
    assert_eq!(shard, Some(FeedShard { index, count }));

    let write = WriteBatch::of(table, put(key(1, 1), 1), Condition::none());
    database.write(write).await.expect("a write");
    for lags in [true, false] {
        let described = Feed::describe_all(&feeds, lags).await.expect("descriptions");
        for (feed, of_all) in feeds.iter().zip(described) {
            let alone = feed.describe().await.expect("a description");
            assert_eq!((&of_all.name, of_all.shard), (&alone.name, alone.shard));
            assert!(of_all.lag_changes > 0, "{of_all:?}");
            assert!(lags || of_all.lag.is_zero(), "{of_all:?}");
        }
    }
    // By name, 10 comes before 2.
    let many = (0..12).map(|index| {
        let shard = FeedShard { index, count: 12 };
        (format!("many_{index}_x"), FeedOptions::new(source).shard(shard))
    });
    let many = database.create_feeds(many.collect()).await.expect("feeds");
    for (index, feed) in (0..).zip(&many) {
        let shard = feed.describe().await.expect("a description").shard;
        assert_eq!(shard, Some(FeedShard { index, count: 12 }));
        feed.remove().await.expect("a removal");
    }

    let mut all: Vec<_> = (0..SHARDS).map(name).collect();
    all.push("none".to_owned());
    let unknown = database.remove_feeds(all.clone()).await;
    assert!(matches!(unknown, Err(Error::FeedNotFound { .. })), "{unknown:?}");
    all.pop();
    assert_eq!(names().len(), 1 + all.len());
    database.remove_feeds(all).await.expect("a removal");
    assert_eq!(names(), ["feed"]);

    for (index, count) in [(0, 65), (3, 3)] {
        let options = FeedOptions::new(source).shard(FeedShard { index, count });
        let refused = database.create_feed("other", options).await;
        let is_refused = matches!(refused, Err(Error::LimitExceeded { .. } | Error::Invalid { .. }));
        assert!(is_refused, "{refused:?}");
    }
    let elsewhere = Telling::new().await;
    let acknowledgement = Acknowledgement::new(&telling.feed, &telling.next().await);
    let refused = elsewhere
        .database
        .write_acknowledging(telling.batch(7), acknowledgement)
        .await;
    assert!(refused.is_err(), "a feed of another database");
}
