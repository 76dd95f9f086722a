//! How the engine is set up: its share of the memory, and what a space is created with.

use ::fjall::config::{CompressionPolicy, PinningPolicy, RestartIntervalPolicy};
use ::fjall::{CompressionType, KeyspaceCreateOptions};

use super::options::FjallOptions;
use crate::space::Space;

/// From how many bytes on the engine itself asks for a flush of a memtable. It keeps this from the creation of the
/// space on, whatever later openings ask for; so it is out of reach, and `write_stall` asks, by the options of now.
const ENGINE_MEMTABLE_BYTES: u64 = 1 << 30;
/// Rows of a block between two restart points.
const ROWS_PER_INTERVAL: u8 = 2;

/// Splits the memory limit, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    pub(super) limit: u64,
}

impl MemoryPlan {
    pub(super) fn new(options: &FjallOptions) -> Self {
        Self {
            limit: options.memory_bytes,
        }
    }

    /// The cache of blocks.
    pub(super) fn cache(self) -> u64 {
        self.limit / 2
    }

    /// All memtables of all spaces.
    pub(super) fn memtables(self) -> u64 {
        self.limit / 2
    }

    /// The active memtable of a space. Together 3/16, so a full one can be flushed while the next fills.
    pub(super) fn active(self, space: Space) -> u64 {
        match space {
            Space::Rows | Space::Log => self.limit / 16,
            Space::Index | Space::Catalog => self.limit / 32,
        }
    }
}

/// What a space is created with; the engine keeps it from then on, so a database keeps what it was created with.
///
/// Every level is compressed, the first ones as well: tables whose keys don't overlap others are moved down as they
/// are, so what a flush leaves uncompressed would stay so. That is all of the log (39 % smaller with it), and a half
/// of the rows between two compactions; it costs 6 % of the time a load takes and half a microsecond a cold read.
///
/// Large values stay with their keys. Apart from them they aren't rewritten by each compaction, but what they leave
/// behind goes only by rewriting the files they are in: measured with values of 1 to 100 KB updated twice, they took
/// up to twice the bytes of the live ones, or loaded no faster.
///
/// Which block of a table has a key, and whether it may have it, stays in memory for the first three levels: from the
/// fourth on the engine parts these blocks, and keeps of them what is used. It is some 1 % of their bytes, at most 50 MB,
/// and spares a read of a row the way through the cache for them.
///
/// A read goes through half of the keys of an interval one by one, and rows are read by their keys: each search does so
/// for the rows of its hits. A block holds a dozen, whose keys share little.
pub(super) fn keyspace_options(space: Space) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default();
    let options = match space {
        Space::Rows => {
            options.data_block_restart_interval_policy(RestartIntervalPolicy::all(ROWS_PER_INTERVAL))
        }
        Space::Log | Space::Index | Space::Catalog => options,
    };
    options
        .index_block_pinning_policy(PinningPolicy::new([true, true, true, false]))
        .filter_block_pinning_policy(PinningPolicy::new([true, true, true, false]))
        .max_memtable_size(ENGINE_MEMTABLE_BYTES)
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
}
