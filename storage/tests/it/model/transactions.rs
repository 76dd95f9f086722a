//! Transactions, several at a time, each step between those of others.

use souk_storage::{Clock, Transaction, TransactionId};

use super::oracle::refusal;
use super::program::Program;
use super::random;
use super::steps::returned;

/// An open transaction, or its name.
pub(super) enum Handle {
    Held(Transaction),
    Detached(TransactionId),
}

impl Program {
    /// A step of a transaction.
    pub(super) async fn transaction(&mut self) {
        self.operations += 1;
        if self.handles.is_empty() || (self.handles.len() < 4 && self.random.u8(0..8) == 0) {
            self.begin().await;
            return;
        }
        let at = self.random.usize(0..self.handles.len());
        let Some(mut transaction) = self.take(at) else {
            return;
        };
        match self.random.u8(0..16) {
            0 => {
                let numbered = self.oracle.open[at].last.is_some();
                let expected = self.oracle.end(at, self.now());
                if numbered && expected.is_ok() {
                    self.happens("transaction with appended rows committed");
                }
                self.ends("transaction committed", &expected);
                let committed = transaction.commit().await;
                let found = committed
                    .map(|done| done.sequence)
                    .map_err(|error| refusal(&error));
                assert_eq!(found, expected);
                return;
            }
            1 => {
                self.oracle.open.swap_remove(at);
                self.happens("transaction aborted");
                transaction.abort();
                return;
            }
            2 => {
                self.oracle.open[at].used = self.now();
                let id = transaction.detach();
                self.put(at, Handle::Detached(id));
                return;
            }
            3 | 4 => self.read_inside(at, &transaction).await,
            5..8 => {
                let writes = self.random_writes(at);
                self.operations += writes.len();
                let expected = self.oracle.stage(at, &writes, false, self.clock.now());
                self.count_rows("row staged by itself", &expected);
                let found = transaction.write_rows(writes.clone()).await;
                let found = found
                    .map(|rows| {
                        let rows = rows.into_iter();
                        rows.map(|row| row.as_ref().map(returned).map_err(refusal))
                            .collect()
                    })
                    .map_err(|error| refusal(&error));
                assert_eq!(found, expected, "{writes:#?}");
            }
            _ => {
                let writes = self.random_writes(at);
                self.operations += writes.len();
                let expected = self.oracle.stage(at, &writes, true, self.clock.now());
                self.ends("rows staged", &expected);
                let found = transaction.write(writes.clone()).await;
                let found = found
                    .map(|rows| {
                        assert!(rows.iter().all(|row| row.sequence.is_none()));
                        rows.iter().map(|row| Ok(returned(row))).collect()
                    })
                    .map_err(|error| refusal(&error));
                assert_eq!(found, expected, "{writes:#?}");
            }
        }
        self.put(at, Handle::Held(transaction));
    }

    async fn begin(&mut self) {
        self.jobs_done().await;
        let with: Vec<_> = self
            .tables
            .iter()
            .filter(|table| table.schema().transactions)
            .cloned()
            .collect();
        let table = self.random.choice(&with).expect("a table").clone();
        let partition = random::partition(&mut self.random, &table);
        let expected = self.oracle.begin(&table, &partition, self.clock.now());
        self.ends("transaction begun", &expected);
        let found = self.database.begin(&table, partition).await;
        assert_eq!(found.as_ref().map(|_| ()).map_err(refusal), expected);
        self.handles.extend(found.ok().map(Handle::Held));
    }

    /// Takes up a transaction that is worked with; `None` when its time is up.
    fn take(&mut self, at: usize) -> Option<Transaction> {
        // Whoever takes the handle out puts another one at its place, or takes the oracle's out in the same way.
        match self.handles.swap_remove(at) {
            Handle::Held(transaction) => Some(transaction),
            Handle::Detached(id) => {
                let expected = self.oracle.touch(at, self.now());
                self.ends("transaction taken up", &expected);
                let found = self.database.transaction(id);
                assert_eq!(found.as_ref().map(|_| ()).map_err(refusal), expected);
                if found.is_err() {
                    self.oracle.open.swap_remove(at);
                }
                found.ok()
            }
        }
    }

    /// Puts a handle back where it was taken from.
    fn put(&mut self, at: usize, handle: Handle) {
        self.handles.push(handle);
        let last = self.handles.len() - 1;
        self.handles.swap(at, last);
    }

    /// What a transaction sees: the store as it is, and what it has written.
    async fn read_inside(&mut self, at: usize, transaction: &Transaction) {
        self.jobs_done().await;
        let expected = self.oracle.touch(at, self.now());
        self.ends("transaction read", &expected);
        let snapshot = transaction.snapshot().await;
        assert_eq!(snapshot.as_ref().map(|_| ()).map_err(refusal), expected);
        if let Ok(snapshot) = snapshot {
            let (view, open) = (self.oracle.view(at), &self.oracle.open[at]);
            let (table, indexes) = (open.table.clone(), open.indexes.clone());
            self.check_table(&snapshot, &table, &view, Some(&indexes)).await;
        }
    }
}
