//! Searches wait for what an index has applied, and are told why they wait in vain.

use souk_index::{Field, IndexOptions};

use super::*;
use crate::definition::TableDefinition;

/// A state whose index answers.
pub(crate) fn serving() -> IndexState {
    let table = TableDefinition::hashed("numbers").field(Field::long("number"));
    let design = Design::new(&table, table.search().expect("an index")).expect("a schema");
    let index = Index::create_in_ram(design.schema.clone(), IndexOptions::default());
    let index = index.expect("an index");
    let design = Arc::new(design);
    let state = IndexState::new("numbers".into());
    state.serve(Serving { index, design });
    state
}

/// A state whose index would answer once it is open.
pub(crate) fn unopened() -> IndexState {
    let design = serving().served_design().expect("it answers");
    let state = IndexState::new("numbers".into());
    state.set_phase(Phase::Unopened(Arc::new(Unopened {
        design,
        size: IndexSize::default(),
        misfits: MisfitReport::default(),
    })));
    state
}

#[tokio::test(start_paused = true)]
async fn a_search_of_an_unopened_index_has_it_opened_and_waits_for_that() {
    let state = unopened();
    let asked = Arc::new(Notify::new());
    let ask = Arc::clone(&asked);
    state.opened_by(Opener(Box::new(move || {
        ask.notify_one();
        true
    })));
    let in_vain = state
        .view(0, Wait::new(Some(Instant::now() + STALLED_AFTER)))
        .await;
    assert!(
        matches!(in_vain, Err(EngineError::DeadlineExceeded(_))),
        "{in_vain:?}"
    );
    let (view, ()) = tokio::join!(state.view(0, Wait::new(None)), async {
        asked.notified().await;
        state.serve(serving().serving().expect("it answers"));
    });
    view.expect("a view");
    let state = unopened();
    state.stall("it can't be opened", "no thread");
    tokio::time::advance(STALLED_AFTER).await;
    let refused = state.view(0, Wait::new(None)).await;
    assert!(
        matches!(refused, Err(EngineError::IndexStalled { .. })),
        "{refused:?}"
    );
    state.begins_to_open();
    assert!(state.current_stall().is_none(), "it isn't known to fail again");
}

#[tokio::test(start_paused = true)]
async fn a_search_of_an_unopened_index_that_ends_is_told_whether_it_is_gone() {
    let state = unopened();
    state.opened_by(Opener(Box::new(|| false)));
    let refused = state.view(0, Wait::new(None)).await;
    assert!(matches!(refused, Err(EngineError::Closing)), "{refused:?}");
    let (refused, ()) = tokio::join!(state.view(0, Wait::new(None)), async {
        state.set_phase(Phase::Absent);
    });
    assert!(
        matches!(refused, Err(EngineError::NotFound { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_search_waits_for_a_deferred_refresh_and_asks_for_it() {
    let state = serving();
    state.set_applied(3);
    state.defer_refresh(5);
    assert_eq!(state.awaited(), None, "nobody waits yet");
    let follow = async {
        state.wake.notified().await;
        assert_eq!(state.awaited(), Some(5));
        state.set_applied(5);
    };
    let (view, ()) = tokio::join!(state.view(0, Wait::new(None)), follow);
    assert_eq!(view.expect("a view").1, 5);
    // The refresh was made: nobody waits any more.
    assert_eq!(state.view(0, Wait::new(None)).await.expect("a view").1, 5);
    assert_eq!(state.awaited(), None);
}

#[tokio::test(start_paused = true)]
async fn a_search_of_what_a_stalled_index_lacks_is_told_so_and_others_are_answered() {
    let state = serving();
    state.set_applied(3);
    state.defer_refresh(5);
    let (deferred, ()) = tokio::join!(state.view(0, Wait::new(None)), async {
        state.wake.notified().await;
        state.stall("the device has too little room", "no space left");
    });
    assert_eq!(deferred.expect("the deferred refresh needn't be waited for").1, 3);
    assert!(state.lasting_stall().is_none(), "it may be a hiccup");
    let (wanted, ()) = tokio::join!(state.view(4, Wait::new(None)), async {
        tokio::time::sleep(STALLED_AFTER).await;
        state.announce();
    });
    let Err(EngineError::IndexStalled {
        why, wanted, reached, ..
    }) = wanted
    else {
        panic!("{wanted:?}");
    };
    assert_eq!((why, wanted, reached), ("the device has too little room", 4, 3));
    assert_eq!(state.view(3, Wait::new(None)).await.expect("a view").1, 3);
    state.set_applied(4);
    assert!(state.current_stall().is_none());
    assert_eq!(state.view(4, Wait::new(None)).await.expect("a view").1, 4);
}

#[tokio::test]
async fn a_damaged_index_is_condemned_once_and_doesnt_answer_from_then_on() {
    let state = serving();
    let index = state.serving().expect("it answers").index.opening();
    // Another of the same design: what was there before a rebuild.
    let other = serving().serving().expect("it answers").index.opening();
    state.condemn(other, "another's checksum");
    let (view, _) = state.view(0, Wait::new(None)).await.expect("a view");
    assert_eq!(view.opening(), index);
    state.condemn(view.opening(), "a checksum");
    let refused = state.view(0, Wait::new(None)).await;
    assert!(
        matches!(refused, Err(EngineError::IndexBuilding { .. })),
        "{refused:?}"
    );
    assert_eq!(state.take_condemned(other), None);
    assert_eq!(state.take_condemned(index).as_deref(), Some("a checksum"));
    assert_eq!(state.take_condemned(index), None);
}

#[tokio::test]
async fn an_index_of_damaged_files_doesnt_answer_from_then_on() {
    let state = serving();
    let fingerprint = state.serving().expect("it answers").design.fingerprint();
    state.stop_serving_design(fingerprint ^ 1, "another's checksum");
    assert!(state.view(0, Wait::new(None)).await.is_ok());
    state.stop_serving_design(fingerprint, "a checksum");
    let refused = state.view(0, Wait::new(None)).await;
    assert!(
        matches!(refused, Err(EngineError::IndexBuilding { .. })),
        "{refused:?}"
    );
    let stall = state.current_stall().expect("it says so");
    assert_eq!(stall.reason, "a checksum");
    state.stall_ends("another reason");
    assert!(state.current_stall().is_some());
    state.stall_ends(stall.why);
    assert!(state.current_stall().is_none());
}

#[tokio::test]
async fn the_follower_learns_once_that_somebody_searched() {
    let state = serving();
    assert!(!state.take_searched());
    for _ in 0..2 {
        state.view(0, Wait::new(None)).await.expect("a view");
    }
    assert!(state.take_searched());
    assert!(!state.take_searched());
}
