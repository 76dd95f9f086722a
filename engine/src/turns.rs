//! Turns for those who read, change and write the same row, or try the same request: without them the slower ones of many would
//! lose again and again. They only save work: what makes a lost update impossible is the condition of the write.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;

use tokio::sync::{Mutex, MutexGuard};

/// Rows or requests that don't wait for each other, unless their hashes meet.
const STRIPES: usize = 1_024;

/// One turn at a time for each row of a table, or each request.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Made for the first turn: 40 KiB, which most of a thousand tables don't need.
    stripes: OnceLock<Box<[Mutex<()>]>>,
    /// Seeded anew by each process: clients choose keys, and none may choose one that meets another's.
    hasher: RandomState,
}

impl Turns {
    /// Waits for one's turn with a row or request, by its key; in the order of the calls. `None` never happens: there are
    /// always stripes.
    pub(crate) async fn take(&self, key: &[u8]) -> Option<MutexGuard<'_, ()>> {
        let hash = self.hasher.hash_one(key);
        let stripe = usize::try_from(hash % STRIPES as u64).ok()?;
        let stripes = || (0..STRIPES).map(|_| Mutex::default()).collect();
        Some(self.stripes.get_or_init(stripes).get(stripe)?.lock().await)
    }
}
