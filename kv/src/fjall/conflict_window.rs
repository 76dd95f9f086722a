//! The conflict window: which keys the latest commit groups wrote. A commit says in which snapshot its checks held
//! ([`Commit::validated_at`](crate::Commit::validated_at)); they still hold for every key that wasn't written since,
//! and the committer need not read it again: a read takes as long as a write, and the committer is the one thread that
//! all writers wait for. Readers know by it that what they have read still holds
//! ([`KvSnapshot::is_unwritten_since`](crate::KvSnapshot::is_unwritten_since)).

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::space::Space;

/// Slots that all keys share by their hashes. A collision only costs a read.
const SLOTS: usize = 1 << 16;

/// For each slot the number of the last commit group that wrote one of its keys.
#[derive(Debug)]
pub(super) struct ConflictWindow {
    last_writes: Vec<AtomicU64>,
    /// Of the hash: callers choose keys, and would find some that share a slot with those of others.
    seed: u64,
}

impl ConflictWindow {
    /// A window that begins behind this group, which may have written any key, as may those before it.
    pub(super) fn new(group: u64) -> Self {
        Self {
            last_writes: (0..SLOTS).map(|_| AtomicU64::new(group)).collect(),
            seed: RandomState::new().hash_one(group),
        }
    }

    /// Records that a group writes a key. Only the committer does. Relaxed: whoever sees what the group wrote has read the snapshot that
    /// was published behind it, under a lock.
    pub(super) fn record(&self, group: u64, space: Space, key: &[u8]) {
        if let Some(last) = self.slot(space, key) {
            last.store(group, Ordering::Relaxed);
        }
    }

    /// Whether surely no group after this one wrote the key, of those that the caller can see.
    pub(super) fn is_unwritten_since(&self, group: u64, space: Space, key: &[u8]) -> bool {
        let last = self.slot(space, key);
        last.is_some_and(|last| last.load(Ordering::Relaxed) <= group)
    }

    /// The slot of a key; `None` in spaces without checks or cached rows: recording their keys, which are the most, would only cause false
    /// conflicts.
    fn slot(&self, space: Space, key: &[u8]) -> Option<&AtomicU64> {
        match space {
            // The remainder fits whatever a usize is.
            Space::Rows | Space::Catalog => self
                .last_writes
                .get((xxh3_64_with_seed(key, self.seed ^ space as u64) % SLOTS as u64) as usize),
            Space::Log | Space::Index => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_unwritten_since_the_last_group_that_may_have_written_it() {
        let window = ConflictWindow::new(6);
        assert!(!window.is_unwritten_since(5, Space::Rows, b"a"));
        assert!(window.is_unwritten_since(6, Space::Rows, b"a"));
        window.record(7, Space::Rows, b"a");
        assert!(!window.is_unwritten_since(6, Space::Rows, b"a"));
        assert!(window.is_unwritten_since(6, Space::Catalog, b"a"));
        assert!(!window.is_unwritten_since(7, Space::Index, b"a"));
        assert!(window.is_unwritten_since(7, Space::Rows, b"a"));
    }
}
