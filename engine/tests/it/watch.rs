//! Watches: every change, in order, from any position.

use std::pin::pin;

use futures_util::StreamExt as _;
use souk_engine::EngineError;
use souk_proto::r#type::v1::ChangeKind;

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

    let rise = |note: Note| Ok::<_, EngineError>(Note { rank: 2, ..note });
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
        matches!(ahead, Some(EngineError::SequenceAhead { after: 99, .. })),
        "{ahead:?}"
    );
    let negative = notes.watch(Some(-1)).await.err();
    assert!(matches!(negative, Some(EngineError::Invalid(_))), "{negative:?}");
    note::close(engine).await;
}
