//! Reading rows by their keys.

use bytes::Bytes;
use souk_kv::{Space, limits::INLINE_READS};

use crate::catalog::Table;
use crate::error::Result;
use crate::key;
use crate::limits;
use crate::metering::CapacityUnits;
use crate::read::projection::Projected;
use crate::read::{ReadOptions, Snapshot};
use crate::row::Row;
use crate::value::PrimaryKey;

/// What a read found of one row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Read {
    /// The row with the columns asked for; `None` when there is none, it has none of them, or the filter refuses it.
    pub row: Option<Row>,
    /// The column to go on with, see [`ReadOptions::resume`], when the read stopped inside the row: after
    /// [`limits::MAX_READ_BYTES`] or at the end of a column page. `None` at the end of the window.
    pub next_column: Option<String>,
    /// What it cost; a filter doesn't lower it.
    pub consumed: CapacityUnits,
}

impl From<Projected> for Read {
    fn from(projected: Projected) -> Self {
        Self {
            row: projected.row,
            next_column: projected.next_column,
            consumed: CapacityUnits::reading(projected.bytes),
        }
    }
}

/// A whole row by its key; see [`Snapshot::get`].
pub(super) async fn get(snapshot: &Snapshot, table: &Table, key: &PrimaryKey) -> Result<Option<Row>> {
    let options = ReadOptions::default();
    let projection = snapshot.projection(table, &options)?;
    let value = value_of(snapshot, table, key).await?;
    projection.whole(None, key.clone(), value.as_ref())
}

/// A row by its key; see [`Snapshot::read`].
pub(super) async fn read(
    snapshot: &Snapshot,
    table: &Table,
    key: &PrimaryKey,
    options: &ReadOptions,
    bytes_max: usize,
) -> Result<Read> {
    let projection = snapshot.projection(table, options)?.within(bytes_max);
    let value = value_of(snapshot, table, key).await?;
    Ok(projection.stored(key, value.as_ref())?.into())
}

async fn value_of(snapshot: &Snapshot, table: &Table, primary_key: &PrimaryKey) -> Result<Option<Bytes>> {
    table.schema().check_key(primary_key)?;
    let key = key::row(table.id(), primary_key);
    Ok(snapshot.kv.get(Space::Rows, &key).await?)
}

/// Whole rows by their keys; see [`Snapshot::multi_get`].
pub(super) async fn multi_get(
    snapshot: &Snapshot,
    table: &Table,
    keys: &[PrimaryKey],
) -> Result<Vec<Option<Row>>> {
    limits::check("MAX_MULTI_GET_ROWS", limits::MAX_MULTI_GET_ROWS, keys.len())?;
    let options = ReadOptions::default();
    let projection = snapshot.projection(table, &options)?;
    let values = snapshot
        .kv
        .multi_get(Space::Rows, stored_keys(table, keys)?)
        .await?;
    let mut rows: Vec<Option<Row>> = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(&values) {
        let previous = rows.last().and_then(Option::as_ref);
        let row = projection.whole(previous, key.clone(), value.as_ref())?;
        rows.push(row);
    }
    Ok(rows)
}

/// Whole rows by the first of their keys, up to so many stored bytes, each with its own; see
/// [`Snapshot::multi_get_within`]. Reads so few keys at a time that the engine stays on this thread.
pub(super) async fn multi_get_within(
    snapshot: &Snapshot,
    table: &Table,
    keys: &[PrimaryKey],
    bytes_max: usize,
) -> Result<Vec<(Option<Row>, usize)>> {
    limits::check("MAX_MULTI_GET_ROWS", limits::MAX_MULTI_GET_ROWS, keys.len())?;
    let options = ReadOptions::default();
    let projection = snapshot.projection(table, &options)?;
    let mut rows: Vec<(Option<Row>, usize)> = Vec::with_capacity(keys.len());
    let mut left = bytes_max;
    for keys in keys.chunks(INLINE_READS) {
        let stored = stored_keys(table, keys)?;
        let values = snapshot.kv.multi_get_within(Space::Rows, stored, left).await?;
        for (key, value) in keys.iter().zip(&values) {
            let bytes = value.as_ref().map_or(0, Bytes::len);
            if bytes > left && !rows.is_empty() {
                return Ok(rows);
            }
            left = left.saturating_sub(bytes);
            let previous = rows.last().and_then(|(row, _)| row.as_ref());
            let row = projection.whole(previous, key.clone(), value.as_ref())?;
            rows.push((row, bytes));
        }
        if values.len() < keys.len() {
            return Ok(rows);
        }
    }
    Ok(rows)
}

/// The stored keys of rows of a table.
pub(super) fn stored_keys(table: &Table, keys: &[PrimaryKey]) -> Result<Vec<Bytes>> {
    let schema = table.schema();
    let stored = keys.iter().map(|primary_key| {
        schema.check_key(primary_key)?;
        Ok(key::row(table.id(), primary_key))
    });
    stored.collect()
}
