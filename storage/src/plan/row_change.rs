//! What an operation makes of a row: a function of the row before, the operation, and the time.

use crate::batch::{ColumnChange, Condition, Existence, RowOperation};
use crate::catalog::Table;
use crate::change::ChangeKind;
use crate::clock::milliseconds;
use crate::error::{ConditionFailure, Error, Result};
use crate::expiry::Expiry;
use crate::row::{Cell, ColumnName, Columns, Row};
use crate::value::{PrimaryKey, Value};

/// What becomes of a row.
#[derive(Debug, PartialEq)]
pub(crate) enum RowOutcome {
    /// There is none, and none will be.
    Nothing,
    /// It is written.
    Write(ChangeKind, Row),
    /// It is deleted.
    Delete,
}

/// Why the condition doesn't hold for the visible row of a key, if it doesn't. Adds the bytes of text that its patterns look at to `matched`.
pub(crate) fn failure(
    condition: &Condition,
    key: &PrimaryKey,
    row: Option<&Row>,
    matched: &mut usize,
) -> Result<Option<ConditionFailure>> {
    match (condition.existence, row) {
        (Existence::MustExist, None) => return Ok(Some(ConditionFailure::NotFound)),
        (Existence::MustNotExist, Some(_)) => return Ok(Some(ConditionFailure::AlreadyExists)),
        (Existence::Ignore, _) | (Existence::MustExist, Some(_)) | (Existence::MustNotExist, None) => {}
    }
    match (condition.revision, row) {
        (Some(_), None) => return Ok(Some(ConditionFailure::NotFound)),
        (Some(expected), Some(row)) if row.revision != expected => {
            return Ok(Some(ConditionFailure::RevisionMismatch {
                expected,
                actual: row.revision,
            }));
        }
        (None | Some(_), _) => {}
    }
    match &condition.columns {
        Some(filter) if !filter.passes(key, row, matched)? => Ok(Some(ConditionFailure::Column)),
        Some(_) | None => Ok(None),
    }
}

/// What the operation makes of the visible row. `stored`: whether there is a row in the store, if only an expired
/// one. `now`: nanoseconds.
pub(crate) fn apply(
    table: &Table,
    operation: &RowOperation,
    key: &PrimaryKey,
    before: Option<Row>,
    stored: bool,
    now: i64,
) -> Result<RowOutcome> {
    match operation {
        RowOperation::Put { columns, .. } | RowOperation::Append { columns, .. } => {
            let version = milliseconds(now);
            let cells = |(name, value): &(ColumnName, Value)| {
                let value = value.clone();
                (name.clone(), Cell { value, version })
            };
            let columns = columns.iter().map(cells).collect();
            let revision = before.map_or(0, |row| row.revision);
            let row = Row::new(key.clone(), revision, now, columns);
            Ok(RowOutcome::Write(ChangeKind::Put, row))
        }
        RowOperation::PutCells { cells, .. } => {
            let mut columns = Columns::new();
            for put in cells {
                let version = put.version.unwrap_or_else(|| milliseconds(now));
                let value = put.value.clone();
                columns.put(&put.column, Cell { value, version });
            }
            let revision = before.map_or(0, |row| row.revision);
            let mut row = Row::new(key.clone(), revision, now, columns);
            keep_visible(table, &mut row, now);
            Ok(RowOutcome::Write(ChangeKind::Put, row))
        }
        RowOperation::Update { changes, .. } => update(table, key, changes, before, now),
        RowOperation::Delete { .. } if stored => Ok(RowOutcome::Delete),
        RowOperation::Delete { .. } => Ok(RowOutcome::Nothing),
    }
}

fn update(
    table: &Table,
    key: &PrimaryKey,
    changes: &[ColumnChange],
    before: Option<Row>,
    now: i64,
) -> Result<RowOutcome> {
    let creates = |change: &ColumnChange| match change {
        ColumnChange::Put { .. } | ColumnChange::Increment { .. } => true,
        ColumnChange::DeleteVersion { .. } | ColumnChange::DeleteAll { .. } => false,
    };
    let mut row = match before {
        Some(row) => row,
        None if changes.iter().any(creates) => Row::new(key.clone(), 0, now, Columns::new()),
        None => return Ok(RowOutcome::Nothing),
    };
    row.written = now;
    let columns = row.columns_mut();
    for change in changes {
        match change {
            ColumnChange::Put {
                column,
                value,
                version,
            } => {
                let version = version.unwrap_or_else(|| next_version(columns.get(column), now));
                let value = value.clone();
                columns.put(column, Cell { value, version });
            }
            ColumnChange::DeleteVersion { column, version } => {
                columns.retain_cells(|name, _, cell| name != column || cell.version != *version);
            }
            ColumnChange::DeleteAll { column } => columns.remove(column),
            ColumnChange::Increment { column, by } => {
                let cells = columns.get(column);
                let value = Value::Integer(increment(column, cells.first(), *by)?);
                let version = next_version(cells, now);
                columns.put(column, Cell { value, version });
            }
        }
    }
    keep_visible(table, &mut row, now);
    Ok(RowOutcome::Write(ChangeKind::Update, row))
}

/// Drops surplus versions, and those that have expired: a version given by the writer may be that old.
fn keep_visible(table: &Table, row: &mut Row, now: i64) {
    let keep = usize::try_from(table.schema().max_versions).unwrap_or(usize::MAX);
    row.columns_mut().retain_cells(|_, place, _| place < keep);
    Expiry::new(table, now).drop_expired(row);
}

/// The server's time, but never below what is there.
fn next_version(cells: &[Cell], now: i64) -> i64 {
    let now = milliseconds(now);
    cells.first().map_or(now, |newest| now.max(newest.version))
}

fn increment(column: &str, newest: Option<&Cell>, by: i64) -> Result<i64> {
    let before = match newest.map(|cell| &cell.value) {
        None => 0,
        Some(Value::Integer(number)) => *number,
        Some(other @ (Value::String(_) | Value::Double(_) | Value::Boolean(_) | Value::Binary(_))) => {
            let problem = format!("is {}, and only INTEGER can be incremented", other.kind_name());
            return Err(Error::invalid(format!("column {column:?}"), problem));
        }
    };
    before.checked_add(by).ok_or_else(|| {
        let problem = format!("overflows: {before} incremented by {by}");
        Error::invalid(format!("column {column:?}"), problem)
    })
}
