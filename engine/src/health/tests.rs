//! Health tells of indexes that stand still, whether they say so or not.

use super::*;
use crate::index_state::STALLED_AFTER;
use crate::index_state::tests::{serving, unopened};

fn health(index: &Arc<IndexState>, last: u64) -> Health {
    Health::of(&StoreHealth::Serving, &[vec![Arc::clone(index)]], last)
}

#[track_caller]
fn says(health: &Health, text: &str) {
    let Health::NotServing { reason } = health else {
        panic!("it serves");
    };
    assert!(reason.contains("numbers") && reason.contains(text), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn an_index_that_cant_advance_for_long_is_no_health_and_one_that_has_nothing_to_do_is() {
    let index = Arc::new(serving());
    index.set_applied(3);
    index.stall("the device has too little room", "no space left");
    assert!(health(&index, 4).is_serving(), "it may be a hiccup");
    tokio::time::advance(STALLED_AFTER).await;
    says(&health(&index, 4), "too little room (no space left)");
    assert!(health(&index, 3).is_serving(), "it has all there is");
    index.stall("the device has too little room", "no space left, again");
    says(&health(&index, 4), "again");
    index.set_applied(4);
    assert!(health(&index, 5).is_serving());
}

#[tokio::test(start_paused = true)]
async fn an_index_that_hangs_is_found_out_though_it_says_nothing() {
    let index = Arc::new(serving());
    index.set_applied(3);
    let mut watched = Watched::new(Arc::clone(&index));
    tokio::time::advance(SILENT_AFTER * 2).await;
    watched.look(3);
    assert!(index.current_stall().is_none(), "there was nothing to do");
    index.set_applied(4);
    tokio::time::advance(SILENT_AFTER * 2).await;
    watched.look(9);
    assert!(index.current_stall().is_none(), "it has advanced since");
    tokio::time::advance(SILENT_AFTER).await;
    watched.look(9);
    tokio::time::advance(STALLED_AFTER).await;
    says(&health(&index, 9), "it is at 4 of 9");
    index.set_applied(9);
    watched.look(9);
    assert!(health(&index, 9).is_serving());
}

#[tokio::test(start_paused = true)]
async fn an_index_that_isnt_open_is_no_trouble_unless_its_opening_hangs_or_fails() {
    let index = Arc::new(unopened());
    assert!(health(&index, 9).is_serving());
    index.begins_to_open();
    assert!(health(&index, 9).is_serving());
    tokio::time::advance(SILENT_AFTER).await;
    says(&health(&index, 9), "is being opened");
    let index = Arc::new(unopened());
    index.stall("it can't be opened", "no thread");
    assert!(health(&index, 9).is_serving(), "it may be a hiccup");
    tokio::time::advance(STALLED_AFTER).await;
    says(&health(&index, 9), "can't be opened since");
    // Whoever looks through the log for it hangs.
    let index = Arc::new(unopened());
    index.set_applied(3);
    let mut watched = Watched::new(Arc::clone(&index));
    tokio::time::advance(SILENT_AFTER).await;
    watched.look(4);
    tokio::time::advance(STALLED_AFTER).await;
    says(&health(&index, 4), "it is at 3 of 4");
}

#[test]
fn an_index_in_trouble_is_no_trouble_of_a_table_while_another_answers_its_searches() {
    let (good, bad) = (Arc::new(serving()), Arc::new(serving()));
    bad.set_phase(Phase::Failed("a panic".to_owned()));
    let health = |of_table: &[&Arc<IndexState>]| {
        let of_table = of_table.iter().copied().map(Arc::clone).collect();
        Health::of(&StoreHealth::Serving, &[Vec::new(), of_table], 0)
    };
    assert!(health(&[&good, &bad]).is_serving());
    assert!(health(&[&good]).is_serving());
    says(&health(&[&bad]), "a panic");
    good.set_phase(Phase::Building);
    says(&health(&[&good, &bad]), "being opened; ");
}

#[test]
fn an_index_that_is_created_is_no_trouble_before_it_has_answered() {
    let new = Arc::new(IndexState::new("numbers.new".into()));
    new.expect_later();
    let health = |of_table: &[&Arc<IndexState>]| {
        let of_table = of_table.iter().copied().map(Arc::clone).collect();
        Health::of(&StoreHealth::Serving, &[of_table], 0)
    };
    assert!(health(&[&new]).is_serving(), "its table had no searches before");
    new.stall("the device has too little room", "no space left");
    assert!(health(&[&new]).is_serving());
    let bad = Arc::new(serving());
    bad.set_phase(Phase::Failed("a panic".to_owned()));
    says(&health(&[&new, &bad]), "a panic");
    new.set_phase(Phase::Failed("its fields".to_owned()));
    says(&health(&[&new]), "its fields");
    let Phase::Serving(answers) = serving().phase() else {
        panic!("it serves");
    };
    new.serve(answers);
    assert!(health(&[&new, &bad]).is_serving());
    new.set_phase(Phase::Building);
    says(&health(&[&new]), "being opened");
}

#[tokio::test(start_paused = true)]
async fn an_index_without_a_share_of_the_searches_is_watched_too() {
    let index = Arc::new(serving());
    index.set_applied(3);
    let mut watching = Watching::default();
    let mut indexes = Indexes {
        counted: Vec::new(),
        all: vec![Arc::clone(&index)],
    };
    watching.follow(&indexes);
    tokio::time::advance(SILENT_AFTER).await;
    // What is known of it outlasts a change of the others.
    indexes.all.push(Arc::new(serving()));
    watching.follow(&indexes);
    watching.look(4);
    assert!(index.current_stall().is_some());
}

#[test]
fn times_are_written_as_dates() {
    for (millis, expected) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_123, "2000-02-29T00:00:00.123Z"),
        (1_795_266_399_999, "2026-11-21T13:06:39.999Z"),
        (1_798_761_600_000, "2027-01-01T00:00:00.000Z"),
    ] {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert_eq!(utc(time), expected);
    }
}
