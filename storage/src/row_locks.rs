//! Locks on rows inside this process, so that writers of one row wait instead of conflicting.
//!
//! Each row has its own, made when it is wanted: with a fixed number that rows share, two batches of hundreds of rows
//! would nearly always meet, and large writes would happen one after another.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_64;

/// Parts of the table of locks, so that taking one seldom waits for another's being taken.
const SHARDS: usize = 64;

/// The locks, by the hash of the key. Two rows of one hash share a lock, which is harmless.
#[derive(Debug)]
pub(crate) struct RowLocks(Vec<Shard>);

/// Whoever waits for each lock that is taken, in the order of coming.
type Shard = Mutex<HashMap<u64, VecDeque<oneshot::Sender<()>>>>;

/// Locks that are held; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    locks: &'a RowLocks,
    held: Vec<u64>,
}

impl RowLocks {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Shard::default()).collect())
    }

    /// Locks these keys until what it gives is dropped. All callers take them in one order, so none waits for ever.
    pub(crate) async fn lock<'a>(&self, keys: impl Iterator<Item = &'a Bytes>) -> Locked<'_> {
        let mut hashes: Vec<u64> = keys.map(|key| xxh3_64(key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let mut locked = Locked {
            locks: self,
            held: Vec::with_capacity(hashes.len()),
        };
        for hash in hashes {
            if let Some(turn) = self.take(hash) {
                Waiting {
                    turn,
                    locks: self,
                    hash,
                    handed: false,
                }
                .wait()
                .await;
            }
            locked.held.push(hash);
        }
        locked
    }

    /// Takes a lock, or gives what to wait for.
    fn take(&self, hash: u64) -> Option<oneshot::Receiver<()>> {
        match self.shard(hash)?.lock().entry(hash) {
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                None
            }
            Entry::Occupied(mut taken) => {
                let (turn, waiting) = oneshot::channel();
                taken.get_mut().push_back(turn);
                Some(waiting)
            }
        }
    }

    /// Hands a lock to the first that still waits for it.
    fn give(&self, hash: u64) {
        let Some(shard) = self.shard(hash) else {
            return;
        };
        let mut shard = shard.lock();
        if let Entry::Occupied(mut taken) = shard.entry(hash) {
            while let Some(next) = taken.get_mut().pop_front() {
                if next.send(()).is_ok() {
                    return;
                }
            }
            taken.remove();
        }
    }

    fn shard(&self, hash: u64) -> Option<&Shard> {
        self.0.get((hash % SHARDS as u64) as usize)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.held.iter().for_each(|hash| self.locks.give(*hash));
    }
}

/// A place in the queue of a lock. Whoever gives up may have been handed the lock already, and hands it on.
struct Waiting<'a> {
    turn: oneshot::Receiver<()>,
    locks: &'a RowLocks,
    hash: u64,
    handed: bool,
}

impl Waiting<'_> {
    async fn wait(mut self) {
        // The sender is dropped unused only when nobody waits.
        let _ = (&mut self.turn).await;
        self.handed = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.handed {
            self.turn.close();
            if self.turn.try_recv().is_ok() {
                self.locks.give(self.hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn keys(keys: &[&'static str]) -> Vec<Bytes> {
        keys.iter()
            .map(|key| Bytes::from_static(key.as_bytes()))
            .collect()
    }

    #[tokio::test]
    async fn others_do_not_wait_and_the_first_in_line_is_next() {
        let locks = RowLocks::new();
        let (ab, bc, d) = (keys(&["a", "b", "a"]), keys(&["b", "c"]), keys(&["d"]));
        let first = locks.lock(ab.iter()).await;
        let mut second = Box::pin(locks.lock(bc.iter()));
        let mut third = Box::pin(locks.lock(bc.iter()));
        assert!(locks.lock(d.iter()).now_or_never().is_some());
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none());
        let second = second.now_or_never().expect("its turn");
        drop(second);
        drop(third.now_or_never().expect("its turn"));
        assert!(locks.0.iter().all(|shard| shard.lock().is_empty()));
    }

    #[tokio::test]
    async fn who_gives_up_hands_the_lock_on() {
        let locks = RowLocks::new();
        let a = keys(&["a"]);
        let first = locks.lock(a.iter()).await;
        let mut second = Box::pin(locks.lock(a.iter()));
        let mut third = Box::pin(locks.lock(a.iter()));
        let mut fourth = Box::pin(locks.lock(a.iter()));
        for waiting in [&mut second, &mut third, &mut fourth] {
            assert!(waiting.now_or_never().is_none());
        }
        // One gives up while it waits, one when the lock is its already.
        drop(second);
        drop(first);
        drop(third);
        drop(fourth.now_or_never().expect("its turn"));
        assert!(locks.0.iter().all(|shard| shard.lock().is_empty()));
    }
}
