//! A database on a device whose room is scripted.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use souk_storage::{
    Condition, Database, DatabaseOptions, FeedOptions, FeedSource, FjallOptions, FreeSpace, Health, KeyKind,
    PrimaryKey, RowOperation, TableSchema, WriteBatch,
};

const RESERVE: u64 = 1000;

#[derive(Debug)]
struct Device(AtomicU64);

impl FreeSpace for Device {
    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::SeqCst))
    }
}

fn device(free: u64) -> (Arc<Device>, DatabaseOptions) {
    let device = Arc::new(Device(AtomicU64::new(free)));
    let options = DatabaseOptions {
        fjall: FjallOptions {
            memory_bytes: 16 << 20,
            reserve_bytes: RESERVE,
            free_space: device.clone(),
            ..FjallOptions::default()
        },
        ..DatabaseOptions::default()
    };
    (device, options)
}

/// Moving a consumer forward is what lets the log be trimmed: it is taken for as long as trimming is, and what was
/// refused can be retried with the same handle.
#[tokio::test]
async fn moves_and_removes_consumers_for_as_long_as_it_trims() {
    let directory = tempfile::tempdir().expect("a directory");
    let (device, options) = device(RESERVE);
    let database = Database::open(directory.path(), options)
        .await
        .expect("a database");
    let table = TableSchema::new("rows").key("id", KeyKind::Integer);
    let table = database.ensure_table(table).await.expect("a table");
    let put = |id| {
        let put = RowOperation::Put {
            key: PrimaryKey::integer(id),
            columns: vec![],
        };
        WriteBatch::of(&table, put, Condition::default())
    };
    let consumer = database.consumer("index").await.expect("a consumer");
    let feed = FeedOptions::new(FeedSource::Base);
    let feed = database.create_feed("build", feed).await.expect("a feed");
    database.write(put(1)).await.expect("a write");
    database.write(put(2)).await.expect("a write");

    device.0.store(0, Ordering::SeqCst);
    while database.write(put(3)).await.is_ok() {}
    // What comes together with a refused commit is judged by the same look at the device: not these.
    database.maintain().await.expect("upkeep");
    device.0.store(RESERVE / 4, Ordering::SeqCst);
    consumer.advance(1).await.expect("a quarter is enough");
    device.0.store(RESERVE / 4 - 1, Ordering::SeqCst);
    let short = [
        consumer.advance(2).await,
        consumer.remove().await,
        feed.remove().await,
    ];
    for refused in short {
        let error = refused.expect_err("too little room");
        assert_eq!((error.code(), error.retryable()), ("DISK_FULL", true));
    }
    assert_eq!((consumer.position(), database.feeds().len()), (1, 1));
    database.maintain().await.expect("upkeep");
    device.0.store(RESERVE / 4, Ordering::SeqCst);
    consumer.advance(2).await.expect("an advance");
    assert_eq!(consumer.position(), 2);
    consumer.remove().await.expect("a removal");
    consumer.remove().await.expect("nothing");
    feed.remove().await.expect("a removal");
    assert_eq!((consumer.position(), database.feeds().len()), (0, 0));
}

/// The same through the tables: the error says what to do, and deleting a row is possible.
#[tokio::test]
async fn tells_the_writer_of_a_row() {
    let directory = tempfile::tempdir().expect("a directory");
    let (device, options) = device(RESERVE);
    let database = Database::open(directory.path(), options.clone())
        .await
        .expect("a database");
    let table = TableSchema::new("rows").key("id", KeyKind::String);
    let table = database.ensure_table(table).await.expect("a table");
    let key = PrimaryKey::string("a").expect("a key");
    let columns = vec![("column".into(), "value".into())];
    let put = |columns| {
        let put = RowOperation::Put {
            key: key.clone(),
            columns,
        };
        WriteBatch::of(&table, put, Condition::default())
    };
    database.write(put(columns.clone())).await.expect("a write");
    database.close().await.expect("a close");
    drop(database);

    device.0.store(RESERVE / 2, Ordering::SeqCst);
    let database = Database::open(directory.path(), options)
        .await
        .expect("a database");
    let table = database.table("rows").expect("the table");
    let put = {
        let put = RowOperation::Put {
            key: key.clone(),
            columns,
        };
        WriteBatch::of(&table, put, Condition::default())
    };
    let error = database.write(put).await.expect_err("no room");
    assert_eq!((error.code(), error.retryable()), ("DISK_FULL", true));
    assert!(error.to_string().contains("500 bytes are free"), "{error}");
    assert!(matches!(database.health(), Health::Full { .. }));
    assert!(
        database
            .snapshot()
            .await
            .expect("a snapshot")
            .get(&table, &key)
            .await
            .expect("a read")
            .is_some()
    );
    let delete = RowOperation::Delete { key: key.clone() };
    let delete = WriteBatch::of(&table, delete, Condition::default());
    database.write(delete).await.expect("a delete");
    database.maintain().await.expect("upkeep");
    let disk = database
        .statistics()
        .await
        .expect("statistics")
        .disk
        .expect("a disk");
    assert_eq!((disk.free, disk.reserve), (Some(RESERVE / 2), RESERVE));
}
