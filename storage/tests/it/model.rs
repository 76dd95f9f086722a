//! The database against an oracle: one random program of all operations, and every way of reading.

mod checks;
mod open;
mod oracle;
mod program;
mod random;
mod row;
mod steps;
mod transactions;

use self::program::Program;

/// How many times longer than usual.
fn times() -> usize {
    if std::env::var_os("SOUK_LONG").is_some() {
        10
    } else {
        1
    }
}

/// What each long run must have met, so that it is known to be compared.
const WHAT: [&str; 30] = [
    "COLUMN_CONDITION_FAILED",
    "INVALID_ARGUMENT",
    "OUTSIDE_PARTITION",
    "REQUEST_ID_REUSED",
    "REVISION_MISMATCH",
    "ROW_ALREADY_EXISTS",
    "ROW_NOT_FOUND",
    "TRANSACTION_CONFLICT",
    "TRANSACTION_NOT_FOUND",
    "batch repeated",
    "batch written",
    "cells expired",
    "index dropped",
    "index filled",
    "index not filled",
    "kept snapshot compared",
    "number appended",
    "row expired",
    "row staged by itself",
    "row written by itself",
    "rows staged",
    "table replaced",
    "table updated",
    "transaction aborted",
    "transaction begun",
    "transaction committed",
    "transaction read",
    "transaction taken up",
    "transaction with appended rows committed",
    "versions trimmed",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_like_the_oracle_in_memory() {
    let (operations, happened) = Program::new(None).await.run(40_000 * times()).await;
    println!("{operations} operations in memory: {happened:#?}");
    assert!(operations > 100_000, "{operations} operations are few");
    for what in WHAT {
        assert!(happened.contains_key(what), "this never happened: {what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_like_the_oracle_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program::new(Some(directory.path())).await;
    let (operations, happened) = program.run(4_000 * times()).await;
    println!("{operations} operations on the disk: {happened:#?}");
    assert!(operations > 10_000, "{operations} operations are few");
    assert!(happened.contains_key("reopened"), "it was never opened again");
}
