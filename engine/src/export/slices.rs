//! Slices of a table that export side by side: equal parts of the space of hashes that keys begin with.

use std::collections::HashSet;

use parking_lot::Mutex;
use souk_chassis::status::Violations;
use souk_storage::{KeyBound, KeyValue, PrimaryKey, TableSchema};

use super::SLICES_MAX;
use crate::error::Result;
use crate::key::HASH_COLUMN;

/// Parts of the space of hashes: the first four digits.
const HASH_PARTS: u32 = 1 << 16;

/// Which slices were given to their end, of those that readers of a snapshot want.
#[derive(Debug, Default)]
pub(super) struct Ended(Mutex<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// In how many slices it is read; readers may differ.
    counts: HashSet<u16>,
    ended: HashSet<Slice>,
}

impl Ended {
    /// Somebody reads this slice, and so wants all of as many.
    pub(super) fn begin(&self, slice: Slice) {
        self.0.lock().counts.insert(slice.count);
    }

    /// One more has ended; `true` when with it all have that are wanted.
    pub(super) fn note(&self, slice: Slice) -> bool {
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
pub(super) struct Slice {
    count: u16,
    number: u16,
}

impl Slice {
    /// The slice of a request.
    pub(super) fn read(count: i32, number: i32, table: &TableSchema, violations: &mut Violations) -> Self {
        let hashed = table.key.first().is_some_and(|(column, _)| column == HASH_COLUMN);
        let max = if hashed { SLICES_MAX } else { 1 };
        let count = match usize::try_from(count) {
            Ok(0) => 1,
            Ok(wanted) if wanted <= max => wanted,
            Ok(_) | Err(_) => {
                violations.push(
                    "slice_count",
                    "OUT_OF_RANGE",
                    format!("is {count}, must be 0 to {max}"),
                );
                return Self { count: 1, number: 0 };
            }
        };
        let valid = usize::try_from(number).ok().filter(|number| *number < count);
        if valid.is_none() {
            violations.push(
                "slice",
                "OUT_OF_RANGE",
                format!("is {number}, must be 0 to {}", count - 1),
            );
        }
        Self {
            count: u16::try_from(count).unwrap_or(1),
            number: valid.and_then(|number| u16::try_from(number).ok()).unwrap_or(0),
        }
    }

    /// Where it begins and ends in the table.
    pub(super) fn bounds(self) -> Result<(KeyBound, KeyBound)> {
        let start = self.boundary(self.number)?.unwrap_or(KeyBound::Min);
        let end = self.boundary(self.number + 1)?.unwrap_or(KeyBound::Max);
        Ok((start, end))
    }

    /// The cut before a slice; none at the ends of the table.
    fn boundary(self, number: u16) -> Result<Option<KeyBound>> {
        if number == 0 || number >= self.count {
            return Ok(None);
        }
        let part = u32::from(number) * HASH_PARTS / u32::from(self.count);
        let prefix = PrimaryKey::new([KeyValue::from(format!("{part:04x}"))])?;
        Ok(Some(KeyBound::Before(prefix)))
    }

    /// Adds it to a token.
    pub(super) fn encode(self, token: &mut Vec<u8>) {
        token.extend(self.count.to_be_bytes());
        token.extend(self.number.to_be_bytes());
    }

    /// A slice at the beginning of a token, and what follows it.
    pub(super) fn decode(token: &[u8]) -> Option<(Self, &[u8])> {
        let (count, rest) = token.split_first_chunk::<2>()?;
        let (number, rest) = rest.split_first_chunk::<2>()?;
        let slice = Self {
            count: u16::from_be_bytes(*count),
            number: u16::from_be_bytes(*number),
        };
        (slice.number < slice.count).then_some((slice, rest))
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
