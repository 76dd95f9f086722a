//! Short forms of what tests of a store write and read. Those that read panic when they can't.

use bytes::Bytes;

use crate::{Check, Commit, Direction, Durability, Kv, KvSnapshot, Mutation, Scan, ScanPage, Space};

/// First byte of a stamped value.
const FORMAT: u8 = 1;

/// A value with a place for its stamp.
pub fn stamped(rest: &[u8]) -> Vec<u8> {
    let mut value = vec![FORMAT; 9];
    value.extend_from_slice(rest);
    value
}

/// The stamp of a value and what comes after.
pub fn stamp(value: &[u8]) -> (u64, &[u8]) {
    let (number, rest) = value[1..].split_first_chunk().expect("a stamp");
    (u64::from_be_bytes(*number), rest)
}

/// The prefix of a value that the commit with this sequence has stamped, for [`has_prefix`].
pub fn prefix(sequence: u64) -> Bytes {
    let mut prefix = vec![FORMAT];
    prefix.extend_from_slice(&sequence.to_be_bytes());
    prefix.into()
}

/// Writes a value as it is.
pub fn put(space: Space, key: &[u8], value: &[u8]) -> Mutation {
    Mutation::Put {
        space,
        key: Bytes::copy_from_slice(key),
        value: value.to_vec(),
        stamp: false,
    }
}

/// Writes a value with the sequence of its commit.
pub fn put_stamped(space: Space, key: &[u8], rest: &[u8]) -> Mutation {
    Mutation::Put {
        space,
        key: Bytes::copy_from_slice(key),
        value: stamped(rest),
        stamp: true,
    }
}

/// Removes a key.
pub fn delete(space: Space, key: &[u8]) -> Mutation {
    Mutation::Delete {
        space,
        key: Bytes::copy_from_slice(key),
    }
}

/// Requires that a key has no value.
pub fn absent(space: Space, key: &[u8]) -> Check {
    Check::Absent {
        space,
        key: Bytes::copy_from_slice(key),
    }
}

/// Requires that a key has a value with this prefix.
pub fn has_prefix(space: Space, key: &[u8], prefix: impl Into<Bytes>) -> Check {
    Check::Prefix {
        space,
        key: Bytes::copy_from_slice(key),
        prefix: prefix.into(),
    }
}

/// A commit without a log entry, which takes no sequence.
pub fn unlogged(mutations: Vec<Mutation>) -> Commit {
    Commit {
        mutations,
        ..Commit::default()
    }
}

/// A commit with a log entry, which takes a sequence; `entry` is what follows the stamp.
pub fn logged(mutations: Vec<Mutation>, entry: &[u8]) -> Commit {
    Commit {
        mutations,
        log: Some(stamped(entry)),
        ..Commit::default()
    }
}

/// The same commit under these checks.
pub fn checked(checks: Vec<Check>, commit: Commit) -> Commit {
    Commit { checks, ..commit }
}

/// The same commit, acknowledged before it is on the disk.
pub fn buffered(commit: Commit) -> Commit {
    Commit {
        durability: Durability::Buffered,
        ..commit
    }
}

/// All of a space whose keys lie between, in one page.
pub fn all(space: Space, low: &[u8], high: &[u8]) -> Scan {
    Scan {
        space,
        low: Bytes::copy_from_slice(low),
        high: Bytes::copy_from_slice(high),
        direction: Direction::Forward,
        entries: usize::MAX,
        bytes: usize::MAX,
    }
}

/// Above every key of these tests.
pub const END: [u8; 9] = [0xff; 9];

/// A snapshot of the present state.
pub async fn snapshot(store: &dyn Kv) -> Box<dyn KvSnapshot> {
    store.snapshot().await.expect("a snapshot")
}

/// The present value of a key.
pub async fn get(store: &dyn Kv, space: Space, key: &[u8]) -> Option<Bytes> {
    snapshot(store).await.get(space, key).await.expect("a read")
}

/// A page of a snapshot.
pub async fn scan(snapshot: &dyn KvSnapshot, scan: Scan) -> ScanPage {
    snapshot.scan(scan).await.expect("a scan")
}

/// Sequences and entries of the whole log; checks that each entry carries the sequence of its key.
pub async fn log(snapshot: &dyn KvSnapshot) -> Vec<(u64, Bytes)> {
    let page = scan(snapshot, all(Space::Log, &[], &END)).await;
    assert_eq!(page.next, None);
    page.entries
        .into_iter()
        .map(|(key, entry)| {
            let sequence = u64::from_be_bytes(key.as_ref().try_into().expect("a sequence as key"));
            assert_eq!(stamp(&entry).0, sequence, "the stamp of a log entry is its key");
            (sequence, entry.slice(9..))
        })
        .collect()
}
