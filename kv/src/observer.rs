//! Observes a store at work: for histograms, which can't be read out of counters.

use std::fmt::Debug;
use std::time::Duration;

/// A commit group that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitGroup {
    /// Commits in it; 0 when only what was written before was synced.
    pub commits: usize,
    /// Whether it was synced to the disk.
    pub synced: bool,
    /// Time of writing and syncing.
    pub took: Duration,
}

/// Observes commit groups, on the thread that writes: it must be quick.
pub trait Observer: Debug + Send + Sync {
    /// A commit group was written.
    fn committed(&self, group: CommitGroup);
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn committed(&self, _: CommitGroup) {}
}
