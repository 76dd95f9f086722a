//! The buckets of callers, in bounded room.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use parking_lot::Mutex;

use crate::layers::caller::CallerKey;

/// Parts of the table, each with a lock of its own.
const PARTS: usize = 16;

/// Callers of a part that aren't full; more share one bucket. All parts together hold 65,536 in about 2 MiB.
const PART_MAX: usize = 4_096;

/// Time between two clearings of a part, in nanoseconds: they look at all of it.
const CLEAR_EVERY: u64 = 100_000_000;

/// When the bucket of each caller is full again, by a hash of the caller that nobody outside can foresee.
#[derive(Debug)]
pub(super) struct Callers {
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

#[derive(Debug, Default)]
struct Part {
    full: HashMap<u64, u64>,
    /// Of those who find no room.
    others: u64,
    cleared: u64,
}

impl Default for Callers {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Callers {
    /// Lets `take` change when the caller's bucket is full again; a caller that isn't known has a full one.
    pub(super) fn take(
        &self,
        key: &CallerKey,
        now: u64,
        take: impl Fn(u64) -> Result<u64, Duration>,
    ) -> Result<(), Duration> {
        let hash = self.hasher.hash_one(key);
        let part = usize::try_from(hash % PARTS as u64).unwrap_or_default();
        let Some(part) = self.parts.get(part) else {
            return Ok(());
        };
        let mut part = part.lock();
        if let Some(full) = part.full.get_mut(&hash) {
            *full = take(*full)?;
            return Ok(());
        }
        if part.full.len() >= PART_MAX && now >= part.cleared.saturating_add(CLEAR_EVERY) {
            part.cleared = now;
            part.full.retain(|_, full| *full > now);
        }
        if part.full.len() >= PART_MAX {
            part.others = take(part.others)?;
        } else {
            let full = take(0)?;
            part.full.insert(hash, full);
        }
        Ok(())
    }

    /// How many callers are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().full.len()).sum()
    }
}
