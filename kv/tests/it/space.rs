//! Disk and memory: what a store takes, and what it does when there is no room.

mod full;
mod tmpfs;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use souk_kv::{FjallKv, FjallOptions, Health, Kv, MemoryKv, Mutation, Space};

use crate::commits::*;

/// Least memory that is taken: memtables of 1 MiB for rows and log.
const MEMORY: u64 = 16 << 20;
/// Longest time anything may take here before a test fails.
const PATIENCE: Duration = Duration::from_secs(120);

fn options() -> FjallOptions {
    FjallOptions {
        memory_bytes: MEMORY,
        ..FjallOptions::default()
    }
}

async fn open(directory: &Path, options: &FjallOptions) -> FjallKv {
    FjallKv::open(directory, options).await.expect("a store")
}

/// Bytes that don't compress.
fn noise(random: &mut fastrand::Rng, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    random.fill(&mut value);
    value
}

/// Puts rows of so many bytes, in buffered commits of 100.
async fn write(store: &FjallKv, rows: std::ops::Range<u32>, bytes: usize, random: &mut fastrand::Rng) {
    let rows: Vec<u32> = rows.collect();
    for rows in rows.chunks(100) {
        let puts = rows
            .iter()
            .map(|row| put(Space::Rows, &row.to_be_bytes(), &noise(random, bytes)));
        store
            .commit(buffered(unlogged(puts.collect())))
            .await
            .expect("a commit");
    }
}

async fn remove(store: &FjallKv, rows: std::ops::Range<u32>) {
    let deletes: Vec<Mutation> = rows.map(|row| delete(Space::Rows, &row.to_be_bytes())).collect();
    for deletes in deletes.chunks(1000) {
        store
            .commit(buffered(unlogged(deletes.to_vec())))
            .await
            .expect("a commit");
    }
}

/// What the files take, but for the journals: the engine keeps the last one, of 64 MiB and more.
fn files_without_journals(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("a directory");
    let taken = files.map(|file| {
        let file = file.expect("a file");
        let metadata = file.metadata().expect("metadata");
        match file.path() {
            path if metadata.is_dir() => files_without_journals(&path),
            path if path.extension().is_some_and(|extension| extension == "jnl") => 0,
            _ => metadata.len(),
        }
    });
    taken.sum()
}

/// After a load, updates and deletes, an idle store takes little more than what is live; the whole way down to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiesces_near_what_is_live() {
    const ROWS: u32 = 20_000;
    const BYTES: usize = 2_000;
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), &options()).await;
    for _ in 0..3 {
        write(&store, 0..ROWS, BYTES, &mut random).await;
    }
    store.quiesce().await.expect("quiesced");
    let live = u64::from(ROWS) * BYTES as u64;
    let taken = files_without_journals(directory.path());
    assert!(
        taken < live * 5 / 4,
        "{taken} bytes for {live} live ones after updates"
    );

    let kept = ROWS / 5;
    remove(&store, kept..ROWS).await;
    store.quiesce().await.expect("quiesced");
    let live = u64::from(kept) * BYTES as u64;
    let taken = files_without_journals(directory.path());
    // Garbage below 8 MiB may stay.
    assert!(
        taken < live * 5 / 4 + (8 << 20),
        "{taken} bytes for {live} live ones after deletes"
    );

    let statistics = store.statistics().await.expect("statistics");
    assert!(statistics.compactions.quiesced >= 2, "{statistics:?}");
    let rows = scan(&*snapshot(&store).await, all(Space::Rows, &[], &END))
        .await
        .entries;
    assert_eq!(rows.len(), kept as usize);
    assert!(rows.iter().all(|(_, row)| row.len() == BYTES));
}

/// What was written over counts above the last level as well, where the engine leaves up to three tables: here of
/// nearly 4 MB each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiesces_updates_that_the_engine_leaves() {
    const ROWS: u32 = 20_000;
    const BYTES: usize = 2_000;
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    let options = FjallOptions {
        memory_bytes: 64 << 20,
        ..FjallOptions::default()
    };
    let store = open(directory.path(), &options).await;
    write(&store, 0..ROWS, BYTES, &mut random).await;
    store.quiesce().await.expect("quiesced");
    let live = u64::from(ROWS) * BYTES as u64;
    for update in 1..=8 {
        write(&store, 0..1_900, BYTES, &mut random).await;
        store.quiesce().await.expect("quiesced");
        let taken = files_without_journals(directory.path());
        assert!(
            taken < live * 5 / 4,
            "{taken} bytes for {live} live ones after {update} updates"
        );
    }
}

/// A committer that waits for a flush and an upkeep that waits for the committer's snapshot would wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiesces_while_large_rows_are_written() {
    const WRITERS: u8 = 8;
    const ROWS: u32 = 40;
    const BYTES: usize = 3 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(directory.path(), &options()).await);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                // Compresses well: it is the memory that is short, not the disk.
                let value = vec![writer; BYTES];
                for row in 0..ROWS {
                    let key = [&[writer][..], &row.to_be_bytes()].concat();
                    let put = logged(vec![put(Space::Rows, &key, &value)], &value);
                    store.commit(buffered(put)).await.expect("a commit");
                }
            })
        })
        .collect();
    let done = async {
        for writer in writers {
            writer.await.expect("a writer");
        }
    };
    tokio::pin!(done);
    loop {
        tokio::select! {
            () = &mut done => break,
            quiesced = store.quiesce() => quiesced.expect("quiesced"),
        }
    }
    store.quiesce().await.expect("quiesced");
    assert_eq!(*store.health().borrow(), Health::Serving);
}

/// An old snapshot keeps what it reads; it goes when the snapshot does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_what_a_snapshot_reads() {
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), &options()).await;
    write(&store, 0..10_000, 4_000, &mut random).await;
    let old = snapshot(&store).await;
    remove(&store, 0..10_000).await;
    store.quiesce().await.expect("quiesced");
    assert_eq!(
        scan(&*old, all(Space::Rows, &[], &END)).await.entries.len(),
        10_000
    );
    drop(old);
    // Nothing is left to do but to look again after another write.
    write(&store, 0..1, 1, &mut random).await;
    store.quiesce().await.expect("quiesced");
    let taken = files_without_journals(directory.path());
    assert!(taken < 1 << 20, "{taken} bytes for a single row");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiesces_by_itself_when_nobody_writes() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = FjallOptions {
        quiesce_after: Duration::from_millis(20),
        ..options()
    };
    let store = open(directory.path(), &options).await;
    // Opening counts as a write: what was left unfinished when a process ended is quiesced then.
    for quiesced in [1, 2] {
        let done = async {
            while store.statistics().await.expect("statistics").compactions.quiesced < quiesced {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, done).await.expect("quiesced");
        let statistics = store.statistics().await.expect("statistics");
        assert!(
            statistics
                .spaces
                .iter()
                .all(|space| space.memtable_bytes == 0 || space.space == Space::Catalog)
        );
        store
            .commit(logged(vec![put(Space::Rows, b"row", b"value")], b""))
            .await
            .expect("a commit");
    }
}

/// The engine keeps what a space was created with; the memory is that of the present opening all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stays_within_the_memory_of_this_opening() {
    const BYTES: usize = 10_000;
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    let large = open(directory.path(), &FjallOptions::default()).await;
    // More than all memtables may take later: the journal brings it back, until it is flushed.
    write(&large, 0..2_000, BYTES, &mut random).await;
    large.close().await.expect("a close");
    drop(large);

    let store = open(directory.path(), &options()).await;
    store.quiesce().await.expect("quiesced");
    let mut most = 0;
    for round in 0..100 {
        write(&store, round * 100..(round + 1) * 100, BYTES, &mut random).await;
        let memory = store.statistics().await.expect("statistics").memory;
        assert_eq!(
            (memory.limit, memory.cache_limit + memory.memtables_limit),
            (MEMORY, MEMORY)
        );
        assert!(memory.cache <= memory.cache_limit, "{memory:?}");
        most = most.max(memory.memtables);
    }
    // What an entry takes beside its key and value isn't known before it is written.
    let commit = 100 * BYTES as u64;
    assert!(most <= MEMORY / 2 + commit, "{most} bytes of memtables");
    assert!(most > 0);
}

#[tokio::test]
async fn tells_what_it_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let stores: [Box<dyn Kv>; 2] = [
        Box::new(open(directory.path(), &options()).await),
        Box::new(MemoryKv::new()),
    ];
    for store in stores {
        let commit = logged(vec![put(Space::Rows, b"row", b"value")], b"entry");
        store.commit(commit).await.expect("a commit");
        store.quiesce().await.expect("quiesced");
        let statistics = store.statistics().await.expect("statistics");
        let entries: Vec<_> = statistics
            .spaces
            .iter()
            .map(|space| (space.space, space.entries))
            .collect();
        assert_eq!(entries[..2], [(Space::Rows, 1), (Space::Log, 1)]);
        assert_eq!(entries.len(), Space::ALL.len());
        assert_eq!(statistics.waiting_commits, 0);
        if let Some(disk) = statistics.disk {
            assert!(disk.used > 0 && disk.free.is_some() && disk.reserve == options().reserve_bytes);
            assert_eq!(statistics.journals.files, 1);
        }
        store.close().await.expect("a close");
        let refused = store.quiesce().await.expect_err("it is closed");
        assert!(
            matches!(refused, souk_kv::Error::Unavailable { .. }),
            "{refused:?}"
        );
    }
}
