//! Reclaims the space of expired cells. The hidden index of a table with a time to live leads to the rows whose oldest cell
//! has expired. They are written without their expired cells, or deleted when nothing is left, as logged changes: so
//! secondary indexes follow in the same commit, and search indexes and feeds by the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use souk_kv::{self as kv, Commit, Direction, Durability, Mutation, Scan, Space};

use crate::catalog::Table;
use crate::change::{ChangeKind, codec::ChangeEncoder};
use crate::codec::put_ordered;
use crate::database::DatabaseState;
use crate::error::{Error, Result};
use crate::expiry::{Expiry, oldest_version};
use crate::key::{self, INDEX_PREFIX_BYTES};
use crate::limits::{MAX_JOB_STEP_BYTES, MAX_RECLAIMED_ROWS, MAX_SCANNED_BYTES, MAX_SWEEP_STEPS};
use crate::partitions::WriterGuard;
use crate::plan::unchanged;
use crate::row::codec;
use crate::secondary::{self, EXPIRY_INDEX};
use crate::value::{PrimaryKey, Value};

/// Reclaims expired cells, in at most [`MAX_SWEEP_STEPS`] bounded steps a table; returns whether some may be left.
pub(super) async fn reclaim_expired(shared: &DatabaseState) -> Result<bool> {
    let tables = shared.catalog.read().tables();
    let mut more = false;
    for table in tables {
        let mut steps = 0;
        let mut from = key::index(table.id(), EXPIRY_INDEX).into();
        while let Some(next) = reclaim_step(shared, &table, from).await? {
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

/// An entry of the hidden index, and the row that it leads to.
struct ExpiryEntry {
    /// Its key in the space of indexes.
    entry_key: Bytes,
    /// Version of the row's oldest cell when the entry was written, milliseconds since the Unix epoch.
    version: i64,
    primary_key: PrimaryKey,
    /// Key of the row in the space of rows.
    row_key: Bytes,
}

/// Reclaims the expired cells of some rows, the oldest first, from a key of the hidden index on. Returns the key to
/// continue at, if there may be more.
async fn reclaim_step(shared: &DatabaseState, table: &Table, from: Bytes) -> Result<Option<Bytes>> {
    let schemas = Arc::clone(&shared.schema_lock).read_owned().await;
    if shared.catalog.read().check_owned(table).is_err() {
        return Ok(None);
    }
    let now = shared.options.clock.now();
    let expiry = Expiry::new(table, now);
    let Some(expired) = expiry.expired_version() else {
        return Ok(None);
    };
    let mut entries = expired_entries(shared, table, from, expired).await?;
    let Some(end) = entries.last().map(|entry| key::just_after(&entry.entry_key)) else {
        return Ok(None);
    };
    // Rows in partitions that a transaction holds are left to a later pass.
    let mut guard = WriterGuard::new(&shared.partitions).with_schemas(schemas);
    entries.retain(|entry| {
        let partition = entry.primary_key.values().first();
        partition.is_some_and(|partition| guard.join_partition(table, partition, now).is_ok())
    });
    if entries.is_empty() {
        return Ok(Some(end));
    }
    let _rows = shared
        .locks
        .lock(entries.iter().map(|entry| &entry.row_key))
        .await;
    let (commit, rest) = reclaiming_commit(shared, table, expiry, now, &entries).await?;
    let next = rest.first().map_or(end, |first| first.entry_key.clone());
    match guard.commit(&shared.kv, commit).await {
        // After a conflict a later pass finds these entries again.
        Ok(_) | Err(kv::Error::Conflict { .. }) => Ok(Some(next)),
        Err(error) => Err(error.into()),
    }
}

/// Reads the first entries of the hidden index from a key on, up to a version.
async fn expired_entries(
    shared: &DatabaseState,
    table: &Table,
    from: Bytes,
    expired: i64,
) -> Result<Vec<ExpiryEntry>> {
    let mut high = key::index(table.id(), EXPIRY_INDEX);
    put_ordered(&mut high, &Value::Integer(expired.saturating_add(1)));
    let scan = Scan {
        space: Space::Index,
        low: from,
        high: high.into(),
        direction: Direction::Forward,
        entries: MAX_RECLAIMED_ROWS,
        bytes: MAX_SCANNED_BYTES,
    };
    let page = shared.kv.snapshot().await?.scan(scan).await?;
    let decode = |entry_key: Bytes| {
        let suffix = entry_key.get(INDEX_PREFIX_BYTES..).unwrap_or_default();
        let (values, primary_key) = key::read_index_entry(suffix, 1).ok()?;
        let version = values.first()?.as_integer()?;
        let row_key = key::row(table.id(), &primary_key);
        Some(ExpiryEntry {
            entry_key,
            version,
            primary_key,
            row_key,
        })
    };
    page.entries
        .into_iter()
        .map(|(entry_key, _)| {
            decode(entry_key).ok_or_else(|| {
                let table = table.name();
                Error::corrupt(format!(
                    "hidden index of table {table:?}: expected a version and a key"
                ))
            })
        })
        .collect()
}

/// Makes the commit that reclaims the first of these rows, up to some bytes; returns it with the entries that are left. The
/// caller holds the locks of the rows.
async fn reclaiming_commit<'a>(
    shared: &DatabaseState,
    table: &Table,
    expiry: Expiry,
    now: i64,
    mut entries: &'a [ExpiryEntry],
) -> Result<(Commit, &'a [ExpiryEntry])> {
    let snapshot = shared.kv.snapshot().await?;
    let mut commit = Commit {
        durability: Durability::Buffered,
        ..Commit::default()
    };
    let mut changes: Vec<(ChangeKind, Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    while let Some((first, rest)) = entries.split_first() {
        if bytes > MAX_JOB_STEP_BYTES {
            break;
        }
        entries = rest;
        let ExpiryEntry {
            entry_key,
            version,
            primary_key,
            row_key,
        } = first;
        let found = snapshot.get(Space::Rows, row_key).await?;
        bytes += found.as_ref().map_or(0, Bytes::len);
        let stored = found
            .as_ref()
            .map(|value| codec::decode(primary_key.clone(), value))
            .transpose()?;
        if seen.insert(row_key) {
            commit.checks.push(unchanged(row_key, found.as_ref()));
        }
        let Some(stored) = stored.filter(|stored| oldest_version(stored) == *version) else {
            // The row has changed since: it has another entry, or none.
            commit.mutations.push(Mutation::Delete {
                space: Space::Index,
                key: entry_key.clone(),
            });
            continue;
        };
        let old = secondary::stored_entries(table, &stored);
        let (space, row_key) = (Space::Rows, row_key.clone());
        match expiry.visible(stored) {
            None => {
                commit
                    .mutations
                    .extend(secondary::moves(&old, secondary::Entries::new()));
                commit.mutations.push(Mutation::Delete { space, key: row_key });
                changes.push((ChangeKind::Delete, primary_key.encode(), None));
            }
            Some(left) => {
                let new = secondary::fitting_entries(table, &left);
                commit.mutations.extend(secondary::moves(&old, new));
                let value = codec::encode(&left);
                changes.push((ChangeKind::Update, primary_key.encode(), Some(value.clone())));
                commit.mutations.push(Mutation::Put {
                    space,
                    key: row_key,
                    value,
                    stamp: true,
                });
            }
        }
    }
    if !changes.is_empty() {
        let mut log = ChangeEncoder::new(now, None, changes.len(), 0);
        for (kind, key, value) in &changes {
            log.row(table.id(), *kind, key, value.as_deref());
        }
        commit.log = Some(log.finish());
    }
    Ok((commit, entries))
}
