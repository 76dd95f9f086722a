//! One row at a time: written on a condition, and read.

use bytes::Bytes;
use fastrand::Rng;
use souk_tablestore::messages::{self as pb, ReturnType};
use souk_tablestore::plainbuffer::encode;
use souk_tablestore::{KeyColumn, KeyElement, PlainRow};

use super::condition::When;
use super::datum::{Datum, Key, NAMES};
use super::read::Asked;
use super::row::{Alteration, Change, Done, Row};
use super::table::{Rows, Table, key_told, wire_key};
use super::{Fault, Program};
use crate::client::{Refused, rows};

/// A write of a row.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) key: Key,
    /// Whether the server is to number the row.
    pub(super) is_new: bool,
    /// Whether it has the key of another table.
    is_misplaced: bool,
    pub(super) change: Change,
    pub(super) when: When,
    back: Back,
}

/// What a write is to give back.
#[derive(Clone, Debug)]
enum Back {
    Nothing,
    Key,
    After(Vec<&'static str>),
}

impl Write {
    /// Of a row of the partition, or of any.
    pub(super) fn draw(random: &mut Rng, table: &Table, now: i64, partition: Option<&Datum>) -> Self {
        let is_new = table.numbered.is_some() && random.u8(..3) > 0;
        let mut key = table.draw_key(random);
        if let Some(partition) = partition {
            key[0] = partition.clone();
        }
        let change = Change::draw(random, &table.options, now, is_new);
        let mut when = match is_new {
            true => When::default(),
            false => When::draw(random),
        };
        if table.numbered.is_some() && !is_new && random.u8(..4) > 0 {
            when.exists = Some(true);
        }
        let back = match random.u8(..6) {
            0..3 if !is_new => Back::Nothing,
            5 => {
                let columns = NAMES.into_iter().chain(["none"]);
                Back::After(columns.filter(|_| random.bool()).collect())
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

    /// The same as imports have it: without a condition. What they don't tell is the key of a row that is numbered.
    pub(super) fn imported(self) -> Self {
        Self {
            when: When::default(),
            back: if self.is_new { Back::Key } else { Back::Nothing },
            ..self
        }
    }

    /// Whether another one is of the same row. Those that the server numbers are of rows of their own.
    pub(super) fn is_of_row_of(&self, other: &Self) -> bool {
        let own = |write: &Self| {
            (
                write.is_misplaced,
                write.key[usize::from(write.is_misplaced)..].to_vec(),
            )
        };
        !self.is_new && !other.is_new && own(self) == own(other)
    }

    /// What is wrong with its key or with how it asks for a number, or that the table takes no updates, be it of a row to come.
    pub(super) fn own_fault(&self, table: &Table) -> Option<Fault> {
        let is_write = !matches!(self.change, Change::Delete);
        let takes_number = table.numbered.is_some() && is_write && !self.is_new;
        let gives_number = takes_number && self.when.exists != Some(true);
        let is_refused = matches!(self.change, Change::Update(_)) && !table.options.updates;
        match self.is_misplaced {
            true => Some(Fault::Key),
            false => (gives_number || is_refused).then_some(Fault::Invalid),
        }
    }

    /// What keeps it out of the table, or of the transaction, whatever rows are there.
    pub(super) fn table_fault(&self, table: &Table, now: i64, kept_out: Option<Fault>) -> Option<Fault> {
        let taken = self.change.check(&table.options, now);
        taken.err().or(kept_out.filter(|fault| *fault == Fault::Outside))
    }

    /// What becomes of the row, where nobody keeps it out.
    pub(super) fn decide(
        &self,
        table: &Table,
        rows: &Rows,
        now: i64,
        kept_out: Option<Fault>,
    ) -> Result<Done, Fault> {
        let fault = self
            .own_fault(table)
            .or_else(|| self.table_fault(table, now, kept_out));
        if let Some(fault) = fault.or(kept_out) {
            return Err(fault);
        }
        let before = rows.get(&self.key).filter(|_| !self.is_new);
        if !self.when.holds(before) {
            return Err(Fault::Condition);
        }
        self.change.apply(before, &table.options, now)
    }

    /// The row as requests have it.
    pub(super) fn row_wire(&self, table: &Table) -> Bytes {
        let mut key = table.wire_key(&self.key);
        if let Some(place) = table.numbered.filter(|_| self.is_new) {
            key[place].value = KeyElement::AutoIncrement;
        }
        if self.is_misplaced {
            match key[0].value {
                KeyElement::Integer(_) => key[0].value = "other".into(),
                _ => key[0].value = 7.into(),
            }
        }
        encode([&self.change.wire(key)])
    }

    pub(super) fn back_wire(&self) -> Option<pb::ReturnContent> {
        let (kind, columns): (_, &[&str]) = match &self.back {
            Back::Nothing => return None,
            Back::Key => (ReturnType::Pk, &[]),
            Back::After(columns) => (ReturnType::AfterModify, columns),
        };
        Some(pb::ReturnContent {
            return_type: Some(kind.into()),
            return_column_names: columns.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// Compares what a write gives back; the key of its row, which may be a new one.
    pub(super) fn written(&self, table: &Table, done: &Done, back: Option<Bytes>) -> Key {
        let mut back: Vec<PlainRow> = back.iter().flat_map(rows).collect();
        let mut key = self.key.clone();
        if let Some(place) = table.numbered.filter(|_| self.is_new) {
            let told = key_told(&back.first().expect("its number").key);
            assert!(matches!(told[place], Datum::Integer(_)), "{told:?}");
            key[place] = told[place].clone();
        }
        let of_key = |key: &Key| PlainRow {
            key: table.wire_key(key),
            ..PlainRow::default()
        };
        let expected = match (&self.back, done, &self.change) {
            (Back::Nothing, _, _) => None,
            (Back::After(columns), _, Change::Put(_) | Change::Update(_)) if columns.is_empty() => {
                Some(of_key(&key))
            }
            (Back::Key, _, _) => Some(of_key(&key)),
            (Back::After(columns), Done::Row(row), _) => {
                Some(row.told(table.wire_key(&key), |name| columns.contains(&name)))
            }
            (Back::After(_), _, _) => None,
        };
        assert_eq!((back.pop(), back.len()), (expected, 0));
        key
    }
}

impl Program {
    /// Writes a row by a call of its own.
    pub(super) async fn write(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return self.write_nowhere(name).await;
        };
        let within = self.within(name);
        let partition = within.map(|nth| self.held[nth].partition.clone());
        let partition = partition.filter(|_| self.random.u8(..16) > 0);
        let write = Write::draw(&mut self.random, &table, self.now, partition.as_ref());
        let before = self.rows(name, within);
        let kept_out = self.kept_out(name, within, &write.key[0]);
        let expected = write.decide(&table, &before, self.now, kept_out);
        let answer = self.send(name, &write, &table, self.transaction_id(within)).await;
        match expected {
            Err(fault) => {
                fault.is(&answer.expect_err("a write that is refused"));
                self.met(match fault {
                    Fault::Condition => "a condition fails",
                    Fault::Held => "a partition that is held",
                    Fault::Outside => "a write outside of its transaction",
                    Fault::Key => "a write to the key of another table",
                    _ => "a write that the table doesn't take",
                });
            }
            Ok(done) => {
                let back = answer.expect("written");
                if back.is_some() {
                    self.met("a row given back");
                }
                let key = write.written(&table, &done, back);
                if write.is_new {
                    self.appended(name, within, &key);
                }
                self.met(match done {
                    Done::Row(_) => "a row written",
                    Done::Gone => "a row deleted",
                    Done::Nothing => "a write without effect",
                });
                self.happen(name, within, key, done);
            }
        }
    }

    /// A new number is above all of its partition, also those of rows that are gone.
    pub(super) fn appended(&mut self, table: &str, within: Option<usize>, key: &Key) {
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

    async fn send(
        &mut self,
        table_name: &str,
        write: &Write,
        table: &Table,
        transaction_id: Option<String>,
    ) -> Result<Option<Bytes>, Refused> {
        let (table_name, row) = (table_name.to_owned(), write.row_wire(table));
        let (condition, return_content) = (write.when.wire(), write.back_wire());
        match &write.change {
            Change::Put(_) => {
                let request = pb::PutRowRequest {
                    table_name,
                    row,
                    condition,
                    return_content,
                    transaction_id,
                };
                let answer: Result<pb::PutRowResponse, _> = self.call("PutRow", &request).await;
                answer.map(|answer| answer.row)
            }
            Change::Update(_) => {
                let request = pb::UpdateRowRequest {
                    table_name,
                    row_change: row,
                    condition,
                    return_content,
                    transaction_id,
                };
                let answer: Result<pb::UpdateRowResponse, _> = self.call("UpdateRow", &request).await;
                answer.map(|answer| answer.row)
            }
            Change::Delete => {
                let request = pb::DeleteRowRequest {
                    table_name,
                    primary_key: row,
                    condition,
                    return_content,
                    transaction_id,
                };
                let answer: Result<pb::DeleteRowResponse, _> = self.call("DeleteRow", &request).await;
                answer.map(|answer| answer.row)
            }
        }
    }

    async fn write_nowhere(&mut self, name: &str) {
        let table = Table::draw(&mut self.random);
        let write = Write {
            key: table.draw_key(&mut self.random),
            is_new: false,
            is_misplaced: false,
            change: Change::Update(vec![("size", Alteration::Add(1))]),
            when: When::default(),
            back: Back::Nothing,
        };
        let answer = self.send(name, &write, &table, None).await;
        Fault::NoTable.is(&answer.expect_err("there is no table"));
        self.met("a missing table");
    }

    /// Reads a row of a table or an entry of one of its indexes.
    pub(super) async fn read(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            let asked = Asked::draw(&mut self.random, &[], self.now);
            let table = Table::draw(&mut self.random);
            let key = table.wire_key(&table.draw_key(&mut self.random));
            let answer = self.get(name, key, &asked, None, None).await;
            // What is wrong whatever the table is told first.
            let refused = answer.expect_err("there is no table");
            Fault::NoTable.is(&refused);
            return self.met("a missing table");
        };
        if self.random.u8(..5) == 0
            && let Some(index) = self.random.choice(table.secondary.keys())
        {
            return self.read_entry(&table, index, name).await;
        }
        let within = self.within(name);
        let rows = self.rows(name, within);
        let key = table.draw_key(&mut self.random);
        let names = table.key_names();
        let sent = Asked::draw(&mut self.random, &names, self.now);
        let (mut asked, mut token) = (sent.clone(), None);
        loop {
            let answer = self
                .get(
                    name,
                    table.wire_key(&key),
                    &sent,
                    self.transaction_id(within),
                    token.clone(),
                )
                .await;
            if asked.is_invalid() {
                Fault::Invalid.is(&answer.expect_err("a window of nothing"));
                return;
            }
            let (row, next) = answer.expect("an answer");
            let expected = rows.get(&key).and_then(|row| asked.shown(row, &names));
            let (shown, expected_next) = expected.map_or((None, None), |(row, next)| (Some(row), next));
            let shown = shown.map(|row| row.told(table.wire_key(&key), |_| true));
            self.met(match (&shown, within) {
                (None, _) => "a row not shown",
                (Some(_), None) => "a row found",
                (Some(_), Some(_)) => "a row in a transaction read",
            });
            assert_eq!((row, &next), (shown, &expected_next), "{asked:?}");
            match next {
                Some(next) => {
                    asked = asked.resumed(next.clone());
                    token = Some(next);
                }
                None if token.is_some() => return self.met("a column page read to its end"),
                None => return,
            }
        }
    }

    async fn read_entry(&mut self, table: &Table, index: &str, of: &str) {
        let secondary = &table.secondary[index];
        let (columns, entries) = (
            secondary.key(table),
            secondary.entries(table, &self.rows(of, None)),
        );
        let drawn = self.random.choice(entries.keys()).cloned();
        let key = drawn.filter(|_| self.random.u8(..4) > 0).unwrap_or_else(|| {
            let columns = columns.iter();
            columns.map(|(_, kind)| kind.draw(&mut self.random)).collect()
        });
        let asked = Asked::of_index(&mut self.random, &secondary.included);
        let answer = self
            .get(index, wire_key(&columns, &key), &asked, None, None)
            .await;
        let (row, next) = answer.expect("an answer");
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let expected = entries.get(&key).and_then(|row| asked.shown(row, &names));
        let expected = expected.map(|(row, _)| entry_told(&row, wire_key(&columns, &key)));
        if expected.is_some() {
            self.met("a row of an index found");
        }
        assert_eq!((row, next), (expected, None), "{asked:?}");
    }

    async fn get(
        &mut self,
        table: &str,
        key: Vec<KeyColumn>,
        asked: &Asked,
        transaction_id: Option<String>,
        token: Option<String>,
    ) -> Result<(Option<PlainRow>, Option<String>), Refused> {
        // A page goes on where its token says, and is asked for as it was.
        let request = pb::GetRowRequest {
            table_name: table.to_owned(),
            primary_key: crate::client::row(key, Vec::new()),
            columns_to_get: asked.columns_wire(),
            time_range: asked.time_wire(),
            max_versions: asked.versions_wire(),
            filter: asked.filter_wire(),
            start_column: asked.start_wire(),
            end_column: asked.end_wire(),
            token: token.map(Bytes::from),
            transaction_id,
            ..pb::GetRowRequest::default()
        };
        let answer: pb::GetRowResponse = self.call("GetRow", &request).await?;
        let mut found = rows(&answer.row);
        assert!(found.len() < 2);
        let next = answer
            .next_token
            .map(|token| String::from_utf8(token.to_vec()).expect("a column"));
        Ok((found.pop(), next))
    }
}

/// An entry as answers have it: without versions.
pub(super) fn entry_told(row: &Row, key: Vec<KeyColumn>) -> PlainRow {
    let mut told = row.told(key, |_| true);
    for cell in &mut told.cells {
        cell.timestamp = None;
    }
    told
}
