//! Lifecycle: new stores, syncs, and the close.

use std::collections::BTreeSet;

use super::commits::*;
use super::{SharedKv, commit};
use crate::{Error, Health, Space};

/// A new store is empty, at sequence 0 and serving.
pub async fn starts_empty(store: SharedKv) {
    assert_eq!(*store.sequence().borrow(), 0);
    assert_eq!(*store.health().borrow(), Health::Serving);
    let snapshot = snapshot(&*store).await;
    assert_eq!(snapshot.sequence(), 0);
    for space in Space::ALL {
        assert_eq!(snapshot.get(space, b"key").await.expect("a read"), None);
        assert!(
            scan(&*snapshot, all(space, &[], &END)).await.entries.is_empty(),
            "{space:?}"
        );
    }
}

/// A sync succeeds with and without buffered commits before it.
pub async fn syncs(store: SharedKv) {
    store.sync().await.expect("a sync of nothing");
    commit(&store, buffered(logged(vec![], b""))).await;
    store.sync().await.expect("a sync");
    assert_eq!(commit(&store, logged(vec![], b"")).await, 2);
}

/// A closed store refuses commits, syncs and snapshots; snapshots taken before stay readable.
pub async fn closes(store: SharedKv) {
    commit(&store, logged(vec![put(Space::Rows, b"a", b"1")], b"")).await;
    let before = snapshot(&*store).await;
    store.close().await.expect("a close");
    store.close().await.expect("a second close");
    let refused = store.commit(logged(vec![], b"")).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    let refused = store.sync().await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    let refused = store.snapshot().await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    let value = before.get(Space::Rows, b"a").await.expect("a read");
    assert_eq!(value.as_deref(), Some(&b"1"[..]));
    assert_eq!(*store.sequence().borrow(), 1);
}

/// A close finishes each commit in flight, or refuses it unwritten.
pub async fn closes_with_commits_in_flight(store: SharedKv) {
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(logged(vec![], b"")).await })
        })
        .collect();
    let visible = snapshot(&*store).await.sequence();
    store.close().await.expect("a close");
    let mut done = BTreeSet::new();
    for task in tasks {
        match task.await.expect("a task") {
            Ok(committed) => assert!(done.insert(committed.sequence), "each sequence once"),
            Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error:?}"),
        }
    }
    let last = done.len() as u64;
    assert!(done.into_iter().eq(1..=last), "no gaps");
    assert!(last >= visible, "what was visible is acknowledged");
    assert_eq!(*store.sequence().borrow(), last);
}
