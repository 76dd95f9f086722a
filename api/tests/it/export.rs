//! Exports: one snapshot, in slices, resumable after any block.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::StreamExt as _;
use souk_api::{Error, ExportRequest};
use souk_engine::EngineError;
use souk_engine::slices::{LEASE, SNAPSHOTS_MAX};

use crate::note::{self, Note};

const NOTES: i64 = 1_700;

async fn fill(notes: &souk_api::Resources<Note>) {
    for start in (0..NOTES).step_by(100) {
        let batch = (start..start + 100)
            .map(|rank| Note::new(&format!("n{rank}"), "ada", rank))
            .collect();
        notes.create_batch(batch, None, true).await.expect("created");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_of_one_snapshot_hold_every_resource_once_whatever_is_written_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    fill(&notes).await;
    for slice_count in [1, 2, 7] {
        let mut seen = BTreeSet::new();
        let mut snapshot_token = String::new();
        for slice in 0..slice_count {
            let request = ExportRequest {
                slice_count,
                slice,
                snapshot_token: snapshot_token.clone(),
                ..ExportRequest::default()
            };
            let blocks = notes.export(request).await.expect("an export");
            let mut blocks = pin!(blocks);
            while let Some(block) = blocks.next().await {
                let block = block.expect("a block");
                snapshot_token = block.snapshot_token;
                for item in block.items {
                    let late = item.resource.id.starts_with(&format!("late{slice_count}."));
                    assert!(!late, "written after the snapshot");
                    assert!(seen.insert(item.resource.id), "given twice");
                }
            }
            let late = Note::new(&format!("late{slice_count}.{slice}"), "bob", NOTES);
            notes.create(late, None, false).await.expect("created");
        }
        let late: Vec<_> = seen.iter().filter(|id| id.starts_with("late")).collect();
        assert_eq!(seen.len() - late.len(), NOTES as usize);
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_goes_on_after_any_of_its_blocks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    fill(&notes).await;
    let whole = notes.export(ExportRequest::default()).await.expect("an export");
    let whole: Vec<_> = whole.map(|block| block.expect("a block")).collect().await;
    assert!(whole.len() > 2, "several blocks");
    for (at, block) in whole.iter().enumerate() {
        let request = ExportRequest {
            resume_token: block.resume_token.clone(),
            ..ExportRequest::default()
        };
        let rest = notes.export(request).await.expect("an export");
        let rest: Vec<_> = rest.map(|block| block.expect("a block").items).collect().await;
        let expected: Vec<_> = whole[at + 1..].iter().map(|block| block.items.clone()).collect();
        assert_eq!(rest, expected);
    }
    note::close(engine).await;
}

#[tokio::test]
async fn bad_exports_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    for (slice_count, slice) in [(-1, 0), (65, 0), (2, 2), (2, -1)] {
        let request = ExportRequest {
            slice_count,
            slice,
            ..ExportRequest::default()
        };
        let refused = notes.export(request).await.err();
        assert!(
            matches!(refused, Some(Error::Invalid(_))),
            "{slice_count} {slice}: {refused:?}"
        );
    }
    let request = ExportRequest {
        resume_token: "nonsense".to_owned(),
        ..ExportRequest::default()
    };
    assert!(matches!(
        notes.export(request).await.err(),
        Some(Error::Engine(EngineError::ExportTokenInvalid { .. }))
    ));
    let mut kept = Vec::new();
    loop {
        match notes.export(ExportRequest::default()).await {
            Ok(export) => kept.push(export),
            Err(Error::Engine(EngineError::TooManyExports { max, .. })) => {
                assert_eq!(kept.len(), max);
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    drop(kept);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exports_that_have_ended_make_room_for_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    fill(&notes).await;
    for slice_count in [1, 2] {
        for _ in 0..=SNAPSHOTS_MAX {
            let mut snapshot_token = String::new();
            for slice in 0..slice_count {
                let request = ExportRequest {
                    slice_count,
                    slice,
                    snapshot_token: snapshot_token.clone(),
                    ..ExportRequest::default()
                };
                let blocks = notes.export(request).await.expect("an export");
                let mut blocks = pin!(blocks);
                while let Some(block) = blocks.next().await {
                    snapshot_token = block.expect("a block").snapshot_token;
                }
            }
        }
    }
    // Those of which a slice is missing don't.
    let half = || ExportRequest {
        slice_count: 2,
        ..ExportRequest::default()
    };
    for _ in 0..SNAPSHOTS_MAX {
        let blocks = notes.export(half()).await.expect("an export");
        blocks.for_each(|_| std::future::ready(())).await;
    }
    let refused = notes.export(half()).await.map(drop);
    assert!(
        matches!(refused, Err(Error::Engine(EngineError::TooManyExports { .. }))),
        "{refused:?}"
    );
    note::close(engine).await;
}

/// On one thread: there the clock can be put forward.
#[tokio::test]
async fn a_stream_that_nobody_reads_loses_its_snapshot_and_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    fill(&notes).await;
    let stalled = notes.export(ExportRequest::default()).await.expect("an export");
    let mut stalled = pin!(stalled);
    let first = stalled.next().await.expect("a block").expect("no error");
    tokio::time::pause();
    tokio::time::advance(LEASE).await;
    tokio::time::resume();
    let end = stalled.next().await.expect("an end that says why");
    assert!(matches!(end, Err(EngineError::ExportExpired)), "{end:?}");
    assert!(stalled.next().await.is_none());
    let request = ExportRequest {
        resume_token: first.resume_token,
        ..ExportRequest::default()
    };
    let resumed = notes.export(request).await.map(drop);
    assert!(
        matches!(resumed, Err(Error::Engine(EngineError::ExportExpired))),
        "{resumed:?}"
    );
    note::close(engine).await;
}

/// On one thread, as above.
#[tokio::test]
async fn a_snapshot_that_was_all_given_is_kept_for_who_begins_to_read_it_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    fill(&notes).await;
    let whole = notes.export(ExportRequest::default()).await.expect("an export");
    let whole: Vec<_> = whole.map(|block| block.expect("a block")).collect().await;
    let request = ExportRequest {
        snapshot_token: whole[0].snapshot_token.clone(),
        ..ExportRequest::default()
    };
    let again = notes.export(request).await.expect("an export");
    let mut again = pin!(again);
    for (nth, block) in whole.iter().enumerate() {
        let read = again.next().await.expect("a block").expect("no error");
        assert_eq!(read.items, block.items, "block {nth}");
        tokio::time::pause();
        tokio::time::advance(LEASE / 2).await;
        tokio::time::resume();
    }
    note::close(engine).await;
}
