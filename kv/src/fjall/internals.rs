//! The undocumented interface of fjall that is used here. Its version is pinned; check these when the pin is raised.

use std::time::Duration;

use ::fjall::{AbstractTree, Database, Keyspace};

use crate::space::Space;
use crate::statistics::SpaceStatistics;

/// The level everything ends up at.
const LAST_LEVEL: usize = 6;
/// Tables at the first level from which on the engine compacts it (its levelled strategy's default).
const FIRST_LEVEL_TABLES: usize = 4;

/// Bytes of the active memtable.
pub(super) fn memtable_bytes(keyspace: &Keyspace) -> u64 {
    keyspace.tree.active_memtable().size()
}

/// Memtables that wait for their flush.
pub(super) fn sealed_memtables(keyspace: &Keyspace) -> usize {
    keyspace.sealed_memtable_count()
}

/// Sorted runs at the level that flushes write to: each read may have to look at all of them.
pub(super) fn first_level_runs(keyspace: &Keyspace) -> usize {
    keyspace.tree.l0_run_count()
}

/// Bytes of all memtables, active and sealed.
pub(super) fn all_memtables_bytes(database: &Database) -> u64 {
    database.write_buffer_size()
}

/// Seals the active memtable for its flush, and removes the files that no snapshot and no version needs any more.
/// Without an entry in the memtable it does nothing.
pub(super) fn rotate(keyspace: &Keyspace) -> Result<bool, ::fjall::Error> {
    keyspace.rotate_memtable()
}

/// Whether flushes or compactions run or wait.
pub(super) fn is_busy(database: &Database) -> bool {
    database.outstanding_flushes() > 0 || database.active_compactions() > 0
}

/// Whether the first level holds so many tables that the engine compacts it next.
pub(super) fn compaction_is_due(keyspace: &Keyspace) -> bool {
    keyspace.l0_table_count() >= FIRST_LEVEL_TABLES
}

/// Compaction attempts since the opening, whether or not there was something to compact.
pub(super) fn compactions(database: &Database) -> usize {
    database.compactions_completed()
}

/// Major compaction: rewrites a whole space without what is outdated, which may take minutes.
pub(super) fn compact(keyspace: &Keyspace) -> Result<(), ::fjall::Error> {
    keyspace.major_compact()
}

/// Flushes that wait, compactions under way, compaction attempts, their time.
pub(super) fn background(database: &Database) -> (usize, usize, usize, Duration) {
    (
        database.outstanding_flushes(),
        database.active_compactions(),
        database.compactions_completed(),
        database.time_compacting(),
    )
}

/// Bytes of all journals.
pub(super) fn journal_bytes(database: &Database) -> Result<u64, ::fjall::Error> {
    database.journal_disk_space()
}

/// Bytes in the cache of blocks.
pub(super) fn cache_bytes(database: &Database) -> u64 {
    database.cache_size()
}

/// Bytes of indexes and filters that stay in memory.
pub(super) fn pinned_bytes(keyspace: &Keyspace) -> u64 {
    (keyspace.tree.pinned_filter_size() + keyspace.tree.pinned_block_index_size()) as u64
}

/// Statistics of a space.
pub(super) fn statistics(space: Space, keyspace: &Keyspace) -> SpaceStatistics {
    SpaceStatistics {
        space,
        entries: keyspace.approximate_len() as u64,
        tombstones: keyspace.tree.tombstone_count(),
        memtable_bytes: memtable_bytes(keyspace),
        sealed_memtables: sealed_memtables(keyspace),
        tables: keyspace.table_count(),
        tables_of_first_level: keyspace.l0_table_count(),
        table_bytes: keyspace.disk_space(),
        garbage_bytes: garbage_bytes(keyspace),
    }
}

/// Upper bound of what a compaction of the whole space would free. What lies above the last level may outdate as much
/// of it; a tombstone outdates one entry, and an entry is as large as they are on average.
pub(super) fn garbage_bytes(keyspace: &Keyspace) -> u64 {
    let version = keyspace.tree.current_version();
    let levels: Vec<u64> = version
        .iter_levels()
        .map(|level| {
            level
                .iter()
                .flat_map(|run| run.iter())
                .map(|table| table.metadata.file_size)
                .sum()
        })
        .collect();
    let above: u64 = levels.iter().take(LAST_LEVEL).sum();
    let last = levels.get(LAST_LEVEL).copied().unwrap_or_default();
    let entries: u64 = version.iter_tables().map(|table| table.metadata.item_count).sum();
    let tombstones = keyspace.tree.tombstone_count();
    let entry = (above + last) / entries.saturating_sub(tombstones).max(1);
    // Above the last level, entries may outdate each other; nothing is there to be outdated without a last level
    // but those.
    let outdated = above.saturating_add(tombstones.saturating_mul(entry));
    outdated.min(above + last)
}
