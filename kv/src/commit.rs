//! Commits: checks, mutations and a log entry that happen together or not at all.

use std::ops::Range;

use bytes::Bytes;

use crate::error::Error;
use crate::limits::{MAX_COMMIT_BYTES, MAX_KEY_BYTES};
use crate::space::Space;

/// Where the sequence is stamped into a value: 8 bytes, big-endian, after the format byte.
pub const STAMP: Range<usize> = 1..9;

/// How safe a commit is when it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// On the disk: survives a loss of power.
    #[default]
    Disk,
    /// With the operating system: survives the end of the process, not a loss of power.
    Buffered,
}

/// A condition of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The key has no value.
    Absent {
        /// Its space.
        space: Space,
        /// The key.
        key: Bytes,
    },
    /// The key has a value that starts with these bytes.
    Prefix {
        /// Its space.
        space: Space,
        /// The key.
        key: Bytes,
        /// The first bytes of the value.
        prefix: Bytes,
    },
}

/// A write to a key. A key appears once in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// Writes a value.
    Put {
        /// Its space.
        space: Space,
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Vec<u8>,
        /// Whether the sequence is written over [`STAMP`]; needs a log entry and a value that long.
        stamp: bool,
    },
    /// Removes a key; does nothing when there is none.
    Delete {
        /// Its space.
        space: Space,
        /// The key.
        key: Bytes,
    },
}

/// Checks, mutations and a log entry that happen together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Conditions, all of which must hold.
    pub checks: Vec<Check>,
    /// [`crate::KvSnapshot::group`] of the snapshot in which all checks held: the engine need not read keys again that
    /// weren't written since. `None` when the checks weren't evaluated before.
    pub validated_at: Option<u64>,
    /// Writes.
    pub mutations: Vec<Mutation>,
    /// The log entry, stamped like a value; its key is the sequence. Without one the commit takes no sequence.
    pub log: Option<Vec<u8>>,
    /// When it is acknowledged.
    pub durability: Durability,
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvCommitted {
    /// Sequence of the log entry; without one, the last sequence assigned before.
    pub sequence: u64,
}

/// Refuses a malformed or too large commit; gives its bytes.
pub(crate) fn validate(commit: &Commit) -> Result<usize, Error> {
    let mut bytes = 0;
    let mut longest = 0;
    let mut count = |key: &[u8], rest: usize| {
        if key.is_empty() {
            return Err(malformed("an empty key"));
        }
        longest = longest.max(key.len());
        bytes += key.len() + rest;
        Ok(())
    };
    for check in &commit.checks {
        match check {
            Check::Absent { key, .. } => count(key, 0)?,
            Check::Prefix { key, prefix, .. } => count(key, prefix.len())?,
        }
    }
    for mutation in &commit.mutations {
        match mutation {
            Mutation::Put { stamp: true, .. } if commit.log.is_none() => {
                return Err(malformed("a stamp without a log entry"));
            }
            Mutation::Put {
                value, stamp: true, ..
            } if value.len() < STAMP.end => {
                return Err(malformed("a value without a place for its stamp"));
            }
            Mutation::Put { key, value, .. } => count(key, value.len())?,
            Mutation::Delete { key, .. } => count(key, 0)?,
        }
    }
    if let Some(entry) = &commit.log {
        if entry.len() < STAMP.end {
            return Err(malformed("a log entry without a place for its stamp"));
        }
        bytes += entry.len();
    }
    for (limit, max, actual) in [
        ("MAX_KEY_BYTES", MAX_KEY_BYTES, longest),
        ("MAX_COMMIT_BYTES", MAX_COMMIT_BYTES, bytes),
    ] {
        if actual > max {
            return Err(Error::TooLarge { limit, max, actual });
        }
    }
    Ok(bytes)
}

fn malformed(what: &str) -> Error {
    Error::Corrupt {
        what: format!("a commit has {what}"),
        source: None,
    }
}

/// Writes the sequence into a value of a commit that passed [`validate`].
pub(crate) fn write_stamp(value: &mut [u8], sequence: u64) {
    if let Some(stamp) = value.get_mut(STAMP) {
        stamp.copy_from_slice(&sequence.to_be_bytes());
    }
}
