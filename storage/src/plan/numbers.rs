//! The numbers of appended rows: one counter for each partition key, which only rises. It is kept beside the rows and
//! not found among them, so that the number of a deleted row doesn't come back.

use std::collections::BTreeMap;

use bytes::Bytes;
use souk_kv::{Check, Commit, KvSnapshot, Mutation, Space};

use crate::error::{Error, Result};

/// Counters as they were read, and what was given since.
#[derive(Debug, Default)]
pub(crate) struct Numbers(BTreeMap<Bytes, Counter>);

#[derive(Debug)]
struct Counter {
    /// Its value in the store.
    stored: Option<Bytes>,
    /// The last number given.
    last: i64,
}

impl Numbers {
    /// Reads the counters that aren't known yet.
    pub(crate) async fn read(
        &mut self,
        snapshot: &dyn KvSnapshot,
        counters: impl Iterator<Item = &Bytes>,
    ) -> Result<()> {
        for key in counters {
            if self.0.contains_key(key) {
                continue;
            }
            let stored = snapshot.get(Space::Catalog, key).await?;
            let last = stored.as_ref().map_or(Ok(0), |value| {
                <[u8; 8]>::try_from(&**value)
                    .map(i64::from_be_bytes)
                    .map_err(|_| Error::corrupt("the counter of an auto-increment column is no number"))
            })?;
            self.0.insert(key.clone(), Counter { stored, last });
        }
        Ok(())
    }

    /// The next number of a counter that was read.
    pub(crate) fn next(&mut self, key: &Bytes) -> Result<i64> {
        let used_up = || Error::invalid("auto-increment column", "has used up its numbers");
        let counter = self.0.get_mut(key).ok_or_else(used_up)?;
        counter.last = counter.last.checked_add(1).ok_or_else(used_up)?;
        Ok(counter.last)
    }

    /// Makes the commit keep what was given, if nobody else has given numbers since.
    pub(crate) fn keep(&self, commit: &mut Commit) {
        let space = Space::Catalog;
        for (key, Counter { stored, last }) in &self.0 {
            let value = last.to_be_bytes().to_vec();
            if stored.as_ref().is_some_and(|stored| **stored == *value) {
                continue;
            }
            let key = key.clone();
            commit.checks.push(match stored {
                None => Check::Absent {
                    space,
                    key: key.clone(),
                },
                Some(stored) => Check::Prefix {
                    space,
                    key: key.clone(),
                    prefix: stored.clone(),
                },
            });
            commit.mutations.push(Mutation::Put {
                space,
                key,
                value,
                stamp: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use souk_kv::{self as kv, Kv, MemoryKv};

    use super::*;

    const COUNTER: Bytes = Bytes::from_static(b"counter");

    async fn read(kv: &MemoryKv) -> Numbers {
        let snapshot = kv.snapshot().await.expect("a snapshot");
        let mut numbers = Numbers::default();
        let read = numbers.read(&*snapshot, [COUNTER, COUNTER].iter()).await;
        read.expect("a counter");
        numbers
    }

    async fn keep(kv: &MemoryKv, numbers: &Numbers) -> Result<(), kv::Error> {
        let mut commit = Commit::default();
        numbers.keep(&mut commit);
        kv.commit(commit).await.map(|_| ())
    }

    /// Two writers that read the same counter can't both give its next number.
    #[tokio::test]
    async fn are_kept_by_one_of_two() {
        let kv = MemoryKv::new();
        for expected in [1, 3] {
            let (mut first, mut second) = (read(&kv).await, read(&kv).await);
            assert_eq!(first.next(&COUNTER).expect("a number"), expected);
            assert_eq!(first.next(&COUNTER).expect("a number"), expected + 1);
            assert_eq!(second.next(&COUNTER).expect("a number"), expected);
            keep(&kv, &first).await.expect("a commit");
            let late = keep(&kv, &second).await;
            assert!(matches!(late, Err(kv::Error::Conflict { .. })), "{late:?}");
        }
        // One that gave none doesn't care.
        let idle = read(&kv).await;
        let mut first = read(&kv).await;
        first.next(&COUNTER).expect("a number");
        keep(&kv, &first).await.expect("a commit");
        keep(&kv, &idle).await.expect("nothing to keep");
    }

    #[tokio::test]
    async fn end_instead_of_starting_over() {
        let kv = MemoryKv::new();
        let set = |value: Vec<u8>| Commit {
            mutations: vec![Mutation::Put {
                space: Space::Catalog,
                key: COUNTER,
                value,
                stamp: false,
            }],
            ..Commit::default()
        };
        let last = (i64::MAX - 1).to_be_bytes().to_vec();
        kv.commit(set(last)).await.expect("a commit");
        let mut numbers = read(&kv).await;
        assert_eq!(numbers.next(&COUNTER).expect("the last one"), i64::MAX);
        for _ in 0..2 {
            let used_up = numbers.next(&COUNTER);
            assert!(matches!(used_up, Err(Error::Invalid { .. })), "{used_up:?}");
        }
        kv.commit(set(vec![1])).await.expect("a commit");
        let snapshot = kv.snapshot().await.expect("a snapshot");
        let damaged = Numbers::default().read(&*snapshot, [COUNTER].iter()).await;
        assert!(matches!(damaged, Err(Error::Corrupt { .. })), "{damaged:?}");
    }
}
