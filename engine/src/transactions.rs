//! Transactions between the calls of their callers: whose each is, and how many there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use souk_storage::{Error as StoreError, TableId, TransactionId};

use crate::error::{EngineError, LimitOf, Result};

/// Most transactions that are open at a time.
pub const TRANSACTIONS_MAX: usize = 1_024;
/// Most of them of one caller, where callers are known.
pub const TRANSACTIONS_OF_CALLER_MAX: usize = 64;

/// Which writes a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadView {
    /// Sees at least this write; 0 is any.
    Sequence(u64),
    /// Sees the latest rows, with what this transaction has written on top.
    Transaction(TransactionId),
}

/// The transactions that are open. How long each may go on is known to the store alone, which ends it by its clock.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Among them those that the store has ended by itself, until another one needs their places.
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
}

impl Transactions {
    /// A place for another one, which is given a name by [`Transactions::name`]. `is_open` says whether the store has one still.
    pub(crate) fn admit(
        &self,
        table: TableId,
        caller: Option<Arc<str>>,
        is_open: impl Fn(TransactionId) -> bool,
    ) -> Result<u64> {
        let mut open = self.open.lock();
        if let Some((_, of)) = full(&open, caller.as_ref()) {
            // The store is asked for no more of them than share the limit. One that waits for its partition has its place until
            // its caller gives it up.
            open.retain(|entry| {
                let shares = of == LimitOf::All || entry.caller == caller;
                !shares || entry.id.is_none_or(&is_open)
            });
        }
        if let Some((max, of)) = full(&open, caller.as_ref()) {
            return Err(EngineError::TooManyTransactions { max, of });
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        open.push(Entry {
            id: None,
            number,
            table,
            caller,
        });
        Ok(number)
    }

    /// Gives the one that was admitted its name.
    pub(crate) fn name(&self, number: u64, id: TransactionId) {
        let mut open = self.open.lock();
        if let Some(entry) = open.iter_mut().find(|entry| entry.number == number) {
            entry.id = Some(id);
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

    /// Refuses one that isn't open, or another's. One whose time is up is the store's to refuse.
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

/// The limit that has been reached, if one has.
fn full(open: &[Entry], caller: Option<&Arc<str>>) -> Option<(usize, LimitOf)> {
    let own = open.iter().filter(|entry| entry.caller.as_ref() == caller);
    if caller.is_some() && own.count() >= TRANSACTIONS_OF_CALLER_MAX {
        return Some((TRANSACTIONS_OF_CALLER_MAX, LimitOf::Caller));
    }
    (open.len() >= TRANSACTIONS_MAX).then_some((TRANSACTIONS_MAX, LimitOf::All))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(_: TransactionId) -> bool {
        true
    }

    fn ended(_: TransactionId) -> bool {
        false
    }

    #[test]
    fn a_caller_has_its_share_and_all_together_their_number() {
        let transactions = Transactions::default();
        let table = TableId(1);
        let caller = |nth: usize| Some(Arc::from(format!("caller {nth}")));
        for nth in 0..TRANSACTIONS_MAX {
            let whose = caller(nth / TRANSACTIONS_OF_CALLER_MAX);
            transactions.admit(table, whose, open).expect("a place");
            if nth == TRANSACTIONS_OF_CALLER_MAX - 1 {
                let full = transactions.admit(table, caller(0), open).expect_err("its share");
                assert!(full.to_string().contains("of this caller"), "{full}");
            }
        }
        let full = transactions.admit(table, caller(99), open).expect_err("all");
        assert!(full.to_string().contains("of all callers"), "{full}");
        transactions.give_up(3);
        transactions
            .admit(table, caller(99), open)
            .expect("a place again");
    }

    #[test]
    fn a_place_that_was_given_up_is_nobody_elses() {
        let transactions = Transactions::default();
        let table = TableId(1);
        let first = transactions.admit(table, None, open).expect("a place");
        transactions.give_up(first);
        let second = transactions.admit(table, None, open).expect("a place");
        assert_ne!(first, second);
        // Late: it ends nothing.
        transactions.give_up(first);
        let id = "01".repeat(16).parse().expect("an id");
        transactions.name(second, id);
        transactions.check(id, table, None).expect("the second is there");
    }

    #[test]
    fn one_that_the_store_has_ended_makes_room() {
        let transactions = Transactions::default();
        let table = TableId(1);
        let caller: Option<Arc<str>> = Some(Arc::from("a caller"));
        let id = "01".repeat(16).parse().expect("an id");
        let begun = transactions.admit(table, caller.clone(), open).expect("a place");
        transactions.name(begun, id);
        for _ in 1..TRANSACTIONS_OF_CALLER_MAX {
            transactions.admit(table, caller.clone(), ended).expect("a place");
        }
        transactions
            .admit(table, caller.clone(), open)
            .expect_err("all are open");
        transactions
            .check(id, table, caller.as_ref())
            .expect("it is open");
        transactions
            .admit(table, caller.clone(), ended)
            .expect("the place of the one that was begun");
        transactions
            .check(id, table, caller.as_ref())
            .expect_err("it has ended");
        transactions
            .admit(table, caller, ended)
            .expect_err("those that wait for their partitions are none of the store's yet");
    }
}
