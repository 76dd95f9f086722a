//! What a store does, told while it does it, as a parameter: for histograms, which can't be read out of sums.

use std::fmt::Debug;
use std::time::Duration;

/// A group of commits that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupWrite {
    /// Commits in it; 0 when only what was written before was synced.
    pub commits: usize,
    /// Whether it was synced to the disk.
    pub synced: bool,
    /// Time that writing and syncing took.
    pub took: Duration,
}

/// Is told what a store does. Called by the thread that writes: it must be quick. [`Unobserved`] listens to nothing.
pub trait Observer: Debug + Send + Sync {
    /// A group of commits was written.
    fn wrote(&self, group: GroupWrite);
}

/// Doesn't listen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn wrote(&self, _: GroupWrite) {}
}
