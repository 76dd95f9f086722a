//! What a database is opened with.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// What to do when the log ends before changes that were durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Don't open: [`crate::Error::LogShortened`].
    #[default]
    Refuse,
    /// Open with what is left. The lost changes stay lost; the sequence goes on from the end that was found, so
    /// whatever is derived from the log must be built anew. Where changes are missing in the middle, those before
    /// them are given up, too, as if they were trimmed: no sequence is given twice, and whoever hadn't taken the
    /// missing ones is told so ([`crate::Error::ChangesTrimmed`]). Looks at the whole log: for one opening, not for
    /// ever.
    AcceptShorterLog,
}

/// What a database is opened with. Every field has a default.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// Block cache, bytes.
    pub cache_bytes: u64,
    /// Memtable of the rows and of the log, bytes each; indexes and catalog get a half of it.
    pub memtable_bytes: u64,
    /// Most bytes of journals before writes wait for flushes; at least 64 MiB.
    pub journal_bytes: u64,
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
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            memtable_bytes: 64 << 20,
            journal_bytes: 512 << 20,
            worker_threads: 2,
            retention: Duration::from_secs(86_400),
            request_retention: Duration::from_secs(86_400),
            maintenance_interval: Duration::from_secs(10),
            recovery: Recovery::Refuse,
            clock: Arc::new(SystemClock),
        }
    }
}
