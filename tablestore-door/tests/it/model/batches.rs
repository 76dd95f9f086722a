//! Batches of writes and of reads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use souk_tablestore::messages::{
    self as pb, RowInBatchWriteRowRequest, RowInBatchWriteRowResponse, TableInBatchGetRowRequest,
    TableInBatchWriteRowRequest,
};

use super::condition::When;
use super::datum::{Datum, Key};
use super::read::Asked;
use super::row::Done;
use super::rows::{Write, entry_told};
use super::table::{Table, key_told, wire_key};
use super::{Fault, Program, TABLES};
use crate::client::{row, rows};

/// Rows that are written to a table together.
struct TableBatch {
    name: &'static str,
    /// As it is; whichever where it isn't there.
    table: Table,
    is_there: bool,
    writes: Vec<Write>,
}

impl TableBatch {
    /// How many of its writes are of the row of one.
    fn times(&self, write: &Write) -> usize {
        let same = self.writes.iter().filter(|other| write.is_of_row_of(other));
        same.count()
    }

    fn has_repeated(&self) -> bool {
        self.writes.iter().any(|write| self.times(write) > 1)
    }

    /// Its writes in their order, parted before each that is of a row of the part before.
    fn steps(&self) -> Vec<Vec<Write>> {
        let mut steps: Vec<Vec<Write>> = vec![Vec::new()];
        for write in &self.writes {
            let last = steps.last_mut().expect("a step");
            let is_refused = write.own_fault(&self.table).is_some();
            let mut same = last.iter().filter(|other| other.own_fault(&self.table).is_none());
            match !is_refused && same.any(|other| write.is_of_row_of(other)) {
                true => steps.push(vec![write.clone()]),
                false => last.push(write.clone()),
            }
        }
        steps
    }

    /// Whether it is refused with its whole request.
    fn repeats_on_condition(&self) -> bool {
        let mut conditional = self.writes.iter().filter(|write| !write.when.is_any());
        conditional.any(|write| self.times(write) > 1)
    }
}

impl Program {
    pub(super) async fn write_batch(&mut self) {
        match self.random.u8(..3) {
            0 => self.write_together().await,
            _ => self.write_each().await,
        }
    }

    /// Rows of some tables, each by itself.
    async fn write_each(&mut self) {
        let first = self.table();
        let within = self.within(first);
        let mut names = vec![first];
        if within.is_none() {
            let others = TABLES.into_iter().filter(|name| *name != first);
            names.extend(others.filter(|_| self.random.u8(..4) == 0));
        }
        let parts: Vec<TableBatch> = names
            .into_iter()
            .map(|name| self.part(name, within, false))
            .collect();
        let request = self.batch(&parts, within, false);
        let answer: Result<pb::BatchWriteRowResponse, _> = self.call("BatchWriteRow", &request).await;
        if parts.iter().any(TableBatch::repeats_on_condition) {
            return Fault::Invalid.is(&answer.expect_err("a row twice, on a condition"));
        }
        let answer = answer.expect("an answer");
        assert_eq!(answer.tables.len(), parts.len());
        for (part, told) in parts.into_iter().zip(answer.tables) {
            assert_eq!(
                (told.table_name.as_str(), told.rows.len()),
                (part.name, part.writes.len())
            );
            if part.is_there {
                self.check_each(&part, within, told.rows);
            } else {
                for told in &told.rows {
                    check_refused(told, &[Fault::NoTable]);
                }
            }
        }
    }

    /// Rows are written in their order, each on top of those before. What the table takes in no state, the transaction neither, refuses
    /// the others with it, but for those before one that is there again.
    fn check_each(
        &mut self,
        part: &TableBatch,
        within: Option<usize>,
        told: Vec<RowInBatchWriteRowResponse>,
    ) {
        let mut told = told.into_iter();
        let steps = part.steps();
        for (nth, step) in steps.iter().enumerate() {
            let mut faults = Vec::new();
            for write in steps[..=nth].concat() {
                if write.own_fault(&part.table).is_none() {
                    let kept_out = self.kept_out(part.name, within, &write.key[0]);
                    faults.extend(write.table_fault(&part.table, self.now, kept_out));
                }
            }
            for write in step {
                let told = told.next().expect("as many as were sent");
                let before = self.rows(part.name, within);
                let kept_out = self.kept_out(part.name, within, &write.key[0]);
                match write.decide(&part.table, &before, self.now, kept_out) {
                    Ok(done) if faults.is_empty() => self.check_written(part, within, write, done, told),
                    decided => {
                        let own = decided
                            .err()
                            .filter(|_| faults.is_empty() || write.own_fault(&part.table).is_some());
                        check_refused(&told, &Vec::from_iter(faults.iter().copied().chain(own)));
                        self.met("a row in a batch refused");
                    }
                }
            }
        }
    }

    /// Rows of a table, each by itself and without a condition.
    pub(super) async fn import(&mut self) {
        let name = self.table();
        let mut part = self.part(name, None, false);
        part.writes = part.writes.into_iter().map(Write::imported).collect();
        let rows = part.writes.iter().map(|write| pb::RowInBulkImportRequest {
            r#type: write.change.kind().into(),
            row_change: write.row_wire(&part.table),
        });
        let mut request = pb::BulkImportRequest {
            table_name: name.to_owned(),
            rows: rows.collect(),
        };
        let index = self.random.choice(part.table.secondary.keys()).cloned();
        let index = index.filter(|_| part.is_there && self.random.u8(..10) == 0);
        let is_of_index = index.is_some();
        request.table_name = index.unwrap_or(request.table_name);
        let answer: Result<pb::BulkImportResponse, _> = self.call("BulkImport", &request).await;
        if !part.is_there {
            Fault::NoTable.is(&answer.expect_err("there is no table"));
            return self.met("an import into a missing table");
        }
        if is_of_index {
            Fault::Invalid.is(&answer.expect_err("an index"));
            return self.met("an import into an index");
        }
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.table_name.as_str(), answer.rows.len()),
            (name, part.writes.len())
        );
        let mut numbered = self.numbered(name, &part.table).await;
        let writes = part.writes.iter().zip(answer.rows);
        let told = writes.map(|(write, told)| {
            self.met(match (told.is_ok, write.is_new) {
                (true, false) => "a row imported",
                (true, true) => "a row imported and numbered",
                (false, _) => "a row of an import refused",
            });
            let key = (told.is_ok && write.is_new).then(|| {
                let keys = numbered.get_mut(&write.key[0]);
                keys.and_then(VecDeque::pop_front).expect("its row")
            });
            RowInBatchWriteRowResponse {
                is_ok: told.is_ok,
                error: told.error,
                consumed: told.consumed,
                row: key.map(|key| row(part.table.wire_key(&key), Vec::new())),
            }
        });
        let told = told.collect();
        assert!(numbered.values().all(VecDeque::is_empty), "{numbered:?}");
        self.check_each(&part, None, told);
    }

    /// The keys of rows that are numbered and not known yet, by partition.
    async fn numbered(&mut self, name: &str, table: &Table) -> BTreeMap<Datum, VecDeque<Key>> {
        let mut numbered = BTreeMap::<_, VecDeque<_>>::new();
        if table.numbered.is_some() {
            let known = self.rows(name, None);
            for row in self.export_all(name, table).await {
                let key = key_told(&row.key);
                if !known.contains_key(&key) {
                    numbered.entry(key[0].clone()).or_default().push_back(key);
                }
            }
        }
        numbered
    }

    /// Rows of a partition, all or none.
    async fn write_together(&mut self) {
        let name = self.table();
        let within = self.within(name);
        let part = self.part(name, within, true);
        let request = self.batch(std::slice::from_ref(&part), within, true);
        let answer: Result<pb::BatchWriteRowResponse, _> = self.call("BatchWriteRow", &request).await;
        if part.repeats_on_condition() {
            return Fault::Invalid.is(&answer.expect_err("a row twice, on a condition"));
        }
        let told = answer.expect("an answer").tables.pop().expect("its table").rows;
        assert_eq!(told.len(), part.writes.len());
        if !part.is_there {
            told.iter()
                .for_each(|told| check_refused(told, &[Fault::NoTable]));
            return self.met("a missing table");
        }
        let (mut faults, mut all) = (Vec::new(), Vec::new());
        let mut after = self.rows(name, within);
        for write in &part.writes {
            let kept_out = self.kept_out(name, within, &write.key[0]);
            let decided = write.decide(&part.table, &after, self.now, kept_out);
            if let (Ok(done), false) = (&decided, write.is_new) {
                match done {
                    Done::Nothing => {}
                    Done::Row(row) => _ = after.insert(write.key.clone(), row.clone()),
                    Done::Gone => _ = after.remove(&write.key),
                }
            }
            match decided {
                Ok(done) => all.push(done),
                Err(fault) => faults.push(fault),
            }
        }
        if part
            .writes
            .iter()
            .any(|write| write.key[0] != part.writes[0].key[0])
        {
            faults.push(Fault::Outside);
        }
        // Rows that are there again are written in a transaction of the batch's own, which is begun before they are looked at.
        if !faults.is_empty() && part.has_repeated() {
            faults.extend(self.kept_out(name, within, &part.writes[0].key[0]));
        }
        // What a transaction was to write can't be taken back alone.
        if within.is_some() && part.has_repeated() {
            faults.push(Fault::Invalid);
        }
        if !faults.is_empty() {
            told.iter().for_each(|told| check_refused(told, &faults));
            let codes: BTreeSet<_> = told
                .iter()
                .filter_map(|told| Some(&told.error.as_ref()?.code))
                .collect();
            assert_eq!(codes.len(), 1, "one reason for all");
            return self.met("an atomic batch refused");
        }
        for ((write, done), told) in part.writes.iter().zip(all).zip(told) {
            self.check_written(&part, within, write, done, told);
        }
        self.met("an atomic batch written");
    }

    fn check_written(
        &mut self,
        part: &TableBatch,
        within: Option<usize>,
        write: &Write,
        done: Done,
        told: RowInBatchWriteRowResponse,
    ) {
        assert!(told.is_ok, "{:?} of {write:?}", told.error);
        let key = write.written(&part.table, &done, told.row);
        if write.is_new {
            self.appended(part.name, within, &key);
        }
        self.met("a row in a batch written");
        self.happen(part.name, within, key, done);
    }

    /// Rows for a table: but for mistakes of one partition in a transaction, and where all or none are to be written.
    fn part(&mut self, name: &'static str, within: Option<usize>, is_together: bool) -> TableBatch {
        let known = self.tables.get(name).cloned();
        let rows = known
            .as_ref()
            .map(|_| self.rows(name, within))
            .unwrap_or_default();
        let random = &mut self.random;
        let is_there = known.is_some();
        let table = known.unwrap_or_else(|| Table::draw(random));
        let of_transaction = within.map(|nth| self.held[nth].partition.clone());
        let drawn = is_together.then(|| table.draw_key(random).swap_remove(0));
        let partition = of_transaction.or(drawn);
        let mut part = TableBatch {
            name,
            table,
            is_there,
            writes: Vec::new(),
        };
        for _ in 0..random.usize(1..6) {
            let partition = partition.as_ref().filter(|_| random.u8(..30) > 0);
            let mut write = Write::draw(random, &part.table, self.now, partition);
            if part.times(&write) > 0 {
                match random.u8(..8) {
                    0 => {}
                    1..4 => continue,
                    _ => {
                        write.when = When::default();
                        for other in part.writes.iter_mut().filter(|other| write.is_of_row_of(other)) {
                            other.when = When::default();
                        }
                    }
                }
            }
            part.writes.push(write);
        }
        // Which numbers the server gives isn't said: nothing else in the batch is to meet one.
        let new = part.writes.iter().filter(|write| write.is_new);
        let partitions: BTreeSet<_> = new.map(|write| write.key[0].clone()).collect();
        part.writes.retain(|write| {
            write.is_new || !partitions.contains(&write.key[0]) || rows.contains_key(&write.key)
        });
        part
    }

    fn batch(
        &self,
        parts: &[TableBatch],
        within: Option<usize>,
        is_together: bool,
    ) -> pb::BatchWriteRowRequest {
        let tables = parts.iter().map(|part| {
            let rows = part.writes.iter().map(|write| RowInBatchWriteRowRequest {
                r#type: write.change.kind().into(),
                row_change: write.row_wire(&part.table),
                condition: write.when.wire(),
                return_content: write.back_wire(),
            });
            TableInBatchWriteRowRequest {
                table_name: part.name.to_owned(),
                rows: rows.collect(),
            }
        });
        pb::BatchWriteRowRequest {
            tables: tables.collect(),
            transaction_id: self.transaction_id(within),
            is_atomic: is_together.then_some(true),
        }
    }

    /// Reads rows of some tables and indexes.
    pub(super) async fn read_batch(&mut self) {
        let (mut tables, mut expected) = (Vec::new(), Vec::new());
        for name in TABLES {
            if self.random.bool() {
                continue;
            }
            let known = self.tables.get(name).cloned();
            let rows = known.as_ref().map(|_| self.rows(name, None));
            let (random, now) = (&mut self.random, self.now);
            let table = known.unwrap_or_else(|| Table::draw(random));
            let (mut keys, mut asked) = (BTreeSet::new(), Asked::draw(random, &table.key_names(), now));
            for _ in 0..random.usize(1..8) {
                keys.insert(table.draw_key(random));
            }
            if asked.is_invalid() {
                asked = Asked::newest();
            }
            expected.push(Vec::from_iter(keys.iter().map(|key| {
                let row = rows
                    .as_ref()?
                    .get(key)
                    .and_then(|row| asked.shown(row, &table.key_names()));
                Some(row.map(|(row, next)| (row.told(table.wire_key(key), |_| true), next)))
            })));
            let keys = keys.iter().map(|key| row(table.wire_key(key), Vec::new()));
            tables.push(read_wire(name, keys.collect(), &asked));
            let Some((index, secondary)) = random.choice(&table.secondary) else {
                continue;
            };
            let columns = secondary.key(&table);
            let entries = secondary.entries(&table, rows.as_ref().expect("a table with an index"));
            let asked = Asked::of_index(random, &secondary.included);
            let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
            let keys: Vec<_> = entries.keys().filter(|_| random.bool()).take(4).collect();
            if keys.is_empty() {
                continue;
            }
            expected.push(Vec::from_iter(keys.iter().map(|key| {
                let shown = asked.shown(&entries[*key], &names);
                Some(shown.map(|(row, _)| (entry_told(&row, wire_key(&columns, key)), None)))
            })));
            let keys = keys.iter().map(|key| row(wire_key(&columns, key), Vec::new()));
            tables.push(read_wire(index, keys.collect(), &asked));
        }
        if tables.is_empty() {
            return;
        }
        let request = pb::BatchGetRowRequest { tables };
        let answer: pb::BatchGetRowResponse = self.call("BatchGetRow", &request).await.expect("an answer");
        let found = answer.tables.iter().map(|table| {
            let rows = table.rows.iter().map(|told| {
                if let Some(error) = &told.error {
                    assert_eq!((error.code.as_str(), told.is_ok), (Fault::NoTable.code(), false));
                    return None;
                }
                let next = told.next_token.as_ref();
                let next = next.map(|next| String::from_utf8(next.to_vec()).expect("a column"));
                let row = rows(told.row.as_ref().unwrap_or(&Bytes::new())).pop();
                Some(row.map(|row| (row, next)))
            });
            rows.collect::<Vec<_>>()
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
        self.met("a batch of reads");
    }
}

fn read_wire(name: &str, keys: Vec<Bytes>, asked: &Asked) -> TableInBatchGetRowRequest {
    TableInBatchGetRowRequest {
        table_name: name.to_owned(),
        primary_key: keys,
        columns_to_get: asked.columns_wire(),
        time_range: asked.time_wire(),
        max_versions: asked.versions_wire(),
        filter: asked.filter_wire(),
        start_column: asked.start_wire(),
        end_column: asked.end_wire(),
        ..TableInBatchGetRowRequest::default()
    }
}

/// A row of a batch is refused for one of some reasons.
fn check_refused(told: &RowInBatchWriteRowResponse, faults: &[Fault]) {
    let error = told.error.as_ref().expect("a row that is refused");
    let mut codes = faults.iter().map(|fault| fault.code());
    assert!(
        !told.is_ok && codes.any(|code| code == error.code),
        "{error:?}, not {faults:?}"
    );
    assert!(told.row.as_ref().is_none_or(Bytes::is_empty));
}
