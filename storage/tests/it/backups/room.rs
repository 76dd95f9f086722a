//! A backup on the device of its database leaves writers their room.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use souk_storage::limits::BACKUP_RESERVES;
use souk_storage::{
    BackupFolder, BackupPolicy, Condition, Database, DatabaseOptions, FjallOptions, FreeSpace, Health,
    KeyKind, PrimaryKey, RowOperation, Table, TableSchema, WriteBatch,
};

use super::{folder, names};
use crate::commits::random;

const RESERVE: u64 = 1 << 20;
const ROWS: u32 = 200;
const ROW_BYTES: usize = 50_000;

/// A device that the backups alone fill.
#[derive(Debug)]
struct Device {
    backups: PathBuf,
    size: AtomicU64,
    least: AtomicU64,
}

impl Device {
    fn free(&self) -> u64 {
        self.size.load(Ordering::SeqCst) - used(&self.backups)
    }
}

impl FreeSpace for Device {
    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        let free = self.free();
        self.least.fetch_min(free, Ordering::SeqCst);
        Ok(free)
    }
}

/// Bytes of all files below a folder.
fn used(folder: &Path) -> u64 {
    let Ok(files) = fs::read_dir(folder) else {
        return 0;
    };
    let bytes = files.filter_map(|file| {
        let file = file.ok()?;
        let metadata = file.metadata().ok()?;
        Some(if metadata.is_dir() {
            used(&file.path())
        } else {
            metadata.len()
        })
    });
    bytes.sum()
}

fn put(table: &Table, id: u32, value: Vec<u8>) -> WriteBatch {
    let put = RowOperation::Put {
        key: PrimaryKey::integer(i64::from(id)),
        columns: vec![("value".into(), Bytes::from(value).into())],
    };
    WriteBatch::of(table, put, Condition::none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_does_not_fit_ends_before_writes_are_refused() {
    let mut random = random();
    let directory = folder();
    let backups = directory.path().join("backups");
    let device = Arc::new(Device {
        backups: backups.clone(),
        size: AtomicU64::new(u64::MAX),
        least: AtomicU64::new(u64::MAX),
    });
    let options = DatabaseOptions {
        fjall: FjallOptions {
            reserve_bytes: RESERVE,
            free_space: device.clone(),
            ..FjallOptions::default()
        },
        ..DatabaseOptions::default()
    };
    let database = Database::open(directory.path().join("db"), options).await;
    let database = database.expect("a database");
    let table = TableSchema::new("t").key("id", KeyKind::Integer);
    let table = database.ensure_table(table).await.expect("a table");
    for id in 0..ROWS {
        let mut value = vec![0; ROW_BYTES];
        random.fill(&mut value);
        database.write(put(&table, id, value)).await.expect("a write");
    }
    // What a process that was killed left behind; another backup is being taken.
    let killed = backups.join("20260101T000000.000Z-full.partial");
    fs::create_dir_all(&killed).expect("a folder");
    fs::write(killed.join("rows-00001.blocks"), vec![0; 1 << 20]).expect("a file");
    let taken = backups.join("20260102T000000.000Z-full.partial");
    fs::create_dir_all(&taken).expect("a folder");
    let lock = fs::File::create(taken.join("LOCK")).expect("a file");
    lock.lock().expect("a lock");

    // The rows fit, but not their log.
    let rows = u64::from(ROWS) * ROW_BYTES as u64;
    let kept = BACKUP_RESERVES * RESERVE;
    device.size.store(kept + rows * 3 / 2, Ordering::SeqCst);
    let folder = BackupFolder::new(&backups);
    let refused = folder.take(&database, BackupPolicy::default()).await;
    let error = refused.expect_err("it doesn't fit");
    assert_eq!((error.code(), error.retryable()), ("DISK_FULL", true));
    assert!(error.to_string().contains("BACKUP_RESERVES"), "{error}");
    let least = device.least.load(Ordering::SeqCst);
    assert!((kept..kept + rows).contains(&least), "{least} bytes were left");
    assert!(!killed.exists() && taken.exists());
    assert_eq!(used(&backups), 0, "the room is given back: {:?}", names(&backups));
    database.write(put(&table, 0, vec![])).await.expect("a write");
    assert_eq!(database.health(), Health::Serving);

    device.size.store(kept + rows * 3, Ordering::SeqCst);
    let backup = folder.take(&database, BackupPolicy::default()).await;
    assert!(backup.expect("a backup").is_some());
    assert!(device.least.load(Ordering::SeqCst) >= kept);
    assert!(device.free() >= kept);
}
