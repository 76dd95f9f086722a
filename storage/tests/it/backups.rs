//! Backups: what is restored is what was there; what isn't whole is refused.

mod interrupted;
mod room;

use std::fs;
use std::path::Path;

use souk_kv::Space;
use souk_storage::backup::{BackupFolder, BackupPolicy};
use souk_storage::limits::MAX_KEY_VALUE_BYTES;
use souk_storage::restore::{restore, verify};
use souk_storage::{
    Backfill, Backup, BackupKind, Condition, Database, DatabaseOptions, Direction, Error, FeedOptions,
    FeedSource, FeedStart, KeyKind, PrimaryKey, RowOperation, SecondaryIndexSchema, TableSchema, WriteBatch,
};
use tempfile::TempDir;

use crate::commits::random;
use crate::sample::{HOUR, Sample, dump};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    names.sort();
    names
}

fn assert_unusable<T: std::fmt::Debug>(result: Result<T, Error>, what: &str) {
    assert!(
        matches!(result, Err(Error::UnusableBackup { .. })),
        "{what}: {result:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_full_backup_is_the_same_to_the_byte() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(400).await;
    let backup = sample
        .database
        .backup(directory.path().join("backup"), None)
        .await;
    let backup = backup.expect("a backup");
    assert_eq!(backup.manifest.kind, BackupKind::Full);
    assert_eq!(backup.manifest.sequence, 400);
    assert_eq!(Backup::open(&backup.directory).await.expect("the backup"), backup);
    sample.close().await;
    let verified = verify(std::slice::from_ref(&backup))
        .await
        .expect("a whole backup");
    assert_eq!(verified.bytes, backup.manifest.bytes());
    let target = directory.path().join("restored");
    let restored = restore(&[backup], &target).await.expect("a restore");
    assert_eq!(restored.sequence, 400);
    assert!(restored.check.is_whole(), "{:#?}", restored.check.problems);
    assert_eq!(dump(&target).await, dump(&directory.path().join("db")).await);
    assert_eq!(names(directory.path()), ["backup", "db", "restored"]);
    // It goes on where it was.
    let database = Database::open(&target, DatabaseOptions::default()).await;
    assert_eq!(database.expect("a database").last_sequence(), 400);
}

/// What a restored database writes is told from what its original wrote, and from what another restore of it writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_database_begins_another_history() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(20).await;
    let first = sample.database.history();
    assert_eq!(sample.database.history_of(1), first);
    let full = sample.database.backup(directory.path().join("full"), None).await;
    let full = full.expect("a backup");
    sample.write(10).await;
    let next = sample
        .database
        .backup(directory.path().join("next"), Some(&full))
        .await;
    let chain = [full, next.expect("a backup")];
    sample.close().await;
    let mut histories = vec![first];
    for (name, chain) in [("a", &chain[..]), ("b", &chain), ("c", &chain[..1])] {
        let target = directory.path().join(name);
        let last = restore(chain, &target).await.expect("a restore").sequence;
        for reopened in [false, true] {
            let database = Database::open(&target, DatabaseOptions::default()).await;
            let database = database.expect("a database");
            assert_eq!(database.history_of(last), first);
            let own = database.history();
            assert_eq!(database.history_of(last + 1), own);
            assert_eq!(histories.contains(&own), reopened);
            if !reopened {
                histories.push(own);
            }
            database.close().await.expect("a close");
        }
    }
    // And on: a backup of the restored one.
    let database = Database::open(&directory.path().join("a"), DatabaseOptions::default()).await;
    let database = database.expect("a database");
    let backup = database.backup(directory.path().join("again"), None).await;
    database.close().await.expect("a close");
    let target = directory.path().join("d");
    restore(&[backup.expect("a backup")], &target)
        .await
        .expect("a restore");
    let database = Database::open(&target, DatabaseOptions::default()).await;
    let database = database.expect("a database");
    assert_eq!((database.history_of(1), database.history_of(30)), (first, first));
    assert!(!histories.contains(&database.history()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_feed_from_before_a_restore_is_refused() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(20).await;
    let changes = FeedOptions::new(FeedSource::Changes(FeedStart::Oldest));
    let feed = sample.database.create_feed("f", changes).await.expect("a feed");
    let kept = feed.read(0).await.expect("a batch").token;
    let backup = sample
        .database
        .backup(directory.path().join("backup"), None)
        .await;
    sample.write(10).await;
    let lost = feed.read_after(&kept, 0).await.expect("a batch").token;
    feed.acknowledge(&kept).await.expect("it is of this feed");
    drop(feed);
    sample.close().await;
    let target = directory.path().join("restored");
    restore(&[backup.expect("a backup")], &target)
        .await
        .expect("a restore");
    let mut sample = Sample::open(&target, random()).await;
    sample.write(30).await;
    let feed = sample.database.feed("f").expect("the feed");
    for refused in [
        feed.read_after(&lost, 0).await.map(|_| ()),
        feed.acknowledge(&lost).await,
    ] {
        let refused = refused
            .expect_err("other changes have these sequences")
            .to_string();
        assert!(refused.contains("history"), "{refused}");
    }
    assert!(
        !feed
            .read_after(&kept, 0)
            .await
            .expect("a batch")
            .records
            .is_empty()
    );
    feed.acknowledge(&kept).await.expect("it is of this history");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_is_restored() {
    let directory = folder();
    let database = Database::in_memory(DatabaseOptions::default()).await;
    let database = database.expect("a database");
    let backup = database.backup(directory.path().join("backup"), None).await;
    let backup = backup.expect("a backup");
    let table = TableSchema::new("t").key("id", KeyKind::Integer);
    database.ensure_table(table).await.expect("a table");
    let later = database
        .backup(directory.path().join("later"), Some(&backup))
        .await;
    let later = later.expect("a backup");
    let target = directory.path().join("restored");
    let restored = restore(&[backup, later], &target).await.expect("a restore");
    assert_eq!(restored.sequence, 0);
    let database = Database::open(&target, DatabaseOptions::default()).await;
    assert!(database.expect("a database").table("t").is_some());
}

/// Rows are deleted, tables are added, changes are trimmed in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_chain_of_backups_is_the_same_to_the_byte() {
    let mut random = random();
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random.fork()).await;
    let mut chain: Vec<Backup> = Vec::new();
    for round in 0..5 {
        sample.write(random.usize(..150)).await;
        if round == 2 {
            let table = TableSchema::new("late").key("id", KeyKind::Integer);
            sample.database.ensure_table(table).await.expect("a table");
        }
        let target = directory.path().join(format!("backup-{round}"));
        let backup = sample.database.backup(target, chain.last()).await;
        chain.push(backup.expect("a backup"));
        let consumer = sample.database.consumer("reader").await.expect("a consumer");
        // All but the last change, which the next backup begins from.
        let last = sample.database.last_sequence();
        consumer
            .advance(last.saturating_sub(1))
            .await
            .expect("an advance");
        sample.clock.advance(2 * HOUR);
        sample.database.maintain().await.expect("maintenance");
        assert_eq!(
            last - sample
                .database
                .snapshot()
                .await
                .expect("a snapshot")
                .oldest_change()
                .await
                .expect("a sequence"),
            0
        );
    }
    let last = sample
        .database
        .backup(directory.path().join("backup-last"), chain.last())
        .await;
    chain.push(last.expect("a backup"));
    sample.close().await;
    for backup in chain.iter().skip(1) {
        assert!(matches!(backup.manifest.kind, BackupKind::Incremental { .. }));
        assert_eq!(backup.manifest.entries(Space::Rows), 0);
    }
    verify(&chain).await.expect("whole backups");
    let target = directory.path().join("restored");
    let restored = restore(&chain, &target).await.expect("a restore");
    assert!(restored.check.is_whole(), "{:#?}", restored.check.problems);
    assert_eq!(dump(&target).await, dump(&directory.path().join("db")).await);
}

/// Of an index that was created without the rows there were: a full backup holds the entries it had, a chain has them made of the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_restored_of_a_chain_says_that_it_holds_all_rows() {
    let directory = folder();
    let database = Database::in_memory(DatabaseOptions::default()).await;
    let database = database.expect("a database");
    let schema = TableSchema::new("t").key("id", KeyKind::Integer);
    let table = database.create_table(schema).await.expect("a table");
    let put = async |id: i64, word: String| {
        let put = RowOperation::Put {
            key: PrimaryKey::integer(id),
            columns: vec![("word".into(), 1.into()), ("long".into(), word.into())],
        };
        let batch = WriteBatch::of(&table, put, Condition::none());
        database.write(batch).await.expect("a write");
    };
    put(1, "x".repeat(MAX_KEY_VALUE_BYTES + 1)).await;
    for column in ["word", "long"] {
        let index = SecondaryIndexSchema::new(column, [column]);
        let created = database.create_index(&table, index, Backfill::None).await;
        created.expect("an index");
    }
    let full = database.backup(directory.path().join("full"), None).await;
    let full = full.expect("a backup");
    put(2, "y".to_owned()).await;
    let next = database.backup(directory.path().join("next"), Some(&full)).await;
    let chain = [full, next.expect("a backup")];
    for (name, chain, expected) in [
        // Row 1 can't stand in the index of its long value.
        ("chain", &chain[..], [("word", false, 2), ("long", true, 1)]),
        ("alone", &chain[..1], [("word", true, 0), ("long", true, 0)]),
    ] {
        let target = directory.path().join(name);
        let restored = restore(chain, &target).await.expect("a restore");
        assert!(restored.check.is_whole(), "{:#?}", restored.check.problems);
        let database = Database::open(&target, DatabaseOptions::default()).await;
        let database = database.expect("a database");
        let table = database.table("t").expect("the table");
        let snapshot = database.snapshot().await.expect("a snapshot");
        for (index, is_partial, entries) in expected {
            assert_eq!(
                table.index_is_partial(index).expect("the index"),
                is_partial,
                "{name} {index}"
            );
            let page = snapshot.index_range(&table, index, &[], None, Direction::Forward, 0);
            assert_eq!(
                page.await.expect("a page").entries.len(),
                entries,
                "{name} {index}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_database_at_work_is_one_moment_of_it() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(50).await;
    let database = sample.database.clone();
    let writer = tokio::spawn(async move {
        sample.write(600).await;
        sample
    });
    let mut chain: Vec<Backup> = Vec::new();
    for number in 0..4 {
        let target = directory.path().join(format!("backup-{number}"));
        chain.push(database.backup(target, chain.last()).await.expect("a backup"));
    }
    let sample = writer.await.expect("a writer");
    for length in 1..=chain.len() {
        let target = directory.path().join(format!("restored-{length}"));
        let restored = restore(&chain[..length], &target).await.expect("a restore");
        assert!(restored.check.is_whole(), "{:#?}", restored.check.problems);
        let sequence = chain[length - 1].manifest.sequence;
        assert_eq!(restored.sequence, sequence);
        let store = Database::open(&target, DatabaseOptions::default()).await;
        let store = store.expect("a database");
        let expected = sample.database.changes(0, sequence as usize).await;
        assert_eq!(
            store.changes(0, 10_000).await.expect("changes"),
            expected.expect("changes")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_flipped_byte_of_a_backup_is_accepted() {
    let directory = folder();
    let mut random = random();
    let mut sample = Sample::open(&directory.path().join("db"), random.fork()).await;
    sample.write(30).await;
    let full = sample.database.backup(directory.path().join("full"), None).await;
    let full = full.expect("a backup");
    sample.write(10).await;
    let next = sample
        .database
        .backup(directory.path().join("next"), Some(&full))
        .await;
    let next = next.expect("a backup");
    let target = directory.path().join("restored");
    let reopened = async || -> Result<Vec<Backup>, Error> {
        Ok(vec![
            Backup::open(&full.directory).await?,
            Backup::open(&next.directory).await?,
        ])
    };
    for backup in [&full, &next] {
        for name in names(&backup.directory) {
            let path = backup.directory.join(&name);
            let whole = fs::read(&path).expect("its bytes");
            let offsets = (0..whole.len()).step_by(1 + whole.len() / 300);
            for at in offsets {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << random.u8(..8);
                fs::write(&path, damaged).expect("a write");
                let result = async { verify(&reopened().await?).await }.await;
                assert_unusable(result, &format!("a flip in {name} at {at}"));
            }
            for (what, damaged) in [
                ("cut", whole[..whole.len() - 1].to_vec()),
                ("empty", Vec::new()),
                ("longer", [whole.as_slice(), b"x"].concat()),
                ("twice", [whole.as_slice(), whole.as_slice()].concat()),
                ("zeroes", vec![0; whole.len()]),
            ] {
                fs::write(&path, damaged).expect("a write");
                let result = async { restore(&reopened().await?, &target).await }.await;
                assert_unusable(result, &format!("{name} {what}"));
                assert!(!target.exists());
            }
            fs::remove_file(&path).expect("a removal");
            let result = async { restore(&reopened().await?, &target).await }.await;
            assert!(result.is_err(), "without {name}");
            assert!(!target.exists());
            fs::write(&path, whole).expect("a write");
        }
    }
    let restored = restore(&reopened().await.expect("backups"), &target).await;
    assert_eq!(restored.expect("a restore").sequence, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_that_do_not_follow_each_other_are_refused() {
    let mut random = random();
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random.fork()).await;
    sample.write(10).await;
    let place = |name: &str| directory.path().join(name);
    let a = sample.database.backup(place("a"), None).await.expect("a backup");
    sample.write(10).await;
    let b = sample
        .database
        .backup(place("b"), Some(&a))
        .await
        .expect("a backup");
    sample.write(10).await;
    let c = sample
        .database
        .backup(place("c"), Some(&b))
        .await
        .expect("a backup");
    let target = place("restored");
    for (what, chain) in [
        ("without a full one", vec![b.clone(), c.clone()]),
        ("with a hole", vec![a.clone(), c.clone()]),
        ("in another order", vec![a.clone(), c.clone(), b.clone()]),
        ("twice", vec![a.clone(), a.clone()]),
        ("two of the same", vec![a.clone(), b.clone(), b.clone()]),
    ] {
        assert_unusable(restore(&chain, &target).await, what);
        assert_unusable(verify(&chain).await, what);
    }
    assert!(matches!(restore(&[], &target).await, Err(Error::Invalid { .. })));
    // Another database, whose log has other changes of the same numbers.
    let mut other = Sample::open(&place("other"), random.fork()).await;
    other.write(15).await;
    assert_unusable(other.database.backup(place("d"), Some(&b)).await, "ahead");
    other.write(15).await;
    assert_unusable(
        other.database.backup(place("d"), Some(&b)).await,
        "another history",
    );
    // Changes that are no longer kept.
    let consumer = sample.database.consumer("reader").await.expect("a consumer");
    consumer
        .advance(sample.database.last_sequence())
        .await
        .expect("an advance");
    sample.clock.advance(2 * HOUR);
    sample.database.maintain().await.expect("maintenance");
    let late = sample.database.backup(place("d"), Some(&c)).await;
    assert!(matches!(late, Err(Error::ChangesTrimmed { .. })), "{late:?}");
    // A place that is taken.
    let taken = sample.database.backup(place("a"), None).await;
    assert!(matches!(taken, Err(Error::Invalid { .. })), "{taken:?}");
    let full = restore(std::slice::from_ref(&a), directory.path()).await;
    assert!(matches!(full, Err(Error::Invalid { .. })), "{full:?}");
    assert!(!names(directory.path()).iter().any(|name| name.contains('.')));
    // An empty directory is a place to restore to.
    fs::create_dir(&target).expect("a folder");
    assert_eq!(
        restore(&[a, b, c], &target).await.expect("a restore").sequence,
        30
    );
}

/// As after a restore, when the folder's newest backup has as many changes as the restored database, but others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_knows_a_database_that_wrote_other_changes() {
    let directory = folder();
    let mut random = random();
    let folder = BackupFolder::new(directory.path().join("backups"));
    for (round, name) in ["one", "other"].into_iter().enumerate() {
        let mut sample = Sample::open(&directory.path().join(name), random.fork()).await;
        sample.write(15).await;
        // Both clocks begin at the same time.
        sample.clock.advance(HOUR * (3 * round as u32 + 1));
        let taken = folder.take(&sample.database, BackupPolicy::default()).await;
        let taken = taken.expect("a look").expect("a backup of what was written");
        assert_eq!(taken.manifest.kind, BackupKind::Full);
        assert_eq!(folder.backups().await.expect("backups").len(), round + 1);
        sample.clock.advance(HOUR);
        let again = folder.take(&sample.database, BackupPolicy::default()).await;
        assert_eq!(again.expect("a look"), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_what_its_policy_says() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    let folder = BackupFolder::new(directory.path().join("backups"));
    let policy = BackupPolicy {
        increments: 2,
        keep: 2,
    };
    assert_unusable(folder.newest_chain().await, "an empty folder");
    let mut lengths = Vec::new();
    for round in 0..11 {
        sample.write(5).await;
        let taken = folder.take(&sample.database, policy).await.expect("a backup");
        assert_eq!(
            taken.expect("something was written").manifest.sequence,
            5 * (round + 1)
        );
        let again = folder.take(&sample.database, policy).await.expect("a look");
        assert_eq!(again, None);
        let chain = folder.newest_chain().await.expect("a chain");
        lengths.push((chain.len(), folder.backups().await.expect("backups").len()));
        sample.clock.advance(HOUR / 60);
    }
    let expected = [
        (1, 1),
        (2, 2),
        (3, 3),
        (1, 4),
        (2, 5),
        (3, 6),
        (1, 4),
        (2, 5),
        (3, 6),
        (1, 4),
        (2, 5),
    ];
    assert_eq!(lengths, expected);
    // When changes are gone that an incremental one would need, it is a full one.
    let consumer = sample.database.consumer("reader").await.expect("a consumer");
    sample.write(5).await;
    consumer
        .advance(sample.database.last_sequence())
        .await
        .expect("an advance");
    sample.clock.advance(2 * HOUR);
    sample.database.maintain().await.expect("maintenance");
    let taken = folder.take(&sample.database, policy).await.expect("a backup");
    let taken = taken.expect("a backup").manifest;
    assert_eq!(taken.kind, BackupKind::Full);
    // Freeing what has expired is logged, too.
    assert!(taken.sequence >= 60, "{}", taken.sequence);
    // A backup in the middle that is damaged spoils only what follows it.
    let chain = folder.newest_chain().await.expect("a chain");
    let target = directory.path().join("restored");
    let restored = restore(&chain, &target).await.expect("a restore");
    assert_eq!(restored.sequence, taken.sequence);
    fs::remove_file(chain[0].directory.join("MANIFEST")).expect("a removal");
    let before = folder.newest_chain().await.expect("the chain before");
    assert_eq!(before.last().expect("a backup").manifest.sequence, 55);
    let nonsense = BackupPolicy { keep: 0, ..policy };
    let refused = folder.take(&sample.database, nonsense).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}
