//! What a commit weighs, and whether a store takes it at all: the same rules for every store.

use crate::kv::{Check, Commit, Error, Mutation, STAMP};
use crate::limits::{MAX_COMMIT_BYTES, MAX_KV_KEY_BYTES};

/// Refuses what the store doesn't take; gives the bytes of the commit.
pub(super) fn weigh(commit: &Commit) -> Result<usize, Error> {
    let mut bytes = 0;
    let mut longest = 0;
    let mut weigh = |key: &[u8], rest: usize| {
        if key.is_empty() {
            return Err(malformed("an empty key"));
        }
        longest = longest.max(key.len());
        bytes += key.len() + rest;
        Ok(())
    };
    for check in &commit.checks {
        match check {
            Check::Absent { key, .. } => weigh(key, 0)?,
            Check::Prefix { key, prefix, .. } => weigh(key, prefix.len())?,
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
            Mutation::Put { key, value, .. } => weigh(key, value.len())?,
            Mutation::Delete { key, .. } => weigh(key, 0)?,
        }
    }
    if let Some(entry) = &commit.log {
        if entry.len() < STAMP.end {
            return Err(malformed("a log entry without a place for its stamp"));
        }
        bytes += entry.len();
    }
    for (limit, max, actual) in [
        ("MAX_KV_KEY_BYTES", MAX_KV_KEY_BYTES, longest),
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

/// Writes the sequence into a value that [`weigh`] has seen.
pub(super) fn write_stamp(value: &mut [u8], sequence: u64) {
    if let Some(stamp) = value.get_mut(STAMP) {
        stamp.copy_from_slice(&sequence.to_be_bytes());
    }
}
