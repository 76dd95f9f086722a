//! Feeds: what is delivered, what is kept for them, and what is refused.

mod expiry;
mod model;
mod replica;
mod shards;

use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use souk_storage::{
    Condition, Database, DatabaseOptions, Error, FeedBatch, FeedOptions, FeedPhase, FeedSource, FeedStart,
    FeedToken, KeyKind, ManualClock, PrimaryKey, RecordKind, RowOperation, Table, TableSchema, WriteBatch,
};

const HOUR: Duration = Duration::from_secs(3600);
const START: i64 = 1_700_000_000_000_000_000;

/// A database with two tables and a clock that stands.
struct Store {
    clock: Arc<ManualClock>,
    database: Database,
    shops: Table,
    orders: Table,
}

impl Store {
    async fn in_memory() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let database = Database::in_memory(options(&clock)).await;
        Self::of(clock, database.expect("a database")).await
    }

    async fn open(directory: &Path, clock: &Arc<ManualClock>) -> Self {
        let database = Database::open(directory, options(clock)).await;
        Self::of(clock.clone(), database.expect("a database")).await
    }

    async fn of(clock: Arc<ManualClock>, database: Database) -> Self {
        let table = |name| database.ensure_table(TableSchema::new(name).key("id", KeyKind::Integer));
        Self {
            clock,
            shops: table("shops").await.expect("a table"),
            orders: table("orders").await.expect("a table"),
            database,
        }
    }

    async fn close(self) {
        self.database.close().await.expect("a close");
    }

    async fn put(&self, table: &Table, id: i64) -> u64 {
        self.write(
            table,
            RowOperation::Put {
                key: PrimaryKey::integer(id),
                columns: vec![("id_too".into(), id.into())],
            },
        )
        .await
    }

    async fn delete(&self, table: &Table, id: i64) -> u64 {
        let key = PrimaryKey::integer(id);
        self.write(table, RowOperation::Delete { key }).await
    }

    async fn write(&self, table: &Table, operation: RowOperation) -> u64 {
        let batch = WriteBatch::of(table, operation, Condition::none());
        self.database.write(batch).await.expect("a write").sequence
    }

    /// The oldest change after a pass of maintenance.
    async fn maintained(&self) -> u64 {
        self.database.maintain().await.expect("maintenance");
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        snapshot.oldest_change().await.expect("a sequence")
    }
}

fn options(clock: &Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock: clock.clone(),
        retention: HOUR,
        maintenance_interval: 1000 * HOUR,
        ..DatabaseOptions::default()
    }
}

fn both() -> FeedOptions {
    FeedOptions::new(FeedSource::BaseAndChanges)
}

fn changes(start: FeedStart) -> FeedOptions {
    FeedOptions::new(FeedSource::Changes(start))
}

/// Sequences of the records.
fn sequences(batch: &FeedBatch) -> Vec<u64> {
    batch.records.iter().map(|record| record.sequence).collect()
}

fn is_base(batch: &FeedBatch) -> bool {
    batch.records.iter().all(|record| record.kind == RecordKind::Base)
}

/// Begins a call, and gives it up.
async fn give_up(call: impl Future) {
    let mut call = Box::pin(call);
    std::future::poll_fn(|context| {
        assert!(call.as_mut().poll(context).is_pending(), "it waits for the disk");
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn what_is_given_up_half_way_is_done() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(START));
    let store = Store::open(directory.path(), &clock).await;
    let database = &store.database;
    // Whoever comes after a change of the feeds waits for it.
    let others = async |nth: usize| {
        let feed = database.create_feed(&format!("other{nth}"), both()).await;
        feed.expect("a feed");
    };
    store.put(&store.shops, 1).await;
    give_up(database.create_feed("copy", both())).await;
    others(0).await;
    let feed = database.feed("copy").expect("it was created");
    let first = feed.read(1).await.expect("a batch");
    give_up(feed.acknowledge(&first.token)).await;
    others(1).await;
    let behind = feed.read(1).await.expect("a batch");
    assert_eq!(behind.records.len(), 0, "it was acknowledged");
    give_up(feed.remove()).await;
    others(2).await;
    assert!(database.feed("copy").is_none());
    give_up(database.consumer("reader")).await;
    others(3).await;
    let consumers = database.consumers();
    assert_eq!(consumers.len(), 1);
    give_up(consumers[0].remove()).await;
    others(4).await;
    assert!(database.consumers().is_empty());
    store.close().await;
}

#[tokio::test]
async fn delivers_rows_then_changes() {
    let store = Store::in_memory().await;
    for id in 0..5 {
        store.put(&store.shops, id).await;
    }
    store.put(&store.orders, 1).await;
    let feed = store.database.create_feed("copy", both()).await.expect("a feed");
    let first = feed.read(3).await.expect("a batch");
    assert_eq!((sequences(&first), is_base(&first)), (vec![1, 2, 3], true));
    assert_eq!(first.sequence, 6);
    // Reading again gives the same; reading ahead goes on.
    assert_eq!(feed.read(3).await.expect("a batch"), first);
    let second = feed.read_after(&first.token, 3).await.expect("a batch");
    assert_eq!(sequences(&second), [4, 5]);
    let third = feed.read_after(&second.token, 3).await.expect("a batch");
    assert_eq!(
        (sequences(&third), third.records[0].table),
        (vec![6], store.orders.id())
    );
    let end = feed.read_after(&third.token, 3).await.expect("a batch");
    assert_eq!((sequences(&end), &end.phase), (vec![], &FeedPhase::Changes));
    // A row that was read, one that was not.
    let read = store.put(&store.shops, 0).await;
    let unread = store.put(&store.orders, 2).await;
    let changes = feed.read_after(&end.token, 9).await.expect("a batch");
    assert_eq!(
        (sequences(&changes), changes.caught_up),
        (vec![read, unread], true)
    );
    // From the middle of the base: the same snapshot, as long as it lives.
    let again = feed.read_after(&first.token, 3).await.expect("a batch");
    assert_eq!(again, second);
    store.clock.advance(souk_storage::limits::FEED_SNAPSHOT_LIFE);
    let changed = feed.read_after(&first.token, 3).await.expect("a batch");
    assert_eq!((sequences(&changed), is_base(&changed)), (vec![read], false));
    let rest = feed.read_after(&changed.token, 9).await.expect("a batch");
    assert_eq!(sequences(&rest), [4, 5]);
    let rest = feed.read_after(&rest.token, 9).await.expect("a batch");
    assert_eq!(sequences(&rest), [6, unread], "as they are in the new snapshot");
    assert!(is_base(&rest));
    feed.acknowledge(&rest.token).await.expect("an acknowledgement");
    let end = feed.read(9).await.expect("a batch");
    assert_eq!((sequences(&end), end.phase), (vec![], FeedPhase::Changes));
}

#[tokio::test]
async fn delivers_the_delete_of_a_row_that_got_lost() {
    let store = Store::in_memory().await;
    for id in 0..4 {
        store.put(&store.shops, id).await;
    }
    let feed = store.database.create_feed("copy", both()).await.expect("a feed");
    let lost = feed.read(2).await.expect("a batch");
    assert_eq!(sequences(&lost), [1, 2]);
    let deleted = store.delete(&store.shops, 0).await;
    store.delete(&store.shops, 1).await;
    let present = store.put(&store.shops, 1).await;
    store.clock.advance(souk_storage::limits::FEED_SNAPSHOT_LIFE);
    let deletes = feed.read(9).await.expect("a batch");
    assert_eq!(
        sequences(&deletes),
        [deleted],
        "but not of the row that is there again"
    );
    let rows = feed.read_after(&deletes.token, 9).await.expect("a batch");
    assert_eq!((sequences(&rows), is_base(&rows)), (vec![present, 3, 4], true));
}

#[tokio::test]
async fn delivers_the_delete_of_a_row_that_got_lost_in_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(START));
    let store = Store::open(directory.path(), &clock).await;
    for id in 0..4 {
        store.put(&store.shops, id).await;
    }
    let feed = store.database.create_feed("copy", both()).await.expect("a feed");
    let lost = feed.read(2).await.expect("a batch");
    assert_eq!(sequences(&lost), [1, 2]);
    drop((feed, store));
    let store = Store::open(directory.path(), &clock).await;
    let deleted = store.delete(&store.shops, 0).await;
    let feed = store.database.feed("copy").expect("the feed");
    let deletes = feed.read(9).await.expect("a batch");
    assert_eq!(sequences(&deletes), [deleted]);
    let rows = feed.read_after(&deletes.token, 9).await.expect("a batch");
    assert_eq!((sequences(&rows), is_base(&rows)), (vec![2, 3, 4], true));
}

#[tokio::test]
async fn looks_through_a_part_of_the_log_at_a_time() {
    let store = Store::in_memory().await;
    for id in 0..4 {
        store.put(&store.shops, id).await;
    }
    let options = both().table(&store.shops);
    let feed = store.database.create_feed("copy", options).await.expect("a feed");
    let first = feed.read(2).await.expect("a batch");
    assert_eq!(sequences(&first), [1, 2]);
    // Of a table that it doesn't deliver, and more than one read looks through.
    let text = "x".repeat(1_900_000);
    let mut last = 0;
    for _ in 0..souk_storage::limits::MAX_FEED_SCANNED_BYTES / text.len() + 8 {
        let key = PrimaryKey::integer(1);
        let columns = vec![("text".into(), text.as_str().into())];
        last = store
            .write(&store.orders, RowOperation::Put { key, columns })
            .await;
    }
    store.clock.advance(souk_storage::limits::FEED_SNAPSHOT_LIFE);
    let nothing = feed.read_after(&first.token, 9).await.expect("a batch");
    assert_eq!(sequences(&nothing), [0; 0]);
    assert!(
        first.sequence < nothing.sequence && nothing.sequence < last,
        "{nothing:?}"
    );
    let rest = feed.read_after(&nothing.token, 9).await.expect("a batch");
    assert_eq!((sequences(&rest), is_base(&rest)), (vec![3, 4], true));
}

#[tokio::test]
async fn delivers_rows_only() {
    let store = Store::in_memory().await;
    for id in 0..3 {
        store.put(&store.shops, id).await;
    }
    let base = FeedOptions::new(FeedSource::Base);
    let feed = store.database.create_feed("base", base).await.expect("a feed");
    let first = feed.read(2).await.expect("a batch");
    feed.acknowledge(&first.token).await.expect("an acknowledgement");
    store.put(&store.shops, 0).await;
    let late = store.put(&store.shops, 9).await;
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 6, "nothing is kept for it");
    let second = feed.read(9).await.expect("a batch");
    assert_eq!(sequences(&second), [3, late], "of a newer snapshot");
    let end = feed.read_after(&second.token, 9).await.expect("a batch");
    assert_eq!((sequences(&end), end.caught_up), (vec![], true));
    feed.acknowledge(&end.token).await.expect("an acknowledgement");
    let description = feed.describe().await.expect("a description");
    assert_eq!(description.phase, FeedPhase::Finished);
    assert_eq!((description.lag_changes, description.lag), (0, Duration::ZERO));
    let end = feed.read(9).await.expect("a batch");
    assert_eq!((sequences(&end), end.caught_up), (vec![], true));
}

#[tokio::test]
async fn delivers_changes_from_where_it_was_started() {
    let store = Store::in_memory().await;
    let mut times = vec![];
    for id in 0..4 {
        store.clock.advance(HOUR / 2);
        times.push(START + (id + 1) * 1_800_000_000_000);
        store.put(&store.shops, id).await;
    }
    store.put(&store.orders, 1).await;
    let read = async |name: &str, options: FeedOptions| {
        let feed = store.database.create_feed(name, options).await?;
        Ok::<_, Error>(sequences(&feed.read(9).await?))
    };
    let expect = |found: Result<Vec<u64>, Error>| found.expect("a batch");
    assert_eq!(
        expect(read("oldest", changes(FeedStart::Oldest)).await),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(expect(read("newest", changes(FeedStart::Newest)).await), []);
    assert_eq!(expect(read("after", changes(FeedStart::After(3))).await), [4, 5]);
    let orders = changes(FeedStart::Oldest).table(&store.orders);
    assert_eq!(expect(read("orders", orders).await), [5]);
    assert_eq!(
        expect(read("last", changes(FeedStart::Time(times[3]))).await),
        [4, 5]
    );
    let between = changes(FeedStart::Time(times[2] + 1));
    assert_eq!(expect(read("between", between).await), [4, 5]);
    let third = changes(FeedStart::Time(times[2]));
    assert_eq!(expect(read("third", third).await), [3, 4, 5]);
    // Outside of the log and of the retention.
    for start in [
        FeedStart::After(6),
        FeedStart::Time(times[3] + 1),
        FeedStart::Time(times[1] + 300_000_000_000 - 1),
    ] {
        let refused = read("refused", changes(start)).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    assert!(store.database.feed("refused").is_none());
}

#[tokio::test]
async fn is_refused() {
    let store = Store::in_memory().await;
    let database = &store.database;
    let invalid = database.create_feed("no name", both()).await;
    assert!(matches!(invalid, Err(Error::Invalid { .. })), "{invalid:?}");
    let long = both().hold(souk_storage::limits::MAX_FEED_HOLD + HOUR);
    let invalid = database.create_feed("long", long).await;
    assert!(matches!(invalid, Err(Error::Invalid { .. })), "{invalid:?}");
    let other = Store::in_memory().await;
    let foreign = database.create_feed("foreign", both().table(&other.shops)).await;
    assert!(matches!(foreign, Err(Error::TableNotFound { .. })), "{foreign:?}");

    let feed = database.create_feed("feed", changes(FeedStart::Newest)).await;
    let feed = feed.expect("a feed");
    let again = database.create_feed("feed", both()).await;
    assert!(matches!(again, Err(Error::FeedExists { .. })), "{again:?}");
    store.put(&store.shops, 1).await;
    let first = feed.read(1).await.expect("a batch").token;
    store.put(&store.shops, 1).await;
    let second = feed.read_after(&first, 1).await.expect("a batch").token;
    feed.acknowledge(&second).await.expect("an acknowledgement");
    feed.acknowledge(&second).await.expect("the same again");
    let stale = feed.acknowledge(&first).await;
    assert!(
        matches!(
            stale,
            Err(Error::FeedTokenStale {
                token: 1,
                acknowledged: 2,
                ..
            })
        ),
        "{stale:?}"
    );

    let beyond = FeedToken::from_bytes({
        let mut bytes = second.as_bytes().to_vec();
        bytes[17] += 1;
        bytes
    });
    for token in [
        beyond,
        FeedToken::from_bytes(vec![]),
        FeedToken::from_bytes(vec![1; 9]),
    ] {
        let invalid = feed.acknowledge(&token).await;
        assert!(
            matches!(invalid, Err(Error::FeedTokenInvalid { .. })),
            "{invalid:?}"
        );
        let invalid = feed.read_after(&token, 1).await;
        assert!(
            matches!(invalid, Err(Error::FeedTokenInvalid { .. })),
            "{invalid:?}"
        );
    }

    let handle = feed.clone();
    feed.remove().await.expect("a removal");
    let gone = handle.read(1).await;
    assert!(matches!(gone, Err(Error::FeedNotFound { .. })), "{gone:?}");
    let gone = handle.acknowledge(&second).await;
    assert!(matches!(gone, Err(Error::FeedNotFound { .. })), "{gone:?}");
    // A token of the feed that had the name before.
    store.clock.advance(HOUR);
    let feed = database.create_feed("feed", changes(FeedStart::Oldest)).await;
    let foreign = feed.expect("a feed").acknowledge(&second).await;
    assert!(
        matches!(foreign, Err(Error::FeedTokenInvalid { .. })),
        "{foreign:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stands_where_it_was_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(START));
    let store = Store::open(directory.path(), &clock).await;
    for id in 0..4 {
        store.put(&store.shops, id).await;
    }
    let options = both().table(&store.shops).hold(2 * HOUR);
    let feed = store.database.create_feed("copy", options).await.expect("a feed");
    let first = feed.read(1).await.expect("a batch");
    feed.acknowledge(&first.token).await.expect("an acknowledgement");
    let before = feed.describe().await.expect("a description");
    drop(feed);
    store.close().await;

    let store = Store::open(directory.path(), &clock).await;
    assert_eq!(store.database.feeds().len(), 1);
    let feed = store.database.feed("copy").expect("the feed");
    assert_eq!(feed.describe().await.expect("a description"), before);
    let next = FeedPhase::Base {
        table: store.shops.id(),
        next: Some(PrimaryKey::integer(1)),
    };
    assert_eq!((before.phase, before.position), (next, 4));
    let (changed, _) = (store.put(&store.shops, 0).await, store.put(&store.shops, 3).await);
    clock.advance(HOUR / 4);
    let now = feed.describe().await.expect("a description");
    assert_eq!((now.lag_changes, now.lag), (2, HOUR / 4));
    let caught_up = feed.read(9).await.expect("a batch");
    assert_eq!(sequences(&caught_up), [changed]);
    let rows = feed.read_after(&caught_up.token, 9).await.expect("a batch");
    assert_eq!((sequences(&rows), rows.sequence), (vec![2, 3, 6], 6));
    let end = feed.read_after(&rows.token, 9).await.expect("a batch");
    feed.acknowledge(&end.token).await.expect("an acknowledgement");
    drop(feed);
    store.close().await;

    let store = Store::open(directory.path(), &clock).await;
    let feed = store.database.feed("copy").expect("the feed");
    let description = feed.describe().await.expect("a description");
    assert_eq!((description.phase, description.position), (FeedPhase::Changes, 6));
    feed.remove().await.expect("a removal");
    drop((feed, store));
    let store = Store::open(directory.path(), &clock).await;
    assert!(store.database.feeds().is_empty());
}
