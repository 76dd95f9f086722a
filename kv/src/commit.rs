//! Commits: checks, mutations and a log entry that happen together or not at all.

use std::ops::Range;

use bytes::Bytes;

use crate::error::Error;
use crate::limits::{MAX_COMMIT_BYTES, MAX_KEY_BYTES};
use crate::space::Space;

/// The bytes of a value that a stamp overwrites with the commit's sequence: 8, big-endian, after the format byte.
pub const STAMP: Range<usize> = 1..9;

/// What a commit survives once it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A loss of power: it was synced to the disk.
    #[default]
    Disk,
    /// The end of the process, not a loss of power: it was handed to the operating system.
    Buffered,
}

/// A precondition of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "a space, and a key in it")]
pub enum Check {
    /// The key has no value.
    Absent { space: Space, key: Bytes },
    /// The key has a value that starts with `prefix`.
    Prefix { space: Space, key: Bytes, prefix: Bytes },
}

/// A write to a key. A key appears once in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "a space, and a key in it")]
pub enum Mutation {
    /// Writes a value.
    Put {
        space: Space,
        key: Bytes,
        value: Vec<u8>,
        /// Whether [`STAMP`] of the value is overwritten with the sequence. The commit then needs a log entry, and the
        /// value at least `STAMP.end` bytes.
        stamp: bool,
    },
    /// Removes a key; does nothing when it has no value.
    Delete { space: Space, key: Bytes },
}

/// Checks, mutations and a log entry that happen together or not at all; its bytes, and those of each key, are bounded by
/// [`crate::Kv::limits`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Preconditions, all of which must hold.
    pub checks: Vec<Check>,
    /// Commit group ([`crate::KvSnapshot::group`]) of the snapshot in which the caller found that all checks hold. The
    /// engine then reads only those keys that were written since. `None`: it reads them all.
    pub validated_at: Option<u64>,
    /// What is written when they hold.
    pub mutations: Vec<Mutation>,
    /// The log entry, always stamped; the sequence is its key. A commit without one takes no sequence.
    pub log: Option<Vec<u8>>,
    /// What it survives once it is acknowledged.
    pub durability: Durability,
}

/// What an engine answers to a commit that it has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvCommitted {
    /// Sequence of the log entry; without one, the last sequence assigned before.
    pub sequence: u64,
}

/// Validates a commit, and returns the bytes of its keys, values, prefixes and log entry.
///
/// # Errors
/// [`Error::Malformed`] for what no engine can carry out, [`Error::TooLarge`] for a key or for all of it.
pub(crate) fn validate(commit: &Commit) -> Result<usize, Error> {
    let mut bytes = 0;
    let mut longest_key = 0;
    let mut add = |key: &[u8], value_bytes: usize| {
        if key.is_empty() {
            return Err(Error::Malformed {
                problem: "an empty key",
            });
        }
        longest_key = longest_key.max(key.len());
        bytes += key.len() + value_bytes;
        Ok(())
    };
    for check in &commit.checks {
        match check {
            Check::Absent { key, .. } => add(key, 0)?,
            Check::Prefix { key, prefix, .. } => add(key, prefix.len())?,
        }
    }
    for mutation in &commit.mutations {
        match mutation {
            Mutation::Put { stamp: true, .. } if commit.log.is_none() => {
                return Err(Error::Malformed {
                    problem: "a stamp without a log entry",
                });
            }
            Mutation::Put {
                value, stamp: true, ..
            } if value.len() < STAMP.end => {
                return Err(Error::Malformed {
                    problem: "a value without a place for its stamp",
                });
            }
            Mutation::Put { key, value, .. } => add(key, value.len())?,
            Mutation::Delete { key, .. } => add(key, 0)?,
        }
    }
    if let Some(entry) = &commit.log {
        if entry.len() < STAMP.end {
            return Err(Error::Malformed {
                problem: "a log entry without a place for its stamp",
            });
        }
        bytes += entry.len();
    }
    for (limit, max, actual) in [
        ("MAX_KEY_BYTES", MAX_KEY_BYTES, longest_key),
        ("MAX_COMMIT_BYTES", MAX_COMMIT_BYTES, bytes),
    ] {
        if actual > max {
            return Err(Error::TooLarge { limit, max, actual });
        }
    }
    Ok(bytes)
}

/// Writes the sequence into a value of a commit that passed [`validate`].
pub(crate) fn write_stamp(value: &mut [u8], sequence: u64) {
    if let Some(stamp) = value.get_mut(STAMP) {
        stamp.copy_from_slice(&sequence.to_be_bytes());
    }
}
