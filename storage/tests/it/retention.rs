//! How long changes and requests are kept, and who holds them back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use souk_storage::{
    Clock as _, Condition, Database, DatabaseOptions, Error, FeedOptions, FeedSource, FeedStart, KeyKind,
    ManualClock, PrimaryKey, RequestRecord, RowOperation, Table, TableSchema, WriteBatch,
};

const HOUR: Duration = Duration::from_secs(3600);

struct Store {
    clock: Arc<ManualClock>,
    options: DatabaseOptions,
    database: Database,
    table: Table,
}

impl Store {
    async fn open(directory: &Path) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
        let options = DatabaseOptions {
            clock: clock.clone(),
            retention: HOUR,
            request_retention: 2 * HOUR,
            maintenance_interval: 1000 * HOUR,
            ..DatabaseOptions::default()
        };
        let database = Database::open(directory, options.clone())
            .await
            .expect("a database");
        let schema = TableSchema::new("t").key("id", KeyKind::Integer);
        let table = database.ensure_table(schema).await.expect("a table");
        Self {
            clock,
            options,
            database,
            table,
        }
    }

    async fn reopen(mut self, directory: &Path) -> Self {
        self.database.close().await.expect("a close");
        drop(self.database);
        let database = Database::open(directory, self.options.clone()).await;
        self.database = database.expect("a database");
        self.table = self.database.table("t").expect("a table");
        self
    }

    async fn write(&self, request: Option<[u8; 16]>) -> Option<Bytes> {
        let put = RowOperation::Put {
            key: PrimaryKey::integer(1),
            columns: vec![],
        };
        let mut batch = WriteBatch::of(&self.table, put, Condition::none());
        batch.request = request.map(|id| RequestRecord {
            id,
            fingerprint: 1,
            reply: Bytes::from_static(b"reply"),
        });
        self.database.write(batch).await.expect("a write").replayed
    }

    /// The oldest change after a pass of maintenance.
    async fn maintained(&self) -> u64 {
        self.database.maintain().await.expect("maintenance");
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        snapshot.oldest_change().await.expect("a sequence")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trims_what_is_past_the_retention() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).await;
    assert_eq!(store.maintained().await, 1);
    store.write(None).await;
    store.clock.advance(HOUR / 2);
    store.write(None).await;
    assert_eq!(store.maintained().await, 1);
    store.clock.advance(HOUR / 2);
    assert_eq!(store.maintained().await, 2);
    let trimmed = store.database.changes(0, 10).await;
    assert!(
        matches!(
            trimmed,
            Err(Error::ChangesTrimmed {
                requested: 0,
                oldest: 2
            })
        ),
        "{trimmed:?}"
    );
    assert_eq!(store.database.changes(1, 10).await.expect("changes").len(), 1);
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 3);
    // An empty log goes on where it was.
    let store = store.reopen(directory.path()).await;
    assert_eq!(store.database.last_sequence(), 2);
    store.write(None).await;
    let changes = store.database.changes(2, 10).await.expect("changes");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].sequence, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_what_a_consumer_has_not_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).await;
    let slow = store.database.consumer("slow").await.expect("a consumer");
    let fast = store.database.consumer("fast").await.expect("a consumer");
    for _ in 0..4 {
        store.write(None).await;
    }
    fast.advance(4).await.expect("an advance");
    slow.advance(2).await.expect("an advance");
    slow.advance(1).await.expect("nothing");
    assert_eq!((slow.position(), fast.position()), (2, 4));
    let beyond = fast.advance(5).await;
    assert!(matches!(beyond, Err(Error::Invalid { .. })), "{beyond:?}");
    assert_eq!(store.maintained().await, 1, "the retention holds");
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 3);
    drop((slow, fast));
    let store = store.reopen(directory.path()).await;
    let slow = store.database.consumer("slow").await.expect("a consumer");
    assert_eq!(slow.position(), 2);
    assert_eq!(store.maintained().await, 3);
    let late = store.database.consumer("late").await.expect("a consumer");
    assert_eq!(late.position(), 2, "before the oldest that is kept");
    let other = late.clone();
    late.remove().await.expect("a removal");
    let removed = other.advance(3).await;
    assert!(matches!(removed, Err(Error::Invalid { .. })), "{removed:?}");
    slow.remove().await.expect("a removal");
    assert_eq!(store.maintained().await, 5);
    let name = store.database.consumer("no name").await;
    assert!(matches!(name, Err(Error::Invalid { .. })), "{name:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_requests_as_long_as_it_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).await;
    assert_eq!(store.write(Some([1; 16])).await, None);
    store.clock.advance(HOUR);
    assert_eq!(store.write(Some([2; 16])).await, None);
    store.maintained().await;
    let store = store.reopen(directory.path()).await;
    assert!(store.write(Some([1; 16])).await.is_some());
    store.clock.advance(HOUR + Duration::from_nanos(1));
    store.maintained().await;
    assert!(store.write(Some([2; 16])).await.is_some());
    assert_eq!(store.write(Some([1; 16])).await, None, "it was swept");
}

/// A clock that was ahead dates changes in the future. They are kept for one retention more than others, from when
/// trimming meets them, not until their date has come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trims_changes_dated_in_the_future() {
    const START: i64 = 1_700_000_000_000_000_000;
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).await;
    let feed = FeedOptions::new(FeedSource::Changes(FeedStart::Newest)).hold(2 * HOUR);
    store.database.create_feed("slow", feed).await.expect("a feed");
    store.write(None).await;
    for years in [10, 1] {
        store.clock.advance(365 * 24 * years * HOUR);
        store.write(None).await;
        store.clock.set(START);
    }
    store.write(None).await;
    // The feed holds the first change for another hour.
    store.clock.set(START);
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 1);
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 2);
    let seen = store.clock.now();
    let store = store.reopen(directory.path()).await;
    store.clock.advance(HOUR);
    store.write(None).await;
    assert_eq!(store.maintained().await, 2, "held by the feed");
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 5, "two hours after they were seen");
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    assert_eq!(
        snapshot
            .sequence_at(seen + 1)
            .await
            .expect("nothing later is gone"),
        4
    );
    drop(snapshot);

    // The same without a feed, and with a clock that was ahead when trimming met them.
    store
        .database
        .feed("slow")
        .expect("the feed")
        .remove()
        .await
        .expect("a removal");
    let now = store.clock.now();
    store.clock.advance(365 * 24 * 20 * HOUR);
    store.write(None).await;
    store.clock.set(now);
    store.clock.advance(365 * 24 * HOUR);
    assert_eq!(store.maintained().await, 6);
    store.clock.set(now);
    store.clock.advance(HOUR / 2);
    assert_eq!(store.maintained().await, 6);
    store.clock.advance(HOUR / 2);
    assert_eq!(store.maintained().await, 6);
    store.clock.advance(HOUR / 2);
    assert_eq!(store.maintained().await, 7);
}

/// A request of the future is forgotten one retention after the sweep met it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgets_requests_dated_in_the_future() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).await;
    let now = store.clock.now();
    store.clock.advance(365 * 24 * HOUR);
    assert_eq!(store.write(Some([1; 16])).await, None);
    store.clock.set(now);
    assert_eq!(store.write(Some([2; 16])).await, None);
    store.maintained().await;
    store.clock.advance(2 * HOUR);
    store.maintained().await;
    assert!(store.write(Some([1; 16])).await.is_some());
    assert!(store.write(Some([2; 16])).await.is_some());
    store.clock.advance(Duration::from_nanos(1));
    store.maintained().await;
    assert_eq!(store.write(Some([1; 16])).await, None, "it was swept");
    assert_eq!(store.write(Some([2; 16])).await, None, "it was swept");
    store.database.close().await.expect("a close");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trims_a_long_log_in_steps() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path()).await;
    let writes = souk_storage::limits::SWEEP_STEP as u64 * 2 + 1;
    let put = RowOperation::Put {
        key: PrimaryKey::integer(1),
        columns: vec![],
    };
    let batch = WriteBatch::of(&store.table, put, Condition::none());
    let batch = batch.durability(souk_storage::Durability::Buffered);
    for _ in 0..writes {
        store.database.write(batch.clone()).await.expect("a write");
    }
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, writes + 1);
}
