//! Caches rows that were read by their keys, decoded: whoever searches wants much the same rows as others, and finding one in its blocks and
//! decoding it takes ten times as long as finding it here.
//!
//! Entries aren't invalidated by writes. A lookup validates them: a row says by which commit group it was read, and is there in a snapshot
//! while the engine is sure that no group wrote its key since ([`souk_kv::KvSnapshot::is_unwritten_since`]). Keys share what the engine
//! remembers of them, so writes of other rows end some entries, too.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use souk_kv::{KvSnapshot, Space};

use crate::error::{Error, Result};
use crate::row::{Columns, Row};
use crate::value::PrimaryKey;

/// Capacity: this part of the engine's memory, on top of it.
const SHARE: u64 = 16;
/// Sizes the cache's shards.
const ESTIMATED_ROW_BYTES: u64 = 2_048;
/// What an entry takes beside its key, the stored row and what [`Columns::memory_bytes`] counts: its places in the cache's tables, of which up to
/// a half are free, and its allocations.
const OVERHEAD_BYTES: usize = 400;

/// Rows by their stored keys, up to a number of bytes. The eviction policy is Clock-PRO, so that rows which are read once don't drive out those
/// which are read often.
#[derive(Debug)]
pub(crate) struct RowCache {
    rows: Cache<Bytes, CachedRow, RowWeight, RandomState>,
}

/// A row without its key, whose values may share the memory of a whole request.
#[derive(Debug, Clone)]
struct CachedRow {
    columns: Arc<Columns>,
    revision: u64,
    written: i64,
    /// Its bytes as stored.
    bytes: usize,
    /// Most versions that were decoded of a column.
    versions: usize,
    /// The last commit group of the snapshot that it was read in.
    group: u64,
}

#[derive(Debug, Clone)]
struct RowWeight;

impl Weighter<Bytes, CachedRow> for RowWeight {
    fn weight(&self, key: &Bytes, cached: &CachedRow) -> u64 {
        (OVERHEAD_BYTES + key.len() + cached.bytes + cached.columns.memory_bytes()) as u64
    }
}

impl RowCache {
    /// An empty cache of a database whose engine has so much memory ([`souk_kv::FjallOptions::memory_bytes`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] when the cache can't be made.
    pub(crate) fn new(memory_bytes: u64) -> Result<Self> {
        let bytes = memory_bytes / SHARE;
        let options = OptionsBuilder::new()
            .estimated_items_capacity(usize::try_from(bytes / ESTIMATED_ROW_BYTES).unwrap_or(usize::MAX))
            .weight_capacity(bytes)
            .build()
            .map_err(|error| Error::invalid("row cache", error.to_string()))?;
        let rows = Cache::with_options(
            options,
            RowWeight,
            RandomState::default(),
            DefaultLifecycle::default(),
        );
        Ok(Self { rows })
    }

    /// The row of a key as it is in a snapshot, with at most so many versions of each column, and its bytes as stored; if it is cached.
    pub(crate) fn get(
        &self,
        kv: &dyn KvSnapshot,
        stored_key: &Bytes,
        key: &PrimaryKey,
        versions: usize,
    ) -> Option<(Row, usize)> {
        let cached = self.rows.get(stored_key)?;
        let group = cached.group.min(kv.group());
        let holds = cached.versions == versions && kv.is_unwritten_since(group, Space::Rows, stored_key);
        let row = || Row::sharing(key.clone(), cached.revision, cached.written, cached.columns);
        holds.then(|| (row(), cached.bytes))
    }

    /// Keeps a row that was read in a snapshot, unless that is of no use in later ones.
    pub(crate) fn keep(
        &self,
        kv: &dyn KvSnapshot,
        stored_key: &Bytes,
        row: &Row,
        bytes: usize,
        versions: usize,
    ) {
        let group = kv.group();
        if !kv.is_unwritten_since(group, Space::Rows, stored_key) {
            return;
        }
        let cached = CachedRow {
            columns: row.shared_columns(),
            revision: row.revision,
            written: row.written,
            bytes,
            versions,
            group,
        };
        self.rows.insert(stored_key.clone(), cached);
    }
}
