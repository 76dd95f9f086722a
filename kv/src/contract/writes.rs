//! Atomicity of commits, checks and limits.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::commits::*;
use super::{SharedKv, commit, conflict};
use crate::{Commit, Error, Health, Space};

/// A commit is visible in all spaces and in the log at once.
pub async fn commits_all_spaces_at_once(store: SharedKv) {
    let mutations = vec![
        put(Space::Rows, b"key", b"row"),
        put(Space::Index, b"key", b"index"),
        put(Space::Catalog, b"key", b"catalog"),
    ];
    assert_eq!(commit(&store, logged(mutations, b"change")).await, 1);
    let snapshot = snapshot(&*store).await;
    assert_eq!(snapshot.sequence(), 1);
    for (space, value) in [
        (Space::Rows, &b"row"[..]),
        (Space::Index, b"index"),
        (Space::Catalog, b"catalog"),
    ] {
        let found = snapshot.get(space, b"key").await.expect("a read");
        assert_eq!(found.as_deref(), Some(value), "{space:?}");
    }
    assert_eq!(log(&*snapshot).await, [(1, Bytes::from_static(b"change"))]);
}

/// The sequence is written over [`STAMP`](crate::STAMP) of stamped values, and of no others.
pub async fn stamps_the_sequence(store: SharedKv) {
    commit(&store, logged(vec![], b"")).await;
    let mutations = vec![
        put_stamped(Space::Rows, b"stamped", b"rest"),
        put(Space::Rows, b"plain", &stamped(b"rest")),
    ];
    assert_eq!(commit(&store, logged(mutations, b"")).await, 2);
    let value = get(&*store, Space::Rows, b"stamped").await.expect("a value");
    assert_eq!((value[0], stamp(&value)), (1, (2, &b"rest"[..])));
    let plain = get(&*store, Space::Rows, b"plain").await.expect("a value");
    assert_eq!(plain, stamped(b"rest"));
}

/// A failed check is reported by its position; nothing is written and no sequence is taken.
pub async fn writes_nothing_when_a_check_fails(store: SharedKv) {
    commit(&store, logged(vec![put(Space::Rows, b"a", b"1")], b"")).await;
    let checks = vec![absent(Space::Rows, b"b"), absent(Space::Rows, b"a")];
    let mutations = vec![put(Space::Rows, b"b", b"2"), delete(Space::Rows, b"a")];
    assert_eq!(conflict(&store, checked(checks, logged(mutations, b""))).await, 1);
    let snapshot = snapshot(&*store).await;
    assert_eq!(snapshot.sequence(), 1);
    assert_eq!(log(&*snapshot).await.len(), 1);
    assert_eq!(snapshot.get(Space::Rows, b"b").await.expect("a read"), None);
    assert_eq!(commit(&store, logged(vec![], b"")).await, 2);
}

/// [`Check::Prefix`](crate::Check::Prefix) compares the beginning of a value; an absent key has none.
pub async fn checks_prefixes(store: SharedKv) {
    let first = commit(&store, logged(vec![put_stamped(Space::Rows, b"a", b"1")], b"")).await;
    let stamped_by = |sequence| vec![has_prefix(Space::Rows, b"a", prefix(sequence))];
    let write = |rest| logged(vec![put_stamped(Space::Rows, b"a", rest)], b"");
    let second = commit(&store, checked(stamped_by(first), write(b"2"))).await;
    assert_eq!(conflict(&store, checked(stamped_by(first), write(b"3"))).await, 0);
    let longer_than_the_value = vec![has_prefix(Space::Rows, b"a", vec![1; 100])];
    assert_eq!(
        conflict(&store, checked(longer_than_the_value, write(b"3"))).await,
        0
    );
    let of_absent_key = vec![has_prefix(Space::Rows, b"b", Bytes::new())];
    assert_eq!(conflict(&store, checked(of_absent_key, write(b"3"))).await, 0);
    let in_other_space = vec![has_prefix(Space::Index, b"a", prefix(second))];
    assert_eq!(conflict(&store, checked(in_other_space, write(b"3"))).await, 0);
    // The empty prefix fits every value.
    commit(
        &store,
        checked(vec![has_prefix(Space::Rows, b"a", Bytes::new())], write(b"3")),
    )
    .await;
    commit(&store, unlogged(vec![delete(Space::Rows, b"a")])).await;
    commit(&store, checked(vec![absent(Space::Rows, b"a")], write(b"4"))).await;
    let value = get(&*store, Space::Rows, b"a").await.expect("a value");
    assert_eq!(stamp(&value), (4, &b"4"[..]));
}

/// A commit of nothing succeeds, and takes no sequence.
pub async fn takes_an_empty_commit(store: SharedKv) {
    assert_eq!(commit(&store, Commit::default()).await, 0);
    commit(&store, logged(vec![], b"")).await;
    assert_eq!(commit(&store, Commit::default()).await, 1);
}

/// The engine enforces [`Kv::limits`](crate::Kv::limits): keys to the byte, and no commit above.
pub async fn refuses_what_is_too_large(store: SharedKv) {
    let limits = store.limits();
    let longest = vec![7; limits.key_bytes];
    commit(&store, logged(vec![put(Space::Rows, &longest, b"value")], b"")).await;
    assert!(get(&*store, Space::Rows, &longest).await.is_some());
    let longer = vec![7; limits.key_bytes + 1];
    for change in [
        unlogged(vec![put(Space::Rows, &longer, b"")]),
        unlogged(vec![delete(Space::Rows, &longer)]),
        unlogged(vec![put(Space::Rows, b"key", &vec![0; limits.commit_bytes])]),
        Commit {
            log: Some(vec![0; limits.commit_bytes + 1]),
            ..Commit::default()
        },
    ] {
        let error = store.commit(change).await.expect_err("too large");
        assert!(
            matches!(error, Error::TooLarge { max, actual, .. } if actual > max),
            "{error:?}"
        );
    }
    assert_eq!(commit(&store, logged(vec![], b"")).await, 2);
}

/// A commit that no engine can carry out is refused, and leaves the store serving.
pub async fn refuses_what_is_malformed(store: SharedKv) {
    for change in [
        unlogged(vec![put(Space::Rows, b"", b"empty key")]),
        unlogged(vec![put_stamped(Space::Rows, b"a", b"no log entry")]),
        Commit {
            log: Some(b"short".to_vec()),
            ..Commit::default()
        },
    ] {
        let error = store.commit(change).await.expect_err("malformed");
        assert!(matches!(error, Error::Malformed { .. }), "{error:?}");
    }
    assert_eq!(*store.health().borrow(), Health::Serving);
    assert_eq!(commit(&store, logged(vec![], b"")).await, 1);
}

/// Random commits and scans agree with a sorted map.
pub async fn acts_like_a_map(store: SharedKv) {
    let mut random = souk_seeds::random();
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let key = |random: &mut fastrand::Rng| vec![random.u8(b'a'..=b'd'); random.usize(1..4)];
    for _ in 0..300 {
        let mut after = model.clone();
        let mut mutations = BTreeMap::new();
        for _ in 0..random.usize(0..5) {
            let key = key(&mut random);
            if random.bool() {
                let value = vec![random.u8(..); random.usize(0..20)];
                mutations.insert(key.clone(), put(Space::Rows, &key, &value));
                after.insert(key, value);
            } else {
                mutations.insert(key.clone(), delete(Space::Rows, &key));
                after.remove(&key);
            }
        }
        let checked_key = key(&mut random);
        let (check, holds) = if random.bool() {
            (
                absent(Space::Rows, &checked_key),
                !model.contains_key(&checked_key),
            )
        } else {
            let prefix = vec![random.u8(..); random.usize(0..2)];
            let holds = model
                .get(&checked_key)
                .is_some_and(|value| value.starts_with(&prefix));
            (has_prefix(Space::Rows, &checked_key, prefix), holds)
        };
        let change = checked(
            vec![check],
            buffered(logged(mutations.into_values().collect(), b"")),
        );
        match store.commit(change).await {
            Ok(_) if holds => model = after,
            Err(Error::Conflict { check: 0 }) if !holds => {}
            other => panic!("the check holds: {holds}, but {other:?}"),
        }
        let (low, high) = (key(&mut random), key(&mut random));
        let page = scan(&*snapshot(&*store).await, all(Space::Rows, &low, &high)).await;
        let found: Vec<_> = page
            .entries
            .iter()
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect();
        let expected: Vec<_> = model
            .clone()
            .into_iter()
            .filter(|(key, _)| low <= *key && *key < high)
            .collect();
        assert_eq!(found, expected, "from {low:?} to {high:?}");
    }
}
