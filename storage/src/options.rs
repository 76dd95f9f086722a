//! What a database is opened with.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::free_space::{DeviceSpace, FreeSpace};
use crate::observer::{Observer, Unobserved};

/// What to do when the log ends before changes that were durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Don't open: [`crate::Error::LogShortened`].
    #[default]
    Refuse,
    /// Open with what is left. The lost changes stay lost; the sequence goes on from the end that was found, in another
    /// history ([`crate::Database::history_of`]), so whatever is derived from the log must be built anew. Where changes are missing in the middle, those before
    /// them are given up, too, as if they were trimmed: no sequence is given twice, and whoever hadn't taken the
    /// missing ones is told so ([`crate::Error::ChangesTrimmed`]). Looks at the whole log: for one opening, not for
    /// ever.
    AcceptShorterLog,
}

/// What a database is opened with. Every field has a default.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// Memory of the engine, bytes; at least 16 MiB. A half caches blocks of tables, the other holds what is written
    /// and not yet in tables: 1/16 each for the active memtables of rows and log, 1/32 each for those of indexes and
    /// catalog, the rest for memtables being flushed; writers wait before it is exceeded. Not in it: the pinned
    /// indexes and filters of tables (see [`crate::statistics::MemoryStatistics`]) and commits that wait
    /// ([`crate::limits::COMMIT_QUEUE_BYTES`] at most). It may change with each opening.
    pub memory_bytes: u64,
    /// Bytes of journals from which the spaces that hold back the oldest journal are flushed; at least 64 MiB. All
    /// of them are read when a database is opened, so this bounds the time that takes.
    pub journal_bytes: u64,
    /// Bytes that stay free on the device: with less, writes are refused with [`crate::Error::DiskFull`] and nothing
    /// is lost; deletes are still taken down to a half of it, the trimming of the log down to a quarter. Writes are
    /// taken again as soon as there is room. A backup to the same device ends sooner
    /// ([`crate::limits::BACKUP_RESERVES`]). 0 never refuses.
    pub reserve_bytes: u64,
    /// Where the free bytes of the device come from.
    pub free_space: Arc<dyn FreeSpace>,
    /// How long nothing must be written before memtables are flushed, obsolete files removed, and spaces that may
    /// be full of garbage compacted as a whole.
    pub settle_after: Duration,
    /// Threads that flush and compact; at least 2.
    pub worker_threads: usize,
    /// How long changes are kept at least: from [`crate::limits::MIN_RETENTION`] to
    /// [`crate::limits::MAX_RETENTION`].
    pub retention: Duration,
    /// How long request ids are kept at least.
    pub request_retention: Duration,
    /// How often the log is trimmed, request ids are swept and the watermark is synced.
    pub maintenance_interval: Duration,
    /// What to do when data is lost.
    pub recovery: Recovery,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who is told of each group of commits that is written.
    pub observer: Arc<dyn Observer>,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            journal_bytes: 256 << 20,
            reserve_bytes: 256 << 20,
            free_space: Arc::new(DeviceSpace),
            settle_after: Duration::from_secs(10),
            worker_threads: 2,
            retention: Duration::from_secs(86_400),
            request_retention: Duration::from_secs(86_400),
            maintenance_interval: Duration::from_secs(10),
            recovery: Recovery::Refuse,
            clock: Arc::new(SystemClock),
            observer: Arc::new(Unobserved),
        }
    }
}
