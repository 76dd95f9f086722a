//! Shards: the parts of a feed that several readers share.

use xxhash_rust::xxh3::xxh3_64;

use crate::key;
use crate::value::PrimaryKey;

/// One of some shards. A row belongs to one of them by its partition key, the first value of its key, so that the records of a
/// partition key have an order; which one it is never changes. A reader of all shards gets what a feed without shards gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedShard {
    /// Which of them, from 0.
    pub index: u16,
    /// How many there are, at least 1; at most [`crate::limits::MAX_FEED_SHARDS`].
    pub count: u16,
}

impl FeedShard {
    /// Whether a row belongs to it.
    pub fn has(self, key: &PrimaryKey) -> bool {
        self.has_encoded(&key.encode())
    }

    /// Whether a row belongs to it, given by its encoded primary key.
    pub(crate) fn has_encoded(self, key: &[u8]) -> bool {
        let hash = xxh3_64(key::encoded_partition(key));
        hash % u64::from(self.count.max(1)) == u64::from(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::KeyValue;

    /// What is on disks depends on it.
    #[test]
    fn golden_shards() {
        let shard = |partition: KeyValue| {
            let key = PrimaryKey::new(vec![partition, 7.into()]).unwrap();
            (0..64).find(|index| {
                FeedShard {
                    index: *index,
                    count: 64,
                }
                .has(&key)
            })
        };
        let found = ["", "a", "\0", "partition"].map(|text| shard(text.into()));
        assert_eq!(found, [21, 33, 44, 45].map(Some));
        let found = [-1, 0, i64::MAX].map(|number| shard(number.into()));
        assert_eq!(found, [34, 40, 45].map(Some));
    }
}
