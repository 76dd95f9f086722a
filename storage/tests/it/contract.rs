//! What every key-value store does, whatever is below: one suite, run on each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use souk_storage::kv::{Commit, Direction, Error, Health, Kv, Scan, Space};
use souk_storage::limits::{INLINE_ROWS, MAX_COMMIT_BYTES, MAX_KV_KEY_BYTES};

use crate::commits::*;

/// One test for each behaviour on each store.
macro_rules! contract {
    ($($behaviour:ident,)*) => {
        mod on_disk {
            use std::sync::Arc;

            use souk_storage::DatabaseOptions;
            use souk_storage::kv::fjall::FjallKv;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    let directory = tempfile::tempdir().expect("a directory");
                    let store = FjallKv::open(directory.path(), &DatabaseOptions::default()).await;
                    super::$behaviour(Arc::new(store.expect("a store"))).await;
                }
            )*
        }

        mod in_memory {
            use std::sync::Arc;

            use souk_storage::kv::memory::MemoryKv;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    super::$behaviour(Arc::new(MemoryKv::new())).await;
                }
            )*
        }
    };
}

contract! {
    starts_empty,
    commits_all_spaces_at_once,
    stamps_the_sequence,
    takes_no_sequence_without_a_log_entry,
    writes_nothing_when_a_check_fails,
    checks_prefixes,
    lets_one_of_many_creators_win,
    loses_no_update,
    gives_sequences_without_gaps,
    keeps_the_state_of_a_snapshot,
    gives_snapshots_their_exact_sequence,
    tells_the_sequence_before_it_answers,
    acts_like_a_map,
    pages_through_a_range,
    ends_a_page_at_its_bytes,
    finds_nothing_in_an_inverted_range,
    gets_many,
    refuses_what_is_too_large,
    refuses_what_is_malformed,
    takes_an_empty_commit,
    syncs,
    closes,
    finishes_what_waits_when_it_closes,
}

type Store = Arc<dyn Kv>;

/// Commits and gives the sequence.
async fn commit(store: &Store, commit: Commit) -> u64 {
    store.commit(commit).await.expect("a commit").sequence
}

async fn conflict(store: &Store, commit: Commit) -> usize {
    match store.commit(commit).await {
        Err(Error::Conflict { check }) => check,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

async fn starts_empty(store: Store) {
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

async fn commits_all_spaces_at_once(store: Store) {
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

async fn stamps_the_sequence(store: Store) {
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

async fn takes_no_sequence_without_a_log_entry(store: Store) {
    assert_eq!(
        commit(&store, unlogged(vec![put(Space::Catalog, b"a", b"")])).await,
        0
    );
    assert_eq!(commit(&store, logged(vec![], b"")).await, 1);
    assert_eq!(
        commit(&store, unlogged(vec![put(Space::Catalog, b"b", b"")])).await,
        1
    );
    assert_eq!(commit(&store, logged(vec![], b"")).await, 2);
    assert_eq!(
        get(&*store, Space::Catalog, b"b").await.as_deref(),
        Some(&b""[..])
    );
}

async fn writes_nothing_when_a_check_fails(store: Store) {
    commit(&store, logged(vec![put(Space::Rows, b"a", b"1")], b"")).await;
    let checks = vec![absent(Space::Rows, b"b"), absent(Space::Rows, b"a")];
    let mutations = vec![put(Space::Rows, b"b", b"2"), delete(Space::Rows, b"a")];
    assert_eq!(conflict(&store, checked(checks, logged(mutations, b""))).await, 1);
    let snapshot = snapshot(&*store).await;
    assert_eq!(snapshot.sequence(), 1);
    assert_eq!(log(&*snapshot).await.len(), 1);
    assert_eq!(snapshot.get(Space::Rows, b"b").await.expect("a read"), None);
    // Neither did it take a sequence.
    assert_eq!(commit(&store, logged(vec![], b"")).await, 2);
}

async fn checks_prefixes(store: Store) {
    let first = commit(&store, logged(vec![put_stamped(Space::Rows, b"a", b"1")], b"")).await;
    let at = |sequence| vec![begins(Space::Rows, b"a", prefix(sequence))];
    let write = |rest| logged(vec![put_stamped(Space::Rows, b"a", rest)], b"");
    let second = commit(&store, checked(at(first), write(b"2"))).await;
    assert_eq!(conflict(&store, checked(at(first), write(b"3"))).await, 0);
    // Longer than the value; of an absent key; the same key elsewhere; nothing is a prefix of everything there.
    let long = vec![begins(Space::Rows, b"a", vec![1; 100])];
    assert_eq!(conflict(&store, checked(long, write(b"3"))).await, 0);
    let other = vec![begins(Space::Rows, b"b", Bytes::new())];
    assert_eq!(conflict(&store, checked(other, write(b"3"))).await, 0);
    let elsewhere = vec![begins(Space::Index, b"a", prefix(second))];
    assert_eq!(conflict(&store, checked(elsewhere, write(b"3"))).await, 0);
    commit(
        &store,
        checked(vec![begins(Space::Rows, b"a", Bytes::new())], write(b"3")),
    )
    .await;
    commit(&store, unlogged(vec![delete(Space::Rows, b"a")])).await;
    commit(&store, checked(vec![absent(Space::Rows, b"a")], write(b"4"))).await;
    let value = get(&*store, Space::Rows, b"a").await.expect("a value");
    assert_eq!(stamp(&value), (4, &b"4"[..]));
}

async fn lets_one_of_many_creators_win(store: Store) {
    let tasks: Vec<_> = (0..32u8)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let create = logged(vec![put(Space::Rows, b"key", &[task])], &[task]);
                store
                    .commit(checked(vec![absent(Space::Rows, b"key")], create))
                    .await
            })
        })
        .collect();
    let mut winners = Vec::new();
    for (task, result) in tasks.into_iter().enumerate() {
        match result.await.expect("a task") {
            Ok(committed) => winners.push((task, committed.sequence)),
            Err(error) => assert!(matches!(error, Error::Conflict { check: 0 }), "{error:?}"),
        }
    }
    let [(winner, 1)] = winners[..] else {
        panic!("not one winner, at sequence 1: {winners:?}");
    };
    let value = get(&*store, Space::Rows, b"key").await.expect("a value");
    assert_eq!(usize::from(value[0]), winner);
}

async fn loses_no_update(store: Store) {
    const TASKS: u64 = 8;
    const UPDATES: u64 = 25;
    commit(
        &store,
        logged(vec![put_stamped(Space::Rows, b"n", &0u64.to_be_bytes())], b""),
    )
    .await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut done = 0;
                while done < UPDATES {
                    let value = get(&*store, Space::Rows, b"n").await.expect("a value");
                    let (revision, number) = stamp(&value);
                    let number = u64::from_be_bytes(number.try_into().expect("a number")) + 1;
                    let update = logged(vec![put_stamped(Space::Rows, b"n", &number.to_be_bytes())], b"");
                    let checks = vec![begins(Space::Rows, b"n", prefix(revision))];
                    match store.commit(checked(checks, update)).await {
                        Ok(_) => done += 1,
                        Err(error) => assert!(matches!(error, Error::Conflict { .. }), "{error:?}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    let value = get(&*store, Space::Rows, b"n").await.expect("a value");
    let number = (TASKS * UPDATES).to_be_bytes();
    assert_eq!(stamp(&value), (TASKS * UPDATES + 1, &number[..]));
}

async fn gives_sequences_without_gaps(store: Store) {
    let tasks: Vec<_> = (0..16u8)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                for step in 0..30u8 {
                    // Every third asks for what no longer holds.
                    let checks = vec![absent(Space::Rows, &[task, step / 3])];
                    let put = vec![put(Space::Rows, &[task, step / 3], b"")];
                    let change = checked(checks, logged(put, &[task, step]));
                    let change = if step.is_multiple_of(2) {
                        buffered(change)
                    } else {
                        change
                    };
                    match store.commit(change).await {
                        Ok(committed) => taken.push((committed.sequence, [task, step])),
                        Err(error) => assert!(matches!(error, Error::Conflict { .. }), "{error:?}"),
                    }
                }
                assert!(taken.is_sorted(), "a task's commits are in its order");
                assert_eq!(taken.len(), 10);
                taken
            })
        })
        .collect();
    let mut taken = BTreeSet::new();
    for task in tasks {
        taken.extend(task.await.expect("a task"));
    }
    let snapshot = snapshot(&*store).await;
    let entries = log(&*snapshot).await;
    assert!(entries.iter().map(|(sequence, _)| *sequence).eq(1..=160));
    let entries: BTreeSet<_> = entries
        .iter()
        .map(|(sequence, entry)| (*sequence, [entry[0], entry[1]]))
        .collect();
    assert_eq!(entries, taken);
    assert_eq!((snapshot.sequence(), *store.sequence().borrow()), (160, 160));
}

async fn keeps_the_state_of_a_snapshot(store: Store) {
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

async fn gives_snapshots_their_exact_sequence(store: Store) {
    const COMMITS: u64 = 200;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..COMMITS / 4 {
                    commit(&store, logged(vec![put_stamped(Space::Rows, b"last", b"")], b"")).await;
                }
            })
        })
        .collect();
    loop {
        let published = *store.sequence().borrow();
        let snapshot = snapshot(&*store).await;
        let sequence = snapshot.sequence();
        assert!(
            sequence >= published,
            "{sequence} is behind {published}, which was published"
        );
        let row = snapshot.get(Space::Rows, b"last").await.expect("a read");
        assert_eq!(row.map_or(0, |row| stamp(&row).0), sequence);
        let backward = Scan {
            direction: Direction::Backward,
            rows: 1,
            ..all(Space::Log, &[], &END)
        };
        let last = scan(&*snapshot, backward).await.entries;
        assert_eq!(last.first().map_or(0, |(_, entry)| stamp(entry).0), sequence);
        if sequence == COMMITS {
            break;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
}

async fn tells_the_sequence_before_it_answers(store: Store) {
    let mut sequence = store.sequence();
    let reader = tokio::spawn(async move {
        let seen = sequence.wait_for(|sequence| *sequence >= 20).await;
        *seen.expect("the store is open")
    });
    for expected in 1..=20 {
        assert_eq!(commit(&store, logged(vec![], b"")).await, expected);
        assert!(*store.sequence().borrow() >= expected);
        assert!(snapshot(&*store).await.sequence() >= expected);
    }
    assert_eq!(reader.await.expect("a reader"), 20);
}

/// Random commits and reads, against a map.
async fn acts_like_a_map(store: Store) {
    let mut random = random();
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
            (begins(Space::Rows, &checked_key, prefix), holds)
        };
        let change = checked(
            vec![check],
            buffered(logged(mutations.into_values().collect(), b"")),
        );
        assert_eq!(store.commit(change).await.is_ok(), holds);
        if holds {
            model = after;
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

async fn pages_through_a_range(store: Store) {
    let keys: Vec<_> = (10..130u8).map(|key| vec![key]).collect();
    commit(
        &store,
        unlogged(keys.iter().map(|key| put(Space::Index, key, key)).collect()),
    )
    .await;
    commit(&store, unlogged(vec![put(Space::Rows, &[50, 1], b"elsewhere")])).await;
    let snapshot = snapshot(&*store).await;
    for direction in [Direction::Forward, Direction::Backward] {
        for rows in [0, 1, 7, INLINE_ROWS, INLINE_ROWS + 1, 99, 100, 101, usize::MAX] {
            let mut request = Scan {
                direction,
                rows,
                ..all(Space::Index, &[20], &[120])
            };
            let mut found = Vec::new();
            loop {
                let page = scan(&*snapshot, request.clone()).await;
                assert!(page.entries.len() <= rows.max(1));
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
            assert_eq!(found, keys[10..110], "{direction:?} by {rows}");
        }
    }
}

async fn ends_a_page_at_its_bytes(store: Store) {
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

async fn finds_nothing_in_an_inverted_range(store: Store) {
    commit(&store, unlogged(vec![put(Space::Rows, b"b", b"")])).await;
    let snapshot = snapshot(&*store).await;
    for (low, high) in [(b"c", b"a"), (b"b", b"b")] {
        let page = scan(&*snapshot, all(Space::Rows, low, high)).await;
        assert!(page.entries.is_empty() && page.next.is_none());
    }
}

async fn gets_many(store: Store) {
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

async fn refuses_what_is_too_large(store: Store) {
    let limits = store.limits();
    assert_eq!(
        (limits.key_bytes, limits.commit_bytes),
        (MAX_KV_KEY_BYTES, MAX_COMMIT_BYTES)
    );
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

async fn refuses_what_is_malformed(store: Store) {
    for change in [
        unlogged(vec![put(Space::Rows, b"", b"empty key")]),
        unlogged(vec![put_stamped(Space::Rows, b"a", b"no log entry")]),
        Commit {
            log: Some(b"short".to_vec()),
            ..Commit::default()
        },
    ] {
        let error = store.commit(change).await.expect_err("malformed");
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    }
    assert_eq!(*store.health().borrow(), Health::Serving);
    assert_eq!(commit(&store, logged(vec![], b"")).await, 1);
}

async fn takes_an_empty_commit(store: Store) {
    assert_eq!(commit(&store, Commit::default()).await, 0);
    commit(&store, logged(vec![], b"")).await;
    assert_eq!(commit(&store, Commit::default()).await, 1);
}

async fn syncs(store: Store) {
    store.sync().await.expect("a sync of nothing");
    commit(&store, buffered(logged(vec![], b""))).await;
    store.sync().await.expect("a sync");
    assert_eq!(commit(&store, logged(vec![], b"")).await, 2);
}

async fn closes(store: Store) {
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

async fn finishes_what_waits_when_it_closes(store: Store) {
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(logged(vec![], b"")).await })
        })
        .collect();
    let last = snapshot(&*store).await.sequence();
    store.close().await.expect("a close");
    let mut done = BTreeSet::new();
    for task in tasks {
        match task.await.expect("a task") {
            Ok(committed) => assert!(done.insert(committed.sequence), "each sequence once"),
            Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error:?}"),
        }
    }
    assert!(done.len() as u64 >= last);
    assert!(done.iter().copied().eq(1..=done.len() as u64));
    assert_eq!(*store.sequence().borrow(), done.len() as u64);
}
