//! What an operation makes of one row, in the plainest form: maps of cells.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use souk_storage::{
    CellPut, ChangeKind, ColumnChange, ColumnName, Comparison, Condition, Existence, Filter, PrimaryKey,
    ReturnRow, Row, RowOperation, RowWrite, Table, Value,
};

use crate::reads::oracle::compare;

/// Cells of a row: column, version, value.
pub(super) type Cells = BTreeMap<String, BTreeMap<i64, Value>>;

/// A row as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    pub(super) revision: u64,
    pub(super) written: i64,
    pub(super) cells: Cells,
}

/// What a write gives back: a key, a row.
pub(super) type Returned = (Option<PrimaryKey>, Option<Stored>);

/// What becomes of a row, and what is given back.
pub(super) type Decided = (Option<(ChangeKind, Option<Stored>)>, Returned);

/// A row of the store in this form.
pub(super) fn stored(row: &Row) -> Stored {
    let columns = row.columns().iter();
    let cells = columns.map(|(name, cells)| {
        assert!(cells.is_sorted_by(|left, right| left.version > right.version));
        let cells = cells.iter().map(|cell| (cell.version, cell.value.clone()));
        (name.to_owned(), cells.collect())
    });
    Stored {
        revision: row.revision,
        written: row.written,
        cells: cells.collect(),
    }
}

pub(super) fn millis(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}

/// Versions up to this have expired.
pub(super) fn expired(table: &Table, now: i64) -> Option<i64> {
    let lifetime = table.schema().time_to_live?;
    Some(millis(now) - lifetime.as_millis() as i64)
}

/// A row without what has expired or is too much.
pub(super) fn visible(table: &Table, row: &Stored, now: i64) -> Option<Stored> {
    let mut row = row.clone();
    if let Some(expired) = expired(table, now) {
        let newest = row.cells.values().flat_map(BTreeMap::keys).max();
        if *newest.unwrap_or(&millis(row.written)) <= expired {
            return None;
        }
        drop_expired(&mut row.cells, expired);
    }
    keep_newest(&mut row.cells, table.schema().max_versions);
    Some(row)
}

fn drop_expired(cells: &mut Cells, expired: i64) {
    for versions in cells.values_mut() {
        versions.retain(|version, _| *version > expired);
    }
    cells.retain(|_, versions| !versions.is_empty());
}

/// Keeps the newest versions of each column; whether there were more.
pub(super) fn keep_newest(cells: &mut Cells, most: u32) -> bool {
    let mut more = false;
    for versions in cells.values_mut() {
        while versions.len() > most as usize {
            versions.pop_first();
            more = true;
        }
    }
    more
}

/// Decides a write to the row that is stored. The revision of what is written is that of the row before.
pub(super) fn decide(
    write: &RowWrite,
    key: &PrimaryKey,
    before: Option<&Stored>,
    now: i64,
) -> Result<Decided, &'static str> {
    let table = &write.table;
    let row = before.and_then(|row| visible(table, row, now));
    if let Some(code) = failed(&write.condition, row.as_ref()) {
        return Err(code);
    }
    let revision = row.as_ref().map_or(0, |row| row.revision);
    let written = |cells| Stored {
        revision,
        written: now,
        cells,
    };
    let change = match &write.operation {
        RowOperation::Put { columns, .. } | RowOperation::Append { columns, .. } => {
            let cell = |(name, value): &(ColumnName, Value)| {
                (name.to_string(), BTreeMap::from([(millis(now), value.clone())]))
            };
            let cells = columns.iter().map(cell).collect();
            Some((ChangeKind::Put, Some(written(cells))))
        }
        RowOperation::PutCells { cells, .. } => {
            let cells = put_cells(table, cells, now);
            Some((ChangeKind::Put, Some(written(cells))))
        }
        RowOperation::Update { changes, .. } => {
            let cells = update(table, row, changes, now)?;
            cells.map(|cells| (ChangeKind::Update, Some(written(cells))))
        }
        RowOperation::Delete { .. } => before.map(|_| (ChangeKind::Delete, None)),
    };
    let after = change.as_ref().and_then(|(_, row)| row.as_ref());
    let returned = match &write.returning {
        ReturnRow::None => (None, None),
        ReturnRow::Key => (Some(key.clone()), None),
        ReturnRow::AfterModify(columns) => {
            let row = after.cloned().map(|mut row| {
                row.cells.retain(|name, _| columns.contains(name));
                row
            });
            (Some(key.clone()), row)
        }
        ReturnRow::All => (Some(key.clone()), after.cloned()),
    };
    Ok((change, returned))
}

fn put_cells(table: &Table, puts: &[CellPut], now: i64) -> Cells {
    let mut cells = Cells::new();
    for put in puts {
        let version = put.version.unwrap_or(millis(now));
        let versions = cells.entry(put.column.clone()).or_default();
        versions.insert(version, put.value.clone());
    }
    keep_visible(table, &mut cells, now);
    cells
}

fn keep_visible(table: &Table, cells: &mut Cells, now: i64) {
    keep_newest(cells, table.schema().max_versions);
    if let Some(expired) = expired(table, now) {
        drop_expired(cells, expired);
    }
    cells.retain(|_, versions| !versions.is_empty());
}

pub(super) fn newest<'a>(cells: &'a Cells, column: &str) -> Option<&'a Value> {
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
fn passes(filter: &Filter, row: Option<&Stored>) -> bool {
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
    let now_millis = millis(now);
    let server_version = |cells: &Cells, column: &String| {
        let newest = cells.get(column).and_then(|cells| cells.keys().last()).copied();
        newest.map_or(now_millis, |newest| newest.max(now_millis))
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
    keep_visible(table, &mut cells, now);
    Ok(Some(cells))
}

pub(super) fn compare_all(left: &[Value], right: &[Value]) -> Ordering {
    left.iter()
        .zip(right)
        .map(|(left, right)| compare(left, right))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
