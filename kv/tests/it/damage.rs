//! Directories that are not as they were left.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use souk_kv::{Error, FjallKv, FjallOptions, Kv, OpenError, Recovery, Space};
use tempfile::TempDir;

use crate::commits::*;

async fn open(directory: &Path) -> Result<FjallKv, OpenError> {
    FjallKv::open(directory, &FjallOptions::default()).await
}

async fn open_shorter(directory: &Path) -> Result<FjallKv, OpenError> {
    let options = FjallOptions {
        recovery: Recovery::AcceptShorterLog,
        ..FjallOptions::default()
    };
    FjallKv::open(directory, &options).await
}

/// Commits, and closes.
async fn extend(store: FjallKv, commits: u64) {
    let first = *store.sequence().borrow() + 1;
    for sequence in first..first + commits {
        let rows = vec![put_stamped(Space::Rows, &sequence.to_be_bytes(), &[7; 500])];
        assert_eq!(
            store.commit(logged(rows, b"")).await.expect("a commit").sequence,
            sequence
        );
    }
    store.close().await.expect("a close");
}

/// A closed database of so many commits.
async fn database(commits: u64) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    extend(open(directory.path()).await.expect("a store"), commits).await;
    directory
}

/// Rows and log agree and end at the sequence.
async fn assert_whole(store: &FjallKv, sequence: u64) {
    let snapshot = snapshot(store).await;
    assert_eq!(snapshot.sequence(), sequence);
    assert!(
        log(&*snapshot)
            .await
            .iter()
            .map(|(sequence, _)| *sequence)
            .eq(1..=sequence)
    );
    let rows = scan(&*snapshot, all(Space::Rows, &[], &END)).await.entries;
    assert!(rows.iter().map(|(_, row)| stamp(row).0).eq(1..=sequence));
}

fn journal(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory.join("data")).expect("the engine's files");
    let journals = files.map(|file| file.expect("a file").path());
    let mut journals = journals.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    let journal = journals.next().expect("a journal");
    assert_eq!(journals.next(), None);
    journal
}

/// Bytes of the journal that are written; the rest is reserved.
fn written(journal: &Path) -> usize {
    let bytes = fs::read(journal).expect("the journal");
    bytes.iter().rposition(|byte| *byte != 0).expect("something") + 1
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).expect("a file");
    file.seek(SeekFrom::Start(at)).expect("a position");
    file.write_all(bytes).expect("a write");
}

fn assert_shortened(result: Result<FjallKv, OpenError>, expected: u64) -> u64 {
    match result {
        Err(OpenError::LogShortened { log_end, watermark }) => {
            assert_eq!(watermark, expected);
            assert!(log_end < watermark);
            log_end
        }
        other => panic!("expected a shortened log, got {other:?}"),
    }
}

#[tokio::test]
async fn opens_what_was_closed() {
    let directory = database(50).await;
    let store = open(directory.path()).await.expect("a store");
    assert_whole(&store, 50).await;
    extend(store, 50).await;
    assert_whole(&open(directory.path()).await.expect("a store"), 100).await;
}

#[tokio::test]
async fn opens_what_was_only_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path()).await.expect("a store");
    let rows = vec![put_stamped(Space::Rows, b"a", b"")];
    store.commit(buffered(logged(rows, b""))).await.expect("a commit");
    drop(store);
    assert_whole(&open(directory.path()).await.expect("a store"), 1).await;
}

#[tokio::test]
async fn notices_a_journal_that_was_cut() {
    let directory = database(50).await;
    let journal = journal(directory.path());
    let cut = written(&journal) / 2;
    let file = OpenOptions::new()
        .write(true)
        .open(&journal)
        .expect("the journal");
    file.set_len(cut as u64).expect("a cut");
    let log_end = assert_shortened(open(directory.path()).await, 50);
    assert!(log_end > 0);
    // Looking didn't change it; accepting does, once.
    assert_eq!(assert_shortened(open(directory.path()).await, 50), log_end);
    let store = open_shorter(directory.path()).await.expect("a store");
    assert_whole(&store, log_end).await;
    drop(store);
    let store = open(directory.path()).await.expect("a store");
    extend(store, 3).await;
    assert_whole(&open(directory.path()).await.expect("a store"), log_end + 3).await;
}

#[tokio::test]
async fn notices_a_journal_with_a_hole() {
    let directory = database(50).await;
    let journal = journal(directory.path());
    overwrite(&journal, written(&journal) as u64 / 2, &[0; 4096]);
    match open(directory.path()).await {
        Err(OpenError::LogShortened { watermark: 50, .. } | OpenError::Store(Error::Corrupt { .. })) => {}
        other => panic!("expected damage to be noticed, got {other:?}"),
    }
}

/// Wherever a byte is wrong, nothing that was acknowledged is missing without a word.
#[tokio::test]
async fn notices_a_flipped_byte_of_the_journal() {
    let mut random = random();
    let directory = database(50).await;
    let journal = journal(directory.path());
    let whole = fs::read(&journal).expect("the journal");
    for _ in 0..40 {
        let at = random.usize(..written(&journal));
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << random.u8(..8);
        fs::write(&journal, damaged).expect("a write");
        match open(directory.path()).await {
            Err(OpenError::LogShortened { watermark: 50, .. } | OpenError::Store(Error::Corrupt { .. })) => {}
            // Not every bit matters.
            Ok(store) => assert_whole(&store, 50).await,
            Err(other) => panic!("the flip at {at} is not the cause of {other:?}"),
        }
        fs::write(&journal, &whole).expect("a write");
    }
    assert_whole(&open(directory.path()).await.expect("a store"), 50).await;
}

/// The head is written with the log but elsewhere: it notices where the watermark is too old to.
#[tokio::test]
async fn notices_a_log_that_ends_below_its_head() {
    let directory = database(5).await;
    let watermark = directory.path().join("WATERMARK");
    let old = fs::read(&watermark).expect("the watermark");
    let store = open(directory.path()).await.expect("a store");
    let lost = (4..=5u64)
        .map(|sequence| delete(Space::Log, &sequence.to_be_bytes()))
        .collect();
    store.commit(unlogged(lost)).await.expect("a commit");
    drop(store);
    fs::write(&watermark, old).expect("a write");
    assert_eq!(assert_shortened(open(directory.path()).await, 5), 3);
    drop(open_shorter(directory.path()).await.expect("a store"));
    let store = open(directory.path()).await.expect("a store");
    assert_eq!(snapshot(&store).await.sequence(), 3);
}

/// What was trimmed isn't missing; the sequence goes on behind it.
#[tokio::test]
async fn goes_on_behind_a_log_that_was_trimmed() {
    let directory = database(5).await;
    let store = open(directory.path()).await.expect("a store");
    let mut trim: Vec<_> = (1..=5u64)
        .map(|sequence| delete(Space::Log, &sequence.to_be_bytes()))
        .collect();
    // The key of the last trimmed sequence.
    trim.push(put(Space::Catalog, &[2], &5u64.to_be_bytes()));
    store.commit(unlogged(trim)).await.expect("a commit");
    drop(store);
    let store = open(directory.path()).await.expect("a store");
    let snapshot = snapshot(&store).await;
    assert_eq!((snapshot.sequence(), log(&*snapshot).await.len()), (5, 0));
    assert_eq!(
        store
            .commit(logged(vec![], b""))
            .await
            .expect("a commit")
            .sequence,
        6
    );
}

#[tokio::test]
async fn notices_an_older_state() {
    let directory = database(5).await;
    let (data, kept) = (directory.path().join("data"), directory.path().join("kept"));
    assert!(
        std::process::Command::new("cp")
            .arg("-r")
            .args([&data, &kept])
            .status()
            .expect("cp")
            .success()
    );
    extend(open(directory.path()).await.expect("a store"), 5).await;
    fs::remove_dir_all(&data).expect("a removal");
    fs::rename(&kept, &data).expect("a rename");
    assert_eq!(assert_shortened(open(directory.path()).await, 10), 5);
    assert_whole(&open_shorter(directory.path()).await.expect("a store"), 5).await;
}

#[tokio::test]
async fn notices_that_the_data_is_gone() {
    let directory = database(5).await;
    fs::remove_dir_all(directory.path().join("data")).expect("a removal");
    assert_eq!(assert_shortened(open(directory.path()).await, 5), 0);
    assert!(
        !directory.path().join("data").exists(),
        "nothing is created in its place"
    );
    assert_whole(&open_shorter(directory.path()).await.expect("a store"), 0).await;
}

#[tokio::test]
async fn notices_a_lost_watermark() {
    let directory = database(5).await;
    let watermark = directory.path().join("WATERMARK");
    fs::remove_file(&watermark).expect("a removal");
    let error = open(directory.path()).await.expect_err("no watermark");
    assert!(
        matches!(error, OpenError::Store(Error::Corrupt { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("WATERMARK"), "{error}");
    drop(open_shorter(directory.path()).await.expect("a store"));
    assert_whole(&open(directory.path()).await.expect("a store"), 5).await;
}

/// A write of the watermark that was interrupted spoils the slot it wrote, not the other.
#[tokio::test]
async fn reads_a_watermark_through_one_whole_slot() {
    for damaged in [0, 4096] {
        let directory = database(5).await;
        extend(open(directory.path()).await.expect("a store"), 5).await;
        let watermark = directory.path().join("WATERMARK");
        overwrite(&watermark, damaged + 16, b"junk");
        assert_whole(&open(directory.path()).await.expect("a store"), 10).await;
        for slot in [0, 4096] {
            overwrite(&watermark, slot + 16, b"junk");
        }
        let error = open(directory.path()).await.expect_err("no slot");
        assert!(
            matches!(error, OpenError::Store(Error::Corrupt { .. })),
            "{error:?}"
        );
        assert_whole(&open_shorter(directory.path()).await.expect("a store"), 10).await;
    }
}

#[tokio::test]
async fn opens_a_directory_once() {
    let directory = database(1).await;
    let store = open(directory.path()).await.expect("a store");
    let error = open(directory.path()).await.expect_err("a second opening");
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert!(
        error.to_string().ends_with("is in use by this process"),
        "{error}"
    );
    // A snapshot reads from it, so it stays in use.
    let snapshot = snapshot(&store).await;
    drop(store);
    let error = open(directory.path()).await.expect_err("a second opening");
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert!(
        snapshot
            .get(Space::Rows, &1u64.to_be_bytes())
            .await
            .expect("a read")
            .is_some()
    );
    drop(snapshot);
    open(directory.path()).await.expect("a store");
}

#[tokio::test]
async fn says_which_process_has_it() {
    let directory = database(1).await;
    let lock = directory.path().join("LOCK");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&lock)
        .expect("a lock file");
    let mut id = String::new();
    file.read_to_string(&mut id).expect("an id");
    assert_eq!(id.trim(), std::process::id().to_string());
    file.lock().expect("a lock");
    for (contents, holder) in [("4294967295\n", "process 4294967295"), ("", "another process")] {
        fs::write(&lock, contents).expect("a write");
        let error = open(directory.path()).await.expect_err("a second opening");
        assert!(
            error.to_string().ends_with(&format!("is in use by {holder}")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn leaves_a_foreign_directory_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("thesis.tex");
    fs::write(&file, "years of work").expect("a file");
    let error = open(directory.path()).await.expect_err("a foreign directory");
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("a list")
        .map(|file| file.expect("a file").path())
        .collect();
    assert_eq!(left, [file]);
    // The data of a database without its marker is foreign, too.
    let directory = database(1).await;
    fs::remove_file(directory.path().join("FORMAT")).expect("a removal");
    let error = open(directory.path()).await.expect_err("no marker");
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
}

#[tokio::test]
async fn refuses_another_format() {
    let directory = database(1).await;
    let marker = directory.path().join("FORMAT");
    let ours = fs::read(&marker).expect("the marker");
    // The earlier ones, and a later one.
    for (other, version) in [
        ("souk storage 1\n", "1"),
        ("souk storage 2 1234\n", "2"),
        ("souk storage 4 more\n", "4"),
    ] {
        fs::write(&marker, other).expect("a write");
        let error = open(directory.path()).await.expect_err("another format");
        match error {
            OpenError::UnsupportedFormat { found, supported, .. } => {
                assert_eq!((found.as_str(), supported.as_str()), (version, "3"));
            }
            other => panic!("expected another format, got {other:?}"),
        }
    }
    // With another number, what was durable would pass for what was not.
    for at in "souk storage 3 ".len()..ours.len() - 1 {
        let mut damaged = ours.clone();
        damaged[at] ^= 1;
        fs::write(&marker, damaged).expect("a write");
        let error = open(directory.path()).await.expect_err("a damaged marker");
        assert!(
            matches!(error, OpenError::Store(Error::Corrupt { .. })),
            "{error:?}"
        );
        assert!(error.to_string().contains("FORMAT"), "{error}");
    }
    for foreign in [&b"BlueFS 14\n"[..], b"", &[0xff; 9]] {
        fs::write(&marker, foreign).expect("a write");
        let error = open(directory.path()).await.expect_err("a foreign marker");
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    }
    fs::write(&marker, ours).expect("a write");
    assert_whole(&open(directory.path()).await.expect("a store"), 1).await;
}

/// What a crash during the creation leaves behind is finished by the next opening.
#[tokio::test]
async fn finishes_a_creation() {
    let whole = database(0).await;
    for (files, new_data) in [
        (&["LOCK"][..], false),
        (&["LOCK", "FORMAT.new"], false),
        (&["LOCK", "FORMAT", "WATERMARK.new"], false),
        (&["LOCK", "FORMAT", "WATERMARK"], true),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        for file in files {
            let source = whole.path().join(file.trim_end_matches(".new"));
            fs::copy(source, directory.path().join(file)).expect("a copy");
        }
        if new_data {
            let data = directory.path().join("data.new");
            fs::create_dir(&data).expect("a directory");
            fs::write(data.join("0.jnl"), "half").expect("a file");
        }
        extend(open(directory.path()).await.expect("a store"), 2).await;
        assert_whole(&open(directory.path()).await.expect("a store"), 2).await;
    }
}

#[tokio::test]
async fn refuses_options_the_engine_cannot_take() {
    let directory = tempfile::tempdir().expect("a directory");
    for options in [
        FjallOptions {
            journal_bytes: 1 << 20,
            ..FjallOptions::default()
        },
        FjallOptions {
            memory_bytes: (16 << 20) - 1,
            ..FjallOptions::default()
        },
        FjallOptions {
            worker_threads: 1,
            ..FjallOptions::default()
        },
    ] {
        let error = FjallKv::open(directory.path(), &options)
            .await
            .expect_err("invalid options");
        assert!(matches!(error, OpenError::Invalid { .. }), "{error:?}");
    }
    open(directory.path()).await.expect("a store");
}
