//! What a store holds and does: memory, journals, tables, compactions, disk. For operators and metrics; to take them
//! costs a listing of the directory and blocks no writer.

use std::time::Duration;

use crate::space::Space;

/// What a store holds and does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// The memory that it takes.
    pub memory: MemoryStatistics,
    /// Its write-ahead log.
    pub journals: JournalStatistics,
    /// Flushes and compactions.
    pub compactions: CompactionStatistics,
    /// Each space, in the order of [`Space::ALL`].
    pub spaces: Vec<SpaceStatistics>,
    /// The device; `None` of a store in memory.
    pub disk: Option<DiskStatistics>,
    /// Commits that wait for the committer.
    pub waiting_commits: usize,
}

/// Memory of a store, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// What cache and memtables may take together: [`crate::FjallOptions::memory_bytes`]; 0 of a store in memory.
    pub limit: u64,
    /// Blocks in the cache.
    pub cache: u64,
    /// What the cache may take.
    pub cache_limit: u64,
    /// Active memtables and those being flushed.
    pub memtables: u64,
    /// What all memtables may take; writers wait before they take more.
    pub memtables_limit: u64,
    /// Indexes and filters of tables that stay in memory. They grow with the data, and don't count against the limit.
    pub pinned: u64,
}

/// Journals of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JournalStatistics {
    /// Files, with the active one.
    pub files: usize,
    /// Their bytes; the active one counts with what is reserved for it.
    pub bytes: u64,
}

/// Background work of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactionStatistics {
    /// Flushes that wait or run.
    pub flushes_waiting: usize,
    /// Compactions under way.
    pub active: usize,
    /// Compaction attempts since the opening, whether or not there was something to compact.
    pub completed: usize,
    /// Time they took.
    pub time: Duration,
    /// Major compactions of a space since the opening, because it may have been full of garbage.
    pub major: u64,
    /// Times the store was quiesced since the opening: all flushed, obsolete files removed.
    pub quiesced: u64,
}

/// One space of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceStatistics {
    /// The space.
    pub space: Space,
    /// Entries, with outdated ones and tombstones that aren't compacted away: an upper bound.
    pub entries: u64,
    /// Tombstones in tables.
    pub tombstones: u64,
    /// Bytes of the active memtable.
    pub memtable_bytes: u64,
    /// Memtables that wait for their flush.
    pub sealed_memtables: usize,
    /// Tables at all levels.
    pub tables: usize,
    /// Tables at the level that flushes write to.
    pub tables_of_first_level: usize,
    /// Bytes of the tables that are in use; obsolete ones show only in [`DiskStatistics::used`].
    pub table_bytes: u64,
    /// Upper bound of the bytes a compaction of the whole space would free.
    pub garbage_bytes: u64,
}

/// The device of a store, bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskStatistics {
    /// What the files of the database take, obsolete ones included.
    pub used: u64,
    /// What is free on the device; `None` when it can't be told.
    pub free: Option<u64>,
    /// What stays free: [`crate::FjallOptions::reserve_bytes`].
    pub reserve: u64,
}

impl SpaceStatistics {
    /// A space that holds nothing.
    pub(crate) fn empty(space: Space) -> Self {
        Self {
            space,
            entries: 0,
            tombstones: 0,
            memtable_bytes: 0,
            sealed_memtables: 0,
            tables: 0,
            tables_of_first_level: 0,
            table_bytes: 0,
            garbage_bytes: 0,
        }
    }
}
