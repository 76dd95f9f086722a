//! One row at a time: written on a condition, and read.

use fastrand::Rng;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    DeleteRowRequest, GetRowRequest, PutRowRequest, ReturnRow, Returning, Row as WireRow, RowWrite,
    UpdateRowRequest,
};
use tonic::Status;

use super::condition::When;
use super::datum::{Datum, Key, NAMES, key_told, wire_key};
use super::read::Asked;
use super::row::{Alteration, Change, Done, Row};
use super::table::{Rows, Table};
use super::{Fault, Program};

/// Rows of a table from which on they are deleted.
const ROWS_MAX: usize = 120;

/// A write of a row.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) key: Key,
    /// Whether the server is to number the row.
    pub(super) is_new: bool,
    /// Whether it has a key that isn't one of the table.
    is_misplaced: bool,
    pub(super) change: Change,
    pub(super) when: When,
    back: Back,
}

/// What a write is to give back.
#[derive(Clone, Debug, PartialEq)]
enum Back {
    Nothing,
    Key,
    Columns(Vec<&'static str>),
    All,
}

impl Write {
    /// Of a row of the partition, or of any; `rows` are those that it may meet.
    pub(super) fn draw(
        random: &mut Rng,
        table: &Table,
        rows: &Rows,
        now: i64,
        partition: Option<&Datum>,
    ) -> Self {
        let is_full = table.rows.len() > ROWS_MAX;
        let is_new = table.numbered.is_some() && !is_full && random.u8(..3) > 0;
        let mut key = table.draw_key(random);
        if let Some(partition) = partition {
            key[0] = partition.clone();
        }
        let change = match is_full {
            true => Change::Delete,
            false => Change::draw(random, &table.options, now, is_new),
        };
        let mut when = match is_new {
            true => When::default(),
            false => When::draw(random, rows.get(&key)),
        };
        if table.numbered.is_some() && !is_new && random.u8(..4) > 0 {
            when.exists = Some(true);
        }
        let back = match random.u8(..8) {
            0..3 if !is_new => Back::Nothing,
            3 | 4 => Back::All,
            5 | 6 if !is_new => {
                let columns = NAMES.into_iter().chain(["none"]);
                Back::Columns(columns.filter(|_| random.bool()).collect())
            }
            _ => Back::Key,
        };
        Self {
            key,
            is_new,
            is_misplaced: !is_new && random.u8(..40) == 0,
            change,
            when,
            back,
        }
    }

    /// What a program does to a table that isn't there.
    pub(super) fn nowhere(random: &mut Rng) -> Self {
        Self {
            key: Table::draw(random).draw_key(random),
            is_new: false,
            is_misplaced: false,
            change: Change::Update(vec![("size", Alteration::Add(1))]),
            when: When::default(),
            back: Back::Nothing,
        }
    }

    /// Whether another one is of the same row. Those that the server numbers are of rows of their own.
    pub(super) fn is_of_row_of(&self, other: &Self) -> bool {
        !self.is_new && !other.is_new && self.key == other.key
    }

    /// Why the table never takes it, whatever rows are there.
    pub(super) fn never(&self, table: &Table, now: i64) -> Option<Fault> {
        let is_write = !matches!(self.change, Change::Delete);
        let takes_number = table.numbered.is_some() && is_write && !self.is_new;
        let is_wrong = self.is_misplaced
            || takes_number && self.when.exists != Some(true)
            || is_write && self.back == Back::Columns(Vec::new());
        match is_wrong {
            true => Some(Fault::Invalid),
            false => self.change.check(&table.options, now).err(),
        }
    }

    /// What becomes of the row, where nobody keeps it out.
    pub(super) fn decide(&self, table: &Table, rows: &Rows, now: i64) -> Result<Done, Fault> {
        let before = rows.get(&self.key).filter(|_| !self.is_new);
        self.when.holds(before)?;
        let done = self.change.apply(before, &table.options, now)?;
        match &done {
            Done::Row(row) if !table.takes(&self.key, row, before) => Err(Fault::TooLong),
            _ => Ok(done),
        }
    }

    fn wire_key(&self, table: Option<&Table>) -> Vec<souk_proto::r#type::v1::Value> {
        let mut key = wire_key(&self.key);
        if let Some(place) = table.and_then(|table| table.numbered).filter(|_| self.is_new) {
            key.remove(place);
        }
        if self.is_misplaced {
            match &self.key[0] {
                Datum::Integer(_) => key[0] = Datum::text("other").wire(),
                _ => key[0] = Datum::Integer(7).wire(),
            }
        }
        key
    }

    /// As batches have it.
    pub(super) fn wire(&self, table: Option<&Table>) -> RowWrite {
        RowWrite {
            operation: Some(self.change.wire(self.wire_key(table), self.is_new)),
            condition: self.when.wire(),
            returning: self.back_wire(),
        }
    }

    fn back_wire(&self) -> Option<Returning> {
        let (row, columns): (_, &[&str]) = match &self.back {
            Back::Nothing => return None,
            Back::Key => (ReturnRow::Key, &[]),
            Back::Columns(columns) => (ReturnRow::Columns, columns),
            Back::All => (ReturnRow::All, &[]),
        };
        Some(Returning {
            row: row.into(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// The key of its row, which the answer tells where it is a new one.
    pub(super) fn key_of(&self, table: &Table, back: Option<&WireRow>) -> Key {
        let mut key = self.key.clone();
        if let Some(place) = table.numbered.filter(|_| self.is_new) {
            let told = key_told(&back.expect("its number").key);
            assert!(matches!(told[place], Datum::Integer(_)), "{told:?}");
            key[place] = told[place].clone();
        }
        key
    }

    /// What is given back of a row that was written.
    pub(super) fn back(&self, key: &Key, done: &Done, has_times: bool) -> Option<WireRow> {
        if let Change::Delete = self.change {
            return None;
        }
        let shown = |columns: &[&str]| match done {
            Done::Row(row) => {
                let mut row = row.clone();
                row.cells.retain(|name, _| columns.contains(&name.as_str()));
                Some(row.told(key, has_times))
            }
            Done::Nothing | Done::Gone => None,
        };
        match &self.back {
            Back::Nothing => None,
            Back::Key => Some(WireRow {
                key: wire_key(key),
                ..WireRow::default()
            }),
            Back::Columns(columns) => shown(columns),
            Back::All => shown(&NAMES),
        }
    }
}

/// How a write was answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) back: Option<WireRow>,
    pub(super) sequence: i64,
}

/// What is done with a write besides.
#[derive(Clone, Debug, Default)]
pub(super) struct Besides {
    pub(super) transaction_id: String,
    pub(super) request_id: String,
}

impl Program {
    /// Writes a row by a call of its own.
    pub(super) async fn write(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            let write = Write::nowhere(&mut self.random);
            let answer = self.send(name, &write, None, Besides::default()).await;
            Fault::NoTable.is(&answer.expect_err("there is no table"));
            return self.met("a missing table");
        };
        let within = self.within(name);
        let partition = within.map(|nth| self.held[nth].partition.clone());
        let partition = partition.filter(|_| self.random.u8(..16) > 0);
        let before = self.rows(name, within);
        let write = Write::draw(&mut self.random, &table, &before, self.now, partition.as_ref());
        let expected = match write
            .never(&table, self.now)
            .or_else(|| self.kept_out(name, within, &write.key[0]))
        {
            Some(fault) => Err(fault),
            None => write.decide(&table, &before, self.now),
        };
        let besides = Besides {
            transaction_id: self.transaction_id(within),
            request_id: match within.is_none() && self.random.u8(..6) == 0 {
                true => self.request_id(),
                false => String::new(),
            },
        };
        let answer = self.send(name, &write, Some(&*table), besides.clone()).await;
        match expected {
            Err(fault) => {
                fault.is(&answer.expect_err("a write that is refused"));
                self.met(fault.of_a_write());
            }
            Ok(done) => {
                let answer = answer.expect("written");
                if !besides.request_id.is_empty() {
                    self.remember(name, &write, &table, besides.request_id, answer.clone());
                }
                let key = write.key_of(&table, answer.back.as_ref());
                self.written(name, within, &write, key, done, answer);
            }
        }
    }

    /// Compares what a write gives back, and notes what became of its row.
    pub(super) fn written(
        &mut self,
        name: &'static str,
        within: Option<usize>,
        write: &Write,
        key: Key,
        done: Done,
        answer: Answer,
    ) {
        if write.is_new {
            self.appended(name, within, &key);
        }
        let done = match done {
            Done::Row(row) if within.is_none() => Done::Row(Row {
                revision: answer.sequence,
                ..row
            }),
            done => done,
        };
        let has_times = self.tables[name].options.has_times;
        let expected = write.back(&key, &done, has_times);
        assert_eq!(answer.back, expected, "{write:?}");
        if expected.is_some() {
            self.met("a row given back");
        }
        match within {
            Some(_) => assert_eq!(answer.sequence, 0),
            None => self.saw(answer.sequence),
        }
        self.met(match done {
            Done::Row(_) => "a row written",
            Done::Gone => "a row deleted",
            Done::Nothing => "a write without effect",
        });
        self.happen(name, within, key, write.change.kind(), done, answer.sequence);
    }

    /// A new number is above all of its partition, also those of rows that are gone.
    fn appended(&mut self, table: &str, within: Option<usize>, key: &Key) {
        let place = self.tables[table].numbered.expect("numbers");
        let known = self.tables[table].numbers.get(&key[0]).copied();
        let staged = within.iter().flat_map(|nth| self.held[*nth].rows.keys());
        let staged = staged
            .filter(|other| other[0] == key[0])
            .map(|other| other[place].clone());
        for other in staged.chain(known.map(Datum::Integer)) {
            assert!(key[place] > other, "{key:?} behind {other:?}");
        }
        self.met("a row appended");
    }

    /// `table` is what the program knows of it.
    pub(super) async fn send(
        &mut self,
        name: &str,
        write: &Write,
        table: Option<&Table>,
        besides: Besides,
    ) -> Result<Answer, Status> {
        let Besides {
            transaction_id,
            request_id,
        } = besides;
        let RowWrite {
            operation,
            condition,
            returning,
        } = write.wire(table);
        let table = name.to_owned();
        match operation.expect("an operation") {
            Operation::Put(put) => {
                let request = PutRowRequest {
                    table,
                    key: put.key,
                    columns: put.columns,
                    cells: put.cells,
                    condition,
                    returning,
                    request_id,
                    transaction_id,
                };
                self.say(&request);
                let answer = self.client().put_row(request).await?.into_inner();
                assert!(answer.consumed.is_some());
                Ok(Answer {
                    back: answer.row,
                    sequence: answer.sequence,
                })
            }
            Operation::Update(update) => {
                let request = UpdateRowRequest {
                    table,
                    key: update.key,
                    put: update.put,
                    put_cells: update.put_cells,
                    increment: update.increment,
                    delete: update.delete,
                    delete_versions: update.delete_versions,
                    condition,
                    returning,
                    request_id,
                    transaction_id,
                };
                self.say(&request);
                let answer = self.client().update_row(request).await?.into_inner();
                assert!(answer.consumed.is_some());
                Ok(Answer {
                    back: answer.row,
                    sequence: answer.sequence,
                })
            }
            Operation::Delete(delete) => {
                let request = DeleteRowRequest {
                    table,
                    key: delete.key,
                    condition,
                    request_id,
                    transaction_id,
                };
                self.say(&request);
                let answer = self.client().delete_row(request).await?.into_inner();
                assert!(answer.consumed.is_some());
                Ok(Answer {
                    back: None,
                    sequence: answer.sequence,
                })
            }
        }
    }

    /// Reads a row of a table, part by part where it is asked for so.
    pub(super) async fn read(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            let key = Table::draw(&mut self.random).draw_key(&mut self.random);
            let request = GetRowRequest {
                table: name.to_owned(),
                key: wire_key(&key),
                ..GetRowRequest::default()
            };
            self.say(&request);
            let answer = self.client().get_row(request).await;
            Fault::NoTable.is(&answer.expect_err("there is no table"));
            return self.met("a missing table");
        };
        let within = self.within(name);
        let rows = self.rows(name, within);
        let key = table.draw_key(&mut self.random);
        let names = table.key_names();
        let mut asked = Asked::draw(&mut self.random, &names, self.now);
        let mut parts = 0;
        loop {
            let request = GetRowRequest {
                table: name.to_owned(),
                key: wire_key(&key),
                read: asked.wire(),
                min_sequence: if within.is_none() { self.sequence } else { 0 },
                transaction_id: self.transaction_id(within),
            };
            self.say(&request);
            let answer = self.client().get_row(request).await;
            if asked.is_invalid() {
                Fault::Invalid.is(&answer.expect_err("a read of nothing"));
                return self.met("a read of nothing");
            }
            let Some((shown, next)) = rows.get(&key).and_then(|row| asked.shown(row, &names)) else {
                Fault::NoRow.is(&answer.expect_err("no row"));
                return self.met("a row not shown");
            };
            let answer = answer.expect("a row").into_inner();
            let expected = asked.told(&shown, &key, table.options.has_times);
            assert_eq!(answer.row, Some(expected), "{asked:?}");
            assert_eq!(answer.next_column, next.clone().unwrap_or_default(), "{asked:?}");
            assert!(answer.consumed.is_some());
            if within.is_none() {
                assert!(answer.sequence >= self.sequence);
            }
            self.met(match within {
                None => "a row found",
                Some(_) => "a row in a transaction read",
            });
            parts += 1;
            match next {
                Some(next) => asked = asked.resumed(next),
                None if parts > 1 => return self.met("a row read part by part"),
                None => return,
            }
        }
    }
}
