//! Reading rows of several tables in one call, each with an answer of its own.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_kv::{Space, limits::INLINE_READS};
use tokio::task::yield_now;

use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::limits::{self, MAX_BATCH_GET_BYTES, MAX_MULTI_GET_ROWS, MAX_READ_BYTES, MAX_SCANNED_BYTES};
use crate::read::projection::Projection;
use crate::read::rows::stored_keys;
use crate::read::{Read, ReadOptions, Snapshot};
#[cfg(doc)]
use crate::row::Row;
use crate::value::PrimaryKey;

/// Rows of one table in a batch get.
#[derive(Debug, Clone)]
pub struct TableKeys {
    /// Handle of the table, each in a batch once.
    pub table: Table,
    /// The rows, each once.
    pub keys: Vec<PrimaryKey>,
    /// What is read of each of them.
    pub options: ReadOptions,
    /// Bytes of a row that are returned, as [`Row::message_bytes`] counts them; of a larger one at least a column.
    pub row_bytes: usize,
}

impl TableKeys {
    /// These rows, whole.
    pub fn new(table: &Table, keys: Vec<PrimaryKey>) -> Self {
        Self {
            table: table.clone(),
            keys,
            options: ReadOptions::default(),
            row_bytes: MAX_READ_BYTES,
        }
    }

    /// Of each row at most so many bytes.
    #[must_use]
    pub fn within(mut self, row_bytes: usize) -> Self {
        self.row_bytes = row_bytes;
        self
    }

    /// These rows, read like this.
    #[must_use]
    pub fn options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }
}

/// Rows of one table, checked.
struct Checked<'a> {
    projection: Projection<'a>,
    keys: &'a [PrimaryKey],
    stored: Vec<Bytes>,
}

/// Reads of several tables; see [`Snapshot::batch_get`].
pub(super) async fn get(snapshot: &Snapshot, tables: &[TableKeys]) -> Result<Vec<Vec<Result<Read>>>> {
    let checked = check(snapshot, tables)?;
    let mut bytes = 0;
    let mut all = Vec::with_capacity(tables.len());
    for part in &checked {
        let mut reads = Vec::with_capacity(part.keys.len());
        while let Some(rest) = part.stored.get(reads.len()..).filter(|rest| !rest.is_empty()) {
            let keys = part.keys.get(reads.len()..).unwrap_or_default();
            for (key, value) in keys.iter().zip(values(snapshot, rest).await) {
                if part.projection.rules() > 0 {
                    yield_now().await;
                }
                reads.push(value.and_then(|value| one(&part.projection, key, value.as_ref(), &mut bytes)));
            }
        }
        all.push(reads);
    }
    Ok(all)
}

/// Refuses the batch as a whole.
fn check<'a>(snapshot: &Snapshot, tables: &'a [TableKeys]) -> Result<Vec<Checked<'a>>> {
    let rows = tables.iter().map(|part| part.keys.len()).sum();
    limits::check("MAX_MULTI_GET_ROWS", MAX_MULTI_GET_ROWS, rows)?;
    let mut seen = BTreeSet::new();
    let parts = tables.iter().map(|part| {
        let subject = || format!("batch get of table {:?}", part.table.name());
        if !seen.insert(part.table.id()) {
            return Err(Error::invalid(subject(), "is there twice"));
        }
        if part.keys.is_empty() {
            return Err(Error::invalid(subject(), "names no row"));
        }
        let mut keys = BTreeSet::new();
        if let Some(twice) = part.keys.iter().find(|key| !keys.insert(*key)) {
            return Err(Error::invalid(subject(), format!("names row {twice:?} twice")));
        }
        Ok(Checked {
            projection: snapshot
                .projection(&part.table, &part.options)?
                .within(part.row_bytes),
            keys: &part.keys,
            stored: stored_keys(&part.table, &part.keys)?,
        })
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    if parts.is_empty() {
        return Err(Error::invalid("batch get", "names no row"));
    }
    Ok(parts)
}

/// The stored values of the first of some keys, of one at least: as many as are held in memory together. What can't be read spoils no
/// other row.
async fn values(snapshot: &Snapshot, keys: &[Bytes]) -> Vec<Result<Option<Bytes>>> {
    let keys = keys.get(..INLINE_READS).unwrap_or(keys);
    let read = snapshot
        .kv
        .multi_get_within(Space::Rows, keys.to_vec(), MAX_SCANNED_BYTES);
    if let Ok(values) = read.await {
        return values.into_iter().map(Ok).collect();
    }
    match keys.first() {
        Some(first) => vec![snapshot.kv.get(Space::Rows, first).await.map_err(Error::from)],
        None => Vec::new(),
    }
}

/// One row; `bytes` are those of the rows before.
fn one(
    projection: &Projection<'_>,
    key: &PrimaryKey,
    value: Option<&Bytes>,
    bytes: &mut usize,
) -> Result<Read> {
    let projected = projection.stored(key, value)?;
    let after = *bytes + projected.bytes;
    limits::check("MAX_BATCH_GET_BYTES", MAX_BATCH_GET_BYTES, after)?;
    *bytes = after;
    Ok(projected.into())
}
