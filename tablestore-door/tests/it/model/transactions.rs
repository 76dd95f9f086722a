//! Local transactions.

use std::collections::BTreeMap;

use souk_tablestore::messages as pb;

use super::datum::{Datum, Key};
use super::row::Row;
use super::{Fault, Program};
use crate::client::row;

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
}

impl Held {
    pub(super) fn lives(&self, now: i64) -> bool {
        now - self.begun < LIFE
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
        let transaction_id = held.id.clone();
        if self.random.u8(..3) == 0 {
            let request = pb::AbortTransactionRequest { transaction_id };
            let answer: Result<pb::AbortTransactionResponse, _> =
                self.call("AbortTransaction", &request).await;
            answer.expect("aborted");
            self.met("a transaction aborted");
        } else {
            let request = pb::CommitTransactionRequest { transaction_id };
            let answer: Result<pb::CommitTransactionResponse, _> =
                self.call("CommitTransaction", &request).await;
            answer.expect("committed");
            let table = self.tables.get_mut(held.table).expect("its table");
            for (key, row) in held.rows {
                if let (Some(place), Some(_)) = (table.numbered, &row) {
                    table.note_number(place, &key);
                }
                table.commit(key, row);
            }
            self.met("a transaction committed");
        }
        self.ended(&held.id).await;
    }

    async fn begin(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name) else {
            return;
        };
        let partition = table.draw_key(&mut self.random).swap_remove(0);
        let key = table.wire_key(&vec![partition.clone()]);
        let request = pb::StartLocalTransactionRequest {
            table_name: name.to_owned(),
            key: row(key, Vec::new()),
            row_keys: Vec::new(),
        };
        let kept_out = self.kept_out(name, None, &partition);
        let answer: Result<pb::StartLocalTransactionResponse, _> =
            self.call("StartLocalTransaction", &request).await;
        if let Some(fault) = kept_out {
            return fault.is(&answer.expect_err("a partition that is held"));
        }
        self.held.push(Held {
            id: answer.expect("begun").transaction_id,
            table: name,
            partition,
            begun: self.now,
            rows: BTreeMap::new(),
        });
        self.met("a transaction begun");
    }

    /// A transaction that has ended is none any more.
    pub(super) async fn ended(&mut self, id: &str) {
        let transaction_id = id.to_owned();
        let request = pb::CommitTransactionRequest { transaction_id };
        let answer: Result<pb::CommitTransactionResponse, _> = self.call("CommitTransaction", &request).await;
        Fault::NoTransaction.is(&answer.expect_err("it has ended"));
    }
}
