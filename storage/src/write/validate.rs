//! What of a batch can be refused without looking at a row.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::batch::{ColumnChange, RowOperation, WriteBatch};
use crate::catalog::{Catalog, Table};
use crate::clock::millis;
use crate::error::{Error, Result};
use crate::expiry::milliseconds;
use crate::key;
use crate::limits;
use crate::schema::check_column;
use crate::value::Value;

/// Refuses what can't be right; gives the keys of the rows in the order of the writes. `now`: nanoseconds.
pub(super) fn batch(catalog: &Catalog, batch: &WriteBatch, now: i64) -> Result<Vec<Bytes>> {
    limits::check("MAX_BATCH_ROWS", limits::MAX_BATCH_ROWS, batch.writes.len())?;
    if let Some(request) = &batch.request {
        limits::check("MAX_REPLY_BYTES", limits::MAX_REPLY_BYTES, request.reply.len())?;
    }
    if let Some(trace) = &batch.trace {
        limits::check("MAX_TRACE_BYTES", limits::MAX_TRACE_BYTES, trace.len())?;
    }
    let mut seen = BTreeSet::new();
    let mut keys = Vec::with_capacity(batch.writes.len());
    let mut bytes = 0;
    for (position, write) in batch.writes.iter().enumerate() {
        let table = &write.table;
        catalog.check_owned(table)?;
        let key = write.operation.key();
        table.schema().check_key(key)?;
        if let Some(filter) = &write.condition.columns {
            filter.check()?;
        }
        bytes += key.size() + operation(table, &write.operation, milliseconds(now))?;
        let key = key::row(table.id(), key);
        if !seen.insert(key.clone()) {
            return Err(Error::invalid(
                format!("write {position} of the batch"),
                format!("names a row of table {:?} a second time", table.name()),
            ));
        }
        keys.push(key);
    }
    limits::check("MAX_BATCH_BYTES", limits::MAX_BATCH_BYTES, bytes)?;
    Ok(keys)
}

/// Bytes that the operation counts besides its key.
fn operation(table: &Table, operation: &RowOperation, now: i64) -> Result<usize> {
    match operation {
        RowOperation::Put { columns, .. } => put(table, columns),
        RowOperation::Update { changes, .. } => update(table, changes, now),
        RowOperation::Delete { .. } => Ok(0),
    }
}

fn put(table: &Table, columns: &[(String, Value)]) -> Result<usize> {
    limits::check(
        "MAX_COLUMNS_PER_WRITE",
        limits::MAX_COLUMNS_PER_WRITE,
        columns.len(),
    )?;
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for (name, value) in columns {
        column(table, name)?;
        check_value(name, value)?;
        if !seen.insert(name) {
            return Err(Error::invalid(format!("column {name:?}"), "is given twice"));
        }
        bytes += name.len() + value.size();
    }
    Ok(bytes)
}

fn update(table: &Table, changes: &[ColumnChange], now: i64) -> Result<usize> {
    limits::check(
        "MAX_COLUMNS_PER_WRITE",
        limits::MAX_COLUMNS_PER_WRITE,
        changes.len(),
    )?;
    // For each column the versions changed; `None` stands for the whole column.
    let mut seen: BTreeMap<&str, BTreeSet<Option<i64>>> = BTreeMap::new();
    let mut bytes = 0;
    for change in changes {
        let (name, version) = match change {
            ColumnChange::Put {
                column,
                value,
                version,
            } => {
                check_value(column, value)?;
                bytes += value.size();
                if let Some(version) = version {
                    check_version(table, column, *version, now)?;
                }
                (column, *version)
            }
            ColumnChange::DeleteVersion { column, version } => (column, Some(*version)),
            ColumnChange::DeleteAll { column } => (column, None),
            ColumnChange::Increment { column, .. } => {
                bytes += size_of::<i64>();
                (column, None)
            }
        };
        column(table, name)?;
        bytes += name.len();
        let versions = seen.entry(name).or_default();
        let whole = version.is_none() || versions.contains(&None);
        if (whole && !versions.is_empty()) || !versions.insert(version) {
            return Err(Error::invalid(format!("column {name:?}"), "is changed twice"));
        }
    }
    Ok(bytes)
}

fn column(table: &Table, name: &str) -> Result<()> {
    check_column(name)?;
    if table.schema().key_position(name).is_some() {
        return Err(Error::invalid(
            format!("column {name:?}"),
            format!("is of the primary key of table {:?}", table.name()),
        ));
    }
    Ok(())
}

fn check_value(column: &str, value: &Value) -> Result<()> {
    limits::check("MAX_VALUE_BYTES", limits::MAX_VALUE_BYTES, value.size())?;
    if value.as_double().is_some_and(|number| !number.is_finite()) {
        return Err(Error::invalid(
            format!("column {column:?}"),
            "is NaN or an infinity",
        ));
    }
    Ok(())
}

fn check_version(table: &Table, column: &str, version: i64, now: i64) -> Result<()> {
    let offset = millis(table.schema().max_version_offset);
    if version.saturating_sub(now).saturating_abs() > offset {
        return Err(Error::invalid(
            format!("column {column:?}"),
            format!("has version {version}, more than {offset} milliseconds from the clock, {now}"),
        ));
    }
    Ok(())
}
