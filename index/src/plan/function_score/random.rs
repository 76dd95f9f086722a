//! A number of a document's key: the same in every segment, and as long as the seed is.

use tantivy::{DocId, SegmentReader};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Formula, Value};
use crate::layout::string_column;

/// The bits that a double between 0 and 1 keeps.
const BITS: u32 = 53;

#[derive(Debug)]
pub(super) struct Random {
    pub(super) seed: u64,
    /// The column of keys.
    pub(super) keys: String,
}

/// The number of a key.
fn number(key: &[u8], seed: u64) -> f64 {
    (xxh3_64_with_seed(key, seed) >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
}

impl Formula for Random {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Value> {
        let seed = self.seed;
        let Some(keys) = string_column(reader, &self.keys)? else {
            return Ok(Box::new(|_| None));
        };
        let mut key = Vec::new();
        Ok(Box::new(move |doc: DocId| {
            let ordinal = keys.ords().first(doc)?;
            key.clear();
            // A key that can't be read makes the function not count: the hit's own key is read later, and says why.
            let read = keys.ord_to_bytes(ordinal, &mut key);
            read.is_ok_and(|found| found).then(|| number(&key, seed))
        }))
    }
}
