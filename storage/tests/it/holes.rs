//! Logs that lack changes in the middle or at the end, and whose loss is accepted.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use souk_kv::{FjallKv, FjallOptions, Kv, Space};
use souk_storage::{
    Condition, Database, DatabaseOptions, Error, FeedOptions, FeedPhase, FeedSource, FeedStart, KeyKind,
    PrimaryKey, Recovery, RowOperation, TableSchema, WriteBatch,
};
use tempfile::TempDir;

use crate::commits::*;

const WRITES: u64 = 10;

fn options(recovery: Recovery) -> DatabaseOptions {
    DatabaseOptions {
        fjall: FjallOptions {
            recovery,
            ..FjallOptions::default()
        },
        maintenance_interval: Duration::from_secs(3600),
        ..DatabaseOptions::default()
    }
}

async fn open(directory: &Path) -> Result<Database, Error> {
    Database::open(directory, options(Recovery::Refuse)).await
}

async fn open_shorter(directory: &Path) -> Result<Database, Error> {
    Database::open(directory, options(Recovery::AcceptShorterLog)).await
}

async fn write(database: &Database, id: u64) -> u64 {
    let table = TableSchema::new("t").key("id", KeyKind::Integer);
    let table = database.ensure_table(table).await.expect("a table");
    let put = RowOperation::Put {
        key: PrimaryKey::integer(id.cast_signed()),
        columns: vec![],
    };
    let batch = WriteBatch::of(&table, put, Condition::none());
    database.write(batch).await.expect("a write").sequence
}

/// A closed database with a feed and a consumer at each of these positions, and without these changes.
async fn database(feeds: &[u64], lacks: &[u64]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let database = open(directory.path()).await.expect("a database");
    for id in 1..=WRITES {
        write(&database, id).await;
    }
    for position in feeds {
        let start = FeedSource::Changes(FeedStart::After(*position));
        let feed = database
            .create_feed(&name(*position), FeedOptions::new(start))
            .await;
        feed.expect("a feed");
        let consumer = database.consumer(&name(*position)).await.expect("a consumer");
        consumer.advance(*position).await.expect("an advance");
    }
    database.close().await.expect("a close");
    drop(database);
    lose(directory.path(), lacks).await;
    directory
}

/// Takes changes out of the log of a closed database.
async fn lose(directory: &Path, lacks: &[u64]) {
    let store = FjallKv::open(directory, &FjallOptions::default()).await;
    let store = store.expect("a store");
    let gone = lacks
        .iter()
        .map(|sequence| delete(Space::Log, &sequence.to_be_bytes()));
    store.commit(unlogged(gone.collect())).await.expect("a commit");
    store.close().await.expect("a close");
}

fn name(position: u64) -> String {
    format!("at_{position}")
}

/// Sequences of the changes behind a feed.
async fn read(database: &Database, position: u64) -> Result<Vec<u64>, Error> {
    let feed = database.feed(&name(position)).expect("the feed");
    let batch = feed.read(0).await?;
    Ok(batch.records.iter().map(|record| record.sequence).collect())
}

#[tokio::test]
async fn gives_up_what_is_before_a_hole() {
    for lacks in [&[5][..], &[5, 4], &[1, 2, 5], &[1, 2, 3, 4, 5]] {
        let directory = database(&[0, 4, 5, 7], lacks).await;
        let refused = open(directory.path()).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        for reopened in [false, true] {
            let database = if reopened {
                open(directory.path()).await
            } else {
                open_shorter(directory.path()).await
            };
            let database = database.expect("a database");
            let snapshot = database.snapshot().await.expect("a snapshot");
            assert_eq!(snapshot.oldest_change().await.expect("a sequence"), 6);
            let changes = snapshot.changes(5, 100).await.expect("changes");
            let sequences = changes.iter().map(|change| change.sequence);
            assert!(sequences.eq(6..=WRITES + u64::from(reopened)), "{changes:?}");
            for position in [0, 4] {
                let gone = read(&database, position).await;
                assert!(
                    matches!(gone, Err(Error::ChangesTrimmed { oldest: 6, .. })),
                    "{gone:?}"
                );
                let consumer = database.consumer(&name(position)).await.expect("a consumer");
                let gone = database.changes(consumer.position(), 1).await;
                assert!(
                    matches!(gone, Err(Error::ChangesTrimmed { oldest: 6, .. })),
                    "{gone:?}"
                );
            }
            for position in [5, 7] {
                let found = read(&database, position).await.expect("a batch");
                assert!(found.into_iter().eq(position + 1..=WRITES + u64::from(reopened)));
            }
            let at = database.sequence_at(0).await;
            assert!(
                matches!(at, Err(Error::TimeTrimmed { trimmed: None, .. })),
                "{at:?}"
            );
            // All rows are there, and no sequence is given twice.
            let table = database.table("t").expect("the table");
            for id in 1..=WRITES {
                let key = PrimaryKey::integer(id.cast_signed());
                let row = snapshot.get(&table, &key).await.expect("a read").expect("a row");
                assert_eq!(row.revision, id);
            }
            if !reopened {
                assert_eq!(write(&database, WRITES + 1).await, WRITES + 1);
            }
            database.close().await.expect("a close");
        }
    }
}

/// The scan of an opening that refuses ends at a depth, that of one that accepts at the beginning of the log.
#[tokio::test]
async fn leaves_a_whole_log_alone() {
    let directory = database(&[3], &[]).await;
    let database = open_shorter(directory.path()).await.expect("a database");
    let changes = database.changes(0, 100).await.expect("changes");
    assert!(changes.iter().map(|change| change.sequence).eq(1..=WRITES));
    assert_eq!(read(&database, 3).await.expect("a batch").len(), 7);
}

#[tokio::test]
async fn tells_a_feed_that_is_ahead_of_the_log_and_sets_a_consumer_back() {
    let directory = database(&[3, 9, 10], &[9, 10]).await;
    let refused = open(directory.path()).await;
    assert!(
        matches!(refused, Err(Error::LogShortened { log_end: 8, .. })),
        "{refused:?}"
    );
    let database = open_shorter(directory.path()).await.expect("a database");
    assert_eq!(database.last_sequence(), 8);
    // The sequences that the feeds know are given to other changes.
    for id in 0..5 {
        write(&database, id).await;
    }
    database.close().await.expect("a close");
    drop(database);
    let database = open(directory.path()).await.expect("a database");
    assert_eq!(read(&database, 3).await.expect("a batch").len(), 10);
    for position in [9, 10] {
        let ahead = read(&database, position).await;
        assert!(matches!(ahead, Err(Error::FeedAheadOfLog { .. })), "{ahead:?}");
        let feed = database.feed(&name(position)).expect("the feed");
        let end = feed.end();
        assert!(matches!(end, Err(Error::FeedAheadOfLog { .. })), "{end:?}");
        let description = feed.describe().await.expect("a description");
        assert_eq!(
            (description.phase, description.lag_changes),
            (FeedPhase::AheadOfLog, 0)
        );
        feed.remove().await.expect("a removal");
        // It has taken none of the changes that were given these sequences.
        let consumer = database.consumer(&name(position)).await.expect("a consumer");
        assert_eq!(consumer.position(), 8);
    }
}

/// Rows outlive the changes that wrote them, and their sequences are given again: a revision is of one write in its history.
#[tokio::test]
async fn gives_no_revision_twice_in_a_history() {
    let directory = database(&[], &[]).await;
    let mut given = BTreeSet::new();
    let last = WRITES;
    for (round, lacks) in [&[9, 10][..], &[10], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]
        .into_iter()
        .enumerate()
    {
        let database = open(directory.path()).await.expect("a database");
        note(&database, last, &mut given).await;
        database.close().await.expect("a close");
        drop(database);
        lose(directory.path(), lacks).await;
        let database = open_shorter(directory.path()).await.expect("a database");
        assert!(database.last_sequence() < last, "{round}");
        assert!(
            note(&database, last, &mut given).await,
            "the row outlived its change"
        );
        while database.last_sequence() < last {
            write(&database, last).await;
            assert!(note(&database, last, &mut given).await, "{round}");
        }
        database.close().await.expect("a close");
    }
}

/// Notes what is compared when somebody depends on the last write of a row: whether it is new.
async fn note(database: &Database, id: u64, given: &mut BTreeSet<(u64, u64)>) -> bool {
    let table = database.table("t").expect("the table");
    let snapshot = database.snapshot().await.expect("a snapshot");
    let row = snapshot.get(&table, &PrimaryKey::integer(id.cast_signed())).await;
    let revision = row.expect("a read").expect("a row").revision;
    assert!(revision <= snapshot.sequence());
    given.insert((database.history_of(revision), revision))
}
