//! From a batch and the rows it found to the commit: conditions, new rows, entries of secondary indexes, the change.

use bytes::Bytes;

use super::row_change::{self, Outcome};
use crate::batch::{RowWrite, WriteBatch};
use crate::change::{ChangeKind, codec::Encoder};
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::key;
use crate::kv::{Check, Commit, Mutation, STAMP, Space};
use crate::limits;
use crate::read::ColumnSelection;
use crate::replay;
use crate::row::codec;
use crate::secondary;

/// A row that changes, ready for the log.
struct Changed<'a> {
    write: &'a RowWrite,
    key: &'a Bytes,
    kind: ChangeKind,
    value: Option<Vec<u8>>,
}

/// The commit of a batch whose rows were found with these values. Without a log entry nothing changes but what is
/// kept of the request; that gets `sequence`, the last one seen. `now`: nanoseconds.
pub(super) fn batch(
    batch: &WriteBatch,
    keys: &[Bytes],
    found: &[Option<Bytes>],
    sequence: u64,
    now: i64,
) -> Result<Commit> {
    let mut commit = Commit {
        durability: batch.durability,
        ..Commit::default()
    };
    if let Some(request) = &batch.request {
        commit.checks.push(Check::Absent {
            space: Space::Catalog,
            key: key::request(request.id),
        });
    }
    let mut changed = Vec::with_capacity(batch.writes.len());
    for (position, ((write, key), found)) in batch.writes.iter().zip(keys).zip(found).enumerate() {
        commit.checks.push(unchanged(key, found.as_ref()));
        changed.extend(row(&mut commit, position, write, key, found.as_ref(), now)?);
    }
    let logs = !changed.is_empty();
    if logs {
        commit.log = Some(log_entry(batch, &changed, now)?);
    }
    for Changed { key, value, .. } in changed {
        let key = key.clone();
        commit.mutations.push(match value {
            Some(value) => Mutation::Put {
                space: Space::Rows,
                key,
                value,
                stamp: true,
            },
            None => Mutation::Delete {
                space: Space::Rows,
                key,
            },
        });
    }
    if let Some(request) = &batch.request {
        commit.mutations.push(Mutation::Put {
            space: Space::Catalog,
            key: key::request(request.id),
            value: replay::encode(sequence, batch.durability, request),
            stamp: logs,
        });
        commit.mutations.push(Mutation::Put {
            space: Space::Catalog,
            key: key::request_age(now, request.id),
            value: Vec::new(),
            stamp: false,
        });
    }
    Ok(commit)
}

/// That a row is still what was found: its format and revision, or its absence.
pub(crate) fn unchanged(key: &Bytes, found: Option<&Bytes>) -> Check {
    let (space, key) = (Space::Rows, key.clone());
    match found {
        None => Check::Absent { space, key },
        Some(value) => Check::Prefix {
            space,
            key,
            prefix: value.slice(..value.len().min(STAMP.end)),
        },
    }
}

/// Decides one write; adds what it does to the secondary indexes.
fn row<'a>(
    commit: &mut Commit,
    position: usize,
    write: &'a RowWrite,
    key: &'a Bytes,
    found: Option<&Bytes>,
    now: i64,
) -> Result<Option<Changed<'a>>> {
    let table = &write.table;
    let stored = found
        .map(|value| {
            let key = write.operation.key().clone();
            codec::decode(key, value, &ColumnSelection::All)
        })
        .transpose()?;
    // An expired row leaves its entries behind until it is written again.
    let old = stored.as_ref().map(|row| secondary::stored_entries(table, row));
    let visible = stored.and_then(|row| Expiry::of(table, now).visible(row));
    row_change::check(&write.condition, visible.as_ref()).map_err(|reason| Error::ConditionFailed {
        write: position,
        reason,
    })?;
    let (kind, after) = match row_change::apply(table, &write.operation, visible, found.is_some(), now)? {
        Outcome::Nothing => return Ok(None),
        Outcome::Write(kind, row) => (kind, Some(row)),
        Outcome::Delete => (ChangeKind::Delete, None),
    };
    let new = after
        .as_ref()
        .map(|row| secondary::entries(table, row))
        .transpose()?;
    let moves = secondary::moves(&old.unwrap_or_default(), new.unwrap_or_default());
    commit.mutations.extend(moves);
    let value = after.as_ref().map(codec::encode);
    if let Some(value) = &value {
        limits::check("MAX_ROW_BYTES", limits::MAX_ROW_BYTES, value.len() + key.len())?;
    }
    Ok(Some(Changed {
        write,
        key,
        kind,
        value,
    }))
}

fn log_entry(batch: &WriteBatch, changed: &[Changed<'_>], now: i64) -> Result<Vec<u8>> {
    let mut entry = Encoder::new(now, batch.trace.as_deref(), changed.len());
    for Changed {
        write, kind, value, ..
    } in changed
    {
        let key = write.operation.key().encode();
        entry.row(write.table.id(), *kind, &key, value.as_deref());
        limits::check("MAX_CHANGE_BYTES", limits::MAX_CHANGE_BYTES, entry.len())?;
    }
    Ok(entry.finish())
}
