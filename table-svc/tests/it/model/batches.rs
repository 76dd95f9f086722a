//! Batches of writes and of reads.

use std::collections::BTreeSet;

use souk_proto::table::v1::{BatchGetRowsRequest, BatchWriteRowsRequest, Key as WireKey, WriteResult};

use super::datum::{Key, wire_key};
use super::read::Asked;
use super::row::Done;
use super::rows::{Answer, Write};
use super::table::Table;
use super::{Fault, Program};

impl Program {
    /// Writes rows of a table: all or none, or each by itself.
    pub(super) async fn write_batch(&mut self) {
        let name = self.table();
        let within = self.within(name);
        let Some(table) = self.tables.get(name).cloned() else {
            let request = BatchWriteRowsRequest {
                table: name.to_owned(),
                writes: vec![Write::nowhere(&mut self.random).wire(None)],
                ..BatchWriteRowsRequest::default()
            };
            let answer = self.client().batch_write_rows(request).await;
            Fault::NoTable.is(&answer.expect_err("there is no table"));
            return self.met("a missing table");
        };
        let before = self.rows(name, within);
        let mut writes: Vec<Write> = Vec::new();
        for _ in 0..self.random.usize(1..6) {
            let partition = within.map(|nth| self.held[nth].partition.clone());
            let partition = partition.filter(|_| self.random.u8(..30) > 0);
            let write = Write::draw(&mut self.random, &table, &before, self.now, partition.as_ref());
            // Seldom a row twice.
            let is_other = !writes.iter().any(|other| other.is_of_row_of(&write));
            if is_other || self.random.u8(..20) == 0 {
                writes.push(write);
            }
        }
        // What no table takes refuses a whole batch: of most there is none.
        if self.random.u8(..8) > 0 {
            writes.retain(|write| write.never(&table, self.now).is_none());
        }
        if writes.is_empty() {
            return;
        }
        let is_atomic = self.random.bool();
        let request_id = match is_atomic && within.is_none() && self.random.u8(..4) == 0 {
            true => self.request_id(),
            false => String::new(),
        };
        let request = BatchWriteRowsRequest {
            table: name.to_owned(),
            writes: writes.iter().map(|write| write.wire(Some(&*table))).collect(),
            atomic: is_atomic,
            request_id: request_id.clone(),
            transaction_id: self.transaction_id(within),
            checkpoint: None,
        };
        self.say(&request);
        let answer = self.client().batch_write_rows(request.clone()).await;
        let answer = answer.map(tonic::Response::into_inner);
        if let Some(fault) = self.refuses_all(&writes, &table, within, name) {
            fault.is(&answer.expect_err("a batch that can't be"));
            return self.met("a batch refused");
        }
        let expected: Vec<_> = writes
            .iter()
            .map(|write| match self.kept_out(name, within, &write.key[0]) {
                Some(fault) => Err(fault),
                None => write.decide(&table, &before, self.now),
            })
            .collect();
        if is_atomic {
            let held = expected.iter().find(|done| **done == Err(Fault::Held));
            let refused = held.or_else(|| expected.iter().find(|done| done.is_err()));
            if let Some(Err(fault)) = refused {
                fault.is(&answer.expect_err("one of them is refused"));
                return self.met("an atomic batch refused");
            }
        }
        let answer = answer.expect("an answer");
        assert_eq!(answer.results.len(), writes.len());
        if !request_id.is_empty() {
            self.remember_batch(name, request, answer.clone());
        }
        let highest = answer.results.iter().map(|result| result.sequence).max();
        assert_eq!(Some(answer.sequence), highest);
        for ((write, expected), result) in writes.iter().zip(expected).zip(answer.results) {
            self.check_result(name, &table, within, write, expected, result);
        }
        self.met(match is_atomic {
            true => "an atomic batch written",
            false => "a batch of single writes",
        });
    }

    /// Why a batch is refused as a whole, whatever rows are there.
    fn refuses_all(
        &self,
        writes: &[Write],
        table: &Table,
        within: Option<usize>,
        name: &str,
    ) -> Option<Fault> {
        let mut never = writes.iter().filter_map(|write| write.never(table, self.now));
        if let Some(fault) = never.next() {
            return Some(fault);
        }
        let repeats =
            |(nth, write): (usize, &Write)| writes[..nth].iter().any(|other| other.is_of_row_of(write));
        if writes.iter().enumerate().any(repeats) {
            return Some(Fault::Invalid);
        }
        let mut kept_out = writes
            .iter()
            .filter_map(|write| self.kept_out(name, within, &write.key[0]));
        kept_out.find(|fault| *fault == Fault::Outside)
    }

    fn check_result(
        &mut self,
        name: &'static str,
        table: &Table,
        within: Option<usize>,
        write: &Write,
        expected: Result<Done, Fault>,
        result: WriteResult,
    ) {
        match (expected, result.error) {
            (Ok(done), None) => {
                let answer = Answer {
                    back: result.row,
                    sequence: result.sequence,
                };
                let key = write.key_of(table, answer.back.as_ref());
                self.written(name, within, write, key, done, answer);
                self.met("a row in a batch written");
            }
            (Err(fault), Some(error)) => {
                fault.is_told(error.code, &error.reason, &error.message);
                assert_eq!((result.row, result.sequence), (None, 0));
                self.met("a row in a batch refused");
            }
            (expected, error) => panic!("{write:?}: expected {expected:?}, was told {error:?}"),
        }
    }

    /// Reads several rows at once.
    pub(super) async fn read_batch(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let mut keys = BTreeSet::new();
        for _ in 0..self.random.usize(1..9) {
            keys.insert(table.draw_key(&mut self.random));
        }
        let mut keys: Vec<Key> = keys.into_iter().collect();
        self.random.shuffle(&mut keys);
        let names = table.key_names();
        let asked = Asked::draw(&mut self.random, &names, self.now);
        let request = BatchGetRowsRequest {
            table: name.to_owned(),
            keys: keys
                .iter()
                .map(|key| WireKey {
                    values: wire_key(key),
                })
                .collect(),
            read: asked.wire(),
            min_sequence: self.sequence,
        };
        self.say(&request);
        let answer = self.client().batch_get_rows(request).await;
        if asked.is_invalid() {
            Fault::Invalid.is(&answer.expect_err("a read of nothing"));
            return self.met("a read of nothing");
        }
        let answer = answer.expect("an answer").into_inner();
        assert!(answer.sequence >= self.sequence && answer.consumed.is_some());
        assert_eq!(answer.results.len(), keys.len());
        let rows = self.rows(name, None);
        for (key, result) in keys.iter().zip(answer.results) {
            assert_eq!(result.error, None);
            let shown = rows.get(key).and_then(|row| asked.shown(row, &names));
            let next = shown.as_ref().and_then(|(_, next)| next.clone());
            let expected = shown.map(|(row, _)| asked.told(&row, key, table.options.has_times));
            assert_eq!(
                (result.row, result.next_column),
                (expected, next.unwrap_or_default()),
                "{asked:?}"
            );
        }
        self.met("a batch of reads");
    }
}
