//! What a store on the disk is opened with.

use std::sync::Arc;
use std::time::Duration;

use crate::error::OpenError;
use crate::free_space::{DeviceSpace, FreeSpace};
use crate::observer::{Observer, Unobserved};

/// Fewest bytes of journals the engine takes.
const MIN_JOURNAL_BYTES: u64 = 64 << 20;
/// Fewest bytes of memory: below, the engine would flush all the time.
const MIN_MEMORY_BYTES: u64 = 16 << 20;
/// Fewest background threads: with one, a flush that waits for a compaction blocks writers.
const MIN_WORKER_THREADS: usize = 2;

/// What to do when the log ends before changes that were durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Don't open: [`OpenError::LogShortened`].
    #[default]
    Refuse,
    /// Open with what is left. The lost changes stay lost; the sequence goes on from the end that was found, in another
    /// history ([`crate::histories`]), so whatever is derived from the log must be built anew. Where changes are missing in the middle, those before
    /// them are given up, too, as if they were trimmed: no sequence is given twice, and consumers that hadn't taken the
    /// missing ones get an error. Looks at the whole log: for one opening, not for ever.
    AcceptShorterLog,
}

/// What a store on the disk is opened with. Every field has a default.
#[derive(Debug, Clone)]
pub struct FjallOptions {
    /// Memory of the engine, bytes; at least 16 MiB. A half caches blocks of tables, the other holds what is written
    /// and not yet in tables: 1/16 each for the active memtables of rows and log, 1/32 each for those of indexes and
    /// catalog, the rest for memtables being flushed; writers wait before it is exceeded. Not in it: the pinned
    /// indexes and filters of tables (see [`crate::statistics::MemoryStatistics`]) and commits that wait
    /// ([`crate::limits::COMMIT_QUEUE_BYTES`] at most). It may change with each opening.
    pub memory_bytes: u64,
    /// Bytes of journals from which the spaces that hold back the oldest journal are flushed; at least 64 MiB. All
    /// of them are read when a store is opened, so this bounds the time that takes.
    pub journal_bytes: u64,
    /// Bytes that stay free on the device: with less, writes are refused with [`crate::Error::DiskFull`] and nothing
    /// is lost; deletes are still taken down to a half of it, the trimming of the log down to a quarter. Writes are
    /// taken again as soon as there is room. 0 never refuses.
    pub reserve_bytes: u64,
    /// Where the free bytes of the device come from.
    pub free_space: Arc<dyn FreeSpace>,
    /// How long nothing must be written before memtables are flushed, obsolete files removed, and spaces that may
    /// be full of garbage compacted as a whole.
    pub quiesce_after: Duration,
    /// Threads that flush and compact; at least 2.
    pub worker_threads: usize,
    /// What to do when data is lost.
    pub recovery: Recovery,
    /// The observer of each commit group that is written.
    pub observer: Arc<dyn Observer>,
}

impl Default for FjallOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            journal_bytes: 256 << 20,
            reserve_bytes: 256 << 20,
            free_space: Arc::new(DeviceSpace),
            quiesce_after: Duration::from_secs(10),
            worker_threads: 2,
            recovery: Recovery::Refuse,
            observer: Arc::new(Unobserved),
        }
    }
}

impl FjallOptions {
    /// Refuses options the engine can't work with.
    pub(super) fn validate(&self) -> Result<(), OpenError> {
        let least = |option, least: u64, given: u64| {
            if given < least {
                let problem = format!("is {given}, below {least}");
                return Err(OpenError::Invalid { option, problem });
            }
            Ok(())
        };
        least("journal_bytes", MIN_JOURNAL_BYTES, self.journal_bytes)?;
        least("memory_bytes", MIN_MEMORY_BYTES, self.memory_bytes)?;
        least(
            "worker_threads",
            MIN_WORKER_THREADS as u64,
            self.worker_threads as u64,
        )?;
        if self.quiesce_after.is_zero() {
            return Err(OpenError::Invalid {
                option: "quiesce_after",
                problem: "is zero".to_owned(),
            });
        }
        Ok(())
    }
}
