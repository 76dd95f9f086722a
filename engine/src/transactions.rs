//! Transactions between the calls of their callers: whose each is, and how many there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use souk_storage::limits::MAX_TRANSACTION_LIFE;
use souk_storage::{Error as StoreError, TableId, TransactionId};
use tokio::time::Instant;

use crate::error::{EngineError, LimitOf, Result};

/// Most transactions that are open at a time.
pub const TRANSACTIONS_MAX: usize = 1_024;
/// Most of them of one caller, where callers are known.
pub const TRANSACTIONS_OF_CALLER_MAX: usize = 64;

/// What a read has to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeing {
    /// At least this write; 0 is any.
    Sequence(u64),
    /// What a transaction has written, on top of what is there.
    Transaction(TransactionId),
}

/// The transactions that are open.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    open: Mutex<Vec<Entry>>,
    /// The number of the next place: one that was given up is nobody else's.
    next: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    /// `None` while it is begun.
    id: Option<TransactionId>,
    number: u64,
    table: TableId,
    /// Whose it is, where that is known.
    caller: Option<Arc<str>>,
    began: Instant,
}

impl Transactions {
    /// A place for another one, which is given a name by [`Transactions::name`].
    pub(crate) fn admit(&self, table: TableId, caller: Option<Arc<str>>) -> Result<u64> {
        let mut open = self.open.lock();
        // One that waits for its partition has its place until its caller gives it up.
        open.retain(|entry| entry.id.is_none() || entry.began.elapsed() < MAX_TRANSACTION_LIFE);
        let of_caller = open.iter().filter(|entry| entry.caller == caller).count();
        let (max, of) = match caller {
            Some(_) if of_caller >= TRANSACTIONS_OF_CALLER_MAX => {
                (TRANSACTIONS_OF_CALLER_MAX, LimitOf::Caller)
            }
            _ if open.len() >= TRANSACTIONS_MAX => (TRANSACTIONS_MAX, LimitOf::All),
            _ => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                open.push(Entry {
                    id: None,
                    number,
                    table,
                    caller,
                    began: Instant::now(),
                });
                return Ok(number);
            }
        };
        Err(EngineError::TooManyTransactions { max, of })
    }

    /// Gives the one that was admitted its name.
    pub(crate) fn name(&self, number: u64, id: TransactionId) {
        let mut open = self.open.lock();
        if let Some(entry) = open.iter_mut().find(|entry| entry.number == number) {
            entry.id = Some(id);
            // The store's time begins when the partition is held, which may take a while.
            entry.began = Instant::now();
        }
    }

    /// Frees the place of one that was admitted and not begun.
    pub(crate) fn give_up(&self, number: u64) {
        self.open.lock().retain(|entry| entry.number != number);
    }

    /// Frees the place of one that has ended.
    pub(crate) fn end(&self, id: TransactionId) {
        self.open.lock().retain(|entry| entry.id != Some(id));
    }

    /// Refuses one that isn't open, or another's.
    pub(crate) fn check(&self, id: TransactionId, table: TableId, caller: Option<&Arc<str>>) -> Result<()> {
        let open = self.open.lock();
        let mut theirs = open
            .iter()
            .filter(|entry| entry.table == table && entry.caller.as_ref() == caller);
        match theirs.any(|entry| entry.id == Some(id)) {
            true => Ok(()),
            false => Err(StoreError::TransactionNotFound { id }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_its_share_and_all_together_their_number() {
        let transactions = Transactions::default();
        let table = TableId(1);
        let caller = |nth: usize| Some(Arc::from(format!("caller {nth}")));
        for nth in 0..TRANSACTIONS_MAX {
            let whose = caller(nth / TRANSACTIONS_OF_CALLER_MAX);
            transactions.admit(table, whose).expect("a place");
            if nth == TRANSACTIONS_OF_CALLER_MAX - 1 {
                let full = transactions.admit(table, caller(0)).expect_err("its share");
                assert!(full.to_string().contains("of this caller"), "{full}");
            }
        }
        let full = transactions.admit(table, caller(99)).expect_err("all");
        assert!(full.to_string().contains("of all callers"), "{full}");
        transactions.give_up(3);
        transactions.admit(table, caller(99)).expect("a place again");
    }

    #[test]
    fn a_place_that_was_given_up_is_nobody_elses() {
        let transactions = Transactions::default();
        let table = TableId(1);
        let first = transactions.admit(table, None).expect("a place");
        transactions.give_up(first);
        let second = transactions.admit(table, None).expect("a place");
        assert_ne!(first, second);
        // Late: it ends nothing.
        transactions.give_up(first);
        let id = "01".repeat(16).parse().expect("an id");
        transactions.name(second, id);
        transactions.check(id, table, None).expect("the second is there");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_one_begins_when_it_is_held() {
        let transactions = Transactions::default();
        let table = TableId(1);
        let number = transactions.admit(table, None).expect("a place");
        let half = MAX_TRANSACTION_LIFE / 2;
        tokio::time::advance(MAX_TRANSACTION_LIFE).await;
        transactions.admit(table, None).expect("another place");
        let id = "01".repeat(16).parse().expect("an id");
        transactions.name(number, id);
        tokio::time::advance(half).await;
        transactions.admit(table, None).expect("another place");
        transactions
            .check(id, table, None)
            .expect("it has half of its time");
        tokio::time::advance(half).await;
        transactions.admit(table, None).expect("another place");
        transactions.check(id, table, None).expect_err("its time is up");
    }
}
