//! Restarts: what a store has when it is closed and opened again.

use super::commits::*;
use super::{SharedKv, commit, conflict};
use crate::{Commit, Health, Space};

/// Values, deletes and log entries survive a close, buffered ones too.
pub async fn keeps_everything(store: SharedKv, reopen: impl AsyncFnOnce() -> SharedKv) {
    commit(
        &store,
        logged(
            vec![
                put_stamped(Space::Rows, b"a", b"1"),
                put(Space::Index, b"b", b"1"),
            ],
            b"first",
        ),
    )
    .await;
    commit(
        &store,
        buffered(logged(vec![delete(Space::Index, b"b")], b"second")),
    )
    .await;
    commit(&store, buffered(unlogged(vec![put(Space::Catalog, b"c", b"2")]))).await;
    let before = log(&*snapshot(&*store).await).await;
    let store = restart(store, reopen).await;
    assert_eq!(*store.health().borrow(), Health::Serving);
    let row = get(&*store, Space::Rows, b"a").await.expect("a value");
    assert_eq!(stamp(&row), (1, &b"1"[..]));
    assert_eq!(get(&*store, Space::Index, b"b").await, None);
    let unlogged = get(&*store, Space::Catalog, b"c").await;
    assert_eq!(unlogged.as_deref(), Some(&b"2"[..]));
    assert_eq!(log(&*snapshot(&*store).await).await, before);
}

/// Sequences and numbers of commit groups continue: none is given twice.
pub async fn continues_sequences_and_groups(store: SharedKv, reopen: impl AsyncFnOnce() -> SharedKv) {
    for _ in 0..3 {
        commit(&store, logged(vec![], b"")).await;
    }
    let group = snapshot(&*store).await.group();
    let store = restart(store, reopen).await;
    assert_eq!(*store.sequence().borrow(), 3);
    let opened = snapshot(&*store).await;
    assert_eq!(opened.sequence(), 3);
    assert!(opened.group() >= group, "{} was {group}", opened.group());
    assert_eq!(commit(&store, logged(vec![], b"")).await, 4);
    assert!(snapshot(&*store).await.group() > opened.group());
}

/// A write after [`Commit::validated_at`] fails the check, also when the store was opened again since.
pub async fn checks_again_what_was_validated_before_a_restart(
    store: SharedKv,
    reopen: impl AsyncFnOnce() -> SharedKv,
) {
    let validated_at = Some(snapshot(&*store).await.group());
    commit(&store, logged(vec![put(Space::Rows, b"a", b"")], b"")).await;
    let store = restart(store, reopen).await;
    let create = Commit {
        validated_at,
        checks: vec![absent(Space::Rows, b"a")],
        ..logged(vec![put(Space::Rows, b"a", b"")], b"")
    };
    assert_eq!(conflict(&store, create).await, 0);
}

/// Closes and drops a store, and opens it again.
async fn restart(store: SharedKv, reopen: impl AsyncFnOnce() -> SharedKv) -> SharedKv {
    store.close().await.expect("a close");
    drop(store);
    reopen().await
}
