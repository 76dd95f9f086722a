//! The conflict window: which keys the latest commit groups wrote. A commit says in which snapshot its checks held
//! ([`Commit::validated_at`](crate::Commit::validated_at)); they still hold for every key that wasn't written since,
//! and the committer need not read it again: a read takes as long as a write, and the committer is the one thread that
//! all writers wait for.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::space::Space;

/// Slots that all keys share by their hashes. A collision only costs a read.
const SLOTS: usize = 1 << 16;

/// For each slot the number of the last commit group that wrote one of its keys.
#[derive(Debug)]
pub(super) struct ConflictWindow {
    last_writes: Vec<u64>,
}

impl ConflictWindow {
    /// A window that begins behind this group, which may have written any key, as may those before it.
    pub(super) fn new(group: u64) -> Self {
        Self {
            last_writes: vec![group; SLOTS],
        }
    }

    /// Records that a group writes a key.
    pub(super) fn record(&mut self, group: u64, space: Space, key: &[u8]) {
        if let Some(last) = self.last_writes.get_mut(slot(space, key)) {
            *last = group;
        }
    }

    /// Whether surely no group after this one wrote the key.
    pub(super) fn is_unwritten_since(&self, group: u64, space: Space, key: &[u8]) -> bool {
        self.last_writes
            .get(slot(space, key))
            .is_some_and(|last| *last <= group)
    }
}

fn slot(space: Space, key: &[u8]) -> usize {
    // The remainder fits whatever a usize is.
    (xxh3_64_with_seed(key, space as u64) % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_unwritten_since_the_last_group_that_may_have_written_it() {
        let mut window = ConflictWindow::new(6);
        assert!(!window.is_unwritten_since(5, Space::Rows, b"a"));
        assert!(window.is_unwritten_since(6, Space::Rows, b"a"));
        window.record(7, Space::Rows, b"a");
        assert!(!window.is_unwritten_since(6, Space::Rows, b"a"));
        assert!(window.is_unwritten_since(6, Space::Index, b"a"));
        assert!(window.is_unwritten_since(7, Space::Rows, b"a"));
    }
}
