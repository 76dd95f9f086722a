//! What the store ought to do, in the plainest form: maps of rows, and no key-value store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use souk_storage::{
    ChangeKind, Condition, Error, Existence, KeyValue, PrimaryKey, RowOperation, RowWrite, Table, Value,
    WriteBatch,
};

use super::open::Open;
use super::row::{self, Returned, Stored};

/// The rows of a table.
pub(super) type Rows = BTreeMap<PrimaryKey, Stored>;

/// What happened to a row.
pub(super) type Logged = (u32, PrimaryKey, ChangeKind, Option<Stored>);

/// An entry of a secondary index: values, key, included columns.
pub(super) type Entry = (Vec<Value>, PrimaryKey, Vec<(String, Value)>);

/// How something ends badly: the code of the error, and the write whose condition it is about.
pub(super) type Refusal = (&'static str, Option<usize>);

/// What a batch becomes: sequence, the reply if it is a repeated one, what is given back.
pub(super) type Written = (u64, Option<Bytes>, Vec<Returned>);

/// What becomes of writes that stand side by side.
pub(super) type Each<T> = Result<Vec<Result<T, Refusal>>, Refusal>;

/// How the store's error looks as a refusal.
pub(super) fn refusal(error: &Error) -> Refusal {
    match error {
        Error::ConditionFailed { write, .. } => (error.code(), Some(*write)),
        _ => (error.code(), None),
    }
}

/// What of an index isn't seen from the schema.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Tells it from one of the same name before it.
    pub(super) number: u64,
    /// The rows that aren't in it, for they were there before and haven't been written since.
    pub(super) missing: BTreeSet<PrimaryKey>,
}

/// Rows and indexes at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) tables: BTreeMap<u32, Rows>,
    pub(super) indexes: BTreeMap<(u32, String), Index>,
}

/// The tables, the log, and the known requests.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) state: State,
    pub(super) log: Vec<(i64, Vec<Logged>)>,
    pub(super) open: Vec<Open>,
    pub(super) numbers: BTreeMap<(u32, KeyValue), i64>,
    requests: BTreeMap<[u8; 16], (u64, Written)>,
    last_index: u64,
}

impl State {
    pub(super) fn stored(&self, table: &Table, key: &PrimaryKey) -> Option<&Stored> {
        self.tables.get(&table.id().0)?.get(key)
    }

    /// Writes or deletes a row.
    pub(super) fn set(&mut self, table: u32, key: &PrimaryKey, row: Option<Stored>) {
        let rows = self.tables.entry(table).or_default();
        match row {
            Some(row) => rows.insert(key.clone(), row),
            None => rows.remove(key),
        };
        self.indexed(table, key);
    }

    fn indexed(&mut self, table: u32, key: &PrimaryKey) {
        for ((id, _), index) in &mut self.indexes {
            if *id == table {
                index.missing.remove(key);
            }
        }
    }

    /// The visible rows of a table, in order.
    pub(super) fn rows(&self, table: &Table, now: i64) -> Rows {
        let stored = self.tables.get(&table.id().0).into_iter().flatten();
        stored
            .filter_map(|(key, stored)| Some((key.clone(), row::visible(table, stored, now)?)))
            .collect()
    }

    /// The entries of an index, in order.
    pub(super) fn index(&self, table: &Table, name: &str, now: i64) -> Vec<Entry> {
        let schema = table.schema();
        let index = schema.indexes.iter().find(|index| index.name == name);
        let index = index.expect("an index");
        let known = self.indexes.get(&(table.id().0, name.to_owned()));
        let mut entries = Vec::new();
        for (key, row) in self.rows(table, now) {
            if known.is_some_and(|index| index.missing.contains(&key)) {
                continue;
            }
            let value = |column: &String| match schema.key.iter().position(|(name, _)| name == column) {
                Some(position) => Some(Value::from(key.values()[position].clone())),
                None => row::newest(&row.cells, column).cloned(),
            };
            if let Some(values) = index.columns.iter().map(value).collect::<Option<Vec<_>>>() {
                let included = index
                    .included
                    .iter()
                    .filter_map(|column| Some((column.clone(), row::newest(&row.cells, column)?.clone())))
                    .collect();
                entries.push((values, key.clone(), included));
            }
        }
        entries.sort_by(|left, right| row::compare_all(&left.0, &right.0).then_with(|| left.1.cmp(&right.1)));
        entries
    }
}

impl Oracle {
    pub(super) fn sequence(&self) -> u64 {
        self.log.len() as u64
    }

    /// Whether a transaction holds the partition of a table.
    pub(super) fn is_held(&self, table: &Table, partition: &KeyValue, now: i64) -> bool {
        let holds =
            |open: &Open| open.table.id() == table.id() && open.partition == *partition && !open.is_over(now);
        table.schema().transactions && self.open.iter().any(holds)
    }

    fn is_conflict(&self, write: &RowWrite, now: i64) -> bool {
        let partition = write.operation.partition();
        partition.is_some_and(|partition| self.is_held(&write.table, partition, now))
    }

    /// Writes a batch at a time in nanoseconds.
    pub(super) fn write(&mut self, batch: &WriteBatch, now: i64) -> Result<Written, Refusal> {
        let request = batch.request.as_ref();
        let known = request.and_then(|request| Some((request.fingerprint, self.requests.get(&request.id)?)));
        // Whatever would be wrong with it by now.
        if let Some((given, (fingerprint, written))) = known
            && given == *fingerprint
        {
            return Ok(written.clone());
        }
        if !are_valid(&batch.writes, now) {
            return Err(("INVALID_ARGUMENT", None));
        }
        if batch.writes.iter().any(|write| self.is_conflict(write, now)) {
            return Err(("TRANSACTION_CONFLICT", None));
        }
        if known.is_some() {
            return Err(("REQUEST_ID_REUSED", None));
        }
        let mut numbers = self.numbers.clone();
        let mut logged = Vec::new();
        let mut rows = Vec::new();
        for (position, write) in batch.writes.iter().enumerate() {
            let key = target(write, &mut numbers);
            let before = self.state.stored(&write.table, &key);
            let decided = row::decide(write, &key, before, now);
            let (change, returned) = decided.map_err(|code| refused(code, position))?;
            logged.extend(change.map(|(kind, row)| (write.table.id().0, key, kind, row)));
            rows.push(returned);
        }
        self.numbers = numbers;
        let sequence = self.commit(logged, now);
        stamp(&mut rows, sequence);
        if let Some(request) = &batch.request {
            let again = (sequence, Some(request.reply.clone()), rows.clone());
            self.requests.insert(request.id, (request.fingerprint, again));
        }
        Ok((sequence, None, rows))
    }

    /// Writes the rows of a batch each by itself; all that change share a sequence.
    pub(super) fn write_rows(&mut self, batch: &WriteBatch, now: i64) -> Each<(u64, Returned)> {
        if batch.request.is_some() || !are_valid(&batch.writes, now) {
            return Err(("INVALID_ARGUMENT", None));
        }
        let mut logged = Vec::new();
        let mut numbers = self.numbers.clone();
        let mut results = Vec::new();
        for (position, write) in batch.writes.iter().enumerate() {
            if self.is_conflict(write, now) {
                results.push(Err(("TRANSACTION_CONFLICT", None)));
                continue;
            }
            let key = target(write, &mut numbers);
            let before = self.state.stored(&write.table, &key);
            let decided = row::decide(write, &key, before, now);
            results.push(
                decided
                    .map_err(|code| refused(code, position))
                    .map(|(change, returned)| {
                        logged.extend(change.map(|(kind, row)| (write.table.id().0, key, kind, row)));
                        returned
                    }),
            );
        }
        if !logged.is_empty() {
            self.numbers = numbers;
        }
        let sequence = self.commit(logged, now);
        let results = results.into_iter().map(|result| {
            let mut rows = vec![result?];
            stamp(&mut rows, sequence);
            Ok((sequence, rows.remove(0)))
        });
        Ok(results.collect())
    }

    /// Takes changes of rows over; gives the sequence.
    pub(super) fn commit(&mut self, mut logged: Vec<Logged>, now: i64) -> u64 {
        if logged.is_empty() {
            return self.sequence();
        }
        let sequence = self.sequence() + 1;
        for (table, key, _, row) in &mut logged {
            if let Some(row) = row {
                row.revision = sequence;
            }
            self.state.set(*table, key, row.clone());
        }
        self.log.push((now, logged));
        sequence
    }

    /// Frees what has expired. The tables in the order of their names.
    pub(super) fn maintain(&mut self, tables: &[Table], now: i64) {
        for table in tables {
            let Some(expired) = row::expired(table, now) else {
                continue;
            };
            let mut due = Vec::new();
            for (key, stored) in self.state.tables.get(&table.id().0).into_iter().flatten() {
                let oldest = stored.cells.values().flat_map(BTreeMap::keys).min();
                let oldest = *oldest.unwrap_or(&row::millis(stored.written));
                if oldest <= expired && !self.is_held(table, &key.values()[0], now) {
                    let left = row::visible(table, stored, now);
                    let kind = if left.is_some() {
                        ChangeKind::Update
                    } else {
                        ChangeKind::Delete
                    };
                    due.push((oldest, (table.id().0, key.clone(), kind, left)));
                }
            }
            due.sort_by(|left, right| (left.0, &left.1.1).cmp(&(right.0, &right.1.1)));
            self.commit(due.into_iter().map(|(_, logged)| logged).collect(), now);
        }
    }

    /// Takes away the versions that are too many since the table keeps fewer.
    pub(super) fn trim(&mut self, table: &Table) {
        let id = table.id().0;
        let mut trimmed = Vec::new();
        for (key, row) in self.state.tables.entry(id).or_default() {
            if row::keep_newest(&mut row.cells, table.schema().max_versions) {
                trimmed.push(key.clone());
            }
        }
        for key in trimmed {
            self.state.indexed(id, &key);
        }
    }

    pub(super) fn create_index(&mut self, table: &Table, name: &str, filled: bool) {
        self.last_index += 1;
        let rows = self.state.tables.get(&table.id().0).into_iter().flatten();
        let missing = rows.map(|(key, _)| key.clone()).filter(|_| !filled).collect();
        let number = self.last_index;
        let key = (table.id().0, name.to_owned());
        self.state.indexes.insert(key, Index { number, missing });
    }

    pub(super) fn drop_index(&mut self, table: &Table, name: &str) {
        self.state.indexes.remove(&(table.id().0, name.to_owned()));
    }

    pub(super) fn delete_table(&mut self, table: &Table) {
        let id = table.id().0;
        self.state.tables.remove(&id);
        self.state.indexes.retain(|(table, _), _| *table != id);
        self.numbers.retain(|(table, _), _| *table != id);
    }
}

/// Only a condition names its write.
pub(super) fn refused(code: &'static str, position: usize) -> Refusal {
    (code, (code != "INVALID_ARGUMENT").then_some(position))
}

fn stamp(rows: &mut [Returned], sequence: u64) {
    for row in rows.iter_mut().filter_map(|(_, row)| row.as_mut()) {
        row.revision = sequence;
    }
}

/// The row of a write; an appended one gets the next number.
pub(super) fn target(write: &RowWrite, numbers: &mut BTreeMap<(u32, KeyValue), i64>) -> PrimaryKey {
    let RowOperation::Append { key, .. } = &write.operation else {
        return write.operation.key().expect("a key").clone();
    };
    let last = numbers.entry((write.table.id().0, key[0].clone())).or_default();
    *last += 1;
    let mut values = key.clone();
    let position = write.table.schema().auto_increment.expect("a numbered column");
    values.insert(position, KeyValue::Integer(*last));
    PrimaryKey::new(values).expect("a key")
}

/// Whether writes can be right, of those that the random program makes.
pub(super) fn are_valid(writes: &[RowWrite], now: i64) -> bool {
    let mut seen = BTreeSet::new();
    writes.iter().all(|write| {
        let schema = write.table.schema();
        let again = write
            .operation
            .key()
            .is_some_and(|key| !seen.insert((write.table.id(), key)));
        let fits = match &write.operation {
            RowOperation::Append { .. } => {
                schema.auto_increment.is_some() && write.condition == Condition::none()
            }
            RowOperation::Delete { .. } => true,
            RowOperation::Update { .. } if !schema.allow_update => false,
            _ => schema.auto_increment.is_none() || write.condition.existence == Existence::MustExist,
        };
        let offset = schema.max_version_offset.as_millis() as u64;
        let near =
            |version: Option<i64>| version.is_none_or(|version| version.abs_diff(row::millis(now)) <= offset);
        let near = match &write.operation {
            RowOperation::PutCells { cells, .. } => cells.iter().all(|put| near(put.version)),
            _ => true,
        };
        !again && fits && near
    })
}
