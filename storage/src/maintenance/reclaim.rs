//! Freeing the space of expired cells. The hidden index of a table with a time to live leads to the rows whose oldest
//! cell has expired; they are written without their expired cells, or deleted when nothing is left, as logged changes:
//! so secondary indexes follow in the same commit, and whatever is derived from the log a little later.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use souk_kv::{self as kv, Commit, Direction, Durability, Mutation, Scan, Space};

use crate::catalog::Table;
use crate::change::{ChangeKind, codec::Encoder};
use crate::codec::put_ordered;
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::expiry::{Expiry, oldest_version};
use crate::key::{self, INDEX_PREFIX_BYTES};
use crate::limits::{MAX_JOB_STEP_BYTES, MAX_RECLAIMED_ROWS, MAX_SCANNED_BYTES, MAX_SWEEP_STEPS};
use crate::partitions::Writers;
use crate::plan::unchanged;
use crate::row::ColumnSelection;
use crate::row::codec;
use crate::secondary::{self, EXPIRY_INDEX};
use crate::value::{PrimaryKey, Value};

/// Frees expired cells of all tables, in bounded steps; whether there may be more.
pub(super) async fn expired(shared: &Shared) -> Result<bool> {
    let tables = shared.catalog.read().tables();
    let mut more = false;
    for table in tables {
        let mut steps = 0;
        let mut from = key::index(table.id(), EXPIRY_INDEX).into();
        while let Some(next) = step(shared, &table, from).await? {
            from = next;
            steps += 1;
            if steps == MAX_SWEEP_STEPS {
                more = true;
                break;
            }
        }
    }
    Ok(more)
}

/// An entry of the hidden index.
struct Due {
    entry: Bytes,
    /// Version of the row's oldest cell, as of the entry.
    version: i64,
    key: PrimaryKey,
    row: Bytes,
}

/// Frees the expired cells of some rows, the oldest first, from a place in the hidden index on; gives where to go on
/// if there may be more.
async fn step(shared: &Shared, table: &Table, from: Bytes) -> Result<Option<Bytes>> {
    let tables = Arc::clone(&shared.schema_lock).read_owned().await;
    if shared.catalog.read().check_owned(table).is_err() {
        return Ok(None);
    }
    let now = shared.options.clock.now();
    let expiry = Expiry::new(table, now);
    let Some(expired) = expiry.expired_version() else {
        return Ok(None);
    };
    let mut due = due(shared, table, from, expired).await?;
    let Some(last) = due.last().map(|due| key::just_after(&due.entry)) else {
        return Ok(None);
    };
    // What a transaction holds waits for its end, and a later pass.
    let mut writers = Writers::new(&shared.partitions).under(tables);
    due.retain(|due| {
        let partition = due.key.values().first();
        partition.is_some_and(|partition| writers.join_partition(table, partition, now).is_ok())
    });
    if due.is_empty() {
        return Ok(Some(last));
    }
    let _rows = shared.locks.lock(due.iter().map(|due| &due.row)).await;
    let (commit, rest) = freed(shared, table, expiry, now, &due).await?;
    let next = rest.first().map_or(last, |rest| rest.entry.clone());
    match writers.commit(&shared.kv, commit).await {
        // After a conflict a later pass finds them again.
        Ok(_) | Err(kv::Error::Conflict { .. }) => Ok(Some(next)),
        Err(error) => Err(error.into()),
    }
}

/// The first entries of the hidden index from a place on, up to a version.
async fn due(shared: &Shared, table: &Table, from: Bytes, expired: i64) -> Result<Vec<Due>> {
    let mut high = key::index(table.id(), EXPIRY_INDEX);
    put_ordered(&mut high, &Value::Integer(expired.saturating_add(1)));
    let scan = Scan {
        space: Space::Index,
        low: from,
        high: high.into(),
        direction: Direction::Forward,
        rows: MAX_RECLAIMED_ROWS,
        bytes: MAX_SCANNED_BYTES,
    };
    let page = shared.kv.snapshot().await?.scan(scan).await?;
    let read = |entry: Bytes| {
        let place = entry.get(INDEX_PREFIX_BYTES..).unwrap_or_default();
        let (values, key) = key::read_index_entry(place, 1).ok()?;
        let version = values.first()?.as_integer()?;
        let row = key::row(table.id(), &key);
        Some(Due {
            entry,
            version,
            key,
            row,
        })
    };
    page.entries
        .into_iter()
        .map(|(entry, _)| {
            read(entry).ok_or_else(|| {
                let table = table.name();
                Error::corrupt(format!(
                    "hidden index of table {table:?}: expected a version and a key"
                ))
            })
        })
        .collect()
}

/// The commit that frees as many of these rows as it takes, and the rest of them. Their locks are held.
async fn freed<'a>(
    shared: &Shared,
    table: &Table,
    expiry: Expiry,
    now: i64,
    mut due: &'a [Due],
) -> Result<(Commit, &'a [Due])> {
    let snapshot = shared.kv.snapshot().await?;
    let mut commit = Commit {
        durability: Durability::Buffered,
        ..Commit::default()
    };
    let mut changes: Vec<(ChangeKind, Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    while let Some((first, rest)) = due.split_first() {
        if bytes > MAX_JOB_STEP_BYTES {
            break;
        }
        due = rest;
        let Due {
            entry,
            version,
            key,
            row,
        } = first;
        let found = snapshot.get(Space::Rows, row).await?;
        bytes += found.as_ref().map_or(0, Bytes::len);
        let stored = found
            .as_ref()
            .map(|value| codec::decode(key.clone(), value, &ColumnSelection::All))
            .transpose()?;
        if seen.insert(row) {
            commit.checks.push(unchanged(row, found.as_ref()));
        }
        let Some(stored) = stored.filter(|stored| oldest_version(stored) == *version) else {
            // It isn't the row's any more.
            commit.mutations.push(Mutation::Delete {
                space: Space::Index,
                key: entry.clone(),
            });
            continue;
        };
        let old = secondary::stored_entries(table, &stored);
        let (space, row) = (Space::Rows, row.clone());
        match expiry.visible(stored) {
            None => {
                commit
                    .mutations
                    .extend(secondary::moves(&old, secondary::Entries::new()));
                commit.mutations.push(Mutation::Delete { space, key: row });
                changes.push((ChangeKind::Delete, key.encode(), None));
            }
            Some(left) => {
                let new = secondary::fitting_entries(table, &left);
                commit.mutations.extend(secondary::moves(&old, new));
                let value = codec::encode(&left);
                changes.push((ChangeKind::Update, key.encode(), Some(value.clone())));
                commit.mutations.push(Mutation::Put {
                    space,
                    key: row,
                    value,
                    stamp: true,
                });
            }
        }
    }
    if !changes.is_empty() {
        let mut log = Encoder::new(now, None, changes.len(), 0);
        for (kind, key, value) in &changes {
            log.row(table.id(), *kind, key, value.as_deref());
        }
        commit.log = Some(log.finish());
    }
    Ok((commit, due))
}
