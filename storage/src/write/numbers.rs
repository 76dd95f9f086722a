//! The numbers of appended rows: one counter for each partition key, which only rises. It is kept beside the rows and
//! not found among them, so that the number of a deleted row doesn't come back.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::kv::{Check, Commit, KvSnapshot, Mutation, Space};

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
