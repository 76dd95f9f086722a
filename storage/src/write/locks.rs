//! Locks on rows inside this process, so that writers of one row wait instead of conflicting.

use std::collections::BTreeSet;

use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

/// Locks rows share, by the hash of their keys. A full batch of 200 rows takes a fifth of them.
const STRIPES: usize = 1024;

/// The locks.
#[derive(Debug)]
pub(crate) struct RowLocks(Vec<Mutex<()>>);

impl RowLocks {
    pub(crate) fn new() -> Self {
        Self((0..STRIPES).map(|_| Mutex::new(())).collect())
    }

    /// Locks these keys until the guards are dropped. All callers take them in one order, so none waits for ever.
    pub(crate) async fn lock<'a>(&self, keys: impl Iterator<Item = &'a Bytes>) -> Vec<MutexGuard<'_, ()>> {
        let stripes: BTreeSet<u64> = keys.map(|key| xxh3_64(key) % STRIPES as u64).collect();
        let mut guards = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            if let Some(lock) = usize::try_from(stripe).ok().and_then(|at| self.0.get(at)) {
                guards.push(lock.lock().await);
            }
        }
        guards
    }
}
