//! Histories: epochs of a log, which tell sequences apart that are given twice.
//!
//! A restored database goes on behind the last sequence of its backup, and one whose shorter log was accepted behind the end that was
//! found: sequences are given a second time, to other changes. From there on it is another history, with a random number,
//! so that a sequence and the number of its history are never given twice.

use std::hash::{BuildHasher, RandomState};

use crate::error::Error;
use crate::limits::MAX_HISTORIES;

const FORMAT: u8 = 1;

/// The histories of a database, in order: a format byte, then of each its first sequence u64 and its number u64.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histories(Vec<History>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct History {
    first: u64,
    number: u64,
}

impl Histories {
    /// Begins another one: sequences from `first` on are its own, even if an earlier one gave them. The first history has every sequence.
    pub fn begin(&mut self, first: u64) {
        self.0.retain(|before| before.first < first);
        if self.0.len() >= MAX_HISTORIES {
            // Its sequences fall to the one behind it, which never had them.
            self.0.remove(0);
        }
        let first = if self.0.is_empty() { 0 } else { first };
        // Its keys are the system's random numbers.
        let number = RandomState::new().hash_one(first);
        self.0.push(History { first, number });
    }

    /// Number of the history that gave a sequence.
    pub fn of(&self, sequence: u64) -> u64 {
        let own = self.0.iter().rev().find(|history| history.first <= sequence);
        own.or(self.0.first()).map_or(0, |history| history.number)
    }

    /// Encodes them for the catalog.
    pub fn encode(&self) -> Vec<u8> {
        let numbers = self.0.iter().flat_map(|history| [history.first, history.number]);
        let mut out = vec![FORMAT];
        out.extend(numbers.flat_map(u64::to_be_bytes));
        out
    }

    /// Reads what [`Histories::encode`] gave.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it didn't.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let numbers = bytes.strip_prefix(&[FORMAT]).map(<[u8]>::as_chunks::<16>);
        let Some((histories, [])) = numbers else {
            return Err(Error::corrupt("the histories are malformed"));
        };
        let history = |bytes: &[u8; 16]| {
            let numbers = u128::from_be_bytes(*bytes);
            History {
                first: (numbers >> 64) as u64,
                number: numbers as u64,
            }
        };
        Ok(Self(histories.iter().map(history).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn give_no_sequence_twice() {
        let mut random = fastrand::Rng::with_seed(19);
        let mut histories = Histories::default();
        let mut given = std::collections::HashSet::new();
        let mut last = 0;
        for _ in 0..2 * MAX_HISTORIES {
            histories.begin(last + 1);
            for _ in 0..random.u8(0..4) {
                last += 1;
                assert!(given.insert((histories.of(last), last)), "{last}");
            }
            assert_eq!(
                Histories::decode(&histories.encode()).ok(),
                Some(histories.clone())
            );
            assert!(histories.0.len() <= MAX_HISTORIES);
            // Some of them are lost.
            last -= random.u64(0..=last.min(2));
        }
    }

    #[test]
    fn leave_what_was_before() {
        let mut histories = Histories::default();
        assert_eq!(histories.of(7), 0);
        histories.begin(5);
        let first = histories.of(0);
        histories.begin(5);
        assert_eq!(histories.of(4), first);
        assert!(histories.of(5) != first && histories.of(5) == histories.of(u64::MAX));
        histories.begin(0);
        assert!(histories.of(4) != first && histories.of(4) == histories.of(0));
    }

    #[test]
    fn refuse_what_they_did_not_write() {
        let mut histories = Histories::default();
        histories.begin(0);
        let whole = histories.encode();
        for bytes in [&b""[..], &[2], &whole[..whole.len() - 1]] {
            assert!(matches!(Histories::decode(bytes), Err(Error::Corrupt { .. })));
        }
    }
}
