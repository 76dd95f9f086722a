//! Which keys were written lately. A commit says in which snapshot its checks held; they still hold for every key that
//! wasn't written since, and the committer need not read it again: a read takes as long as a write, and the committer
//! is the one thread that all writers wait for.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::space::Space;

/// Keys share so many places. Two of one place only cost a read.
const PLACES: usize = 1 << 16;

/// For each place the last group that wrote one of its keys.
#[derive(Debug)]
pub(super) struct Recent {
    last: Vec<u64>,
    /// The group that is being made; readers see those before it.
    group: u64,
}

impl Recent {
    /// Nothing was written since the store was opened.
    pub(super) fn new() -> Self {
        Self {
            last: vec![0; PLACES],
            group: 1,
        }
    }

    /// Number of the last group that ended.
    pub(super) fn moment(&self) -> u64 {
        self.group - 1
    }

    /// What the group wrote becomes visible.
    pub(super) fn end_group(&mut self) {
        self.group += 1;
    }

    /// A commit of the present group writes a key.
    pub(super) fn write(&mut self, space: Space, key: &[u8]) {
        if let Some(last) = self.last.get_mut(place(space, key)) {
            *last = self.group;
        }
    }

    /// Whether the key is surely what it was when this many groups had ended.
    pub(super) fn is_unwritten_since(&self, moment: u64, space: Space, key: &[u8]) -> bool {
        self.last
            .get(place(space, key))
            .is_some_and(|last| *last <= moment)
    }
}

fn place(space: Space, key: &[u8]) -> usize {
    // The remainder fits whatever a usize is.
    (xxh3_64_with_seed(key, space as u64) % PLACES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_unwritten_until_a_group_after_the_moment_writes_it() {
        let mut recent = Recent::new();
        let opened = recent.moment();
        assert!(recent.is_unwritten_since(opened, Space::Rows, b"a"));
        recent.write(Space::Rows, b"a");
        assert!(!recent.is_unwritten_since(opened, Space::Rows, b"a"));
        assert!(recent.is_unwritten_since(opened, Space::Index, b"a"));
        recent.end_group();
        assert!(!recent.is_unwritten_since(opened, Space::Rows, b"a"));
        assert!(recent.is_unwritten_since(recent.moment(), Space::Rows, b"a"));
    }
}
