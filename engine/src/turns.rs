//! Turns for those who read, change and write the same row, or try the same request: without them the slower ones of many would
//! lose again and again. They only save work: what makes a lost update impossible is the condition of the write.

use tokio::sync::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

/// Rows or requests that don't wait for each other, unless their hashes meet.
const STRIPES: usize = 1_024;

/// One turn at a time for each row of a table, or each request.
#[derive(Debug)]
pub(crate) struct Turns(Vec<Mutex<()>>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| Mutex::default()).collect())
    }
}

impl Turns {
    /// Waits for one's turn with a row or request, by its key; in the order of the calls. `None` never happens: there are
    /// always stripes.
    pub(crate) async fn take(&self, key: &[u8]) -> Option<MutexGuard<'_, ()>> {
        let hash = xxh3_64(key);
        let stripe = usize::try_from(hash % STRIPES as u64).ok()?;
        Some(self.0.get(stripe)?.lock().await)
    }
}
