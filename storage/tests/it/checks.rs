//! Checks: a whole database has no problems, and whatever is wrong is found.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use souk_kv::{Mutation, Space};
use souk_storage::{Backfill, CheckReport, Error, ProblemKind, SecondaryIndexSchema, check};

use crate::commits::{delete, put, random};
use crate::sample::{HOUR, Sample, dump, tamper};

fn kinds(report: &CheckReport) -> Vec<ProblemKind> {
    let mut kinds: Vec<_> = report.problems.iter().map(|problem| problem.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finds_nothing_where_nothing_is_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = random();
    for mut sample in [
        Sample::open(directory.path(), random.fork()).await,
        Sample::in_memory(random.fork()).await,
    ] {
        for _ in 0..3 {
            sample.write(150).await;
            let report = sample.database.check().await.expect("a report");
            assert!(report.is_whole(), "{:#?}", report.problems);
            assert_eq!(
                report.contents,
                sample.database.contents().await.expect("contents")
            );
            let consumer = sample.database.consumer("reader").await.expect("a consumer");
            consumer
                .advance(sample.database.last_sequence())
                .await
                .expect("an advance");
            sample.database.maintain().await.expect("maintenance");
        }
        let contents = sample.database.contents().await.expect("contents");
        assert_eq!(contents.sequence, sample.database.last_sequence());
        let oldest = contents.log.oldest.expect("a change");
        assert!(oldest.sequence > 1, "the log was trimmed");
        assert_eq!(contents.log.changes, contents.sequence - oldest.sequence + 1);
        let snapshot = sample.database.snapshot().await.expect("a snapshot");
        for table in sample.database.tables() {
            let rows = snapshot
                .range(&table, &souk_storage::RangeRequest::all(Default::default()))
                .await
                .expect("rows")
                .rows;
            let counted = contents.tables.iter().find(|each| each.id == table.id());
            let counted = counted.expect("its contents");
            if table.schema().time_to_live.is_none() {
                assert_eq!(counted.rows, rows.len() as u64);
            }
            assert!(counted.cells >= counted.rows / 2 && counted.bytes > 0);
        }
        drop(snapshot);
        sample.close().await;
    }
    let report = check(directory.path()).await.expect("a report");
    assert!(report.is_whole(), "{:#?}", report.problems);
}

/// A closed database and all that it holds.
async fn closed() -> (tempfile::TempDir, Vec<(Space, Bytes, Bytes)>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut sample = Sample::open(directory.path(), random()).await;
    sample.write(200).await;
    sample.close().await;
    let dump = dump(directory.path()).await;
    (directory, dump)
}

/// The key of a job in the catalog.
fn job(table: u8, kind: u8, index: u8) -> [u8; 8] {
    [0x11, 0, 0, 0, table, kind, 0, index]
}

/// A job at its beginning.
const JOB: &[u8] = &[1, 0, 0, 0];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finds_what_was_done_behind_the_back_of_a_database() {
    let (directory, dump) = closed().await;
    let of = |space: Space| {
        let entries = dump.iter().filter(move |entry| entry.0 == space);
        entries.map(|(_, key, value)| (key, value)).collect::<Vec<_>>()
    };
    let (rows, index, log, catalog) = (
        of(Space::Rows),
        of(Space::Index),
        of(Space::Log),
        of(Space::Catalog),
    );
    // Of the table with two indexes, for which a row is never without entries.
    let row = rows.iter().find(|(key, _)| key[3] == 2).expect("a row");
    let plain = rows.iter().find(|(key, _)| key[3] == 1).expect("a row");
    let with = |bytes: &[u8], at: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = value;
        bytes
    };
    let age = catalog.iter().find(|(key, _)| key[0] == 0x31).expect("an age");
    let request = catalog.iter().find(|(key, _)| key[0] == 0x30).expect("a request");
    let cases: Vec<(&str, Mutation, &[ProblemKind])> = vec![
        (
            "a row is gone",
            delete(Space::Rows, plain.0),
            &[ProblemKind::LogDisagrees],
        ),
        (
            "a row with entries is gone",
            delete(Space::Rows, row.0),
            &[ProblemKind::IndexDisagrees, ProblemKind::LogDisagrees],
        ),
        (
            "a row is of another time",
            put(Space::Rows, plain.0, &with(plain.1, 16, 1)),
            &[ProblemKind::LogDisagrees],
        ),
        (
            "a row is older",
            put(Space::Rows, plain.0, &with(plain.1, 8, 0)),
            &[ProblemKind::LogDisagrees],
        ),
        (
            "a row comes from the future",
            put(Space::Rows, plain.0, &with(plain.1, 2, 1)),
            &[ProblemKind::LogDisagrees],
        ),
        (
            "a row is cut",
            put(Space::Rows, plain.0, &plain.1[..plain.1.len() - 1]),
            &[ProblemKind::Malformed],
        ),
        (
            "a row is of no table",
            put(Space::Rows, &with(plain.0, 3, 99), plain.1),
            &[ProblemKind::Unknown],
        ),
        (
            "a row has a key of another table",
            put(Space::Rows, &with(row.0, 3, 1), row.1),
            &[ProblemKind::Malformed],
        ),
        (
            "an entry is gone",
            delete(Space::Index, index[0].0),
            &[ProblemKind::IndexDisagrees],
        ),
        (
            "an entry has another value",
            put(Space::Index, index[0].0, &with(index[0].1, 8, 1)),
            &[ProblemKind::IndexDisagrees],
        ),
        (
            "an entry has another key",
            put(
                Space::Index,
                &with(index[0].0, index[0].0.len() - 1, 0xfe),
                index[0].1,
            ),
            &[ProblemKind::IndexDisagrees],
        ),
        (
            "an entry is of no index",
            put(Space::Index, &with(index[0].0, 5, 9), index[0].1),
            &[ProblemKind::Unknown],
        ),
        (
            "a change is gone",
            delete(Space::Log, log[50].0),
            &[ProblemKind::LogIncomplete],
        ),
        (
            "a change is damaged",
            put(Space::Log, log[50].0, &with(log[50].1, 20, 0xee)),
            &[ProblemKind::Malformed],
        ),
        (
            "a change is under another key",
            put(Space::Log, log[50].0, log[51].1),
            &[ProblemKind::Malformed],
        ),
        (
            "a request is known by its age alone",
            delete(Space::Catalog, request.0),
            &[ProblemKind::CatalogDisagrees],
        ),
        (
            "a request has no age",
            delete(Space::Catalog, age.0),
            &[ProblemKind::CatalogDisagrees],
        ),
        (
            "a job isn't readable",
            put(Space::Catalog, &job(1, 4, 0), b"x"),
            &[ProblemKind::Malformed],
        ),
        (
            "a job is of no kind",
            put(Space::Catalog, &job(1, 9, 0), JOB),
            &[ProblemKind::Malformed],
        ),
        (
            "a job removes a table that is there",
            put(Space::Catalog, &job(1, 3, 0), JOB),
            &[ProblemKind::CatalogDisagrees],
        ),
        (
            "a job removes an index that is there",
            put(Space::Catalog, &job(2, 2, 1), JOB),
            &[ProblemKind::CatalogDisagrees],
        ),
        (
            "a job fills an index that isn't there",
            put(Space::Catalog, &job(2, 1, 9), JOB),
            &[ProblemKind::CatalogDisagrees],
        ),
        (
            "a job trims a table that isn't there",
            put(Space::Catalog, &job(99, 4, 0), JOB),
            &[ProblemKind::CatalogDisagrees],
        ),
        (
            "an entry of the catalog is of no kind",
            put(Space::Catalog, &[0xee, 1], b"x"),
            &[ProblemKind::Malformed],
        ),
        (
            "a table isn't readable",
            put(Space::Catalog, &[0x10, 0, 0, 0, 1], b"x"),
            &[ProblemKind::Malformed, ProblemKind::Unknown],
        ),
        (
            "trimming went on without the catalog",
            put(Space::Catalog, &[0x02], &5u64.to_be_bytes()),
            &[ProblemKind::LogIncomplete],
        ),
    ];
    let whole = check(directory.path()).await.expect("a report");
    assert!(whole.is_whole(), "{:#?}", whole.problems);
    for (what, mutation, expected) in cases {
        let (Mutation::Put { space, key, .. } | Mutation::Delete { space, key }) = &mutation;
        let (space, key) = (*space, key.clone());
        tamper(directory.path(), vec![mutation]).await;
        let report = check(directory.path()).await.expect("a report");
        let found = kinds(&report);
        for kind in expected {
            assert!(found.contains(kind), "{what}: {:#?}", report.problems);
        }
        assert!(report.problem_count >= report.problems.len() as u64);
        let before = dump.iter().find(|entry| (entry.0, &entry.1) == (space, &key));
        let undo = match before {
            Some((_, _, value)) => put(space, &key, value),
            None => delete(space, &key),
        };
        tamper(directory.path(), vec![undo]).await;
    }
    let report = check(directory.path()).await.expect("a report");
    assert_eq!(report, whole);
}

/// An index that was created without the rows there were may lack entries, but those it has are its rows'.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finds_what_is_wrong_in_an_unfilled_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut sample = Sample::open(directory.path(), random()).await;
    sample.write(50).await;
    let table = sample.database.table("indexed").expect("a table");
    let late = SecondaryIndexSchema::new("late", ["b"]).include(["c"]);
    let created = sample.database.create_index(&table, late, Backfill::None).await;
    created.expect("an index");
    sample.write(50).await;
    sample.close().await;
    let dump = dump(directory.path()).await;
    // The table's number, and the index's.
    let is_late = |key: &Bytes| key.starts_with(&[0, 0, 0, 2, 0, 2]);
    let mut entries = dump
        .iter()
        .filter(|(space, key, _)| *space == Space::Index && is_late(key));
    let (_, lost, _) = entries.next().expect("an entry");
    let (_, changed, value) = entries.next().expect("another");
    tamper(directory.path(), vec![delete(Space::Index, lost)]).await;
    let report = check(directory.path()).await.expect("a report");
    assert!(report.is_whole(), "{:#?}", report.problems);
    let mut other = value.to_vec();
    other[8] ^= 1;
    tamper(directory.path(), vec![put(Space::Index, changed, &other)]).await;
    let report = check(directory.path()).await.expect("a report");
    assert_eq!(kinds(&report), [ProblemKind::IndexDisagrees]);
    assert_eq!(report.problem_count, 1, "{:#?}", report.problems);
}

fn table_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            table_files(&path, found);
        } else if path.parent().is_some_and(|parent| parent.ends_with("tables")) {
            found.push(path);
        }
    }
}

/// Wherever a byte of a table file is wrong: it is reported, or it made no difference.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finds_flipped_bytes_in_table_files() {
    let mut random = random();
    let directory = tempfile::tempdir().expect("a directory");
    let mut sample = Sample::open(directory.path(), random.fork()).await;
    while {
        sample.write(500).await;
        let mut files = Vec::new();
        table_files(directory.path(), &mut files);
        files.len() < 2
    } {}
    sample.close().await;
    let whole = check(directory.path()).await.expect("a report");
    assert!(whole.is_whole(), "{:#?}", whole.problems);
    let mut found = 0;
    for _ in 0..30 {
        // Opening may compact: what a flip does is seen on a copy.
        let copy = tempfile::tempdir().expect("a directory");
        copy_tree(directory.path(), copy.path());
        let mut files = Vec::new();
        table_files(copy.path(), &mut files);
        let file = random.choice(&files).expect("a file");
        let mut bytes = fs::read(file).expect("its bytes");
        let at = random.usize(..bytes.len());
        bytes[at] ^= 1 << random.u8(..8);
        fs::write(file, bytes).expect("a write");
        let report = check(copy.path()).await.expect("a report");
        if report.is_whole() {
            assert_eq!(report, whole);
        } else {
            found += 1;
        }
    }
    assert!(found > 0, "no flip was found");
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refuses_what_it_cannot_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let nothing = check(directory.path()).await;
    assert!(matches!(nothing, Err(Error::NotADatabase { .. })), "{nothing:?}");
    assert_eq!(fs::read_dir(directory.path()).expect("a folder").count(), 0);
    let sample = Sample::open(directory.path(), random()).await;
    let open = check(directory.path()).await;
    assert!(matches!(open, Err(Error::Locked { .. })), "{open:?}");
    sample.clock.advance(HOUR);
    sample.close().await;
    assert!(check(directory.path()).await.expect("a report").is_whole());
}

/// A database that doesn't open is a finding, not an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tells_why_a_database_does_not_open() {
    let (directory, _) = closed().await;
    fs::remove_dir_all(directory.path().join("data")).expect("a removal");
    let report = check(directory.path()).await.expect("a report");
    assert_eq!(kinds(&report), [ProblemKind::Unopened]);
    assert!(report.problems[0].what.contains("durable"), "{report:?}");
    assert!(!report.problems[0].kind.remedy().is_empty());
}
