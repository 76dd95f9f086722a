//! What the store ought to do, in the plainest form: maps of rows, and no key-value store.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;
use souk_storage::{
    ChangeKind, ColumnChange, Comparison, Condition, Error, Existence, Filter, PrimaryKey, RowOperation,
    Table, Value, WriteBatch,
};

/// Cells of a row: column, version, value.
pub(crate) type Cells = BTreeMap<String, BTreeMap<i64, Value>>;

/// A row as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) revision: u64,
    pub(crate) written: i64,
    pub(crate) cells: Cells,
}

/// What happened to a row.
pub(crate) type Logged = (u32, PrimaryKey, ChangeKind, Option<Stored>);

/// An entry of a secondary index: values, key, included columns.
pub(crate) type Entry = (Vec<Value>, PrimaryKey, Vec<(String, Value)>);

/// The tables, the log, and the known requests.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) tables: BTreeMap<u32, BTreeMap<PrimaryKey, Stored>>,
    pub(crate) log: Vec<(i64, Vec<Logged>)>,
    requests: BTreeMap<[u8; 16], (u64, u64, Bytes)>,
}

/// How a batch ends: sequence and reply, or the code of the error and the write it is about.
pub(crate) type Ending = Result<(u64, Option<Bytes>), (&'static str, Option<usize>)>;

/// How the store's answer looks as an ending.
pub(crate) fn ending(error: &Error) -> (&'static str, Option<usize>) {
    match error {
        Error::ConditionFailed { write, .. } => (error.code(), Some(*write)),
        _ => (error.code(), None),
    }
}

impl Oracle {
    pub(crate) fn sequence(&self) -> u64 {
        self.log.len() as u64
    }

    /// Applies a batch at a time in nanoseconds.
    pub(crate) fn write(&mut self, batch: &WriteBatch, now: i64) -> Ending {
        let mut keys: Vec<_> = batch
            .writes
            .iter()
            .map(|write| (write.table.id(), write.operation.key()))
            .collect();
        keys.sort();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(("INVALID_ARGUMENT", None));
        }
        if let Some(request) = &batch.request
            && let Some((fingerprint, sequence, reply)) = self.requests.get(&request.id)
        {
            if *fingerprint != request.fingerprint {
                return Err(("REQUEST_ID_REUSED", None));
            }
            return Ok((*sequence, Some(reply.clone())));
        }
        let next = self.sequence() + 1;
        let mut logged: Vec<Logged> = Vec::new();
        for (position, write) in batch.writes.iter().enumerate() {
            let table = write.table.id().0;
            let key = write.operation.key().expect("a key: nothing is appended");
            let stored = self.tables.get(&table).and_then(|rows| rows.get(key));
            let visible = stored.and_then(|row| visible(&write.table, row, now));
            if let Some(code) = failed(&write.condition, visible.as_ref()) {
                return Err((code, Some(position)));
            }
            let after = match &write.operation {
                RowOperation::Put { columns, .. } => {
                    let mut cells = Cells::new();
                    for (column, value) in columns {
                        let cell = (now.div_euclid(1_000_000), value.clone());
                        cells.insert(column.clone(), BTreeMap::from([cell]));
                    }
                    Some((ChangeKind::Put, Some(cells)))
                }
                RowOperation::Update { changes, .. } => update(&write.table, visible, changes, now)
                    .map_err(|code| (code, None))?
                    .map(|cells| (ChangeKind::Update, Some(cells))),
                RowOperation::Delete { .. } => stored.map(|_| (ChangeKind::Delete, None)),
                other => panic!("the oracle doesn't know {other:?}"),
            };
            if let Some((kind, cells)) = after {
                let row = cells.map(|cells| Stored {
                    revision: next,
                    written: now,
                    cells,
                });
                logged.push((table, key.clone(), kind, row));
            }
        }
        let sequence = if logged.is_empty() { next - 1 } else { next };
        for (table, key, _, row) in &logged {
            let rows = self.tables.entry(*table).or_default();
            match row {
                Some(row) => rows.insert(key.clone(), row.clone()),
                None => rows.remove(key),
            };
        }
        if !logged.is_empty() {
            self.log.push((now, logged));
        }
        if let Some(request) = &batch.request {
            let kept = (request.fingerprint, sequence, request.reply.clone());
            self.requests.insert(request.id, kept);
        }
        Ok((sequence, None))
    }

    /// The visible rows of a table, in order.
    pub(crate) fn rows(&self, table: &Table, now: i64) -> BTreeMap<PrimaryKey, Stored> {
        let stored = self.tables.get(&table.id().0).into_iter().flatten();
        stored
            .filter_map(|(key, row)| Some((key.clone(), visible(table, row, now)?)))
            .collect()
    }

    /// The entries of an index, in order.
    pub(crate) fn index(&self, table: &Table, name: &str, now: i64) -> Vec<Entry> {
        let schema = table.schema();
        let index = schema.indexes.iter().find(|index| index.name == name);
        let index = index.expect("an index");
        let mut entries = Vec::new();
        for (key, row) in self.rows(table, now) {
            let value = |column: &String| match schema.key.iter().position(|(name, _)| name == column) {
                Some(position) => Some(Value::from(key.values()[position].clone())),
                None => newest(&row.cells, column).cloned(),
            };
            if let Some(values) = index.columns.iter().map(value).collect::<Option<Vec<_>>>() {
                let included = index
                    .included
                    .iter()
                    .filter_map(|column| Some((column.clone(), newest(&row.cells, column)?.clone())))
                    .collect();
                entries.push((values, key.clone(), included));
            }
        }
        entries.sort_by(|left, right| compare_all(&left.0, &right.0).then_with(|| left.1.cmp(&right.1)));
        entries
    }
}

/// A row without what has expired.
fn visible(table: &Table, row: &Stored, now: i64) -> Option<Stored> {
    let mut row = row.clone();
    let Some(lifetime) = table.schema().time_to_live else {
        return Some(row);
    };
    let lives = |version: i64| version + lifetime.as_millis() as i64 > now.div_euclid(1_000_000);
    if row.cells.is_empty() {
        return lives(row.written.div_euclid(1_000_000)).then_some(row);
    }
    for cells in row.cells.values_mut() {
        cells.retain(|version, _| lives(*version));
    }
    row.cells.retain(|_, cells| !cells.is_empty());
    (!row.cells.is_empty()).then_some(row)
}

fn newest<'a>(cells: &'a Cells, column: &str) -> Option<&'a Value> {
    Some(cells.get(column)?.last_key_value()?.1)
}

fn failed(condition: &Condition, row: Option<&Stored>) -> Option<&'static str> {
    match condition.existence {
        Existence::MustExist if row.is_none() => return Some("ROW_NOT_FOUND"),
        Existence::MustNotExist if row.is_some() => return Some("ROW_ALREADY_EXISTS"),
        _ => {}
    }
    if let Some(expected) = condition.revision {
        match row {
            None => return Some("ROW_NOT_FOUND"),
            Some(row) if row.revision != expected => return Some("REVISION_MISMATCH"),
            Some(_) => {}
        }
    }
    let holds = condition
        .columns
        .as_ref()
        .is_none_or(|filter| passes(filter, row));
    (!holds).then_some("COLUMN_CONDITION_FAILED")
}

/// Whether a row passes a filter.
pub(crate) fn passes(filter: &Filter, row: Option<&Stored>) -> bool {
    match filter {
        Filter::Column {
            column,
            comparison,
            value,
            pass_if_missing,
            latest_version_only,
            // Rules are tested where filters are; no random filter here has one.
            rule: _,
        } => {
            let cells = row.and_then(|row| row.cells.get(column));
            let mut values: Vec<_> = cells.into_iter().flat_map(BTreeMap::values).rev().collect();
            if *latest_version_only {
                values.truncate(1);
            }
            if values.is_empty() {
                return *pass_if_missing;
            }
            values.into_iter().any(|cell| {
                let same_kind = cell.kind_name() == value.kind_name();
                let order = compare(cell, value);
                match comparison {
                    Comparison::NotEqual => !same_kind || order.is_ne(),
                    Comparison::Equal => same_kind && order.is_eq(),
                    Comparison::Less => same_kind && order.is_lt(),
                    Comparison::LessOrEqual => same_kind && order.is_le(),
                    Comparison::Greater => same_kind && order.is_gt(),
                    Comparison::GreaterOrEqual => same_kind && order.is_ge(),
                }
            })
        }
        Filter::Exists { column } => row.is_some_and(|row| row.cells.contains_key(column)),
        Filter::And(parts) => parts.iter().all(|part| passes(part, row)),
        Filter::Or(parts) => parts.iter().any(|part| passes(part, row)),
        Filter::Not(part) => !passes(part, row),
    }
}

fn update(
    table: &Table,
    row: Option<Stored>,
    changes: &[ColumnChange],
    now: i64,
) -> Result<Option<Cells>, &'static str> {
    let only_deletes = changes.iter().all(|change| {
        matches!(
            change,
            ColumnChange::DeleteAll { .. } | ColumnChange::DeleteVersion { .. }
        )
    });
    if row.is_none() && only_deletes {
        return Ok(None);
    }
    let mut cells = row.map(|row| row.cells).unwrap_or_default();
    let millis = now.div_euclid(1_000_000);
    let server_version = |cells: &Cells, column: &String| {
        let newest = cells.get(column).and_then(|cells| cells.keys().last()).copied();
        newest.map_or(millis, |newest| newest.max(millis))
    };
    for change in changes {
        match change {
            ColumnChange::Put {
                column,
                value,
                version,
            } => {
                let version = version.unwrap_or_else(|| server_version(&cells, column));
                cells
                    .entry(column.clone())
                    .or_default()
                    .insert(version, value.clone());
            }
            ColumnChange::DeleteVersion { column, version } => {
                if let Some(cells) = cells.get_mut(column) {
                    cells.remove(version);
                }
            }
            ColumnChange::DeleteAll { column } => {
                cells.remove(column);
            }
            ColumnChange::Increment { column, by } => {
                let before = match newest(&cells, column) {
                    None => 0,
                    Some(Value::Integer(number)) => *number,
                    Some(_) => return Err("INVALID_ARGUMENT"),
                };
                let version = server_version(&cells, column);
                let sum = before.checked_add(*by).ok_or("INVALID_ARGUMENT")?;
                cells
                    .entry(column.clone())
                    .or_default()
                    .insert(version, Value::Integer(sum));
            }
        }
    }
    for versions in cells.values_mut() {
        while versions.len() > table.schema().max_versions as usize {
            versions.pop_first();
        }
        if let Some(lifetime) = table.schema().time_to_live {
            versions.retain(|version, _| version + lifetime.as_millis() as i64 > millis);
        }
    }
    cells.retain(|_, versions| !versions.is_empty());
    Ok(Some(cells))
}

/// The order of values in an index: by type, then by value.
fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::String(_) => 0,
        Value::Integer(_) => 1,
        Value::Binary(_) => 2,
        Value::Double(_) => 3,
        Value::Boolean(_) => 4,
    };
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Binary(left), Value::Binary(right)) => left.cmp(right),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right).expect("finite numbers"),
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_all(left: &[Value], right: &[Value]) -> Ordering {
    left.iter()
        .zip(right)
        .map(|(left, right)| compare(left, right))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
