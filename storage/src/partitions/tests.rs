use std::time::Duration;

use super::*;
use crate::batch::{Condition, RowOperation};
use crate::catalog::Definition;
use crate::error::ErrorKind;
use crate::id::TableId;
use crate::limits::{MAX_STAGED_BYTES, MAX_STAGED_OF_CALLER_BYTES, MAX_TRANSACTION_LIFE, MAX_TRANSACTIONS};
use crate::schema::{KeyKind, TableSchema};
use crate::value::PrimaryKey;

fn table() -> Table {
    let schema = TableSchema::new("t").key("id", KeyKind::Integer).transactions();
    Table::new(TableId(1), Definition::new(schema))
}

fn delete(table: &Table, id: i64) -> RowWrite {
    let key = PrimaryKey::integer(id);
    RowWrite::new(table, RowOperation::Delete { key }, Condition::none())
}

fn limit(result: Result<impl std::fmt::Debug>) -> (&'static str, usize) {
    match result {
        Err(Error::LimitExceeded { limit, max, .. }) => (limit, max),
        other => panic!("expected a limit, got {other:?}"),
    }
}

#[test]
fn keep_nothing_of_what_has_ended() {
    let (partitions, table) = (Partitions::new(), table());
    let mut writer = WriterGuard::new(&partitions);
    writer.join(&delete(&table, 1), 0).expect("a free partition");
    writer.join(&delete(&table, 1), 0).expect("held already");
    writer.join(&delete(&table, 2), 0).expect("a free partition");
    let id = partitions
        .claim(&table, &1.into(), None, 0)
        .expect("a transaction");
    partitions.start(id, 0);
    partitions.resize(id, 100).expect("room");
    let refused = WriterGuard::new(&partitions).join(&delete(&table, 1), 0);
    assert!(matches!(refused, Err(Error::TransactionConflict { .. })));
    drop(writer);
    partitions.end(id);
    partitions.end(id);
    let state = partitions.0.lock();
    assert!(state.partitions.is_empty() && state.open.is_empty());
    assert_eq!(state.staged_bytes, 0);
}

#[test]
fn are_limited_in_number() {
    let (partitions, table) = (Partitions::new(), table());
    let claim = |number: usize, now| {
        let partition = i64::try_from(number).expect("a number").into();
        let id = partitions.claim(&table, &partition, None, now)?;
        partitions.start(id, now);
        Ok(id)
    };
    let first = claim(0, 0).expect("a transaction");
    for number in 1..MAX_TRANSACTIONS {
        claim(number, 1).expect("a transaction");
    }
    assert_eq!(
        limit(claim(MAX_TRANSACTIONS, 1)),
        ("MAX_TRANSACTIONS", MAX_TRANSACTIONS)
    );
    // One whose time is up makes room.
    let over = nanos(MAX_TRANSACTION_LIFE);
    claim(MAX_TRANSACTIONS, over).expect("a transaction");
    let gone = partitions.touch(first, over).map_err(|error| error.kind());
    assert_eq!(gone, Err(ErrorKind::TransactionNotFound));
}

#[test]
fn share_a_limit_of_memory() {
    let (partitions, table) = (Partitions::new(), table());
    let claim = |partition: i64| {
        let id = partitions.claim(&table, &partition.into(), None, 0);
        id.expect("a transaction")
    };
    let (first, second) = (claim(1), claim(2));
    partitions.resize(first, MAX_STAGED_BYTES - 10).expect("room");
    partitions.resize(second, 10).expect("room");
    assert_eq!(
        limit(partitions.resize(second, 11)),
        ("MAX_STAGED_BYTES", MAX_STAGED_BYTES)
    );
    partitions.resize(first, 0).expect("less");
    partitions.resize(second, MAX_STAGED_BYTES).expect("room");
    partitions.end(second);
    partitions.resize(first, MAX_STAGED_BYTES).expect("room");
}

#[test]
fn share_a_limit_of_memory_by_callers() {
    let (partitions, table) = (Partitions::new(), table());
    let claim = |caller: &str, partition: i64| {
        let id = partitions.claim(&table, &partition.into(), Some(caller.into()), 0);
        id.expect("a transaction")
    };
    let (first, second, other) = (claim("ann", 1), claim("ann", 2), claim("bob", 3));
    partitions
        .resize(first, MAX_STAGED_OF_CALLER_BYTES - 10)
        .expect("room");
    partitions.resize(second, 10).expect("room");
    assert_eq!(
        limit(partitions.resize(second, 11)),
        ("MAX_STAGED_OF_CALLER_BYTES", MAX_STAGED_OF_CALLER_BYTES)
    );
    partitions
        .resize(other, MAX_STAGED_OF_CALLER_BYTES)
        .expect("a share of its own");
    partitions.end(first);
    partitions
        .resize(second, MAX_STAGED_OF_CALLER_BYTES)
        .expect("room");
    assert_eq!(partitions.0.lock().staged_bytes, 2 * MAX_STAGED_OF_CALLER_BYTES);
}

#[test]
fn are_not_ended_while_they_wait_or_commit() {
    let (partitions, table) = (Partitions::new(), table());
    let over = nanos(MAX_TRANSACTION_LIFE + Duration::from_secs(1));
    let waiting = partitions
        .claim(&table, &1.into(), None, 0)
        .expect("a transaction");
    let committing = partitions
        .claim(&table, &2.into(), None, 0)
        .expect("a transaction");
    partitions.start(committing, 0);
    partitions.begin_commit(committing, 0).expect("a transaction");
    partitions.sweep(over);
    for id in [waiting, committing] {
        partitions.touch(id, over).expect("a transaction");
        let busy = partitions.resume(id, over).map_err(|error| error.kind());
        assert_eq!(busy.err(), Some(ErrorKind::TransactionBusy));
    }
    // The time of one begins when it is held.
    partitions.start(waiting, over);
    let end = over + nanos(MAX_TRANSACTION_LIFE);
    assert!(partitions.is_open(waiting, end - 1));
    assert!(!partitions.is_open(waiting, end));
    // A clock that steps back doesn't bring it back.
    assert!(!partitions.is_open(waiting, over));
    assert!(partitions.is_open(committing, end));
}
