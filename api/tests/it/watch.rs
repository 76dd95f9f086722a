//! Watches: every change, in order, from any position.

use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use souk_api::Error;
use souk_api::wire::valid;
use souk_engine::read_ahead::{READ_AHEAD_BYTES_MAX, READS_MAX};
use souk_engine::watch::WATCHES_MAX;
use souk_engine::{ChangeKind, EngineError};
use souk_proto::search::v1 as pb;
use souk_proto::shop::v1::WatchShopsRequest;

use crate::note::{self, Note};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_gives_old_changes_and_then_new_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let first = notes
        .create(Note::new("n1", "ada", 1), None, false)
        .await
        .expect("created");
    let watch = notes.watch(Some(0)).await.expect("a watch");
    let mut watch = pin!(watch);
    let event = watch.next().await.expect("an event").expect("no error");
    assert_eq!(event.sequence, first.sequence);
    assert_eq!(event.changes[0].kind, ChangeKind::Created);
    assert_eq!(event.changes[0].stored.as_ref(), Some(&first.value));

    let rise = |note: Note| Ok::<_, Error>(Note { rank: 2, ..note });
    let second = notes.update("n1", None, rise).await.expect("changed");
    let event = watch.next().await.expect("an event").expect("no error");
    assert_eq!(
        (event.sequence, event.changes[0].kind),
        (second.sequence, ChangeKind::Updated)
    );
    assert_eq!(event.changes[0].stored.as_ref(), Some(&second.value));

    let third = notes.delete("n1", None).await.expect("deleted");
    let event = watch.next().await.expect("an event").expect("no error");
    assert_eq!(
        (event.sequence, event.changes[0].kind),
        (third.sequence, ChangeKind::Deleted)
    );
    assert_eq!(
        (event.changes[0].id.as_str(), &event.changes[0].stored),
        ("n1", &None)
    );

    let rest = notes.watch(Some(second.sequence)).await.expect("a watch");
    let mut rest = pin!(rest);
    assert_eq!(
        rest.next().await.expect("an event").expect("no error").sequence,
        third.sequence
    );
    let now = notes.watch(None).await.expect("a watch");
    let mut now = pin!(now);
    let event = now.next().await.expect("an event").expect("no error");
    assert_eq!((event.sequence, event.changes.len()), (third.sequence, 0));

    note::close(engine).await;
    let end = rest.next().await.expect("an end that says why");
    assert!(matches!(end, Err(EngineError::Closing)), "{end:?}");
}

#[tokio::test]
async fn a_watch_from_a_place_that_isnt_there_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let ahead = notes.watch(Some(99)).await.err();
    assert!(
        matches!(
            ahead,
            Some(Error::Engine(EngineError::SequenceAhead { given: 99, .. }))
        ),
        "{ahead:?}"
    );
    let negative = valid(tonic::Request::new(WatchShopsRequest {
        after_sequence: Some(-1),
    }));
    assert!(matches!(negative, Err(Error::Invalid(_))), "{negative:?}");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_watches_hold_is_bounded_in_sum_and_none_loses_a_change() {
    const NOTES: usize = 24;
    const BYTES: usize = 512 << 10;
    const WATCHES: usize = 32;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut sequences = Vec::new();
    for rank in 0..NOTES {
        let note = Note {
            text: "x".repeat(BYTES),
            ..Note::new(&format!("n{rank}"), "ada", rank as i64)
        };
        let created = notes.create(note, None, false).await;
        sequences.push(created.expect("created").sequence);
    }
    // The index has what it wants of them.
    let search = pb::Search {
        min_sequence: sequences[NOTES - 1],
        hits_mode: pb::HitsMode::Keys.into(),
        ..pb::Search::default()
    };
    notes.search(Some(search), "search").await.expect("a page");
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let watch = notes.watch(Some(0)).await.expect("a watch");
        let mut watch = Box::pin(watch);
        // One change is taken, and what was read with it waits.
        let event = watch.next().await.expect("an event").expect("no error");
        assert_eq!(event.sequence, sequences[0]);
        drop(event);
        watches.push(watch);
    }
    let held = async || engine.figures().await.watched_ahead;
    let now = held().await;
    assert!(now <= READ_AHEAD_BYTES_MAX, "{now} bytes are held");
    assert!(now > READ_AHEAD_BYTES_MAX / 2, "{now}: what is held is used");
    // In turns, so that they take from each other what they have read.
    for (at, sequence) in sequences.iter().enumerate().skip(1) {
        watches.truncate(if at < 3 { WATCHES } else { 4 });
        for watch in &mut watches {
            let event = watch.next().await.expect("an event").expect("no error");
            assert_eq!((event.sequence, event.changes.len()), (*sequence, 1));
        }
        assert!(held().await <= READ_AHEAD_BYTES_MAX);
    }
    drop(watches);
    assert_eq!(held().await, 0);
    note::close(engine).await;
}

/// As a stream is whose client takes nothing: it isn't polled any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_are_left_in_the_middle_of_a_read_stop_no_other() {
    const LIMIT: Duration = Duration::from_secs(60);
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let created = notes.create(Note::new("n1", "ada", 1), None, false).await;
    let sequence = created.expect("created").sequence;
    let mut left = Vec::new();
    for _ in 0..4 * READS_MAX {
        let mut watch = Box::pin(notes.watch(Some(sequence - 1)).await.expect("a watch"));
        // Once. Those that had their event at once are left as well.
        let given = watch.next().now_or_never().is_some();
        left.push((watch, given));
    }
    for _ in 0..=READS_MAX {
        let watch = notes.watch(Some(sequence - 1)).await.expect("a watch");
        let mut watch = pin!(watch);
        let event = tokio::time::timeout(LIMIT, watch.next()).await;
        let event = event.expect("others go on").expect("an event");
        assert_eq!(event.expect("no error").sequence, sequence);
    }
    for (watch, given) in &mut left {
        if !*given {
            let event = watch.next().await.expect("an event").expect("no error");
            assert_eq!(event.sequence, sequence);
        }
    }
    drop(left);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_watches_than_may_be_open_are_refused_by_the_name_of_the_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut open = Vec::new();
    for _ in 0..WATCHES_MAX {
        open.push(notes.watch(None).await.expect("a watch"));
    }
    let Err(refused) = notes.watch(None).await.map(drop) else {
        panic!("one too many");
    };
    let status = tonic::Status::from(refused);
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    assert!(status.message().contains(&WATCHES_MAX.to_string()), "{status:?}");
    open.pop();
    assert!(notes.watch(None).await.is_ok());
    note::close(engine).await;
}
