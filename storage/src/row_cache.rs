//! Caches decoded rows, since searches share hits: finding a row in its blocks and decoding it takes ten times as long as finding it here.
//!
//! Entries aren't invalidated by writes. A lookup validates them: a row says by which commit group it was read, and is there in a snapshot
//! while the engine is sure that no group wrote its key since ([`souk_kv::KvSnapshot::is_unwritten_since`]). The engine knows that by slots which
//! keys share, so writes of other rows end some entries, too. Rows of tables with a time to live aren't cached.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use souk_kv::{KvSnapshot, Space};

use crate::row::{Columns, Row};
use crate::value::PrimaryKey;

/// Capacity: this part of the engine's memory, on top of it.
const SHARE: u64 = 16;
/// Sizes the cache's shards and its memory of evicted keys.
const ESTIMATED_ROW_BYTES: u64 = 2_048;
/// What an entry takes beside its key, the stored row and what [`Columns::memory_bytes`] counts: its places in the cache's tables, of which up to
/// a half are free, and its allocations.
const OVERHEAD_BYTES: usize = 400;

/// Most bytes of a cached row, as stored: large ones would evict many others.
const MAX_ROW_BYTES: usize = 64 << 10;

/// Rows by their stored keys, up to a number of bytes. The eviction policy is Clock-PRO: rows that are read once don't evict those that are
/// read often.
#[derive(Debug)]
pub(crate) struct RowCache {
    rows: Cache<Bytes, CachedRow, RowWeight, RandomState>,
}

/// A row without its primary key: key values may be slices of a request, and would pin its buffer.
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
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let bytes = memory_bytes / SHARE;
        let rows = usize::try_from(bytes / ESTIMATED_ROW_BYTES).unwrap_or(usize::MAX);
        let (hasher, lifecycle) = (RandomState::default(), DefaultLifecycle::default());
        Self {
            rows: Cache::with(rows, bytes, RowWeight, hasher, lifecycle),
        }
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

    /// Keeps a row that was read in a snapshot, unless it is large, or of no use in later ones.
    pub(crate) fn keep(
        &self,
        kv: &dyn KvSnapshot,
        stored_key: &Bytes,
        row: &Row,
        bytes: usize,
        versions: usize,
    ) {
        let group = kv.group();
        if bytes > MAX_ROW_BYTES || !kv.is_unwritten_since(group, Space::Rows, stored_key) {
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
