//! Transactions: begun, committed, aborted, ended by time, restarts and drops of their tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use souk_proto::table::v1::{
    AbortTransactionRequest, BeginTransactionRequest, CommitTransactionRequest, RowChangeKind,
};

use super::datum::{Datum, Key};
use super::row::Row;
use super::{Fault, Program};

/// How long a transaction may go on, milliseconds.
const LIFE: i64 = 60_000;
/// Most at a time.
const HELD_MAX: usize = 3;

/// A transaction that goes on.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) id: String,
    pub(super) table: &'static str,
    pub(super) partition: Datum,
    begun: i64,
    /// What it has made of rows; `None`: one is gone.
    pub(super) rows: BTreeMap<Key, Option<Row>>,
    /// What is to be told of them.
    kinds: BTreeMap<Key, RowChangeKind>,
}

impl Held {
    pub(super) fn lives(&self, now: i64) -> bool {
        now - self.begun < LIFE
    }

    /// Notes a write.
    pub(super) fn stage(&mut self, key: Key, kind: RowChangeKind, row: Option<Row>) {
        // What is put, or deleted, and then updated was put as a whole.
        let kind = match (self.kinds.get(&key), kind) {
            (Some(RowChangeKind::Put | RowChangeKind::Delete), RowChangeKind::Update) => RowChangeKind::Put,
            _ => kind,
        };
        self.kinds.insert(key.clone(), kind);
        self.rows.insert(key, row);
    }
}

impl Program {
    /// Begins a transaction, or ends one. What is written in them is written with all else.
    pub(super) async fn transact(&mut self) {
        if self.held.is_empty() || self.held.len() < HELD_MAX && self.random.bool() {
            return self.begin().await;
        }
        if self.random.u8(..3) > 0 {
            return;
        }
        let nth = self.random.usize(..self.held.len());
        let held = self.held.swap_remove(nth);
        self.end_transaction(held).await;
    }

    pub(super) async fn end_transaction(&mut self, held: Held) {
        let (table, transaction_id) = (held.table.to_owned(), held.id.clone());
        if self.random.u8(..3) == 0 {
            let request = AbortTransactionRequest {
                table,
                transaction_id,
            };
            self.say(&request);
            self.client().abort_transaction(request).await.expect("aborted");
            self.met("a transaction aborted");
        } else {
            let request = CommitTransactionRequest {
                table,
                transaction_id,
                checkpoint: None,
            };
            self.say(&request);
            let committed = self.client().commit_transaction(request).await;
            let table = &self.tables[held.table];
            let mut written = held
                .rows
                .iter()
                .filter_map(|(key, row)| Some((key, row.as_ref()?)));
            if written.any(|(key, row)| !table.takes(key, row, table.rows.get(key))) {
                // An index was added since.
                Fault::TooLong.is(&committed.expect_err("a row that an index doesn't take"));
                self.met("a commit refused");
                return self.ended(held.table, &held.id).await;
            }
            let committed = committed.expect("committed").into_inner();
            self.saw(committed.sequence);
            let now = self.now;
            let table = Arc::make_mut(self.tables.get_mut(held.table).expect("its table"));
            for (key, row) in held.rows {
                let before = table.rows.get(&key);
                let is_there = before.is_some_and(|row| row.visible(&table.options, now).is_some());
                let kind = match &row {
                    Some(_) => held.kinds[&key],
                    None if is_there => RowChangeKind::Delete,
                    None => {
                        // One that has expired may have been deleted before, of which nobody was told.
                        table.rows.remove(&key);
                        continue;
                    }
                };
                table.commit(committed.sequence, key, kind, row);
            }
            self.met("a transaction committed");
        }
        self.ended(held.table, &held.id).await;
    }

    async fn begin(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name) else {
            return;
        };
        let (has_transactions, mut key) = (table.has_transactions, table.draw_key(&mut self.random));
        let partition = key.swap_remove(0);
        let request = BeginTransactionRequest {
            table: name.to_owned(),
            partition: Some(partition.wire()),
        };
        self.say(&request);
        let kept_out = self.kept_out(name, None, &partition);
        let answer = self.client().begin_transaction(request).await;
        if !has_transactions {
            Fault::Invalid.is(&answer.expect_err("a table without transactions"));
            return self.met("a table without transactions");
        }
        if let Some(fault) = kept_out {
            return fault.is(&answer.expect_err("a partition that is held"));
        }
        self.held.push(Held {
            id: answer.expect("begun").into_inner().transaction_id,
            table: name,
            partition,
            begun: self.now,
            rows: BTreeMap::new(),
            kinds: BTreeMap::new(),
        });
        self.met("a transaction begun");
    }

    /// A transaction that has ended is none any more.
    pub(super) async fn ended(&mut self, table: &str, id: &str) {
        let request = CommitTransactionRequest {
            table: table.to_owned(),
            transaction_id: id.to_owned(),
            checkpoint: None,
        };
        let answer = self.client().commit_transaction(request).await;
        let fault = match self.tables.contains_key(table) {
            true => Fault::NoTransaction,
            false => Fault::NoTable,
        };
        fault.is(&answer.expect_err("it has ended"));
    }
}
