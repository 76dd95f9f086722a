//! How long a transaction lives, and who may call it.

use std::time::Duration;

use souk_storage::limits::{MAX_TRANSACTION_IDLE, MAX_TRANSACTION_LIFE};
use souk_storage::{ErrorKind, TransactionId};

use super::*;

const MOMENT: Duration = Duration::from_nanos(1);

fn assert_over<T: std::fmt::Debug>(result: Result<T, Error>, id: TransactionId) {
    match result {
        Err(error @ Error::TransactionNotFound { id: named }) => {
            assert_eq!((error.kind(), named), (ErrorKind::TransactionNotFound, id));
            assert_eq!(error.code(), "TRANSACTION_NOT_FOUND");
            assert!(!error.retryable());
        }
        other => panic!("expected that the transaction is over, got {other:?}"),
    }
}

#[tokio::test]
async fn end_with_their_life() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        let mut transaction = begin(&engine.database, &table, "a").await;
        // Calls don't prolong its life.
        for _ in 0..3 {
            engine.clock.advance(MAX_TRANSACTION_LIFE / 4);
            stage(&mut transaction, add(&table, "a", 1, 1)).await;
        }
        engine.clock.advance(MAX_TRANSACTION_LIFE / 4 - MOMENT);
        stage(&mut transaction, add(&table, "a", 1, 1)).await;
        assert_conflict(outside(&engine.database, put(&table, "a", 1, 9)).await, "a");
        engine.clock.advance(MOMENT);
        let id = transaction.id();
        assert_over(transaction.write(vec![put(&table, "a", 1, 1)]).await, id);
        assert_over(transaction.get(&key("a", 1)).await, id);
        assert_over(transaction.commit().await, id);
        assert_eq!(committed(&engine.database, &table, "a", 1).await, None);
        outside(&engine.database, put(&table, "a", 1, 9))
            .await
            .expect("a write");
    })
    .await;
}

#[tokio::test]
async fn end_when_nobody_calls() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        for visitor in 0..3 {
            let mut transaction = begin(&engine.database, &table, "a").await;
            stage(&mut transaction, put(&table, "a", 1, 1)).await;
            let id = transaction.id();
            engine.clock.advance(MAX_TRANSACTION_IDLE);
            // Whoever comes next ends it.
            match visitor {
                0 => drop(begin(&engine.database, &table, "a").await),
                1 => {
                    let write = put(&table, "a", 2, 2);
                    outside(&engine.database, write).await.expect("a write");
                }
                _ => engine.database.maintain().await.expect("maintenance"),
            }
            assert_over(transaction.commit().await, id);
            assert_eq!(committed(&engine.database, &table, "a", 1).await, None);
        }
    })
    .await;
}

#[tokio::test]
async fn are_told_to_be_open_until_they_end() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        let held = begin(database, &table, "a").await;
        let id = held.id();
        assert!(database.has_transaction(id));
        assert_eq!(held.detach(), id);
        assert!(database.has_transaction(id));
        let held = database.transaction(id).expect("a transaction");
        held.commit().await.expect("a commit");
        assert!(!database.has_transaction(id));
        let id = begin(database, &table, "a").await.detach();
        engine.clock.advance(MAX_TRANSACTION_LIFE - MOMENT);
        assert!(database.has_transaction(id));
        engine.clock.advance(MOMENT);
        assert!(!database.has_transaction(id));
    })
    .await;
}

/// A late end of the first transaction must not end the second.
#[tokio::test]
async fn do_not_end_their_successor() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        let first = begin(&engine.database, &table, "a").await;
        engine.clock.advance(MAX_TRANSACTION_LIFE);
        let mut second = begin(&engine.database, &table, "a").await;
        assert_ne!(first.id(), second.id());
        drop(first);
        assert_conflict(outside(&engine.database, put(&table, "a", 1, 9)).await, "a");
        stage(&mut second, put(&table, "a", 1, 2)).await;
        second.commit().await.expect("a commit");
        assert_eq!(committed(&engine.database, &table, "a", 1).await, Some(2));
    })
    .await;
}

#[tokio::test]
async fn outlive_no_clock_that_steps_back() {
    on_both(async |engine| {
        let table = engine.table(accounts()).await;
        let transaction = begin(&engine.database, &table, "a").await;
        engine.clock.set(crate::engines::START - 3_600_000_000_000);
        assert_conflict(outside(&engine.database, put(&table, "a", 1, 9)).await, "a");
        engine.clock.advance(MAX_TRANSACTION_LIFE);
        outside(&engine.database, put(&table, "a", 1, 9))
            .await
            .expect("a write");
        let id = transaction.id();
        assert_over(transaction.commit().await, id);
    })
    .await;
}

#[tokio::test]
async fn go_from_hand_to_hand() {
    on_both(async |engine| {
        let database = &engine.database;
        let table = engine.table(accounts()).await;
        let mut transaction = begin(database, &table, "a").await;
        stage(&mut transaction, put(&table, "a", 1, 1)).await;
        let id = transaction.id();
        let busy = database.transaction(id);
        match busy {
            Err(error @ Error::TransactionBusy { .. }) => {
                assert!(error.retryable());
                assert_eq!(error.code(), "TRANSACTION_BUSY");
            }
            other => panic!("expected a busy transaction, got {other:?}"),
        }
        assert_eq!(transaction.detach(), id);
        assert_conflict(outside(database, put(&table, "a", 1, 9)).await, "a");
        let parsed: TransactionId = id.to_string().parse().expect("an id");
        let mut transaction = database.transaction(parsed).expect("a transaction");
        assert_eq!((transaction.id(), transaction.partition()), (id, &"a".into()));
        assert_eq!(transaction.table().id(), table.id());
        stage(&mut transaction, add(&table, "a", 1, 1)).await;
        transaction.commit().await.expect("a commit");
        assert_over(database.transaction(id), id);
        assert_eq!(committed(database, &table, "a", 1).await, Some(2));
        // One that nobody takes up again ends by itself.
        let id = begin(database, &table, "a").await.detach();
        engine.clock.advance(MAX_TRANSACTION_IDLE);
        assert_over(database.transaction(id), id);
        outside(database, put(&table, "a", 1, 9)).await.expect("a write");
        for wrong in [
            "",
            "12",
            &"g".repeat(32),
            &"1".repeat(33),
            "+1111111111111111111111111111111",
        ] {
            let refused = wrong.parse::<TransactionId>();
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
        }
    })
    .await;
}
