//! What becomes of one row: its condition, its new value, its entries of secondary indexes, what is given back.

use bytes::Bytes;
use souk_kv::Mutation;

use super::row_change::{self, RowOutcome};
use super::target::WriteTarget;
use crate::batch::written::metered;
use crate::batch::{Condition, Existence, RowOperation, RowWrite, WrittenRow};
use crate::catalog::Table;
use crate::change::ChangeKind;
use crate::error::{ConditionFailure, Error, Result};
use crate::expiry::Expiry;
use crate::id::TableId;
use crate::limits;
use crate::metering::{CapacityUnits, Meter};
use crate::row::{Row, codec};
use crate::secondary;
use crate::value::PrimaryKey;

/// A row that changes.
#[derive(Debug)]
pub(crate) struct ChangedRow {
    pub(crate) table: TableId,
    /// Its key in the store.
    pub(crate) key: Bytes,
    pub(crate) kind: ChangeKind,
    /// Its new value; `None`: it is deleted.
    pub(crate) value: Option<Vec<u8>>,
    /// What the log tells of it when it is deleted.
    pub(crate) parting: Option<Vec<u8>>,
    /// What happens to its entries of secondary indexes.
    pub(crate) entries: Vec<Mutation>,
}

impl ChangedRow {
    /// What the log tells of it.
    pub(crate) fn told(&self) -> Option<&[u8]> {
        self.value.as_deref().or(self.parting.as_deref())
    }
}

/// Decides a write: what changes, if anything does, and what is given back. `now`: nanoseconds; `matched`: the bytes of text that patterns
/// have looked at for the other writes of the call.
pub(crate) fn row(
    target: &WriteTarget<'_>,
    now: i64,
    matched: &mut usize,
) -> Result<(Option<ChangedRow>, WrittenRow)> {
    let WriteTarget {
        write,
        found,
        is_hidden,
        ..
    } = target;
    let table = &write.table;
    let seen = found.as_ref().filter(|_| !is_hidden);
    let decoded = || {
        seen.map(|value| codec::decode(target.key.clone().into_owned(), value))
            .transpose()
    };
    let stored = decoded()?;
    if stored.is_some() && matches!(write.operation, RowOperation::Append { .. }) {
        return Err(Error::corrupt(format!(
            "table {:?} has a row {:?} above the counter of its partition",
            table.name(),
            target.key
        )));
    }
    // An expired row leaves its entries behind until it is written again.
    let old = stored.as_ref().map(|row| secondary::stored_entries(table, row));
    let visible = stored.and_then(|row| Expiry::new(table, now).visible(row));
    let is_visible = visible.is_some();
    let meter = Meter::of(&table.schema());
    let looked_at = units_read(&write.condition, meter, &target.key, visible.as_ref());
    let failed = |reason| Error::ConditionFailed {
        write: target.position,
        reason,
    };
    if let Some(reason) = row_change::failure(&write.condition, &target.key, visible.as_ref(), matched)? {
        return Err(failed(reason));
    }
    let parting = visible.as_ref().and_then(|row| parting(write, row));
    let outcome = row_change::apply(
        table,
        &write.operation,
        &target.key,
        visible,
        // To a writer who may not meet all rows an expired row is gone: deleting it isn't logged.
        found.is_some() && (write.hidden.is_none() || is_visible),
        now,
    )?;
    if *is_hidden && outcome != RowOutcome::Nothing {
        return Err(failed(ConditionFailure::AlreadyExists));
    }
    let (kind, after) = match outcome {
        RowOutcome::Nothing => (None, None),
        RowOutcome::Write(kind, row) => (Some(kind), Some(row)),
        RowOutcome::Delete => (Some(ChangeKind::Delete), None),
    };
    let mut written = WrittenRow::of(&write.returning, &target.key, after.as_ref());
    written.consumed = CapacityUnits::writing(metered(meter, &write.operation, &target.key)) + looked_at;
    let changed = match kind {
        None => None,
        Some(kind) => {
            let new = after
                .as_ref()
                .map(|row| secondary::entries(table, row, decoded))
                .transpose()?;
            let entries = secondary::moves(&old.unwrap_or_default(), new.unwrap_or_default());
            let value = after.as_ref().map(codec::encode);
            if let Some(value) = &value {
                let bytes = value.len() + target.row.len();
                limits::check("MAX_ROW_BYTES", limits::MAX_ROW_BYTES, bytes)?;
            }
            Some(ChangedRow {
                table: table.id(),
                key: target.row.clone(),
                kind,
                value,
                parting,
                entries,
            })
        }
    };
    Ok((changed, written))
}

/// What the log is to tell of a row that the write deletes.
fn parting(write: &RowWrite, row: &Row) -> Option<Vec<u8>> {
    if write.parting.is_empty() || !matches!(write.operation, RowOperation::Delete { .. }) {
        return None;
    }
    let newest = |name: &String| Some((name.clone(), row.cells(name).first()?.clone()));
    let columns = write.parting.iter().filter_map(newest).collect();
    let told = Row::new(row.key.clone(), row.revision, row.written, columns);
    Some(codec::encode(&told))
}

/// What happens to the index entries of a row that was `before` and is `after`, both as stored.
pub(crate) fn entries(
    table: &Table,
    key: &PrimaryKey,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
) -> Result<Vec<Mutation>> {
    let row = |value: Option<&[u8]>| {
        let row = value.map(|value| codec::decode(key.clone(), value));
        row.transpose()
    };
    let old = row(before)?.map(|row| secondary::stored_entries(table, &row));
    let new = row(after)?
        .map(|after| secondary::entries(table, &after, || row(before)))
        .transpose()?;
    Ok(secondary::moves(
        &old.unwrap_or_default(),
        new.unwrap_or_default(),
    ))
}

/// What looking at the row for its condition costs: a column condition reads the row, the others its key.
fn units_read(condition: &Condition, meter: Meter, key: &PrimaryKey, row: Option<&Row>) -> CapacityUnits {
    if condition.columns.is_some() {
        CapacityUnits::reading(row.map_or(0, |row| meter.row(row)))
    } else if condition.existence != Existence::Ignore || condition.revision.is_some() {
        CapacityUnits::reading(meter.key(key))
    } else {
        CapacityUnits::default()
    }
}
