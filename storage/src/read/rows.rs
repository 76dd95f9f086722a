//! Reading rows by their keys.

use bytes::Bytes;
use souk_kv::{Space, limits::INLINE_READS};

use crate::catalog::Table;
use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::limits;
use crate::metering::CapacityUnits;
use crate::read::projection::{Projected, Projection};
use crate::read::{ReadOptions, Snapshot};
use crate::row::Row;
use crate::schema::TableSchema;
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

/// Reads rows as a projection wants them, whole ones through the [row cache](crate::row_cache).
struct RowReader<'a> {
    snapshot: &'a Snapshot,
    projection: Projection<'a>,
}

impl<'a> RowReader<'a> {
    fn new(snapshot: &'a Snapshot, table: &Table, options: &'a ReadOptions) -> Result<Self> {
        Ok(Self {
            snapshot,
            projection: snapshot.projection(table, options)?,
        })
    }

    /// A row that is cached, and its bytes as stored.
    fn cached(&self, stored: &Bytes, key: &PrimaryKey) -> Option<(Row, usize)> {
        let cache = &self.snapshot.shared.row_cache;
        cache.get(&*self.snapshot.kv, stored, key, self.projection.whole_versions()?)
    }

    /// A row of what is stored; `previous` as in [`Projection::row_after`].
    fn decoded(
        &self,
        previous: Option<&Row>,
        key: &PrimaryKey,
        stored: &Bytes,
        value: Option<&Bytes>,
    ) -> Result<Option<Row>> {
        let row = self.projection.whole(previous, key.clone(), value)?;
        if let (Some(row), Some(value), Some(versions)) = (&row, value, self.projection.whole_versions()) {
            let cache = &self.snapshot.shared.row_cache;
            cache.keep(&*self.snapshot.kv, stored, row, value.len(), versions);
        }
        Ok(row)
    }
}

/// A whole row by its key; see [`Snapshot::get`].
pub(super) async fn get(snapshot: &Snapshot, table: &Table, key: &PrimaryKey) -> Result<Option<Row>> {
    let options = ReadOptions::default();
    let reader = RowReader::new(snapshot, table, &options)?;
    let stored = stored_key(table.id(), &table.schema(), key)?;
    if let Some((row, _)) = reader.cached(&stored, key) {
        return Ok(Some(row));
    }
    let value = snapshot.kv.get(Space::Rows, &stored).await?;
    reader.decoded(None, key, &stored, value.as_ref())
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
    let value = snapshot
        .kv
        .get(Space::Rows, &stored_key(table.id(), &table.schema(), key)?)
        .await?;
    Ok(projection.stored(key, value.as_ref())?.into())
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
    let reader = RowReader::new(snapshot, table, &options)?;
    let mut rows: Vec<(Option<Row>, usize)> = Vec::with_capacity(keys.len());
    let mut left = bytes_max;
    for keys in keys.chunks(INLINE_READS) {
        let stored = stored_keys(table, keys)?;
        let cached = stored
            .iter()
            .zip(keys)
            .map(|(stored, key)| reader.cached(stored, key));
        let cached: Vec<_> = cached.collect();
        let missing = stored.iter().zip(&cached).filter(|(_, cached)| cached.is_none());
        let missing: Vec<_> = missing.map(|(stored, _)| stored.clone()).collect();
        let mut values = Vec::new();
        if !missing.is_empty() {
            values = snapshot.kv.multi_get_within(Space::Rows, missing, left).await?;
        }
        let mut values = values.iter();
        for ((key, stored), cached) in keys.iter().zip(&stored).zip(cached) {
            let value = match &cached {
                Some(_) => None,
                None => values.next(),
            };
            let bytes = match (&cached, value) {
                (Some((_, bytes)), _) => *bytes,
                (None, Some(value)) => value.as_ref().map_or(0, Bytes::len),
                // Those before it have all the bytes.
                (None, None) => return Ok(rows),
            };
            if bytes > left && !rows.is_empty() {
                return Ok(rows);
            }
            let row = match cached {
                Some((row, _)) => Some(row),
                None => {
                    let previous = rows.last().and_then(|(row, _)| row.as_ref());
                    reader.decoded(previous, key, stored, value.and_then(Option::as_ref))?
                }
            };
            rows.push((row, bytes));
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return Ok(rows),
            }
        }
    }
    Ok(rows)
}

/// The stored keys of rows of a table.
pub(super) fn stored_keys(table: &Table, keys: &[PrimaryKey]) -> Result<Vec<Bytes>> {
    let schema = table.schema();
    keys.iter()
        .map(|key| stored_key(table.id(), &schema, key))
        .collect()
}

fn stored_key(table: TableId, schema: &TableSchema, key: &PrimaryKey) -> Result<Bytes> {
    schema.check_key(key)?;
    Ok(key::row(table, key))
}
