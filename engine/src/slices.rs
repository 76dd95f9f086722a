//! Snapshots that are kept for exports, and their slices that are exported side by side: equal parts of the space of hashes
//! that keys begin with, or of the rows where they don't.

mod split_points;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use souk_storage::{KeyBound, KeyValue, PrimaryKey, Snapshot};

pub(crate) use self::split_points::{ScannedPage, SplitPointScan};
use crate::error::Result;
use crate::leases::{LeaseLimits, Leases};

/// How long a snapshot is kept after its last use: a stream that nobody reads has lost it after that.
pub const LEASE: Duration = Duration::from_secs(120);
/// Longest time that a snapshot is kept, however often it is used.
pub const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(6 * 3_600);
/// Most snapshots that are kept for exports at a time.
pub const SNAPSHOTS_MAX: usize = 16;
/// Most of them for one caller, where callers are known.
pub const SNAPSHOTS_OF_CALLER_MAX: usize = 2;
/// Most slices of one snapshot.
pub const SLICES_MAX: u16 = 64;

pub(crate) const SNAPSHOT_LIMITS: LeaseLimits = LeaseLimits {
    count: SNAPSHOTS_MAX,
    share: SNAPSHOTS_OF_CALLER_MAX,
    age: SNAPSHOT_AGE_MAX,
};

/// The snapshots that are kept.
pub(crate) type Snapshots = Leases<Exported>;

/// A snapshot, and how much of it was given.
#[derive(Clone, Debug)]
pub(crate) struct Exported {
    pub(crate) snapshot: Snapshot,
    pub(crate) ended: Arc<Ended>,
    /// Where slices begin, as far as one call after the other has scanned rows for it; a snapshot belongs to one table and scope.
    pub(crate) split_points: Arc<tokio::sync::Mutex<SplitPointScan>>,
}

/// Parts of the space of hashes: the first four digits.
const HASH_PARTS: u32 = 1 << 16;

/// Which slices were given to their end, of those that readers of a snapshot want.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// In how many slices it is read; readers may differ.
    counts: HashSet<u16>,
    ended: HashSet<Slice>,
}

impl Ended {
    /// Somebody reads this slice, and so wants all of as many.
    pub(crate) fn begin(&self, slice: Slice) {
        self.0.lock().counts.insert(slice.count);
    }

    /// One more has ended; `true` when with it all have that are wanted.
    pub(crate) fn note(&self, slice: Slice) -> bool {
        let mut progress = self.0.lock();
        let Progress { counts, ended } = &mut *progress;
        counts.insert(slice.count);
        ended.insert(slice);
        counts.iter().all(|count| {
            let of_as_many = ended.iter().filter(|other| other.count == *count);
            of_as_many.count() == usize::from(*count)
        })
    }
}

/// One of several slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    count: u16,
    number: u16,
}

impl Slice {
    /// Slice `number`, counted from 0, of `count`; `None` when there is no such slice.
    #[must_use]
    pub fn new(count: u16, number: u16) -> Option<Self> {
        (number < count).then_some(Self { count, number })
    }

    /// Whether it is the whole table.
    pub(crate) fn is_whole(self) -> bool {
        self.count == 1
    }

    /// Where it begins and ends in a table. `before` gives the split point before each slice but the first, by its number and their count.
    pub(crate) fn bounds(
        self,
        before: impl Fn(u16, u16) -> Result<KeyBound>,
    ) -> Result<(KeyBound, KeyBound)> {
        let (start, end) = (self.number, self.number + 1);
        let start = match start {
            0 => KeyBound::Min,
            _ => before(start, self.count)?,
        };
        let end = match end == self.count {
            true => KeyBound::Max,
            false => before(end, self.count)?,
        };
        Ok((start, end))
    }

    /// The split point before a slice where keys begin with a hash.
    pub(crate) fn before_hash(number: u16, count: u16) -> Result<KeyBound> {
        let part = u32::from(number) * HASH_PARTS / u32::from(count);
        let prefix = PrimaryKey::new([KeyValue::from(format!("{part:04x}"))])?;
        Ok(KeyBound::Before(prefix))
    }

    /// Adds it to a token.
    pub(crate) fn encode(self, token: &mut Vec<u8>) {
        token.extend(self.count.to_be_bytes());
        token.extend(self.number.to_be_bytes());
    }

    /// A slice at the beginning of a token, and what follows it.
    pub(crate) fn decode(token: &[u8]) -> Option<(Self, &[u8])> {
        let (count, rest) = token.split_first_chunk::<2>()?;
        let (number, rest) = rest.split_first_chunk::<2>()?;
        let slice = Self::new(u16::from_be_bytes(*count), u16::from_be_bytes(*number))?;
        Some((slice, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_ended_when_all_its_readers_have() {
        let slice = |count, number| Slice { count, number };
        let ended = Ended::default();
        ended.begin(slice(2, 0));
        assert!(!ended.note(slice(2, 0)));
        ended.begin(slice(1, 0));
        assert!(!ended.note(slice(2, 1)), "somebody reads it whole");
        assert!(ended.note(slice(1, 0)));
    }
}
