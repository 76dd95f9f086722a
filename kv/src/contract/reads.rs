//! Snapshot isolation, scans and multi-gets.

use bytes::Bytes;

use super::commits::*;
use super::{SharedKv, commit};
use crate::limits::INLINE_READS;
use crate::{Direction, Scan, Space};

/// Later commits don't change what a snapshot shows.
pub async fn keeps_the_state_of_a_snapshot(store: SharedKv) {
    commit(
        &store,
        logged(
            vec![put(Space::Rows, b"a", b"1"), put(Space::Rows, b"b", b"1")],
            b"",
        ),
    )
    .await;
    let before = snapshot(&*store).await;
    commit(
        &store,
        logged(
            vec![
                put(Space::Rows, b"a", b"2"),
                delete(Space::Rows, b"b"),
                put(Space::Rows, b"c", b"2"),
            ],
            b"",
        ),
    )
    .await;
    let rows = |snapshot| async move {
        let page = scan(snapshot, all(Space::Rows, &[], &END)).await;
        let rows = page.entries.iter().map(|(key, value)| [key[0], value[0]]);
        rows.collect::<Vec<_>>()
    };
    assert_eq!(rows(&*before).await, [*b"a1", *b"b1"]);
    assert_eq!((before.sequence(), log(&*before).await.len()), (1, 1));
    let after = snapshot(&*store).await;
    assert_eq!(rows(&*after).await, [*b"a2", *b"c2"]);
    assert_eq!((after.sequence(), log(&*after).await.len()), (2, 2));
}

/// Pages of any size, either way, make up the range.
pub async fn pages_through_a_range(store: SharedKv) {
    let keys: Vec<_> = (10..130u8).map(|key| vec![key]).collect();
    commit(
        &store,
        unlogged(keys.iter().map(|key| put(Space::Index, key, key)).collect()),
    )
    .await;
    commit(&store, unlogged(vec![put(Space::Rows, &[50, 1], b"elsewhere")])).await;
    let snapshot = snapshot(&*store).await;
    for direction in [Direction::Forward, Direction::Backward] {
        for entries in [0, 1, 7, INLINE_READS, INLINE_READS + 1, 99, 100, 101, usize::MAX] {
            let mut request = Scan {
                direction,
                entries,
                ..all(Space::Index, &[20], &[120])
            };
            let mut found = Vec::new();
            loop {
                let page = scan(&*snapshot, request.clone()).await;
                assert!(page.entries.len() <= entries.max(1));
                assert!(page.entries.iter().all(|(key, value)| key == value));
                found.extend(page.entries.into_iter().map(|(key, _)| key.to_vec()));
                let Some(next) = page.next else { break };
                match direction {
                    Direction::Forward => request.low = next,
                    // The bound is exclusive, and `next` is still to be read.
                    Direction::Backward => request.high = [&next[..], &[0]].concat().into(),
                }
            }
            if direction == Direction::Backward {
                found.reverse();
            }
            assert_eq!(found, keys[10..110], "{direction:?} by {entries}");
        }
    }
}

/// A page ends at its bytes, but holds one entry at least.
pub async fn ends_a_page_at_its_bytes(store: SharedKv) {
    let rows = (1..=5u8)
        .map(|key| put(Space::Rows, &[key], &[key; 99]))
        .collect();
    commit(&store, unlogged(rows)).await;
    let snapshot = snapshot(&*store).await;
    for (bytes, expected) in [(0, 1), (1, 1), (100, 1), (250, 2), (10_000, 5)] {
        let request = Scan {
            bytes,
            ..all(Space::Rows, &[], &END)
        };
        let page = scan(&*snapshot, request).await;
        assert_eq!(page.entries.len(), expected, "{bytes} bytes");
        let next = page.next.map(|next| usize::from(next[0]));
        assert_eq!(next, (expected < 5).then_some(expected + 1));
    }
}

/// An empty or inverted range has no entries.
pub async fn finds_nothing_in_an_inverted_range(store: SharedKv) {
    commit(&store, unlogged(vec![put(Space::Rows, b"b", b"")])).await;
    let snapshot = snapshot(&*store).await;
    for (low, high) in [(b"c", b"a"), (b"b", b"b")] {
        let page = scan(&*snapshot, all(Space::Rows, low, high)).await;
        assert!(page.entries.is_empty() && page.next.is_none());
    }
}

/// A multi-get answers in the order of its keys, also of absent and repeated ones.
pub async fn gets_many(store: SharedKv) {
    let even = (0..200u8)
        .step_by(2)
        .map(|key| put(Space::Rows, &[key], &[key]))
        .collect();
    commit(&store, unlogged(even)).await;
    let snapshot = snapshot(&*store).await;
    for keys in [vec![], vec![4, 3, 4], (0..200).rev().collect::<Vec<u8>>()] {
        let wanted = keys.iter().map(|key| Bytes::copy_from_slice(&[*key])).collect();
        let found = snapshot.multi_get(Space::Rows, wanted).await.expect("a read");
        let expected: Vec<_> = keys
            .iter()
            .map(|key| (key % 2 == 0).then(|| Bytes::copy_from_slice(&[*key])))
            .collect();
        assert_eq!(found, expected);
    }
}

/// A multi-get ends with the value that exceeds its bytes; keys and absent values don't count.
pub async fn gets_many_within_a_number_of_bytes(store: SharedKv) {
    let tens = (1..=5u8)
        .map(|key| put(Space::Rows, &[key], &[key; 10]))
        .collect();
    commit(&store, unlogged(tens)).await;
    let snapshot = snapshot(&*store).await;
    // With more than `INLINE_READS` keys an engine may read on another thread.
    for absent in [0, 1, INLINE_READS] {
        let keys = std::iter::repeat_n(9, absent).chain(1..=5u8);
        let keys: Vec<_> = keys.map(|key| Bytes::copy_from_slice(&[key])).collect();
        for (bytes, expected) in [
            (0, 1),
            (9, 1),
            (10, 2),
            (29, 3),
            (49, 5),
            (50, 5),
            (usize::MAX, 5),
        ] {
            let found = snapshot.multi_get_within(Space::Rows, keys.clone(), bytes).await;
            let found = found.expect("a read");
            assert_eq!(found.len(), absent + expected, "{bytes} bytes, {absent} absent");
            assert!(found.iter().take(absent).all(Option::is_none));
            let last = found
                .last()
                .and_then(Option::as_ref)
                .map(|value| usize::from(value[0]));
            assert_eq!(last, Some(expected));
        }
    }
}
