//! Serializability: commits of concurrent writers happen one after the other.

use std::collections::BTreeSet;

use super::commits::*;
use super::{SharedKv, commit, conflict};
use crate::{Commit, Direction, Error, Scan, Space};

/// Only a commit with a log entry takes a sequence.
pub async fn takes_no_sequence_without_a_log_entry(store: SharedKv) {
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

/// [`KvSnapshot::group`](crate::KvSnapshot::group) grows with each commit that becomes visible, logged or not.
pub async fn numbers_its_commit_groups(store: SharedKv) {
    let mut before = snapshot(&*store).await.group();
    for change in [
        logged(vec![], b""),
        unlogged(vec![put(Space::Rows, b"a", b"")]),
        unlogged(vec![delete(Space::Rows, b"a")]),
    ] {
        commit(&store, change).await;
        let group = snapshot(&*store).await.group();
        assert!(group > before, "{group} follows {before}");
        assert_eq!(snapshot(&*store).await.group(), group);
        before = group;
    }
}

/// A commit whose checks held in a snapshot, which it says by its group, conflicts with what was written since.
pub async fn checks_again_what_was_written_since_the_validation(store: SharedKv) {
    let validated_at = Some(snapshot(&*store).await.group());
    let create = |key: &[u8]| Commit {
        validated_at,
        ..checked(
            vec![absent(Space::Rows, key)],
            logged(vec![put(Space::Rows, key, b"")], b""),
        )
    };
    commit(&store, create(b"a")).await;
    assert_eq!(conflict(&store, create(b"a")).await, 0);
    commit(&store, create(b"b")).await;
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (store, create) = (store.clone(), create(b"c"));
            tokio::spawn(async move { store.commit(create).await })
        })
        .collect();
    let mut created = 0;
    for task in tasks {
        match task.await.expect("a task") {
            Ok(_) => created += 1,
            Err(error) => assert!(matches!(error, Error::Conflict { check: 0 }), "{error:?}"),
        }
    }
    assert_eq!(created, 1);
}

/// [`KvSnapshot::is_unwritten_since`](crate::KvSnapshot::is_unwritten_since) is only said of keys that two cuts show alike.
pub async fn never_calls_a_written_key_unwritten(store: SharedKv) {
    let mut random = souk_seeds::random();
    let mut cuts = Vec::new();
    let keys: Vec<[u8; 1]> = (b'a'..=b'f').map(|key| [key]).collect();
    for round in 0..60u8 {
        let key = keys[random.usize(..keys.len())];
        let change = match random.u8(..4) {
            0 => delete(Space::Rows, &key),
            1 => put(Space::Index, &key, &[round]),
            _ => put(Space::Rows, &key, &[round]),
        };
        commit(&store, buffered(unlogged(vec![change]))).await;
        if random.bool() {
            cuts.push(snapshot(&*store).await);
        }
        if random.u8(..8) == 0 && !cuts.is_empty() {
            cuts.swap_remove(random.usize(..cuts.len()));
        }
    }
    for one in &cuts {
        for other in &cuts {
            let group = one.group().min(other.group());
            for key in &keys {
                if one.is_unwritten_since(group, Space::Rows, key) {
                    let values = (one.get(Space::Rows, key).await, other.get(Space::Rows, key).await);
                    let (Ok(one), Ok(other)) = values else {
                        panic!("a read failed: {values:?}");
                    };
                    assert_eq!(one, other, "{key:?} since {group}");
                }
            }
        }
    }
}

/// Of concurrent commits that require a key to be absent, one succeeds.
pub async fn lets_one_of_many_creators_win(store: SharedKv) {
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

/// Compare-and-set by revision loses no update among concurrent writers.
pub async fn loses_no_update(store: SharedKv) {
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
                    let checks = vec![has_prefix(Space::Rows, b"n", prefix(revision))];
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

/// Sequences of concurrent writers are gap-free, in commit order, and those of their log entries.
pub async fn gives_sequences_without_gaps(store: SharedKv) {
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

/// A snapshot holds exactly the commits up to its sequence, and at least those published before.
pub async fn gives_snapshots_their_exact_sequence(store: SharedKv) {
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
            entries: 1,
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

/// [`Kv::sequence`](crate::Kv::sequence) is never behind a snapshot: what a reader has seen is published.
pub async fn shows_no_snapshot_ahead_of_the_sequence(store: SharedKv) {
    const COMMITS: u64 = 5_000;
    let reader = {
        let store = store.clone();
        tokio::spawn(async move {
            let sequence = store.sequence();
            loop {
                let read = snapshot(&*store).await.sequence();
                let last = *sequence.borrow();
                assert!(read <= last, "{read} was read, but the last is {last}");
                if read == COMMITS {
                    return;
                }
            }
        })
    };
    for _ in 0..COMMITS {
        commit(&store, buffered(logged(vec![], b""))).await;
    }
    reader.await.expect("a reader");
}

/// A commit is published before it is acknowledged.
pub async fn tells_the_sequence_before_it_answers(store: SharedKv) {
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
