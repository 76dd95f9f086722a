//! What is kept for a feed, for how long, and what it learns when it is gone.

use super::*;

#[tokio::test]
async fn keeps_what_is_not_acknowledged() {
    let store = Store::in_memory().await;
    for id in 0..4 {
        store.put(&store.shops, id).await;
    }
    let slow = store
        .database
        .create_feed("slow", changes(FeedStart::Oldest))
        .await;
    let (slow, base) = (
        slow.expect("a feed"),
        store.database.create_feed("base", both()).await.expect("a feed"),
    );
    store.clock.advance(3 * HOUR);
    assert_eq!(store.maintained().await, 1);
    let batch = slow.read(2).await.expect("a batch");
    assert_eq!(store.maintained().await, 1, "reading is not acknowledging");
    slow.acknowledge(&batch.token).await.expect("an acknowledgement");
    assert_eq!(store.maintained().await, 3);
    slow.remove().await.expect("a removal");
    store.put(&store.shops, 9).await;
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 5, "the rows are read as of change 4");
    base.remove().await.expect("a removal");
    assert_eq!(store.maintained().await, 6);
}

#[tokio::test]
async fn expires_when_its_hold_is_over() {
    let store = Store::in_memory().await;
    let short = changes(FeedStart::Newest).hold(2 * HOUR);
    let short = store.database.create_feed("short", short).await.expect("a feed");
    let none = both().hold(Duration::ZERO);
    let none = store.database.create_feed("none", none).await.expect("a feed");
    store.put(&store.shops, 1).await;
    let token = none.read(9).await.expect("a batch").token;
    none.acknowledge(&token).await.expect("an acknowledgement");
    store.put(&store.shops, 1).await;
    store.clock.advance(HOUR - Duration::from_nanos(1));
    assert_eq!(store.maintained().await, 1, "the retention holds");
    store.clock.advance(HOUR);
    assert_eq!(store.maintained().await, 1, "the short one holds");
    store.clock.advance(Duration::from_nanos(1));
    assert_eq!(store.maintained().await, 3);
    for (feed, position) in [(short, 0), (none, 1)] {
        let read = feed.read(1).await;
        assert!(
            matches!(read, Err(Error::ChangesTrimmed { requested, oldest: 3 }) if requested == position),
            "{read:?}"
        );
        let description = feed.describe().await.expect("a description");
        assert_eq!(description.phase, FeedPhase::Expired { oldest: 3 });
        assert_eq!(description.lag_changes, 2 - position);
    }
}
