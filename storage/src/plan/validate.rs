//! What of a batch can be refused without looking at a row.

use std::collections::{BTreeMap, BTreeSet};

use super::target::{WriteLocation, numbered};
use crate::batch::{
    CellPut, ColumnChange, Condition, Existence, ReturnRow, RowOperation, RowWrite, WriteBatch,
};
use crate::catalog::Catalog;
use crate::clock::{millis, milliseconds};
use crate::error::{Error, Result};
use crate::key;
use crate::limits;
use crate::row::ColumnName;
use crate::schema::{TableSchema, check_column};
use crate::value::Value;

/// What is known of writes that can be right.
#[derive(Debug)]
pub(crate) struct Valid {
    /// Where each write goes.
    pub(crate) locations: Vec<WriteLocation>,
    /// Bytes of all of them: keys, names and values.
    pub(crate) bytes: usize,
}

/// Refuses a batch that can't be right. `now`: nanoseconds.
pub(crate) fn batch(catalog: &Catalog, batch: &WriteBatch, now: i64) -> Result<Valid> {
    if let Some(request) = &batch.request {
        limits::check("MAX_REPLY_BYTES", limits::MAX_REPLY_BYTES, request.reply.len())?;
    }
    if let Some(trace) = &batch.trace {
        limits::check("MAX_TRACE_BYTES", limits::MAX_TRACE_BYTES, trace.len())?;
    }
    writes(catalog, &batch.writes, now)
}

/// Refuses writes of one request that can't be right. `now`: nanoseconds.
pub(crate) fn writes(catalog: &Catalog, writes: &[RowWrite], now: i64) -> Result<Valid> {
    limits::check("MAX_BATCH_ROWS", limits::MAX_BATCH_ROWS, writes.len())?;
    let mut seen = BTreeSet::new();
    let mut locations = Vec::with_capacity(writes.len());
    let mut bytes = 0;
    for (position, write) in writes.iter().enumerate() {
        catalog.check_owned(&write.table)?;
        let schema = write.table.schema();
        if let Some(filter) = &write.condition.columns {
            filter.check()?;
        }
        returning(&write.returning)?;
        bytes += operation(&schema, &write.operation, milliseconds(now))?;
        let (location, key_bytes) = location(&schema, write)?;
        bytes += key_bytes;
        if let WriteLocation::Row(key) = &location
            && !seen.insert(key.clone())
        {
            return Err(Error::invalid(
                format!("write {position} of the batch"),
                format!("names a row of table {:?} a second time", schema.name),
            ));
        }
        locations.push(location);
    }
    limits::check("MAX_BATCH_BYTES", limits::MAX_BATCH_BYTES, bytes)?;
    Ok(Valid { locations, bytes })
}

/// Where the write goes, and the bytes of its key.
fn location(schema: &TableSchema, write: &RowWrite) -> Result<(WriteLocation, usize)> {
    let subject = || format!("write to table {:?}", schema.name);
    let id = write.table.id();
    let key = match &write.operation {
        RowOperation::Append { key, .. } => key,
        RowOperation::Put { key, .. }
        | RowOperation::PutCells { key, .. }
        | RowOperation::Update { key, .. }
        | RowOperation::Delete { key } => {
            schema.check_key(key)?;
            let puts = !matches!(write.operation, RowOperation::Delete { .. });
            if puts && schema.auto_increment.is_some() && write.condition.existence != Existence::MustExist {
                return Err(Error::invalid(
                    subject(),
                    "gives the auto-increment column a number, which needs the condition that the row exists; \
                     new rows are appended",
                ));
            }
            return Ok((WriteLocation::Row(key::row(id, key)), key.size()));
        }
    };
    let Some(position) = schema.auto_increment else {
        return Err(Error::invalid(
            subject(),
            "appends a row, but the table has no auto-increment column",
        ));
    };
    if write.condition != Condition::none() {
        return Err(Error::invalid(
            subject(),
            "appends a row on a condition, but there is no row before",
        ));
    }
    let full = numbered(key, position, 0)?;
    schema.check_key(&full)?;
    let Some(partition) = key.first() else {
        return Err(Error::invalid(subject(), "has no partition key"));
    };
    let counter = key::counter(id, partition);
    Ok((WriteLocation::Next { counter, position }, full.size()))
}

fn returning(returning: &ReturnRow) -> Result<()> {
    let ReturnRow::AfterModify(columns) = returning else {
        return Ok(());
    };
    if columns.is_empty() {
        return Err(Error::invalid("columns to give back", "name none"));
    }
    let given = columns.len();
    limits::check("MAX_SELECTED_COLUMNS", limits::MAX_SELECTED_COLUMNS, given)?;
    columns.iter().try_for_each(|column| check_column(column))
}

/// Bytes that the operation counts besides its key.
fn operation(schema: &TableSchema, operation: &RowOperation, now: i64) -> Result<usize> {
    match operation {
        RowOperation::Put { columns, .. } | RowOperation::Append { columns, .. } => put(schema, columns),
        RowOperation::PutCells { cells, .. } => put_cells(schema, cells, now),
        RowOperation::Update { .. } if !schema.allow_update => Err(Error::invalid(
            format!("write to table {:?}", schema.name),
            "updates a row, but the table doesn't allow updates",
        )),
        RowOperation::Update { changes, .. } => update(schema, changes, now),
        RowOperation::Delete { .. } => Ok(0),
    }
}

fn put(schema: &TableSchema, columns: &[(ColumnName, Value)]) -> Result<usize> {
    count(columns.len())?;
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for (name, value) in columns {
        column(schema, name)?;
        check_value(name, value)?;
        if !seen.insert(name) {
            return Err(Error::invalid(format!("column {name:?}"), "is given twice"));
        }
        bytes += name.len() + value.size();
    }
    Ok(bytes)
}

fn put_cells(schema: &TableSchema, cells: &[CellPut], now: i64) -> Result<usize> {
    count(cells.len())?;
    let mut seen = Versions::default();
    let mut bytes = 0;
    for put in cells {
        column(schema, &put.column)?;
        check_value(&put.column, &put.value)?;
        if let Some(version) = put.version {
            check_version(schema, &put.column, version, now)?;
        }
        seen.add(&put.column, put.version)?;
        bytes += put.column.len() + put.value.size();
    }
    Ok(bytes)
}

fn update(schema: &TableSchema, changes: &[ColumnChange], now: i64) -> Result<usize> {
    count(changes.len())?;
    let mut seen = Versions::default();
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
                    check_version(schema, column, *version, now)?;
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
        column(schema, name)?;
        bytes += name.len();
        seen.add(name, version)?;
    }
    Ok(bytes)
}

/// For each column the versions a write names; `None` stands for the whole column, or for the clock's version, which
/// is known only later.
#[derive(Default)]
struct Versions<'a>(BTreeMap<&'a str, BTreeSet<Option<i64>>>);

impl<'a> Versions<'a> {
    /// Refuses what was named before.
    fn add(&mut self, column: &'a str, version: Option<i64>) -> Result<()> {
        let versions = self.0.entry(column).or_default();
        let whole = version.is_none() || versions.contains(&None);
        if (whole && !versions.is_empty()) || !versions.insert(version) {
            return Err(Error::invalid(format!("column {column:?}"), "is changed twice"));
        }
        Ok(())
    }
}

fn count(columns: usize) -> Result<()> {
    limits::check("MAX_COLUMNS_PER_WRITE", limits::MAX_COLUMNS_PER_WRITE, columns)
}

fn column(schema: &TableSchema, name: &str) -> Result<()> {
    check_column(name)?;
    if schema.key_position(name).is_some() {
        return Err(Error::invalid(
            format!("column {name:?}"),
            format!("is of the primary key of table {:?}", schema.name),
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

fn check_version(schema: &TableSchema, column: &str, version: i64, now: i64) -> Result<()> {
    let offset = millis(schema.max_version_offset);
    if version.saturating_sub(now).saturating_abs() > offset {
        return Err(Error::invalid(
            format!("column {column:?}"),
            format!("has version {version}, more than {offset} milliseconds from the clock, {now}"),
        ));
    }
    Ok(())
}
