//! Transactions, writers outside of them and readers at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use fastrand::Rng;
use souk_storage::{Direction, RangeRequest};

use super::views::sum;
use super::*;

const OWNERS: [&str; 2] = ["a", "b"];
const NUMBERS: i64 = 4;
const START_BALANCE: i64 = 1000;
const TASKS: usize = 8;
const ROUNDS: usize = 60;

/// What all tasks share.
struct Shared {
    database: Database,
    table: Table,
    /// What the writers outside added to each partition.
    added: [AtomicI64; 2],
    conflicts: AtomicU64,
}

/// Transactions move amounts inside a partition, reading before they write; writers outside add to it. No update is
/// lost, every reader sees whole transactions only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lose_no_update() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        for owner in OWNERS {
            for number in 0..NUMBERS {
                let write = put(&table, owner, number, START_BALANCE);
                outside(&engine.database, write).await.expect("a write");
            }
        }
        let shared = Arc::new(Shared {
            database: engine.database.clone(),
            table,
            added: [AtomicI64::new(0), AtomicI64::new(0)],
            conflicts: AtomicU64::new(0),
        });
        let mut random = crate::commits::random();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (shared, random) = (Arc::clone(&shared), random.fork());
                tokio::spawn(async move {
                    match task % 4 {
                        0 | 1 => transfers(&shared, random).await,
                        2 => additions(&shared, random).await,
                        _ => readers(&shared, random).await,
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a task");
        }
        println!("{} conflicts", shared.conflicts.load(Ordering::SeqCst));
        let snapshot = engine.database.snapshot().await.expect("a snapshot");
        for (owner, added) in OWNERS.iter().zip(&shared.added) {
            let expected = NUMBERS * START_BALANCE + added.load(Ordering::SeqCst);
            assert_eq!(sum(&snapshot, &shared.table, owner).await, (4, expected));
        }
    })
    .await;
}

/// Moves amounts by reading and putting: an update in between would be lost.
async fn transfers(shared: &Shared, mut random: Rng) {
    let mut moved = 0;
    while moved < ROUNDS {
        let owner = OWNERS[random.usize(0..2)];
        let mut transaction = match shared.database.begin(&shared.table, owner.into()).await {
            Ok(transaction) => transaction,
            Err(Error::TransactionConflict { .. }) => {
                shared.conflicts.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                continue;
            }
            Err(error) => panic!("a begin failed: {error}"),
        };
        let (from, to) = (random.i64(0..NUMBERS), random.i64(0..NUMBERS));
        for (number, by) in [(from, -1), (to, 1)] {
            let row = transaction.get(&key(owner, number)).await.expect("a read");
            let before = balance(row.as_ref()).expect("a balance");
            tokio::task::yield_now().await;
            stage(&mut transaction, put(&shared.table, owner, number, before + by)).await;
        }
        match random.u8(0..4) {
            0 => transaction.abort(),
            1 => {
                // Whoever waits for the commit may go away; it happens or not.
                let commit = tokio::spawn(transaction.commit());
                tokio::task::yield_now().await;
                commit.abort();
            }
            _ => {
                transaction.commit().await.expect("a commit");
            }
        }
        moved += 1;
    }
}

/// Adds outside of transactions, by increments and by put on condition of what was read.
async fn additions(shared: &Shared, mut random: Rng) {
    let mut added = 0;
    while added < ROUNDS {
        let at = random.usize(0..2);
        let (owner, number) = (OWNERS[at], random.i64(0..NUMBERS));
        let write = if random.bool() {
            add(&shared.table, owner, number, 7)
        } else {
            let snapshot = shared.database.snapshot().await.expect("a snapshot");
            let row = snapshot.get(&shared.table, &key(owner, number)).await;
            let row = row.expect("a read").expect("a row");
            let before = balance(Some(&row)).expect("a balance");
            RowWrite {
                condition: Condition::revision(row.revision),
                ..put(&shared.table, owner, number, before + 7)
            }
        };
        match outside(&shared.database, write).await {
            Ok(_) => {
                shared.added[at].fetch_add(7, Ordering::SeqCst);
                added += 1;
            }
            Err(Error::TransactionConflict { .. } | Error::ConditionFailed { .. }) => {
                shared.conflicts.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("a write failed: {error}"),
        }
    }
}

/// Whatever is seen is a whole number of transactions and additions.
async fn readers(shared: &Shared, mut random: Rng) {
    for _ in 0..ROUNDS {
        let owner = OWNERS[random.usize(0..2)];
        let snapshot = shared.database.snapshot().await.expect("a snapshot");
        let (rows, sum) = sum(&snapshot, &shared.table, owner).await;
        assert_eq!(rows as i64, NUMBERS);
        assert_eq!(
            (sum - NUMBERS * START_BALANCE) % 7,
            0,
            "half a transfer is visible"
        );
        tokio::task::yield_now().await;
    }
}

/// A transaction that begins while writers are on their way sees all of them, and no later one gets in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn begin_after_the_writers_before_them() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        for round in 0..20 {
            let owner = format!("owner {round}");
            let writers: Vec<_> = (0..20)
                .map(|number| {
                    let (database, write) = (engine.database.clone(), put(&table, &owner, number, 1));
                    tokio::spawn(async move {
                        match outside(&database, write).await {
                            Ok(sequence) => Some(sequence),
                            Err(Error::TransactionConflict { .. }) => None,
                            Err(error) => panic!("a write failed: {error}"),
                        }
                    })
                })
                .collect();
            let mut transaction = begin(&engine.database, &table, &owner).await;
            let request = RangeRequest::prefix(
                PrimaryKey::string(owner.as_str()).expect("a key"),
                Direction::Forward,
            );
            let seen = transaction.range(&request).await.expect("a page").rows.len();
            tokio::task::yield_now().await;
            let again = transaction.range(&request).await.expect("a page").rows.len();
            assert_eq!(seen, again, "somebody wrote into a held partition");
            stage(&mut transaction, put(&table, &owner, 100, 1)).await;
            let commit = transaction.commit().await.expect("a commit").sequence;
            let mut before = 0;
            for writer in writers {
                let sequence = writer.await.expect("a writer");
                before += usize::from(sequence.is_some_and(|sequence| sequence < commit));
            }
            assert_eq!(before, seen, "the transaction missed a writer");
        }
    })
    .await;
}

/// Writers that nobody waits for any more still hold their partition until their commit is decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_for_writers_that_were_given_up() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        outside(&engine.database, put(&table, "a", 1, 0))
            .await
            .expect("a write");
        for round in 0..100 {
            let database = engine.database.clone();
            let write = add(&table, "a", 1, 1);
            let writer = tokio::spawn(async move { outside(&database, write).await });
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            writer.abort();
            // Aborting doesn't wait: a poll that runs meanwhile could begin the write after the transaction's end.
            let _ = writer.await;
            let mut transaction = begin(&engine.database, &table, "a").await;
            let row = transaction.get(&key("a", 1)).await.expect("a read");
            tokio::task::yield_now().await;
            let before = committed(&engine.database, &table, "a", 1).await;
            assert_eq!(balance(row.as_ref()), before, "a writer came in late");
            let before = before.expect("a balance");
            stage(&mut transaction, put(&table, "a", 1, before + 1)).await;
            transaction.commit().await.expect("a commit");
            let after = committed(&engine.database, &table, "a", 1).await;
            assert_eq!(after, Some(before + 1));
        }
    })
    .await;
}
