//! The key-value seam: snapshot reads and one declarative commit.
//!
//! Everything above is written against [`Kv`]; no type of an engine crosses it. A commit is data, not a conversation:
//! checks, mutations, and at most one log entry. The implementation evaluates the checks, assigns the
//! sequence (gap-free from 1, in commit order), writes it where it is asked to, and makes it all visible at once.

pub mod fjall;
pub mod memory;
mod weight;

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use crate::batch::Durability;
use crate::statistics::Statistics;

/// Where keys live. Few, for each costs memory and journal space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Rows.
    Rows,
    /// The change log, keyed by sequence.
    Log,
    /// Entries of secondary indexes.
    Index,
    /// Tables, consumers, request ids, and the ends of the log.
    Catalog,
}

impl Space {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rows, Self::Log, Self::Index, Self::Catalog];
}

/// Where the sequence is stamped into a value: 8 bytes, big-endian, after the format byte.
pub const STAMP: std::ops::Range<usize> = 1..9;

/// What the implementation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvLimits {
    /// Longest key, bytes.
    pub key_bytes: usize,
    /// Most bytes of one commit.
    pub commit_bytes: usize,
}

/// What must hold for a commit to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The key has no value.
    Absent {
        /// Where.
        space: Space,
        /// Which.
        key: Bytes,
    },
    /// The key has a value that starts with these bytes.
    Prefix {
        /// Where.
        space: Space,
        /// Which.
        key: Bytes,
        /// The bytes.
        prefix: Bytes,
    },
}

/// What a commit does to a key. A key appears once in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// Writes a value.
    Put {
        /// Where.
        space: Space,
        /// Which.
        key: Bytes,
        /// The value.
        value: Vec<u8>,
        /// Whether the sequence is written over [`STAMP`]; needs a log entry and a value that long.
        stamp: bool,
    },
    /// Removes a key; does nothing when there is none.
    Delete {
        /// Where.
        space: Space,
        /// Which.
        key: Bytes,
    },
}

/// Checks, mutations and a log entry that happen together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// What must hold.
    pub checks: Vec<Check>,
    /// [`KvSnapshot::moment`] of the snapshot in which every one of the checks held. The implementation need not look
    /// at keys again that weren't written since. `None`: nobody looked.
    pub held: Option<u64>,
    /// What is done.
    pub mutations: Vec<Mutation>,
    /// The log entry, stamped like a value; its key is the sequence. Without one the commit takes no sequence.
    pub log: Option<Vec<u8>>,
    /// How safe it is when it is acknowledged.
    pub durability: Durability,
}

/// What a commit became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvCommitted {
    /// Sequence of the log entry; without one, the last sequence assigned before.
    pub sequence: u64,
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// From the lowest key up.
    #[default]
    Forward,
    /// From the highest key down.
    Backward,
}

/// What to scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Where.
    pub space: Space,
    /// Lowest key, inclusive.
    pub low: Bytes,
    /// Highest key, exclusive.
    pub high: Bytes,
    /// Which way.
    pub direction: Direction,
    /// Most entries of the page; 0 counts as 1.
    pub rows: usize,
    /// Bytes of keys and values after which the page ends; it holds at least one entry if there is one.
    pub bytes: usize,
}

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Keys and values in scan order.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Key of the first entry that didn't fit; `None` when the range is exhausted.
    pub next: Option<Bytes>,
}

/// One cut across all spaces.
#[async_trait]
pub trait KvSnapshot: std::fmt::Debug + Send + Sync {
    /// Exactly the last sequence this cut includes.
    fn sequence(&self) -> u64;

    /// Number of this cut since the store was opened: it grows whenever something becomes visible, logged or not.
    fn moment(&self) -> u64;

    /// The value of a key.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read it.
    async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// The values of several keys, in their order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read one.
    async fn multi_get(&self, space: Space, keys: Vec<Bytes>) -> Result<Vec<Option<Bytes>>, Error>;

    /// A page of a range.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read a part of it.
    async fn scan(&self, scan: Scan) -> Result<Page, Error>;
}

/// Whether a store works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Serving,
    /// Writes are refused while the device has too little room, reads go on. It recovers by itself.
    Full {
        /// How little.
        reason: String,
    },
    /// It takes no more writes; only a restart helps. Reads go on.
    Failed {
        /// What happened.
        reason: String,
    },
}

/// An ordered, transactional key-value store.
#[async_trait]
pub trait Kv: std::fmt::Debug + Send + Sync + 'static {
    /// What it takes.
    fn limits(&self) -> KvLimits;

    /// Where it is kept; `None` in memory.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// The present state, once and for all.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read its state, [`Error::Unavailable`] after close.
    async fn snapshot(&self) -> Result<Box<dyn KvSnapshot>, Error>;

    /// Checks and writes, atomically. Dropping the future doesn't undo the commit: it may still happen.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a check failed, [`Error::TooLarge`] above the limits, [`Error::Unavailable`] after
    /// a failure or close, [`Error::DiskFull`] while the device is short of room: nothing is written.
    /// [`Error::OutcomeUnknown`] when writing failed.
    async fn commit(&self, commit: Commit) -> Result<KvCommitted, Error>;

    /// The last sequence that is acknowledged and visible.
    fn sequence(&self) -> watch::Receiver<u64>;

    /// Whether it works.
    fn health(&self) -> watch::Receiver<Health>;

    /// Makes everything that is committed durable.
    ///
    /// # Errors
    /// As [`Kv::commit`].
    async fn sync(&self) -> Result<(), Error>;

    /// Flushes everything, removes what is obsolete, and compacts what may be full of garbage. It happens by itself
    /// when nothing is written for [`crate::DatabaseOptions::settle_after`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] after a failure or close.
    async fn settle(&self) -> Result<(), Error>;

    /// What it holds and does.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the engine can't tell.
    async fn statistics(&self) -> Result<Statistics, Error>;

    /// Takes no more commits, finishes those that wait, and makes everything durable. Snapshots stay readable.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] when the last sync failed.
    async fn close(&self) -> Result<(), Error>;
}

/// Why the seam refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A check failed. Nothing is written.
    #[error("check {check} of the commit failed")]
    Conflict {
        /// Position of the first check that failed.
        check: usize,
    },
    /// A key or commit is larger than the store takes. Nothing is written.
    #[error("{limit} is {max}, but {actual} was given")]
    TooLarge {
        /// Name of the limit.
        limit: &'static str,
        /// The most that is taken.
        max: usize,
        /// What was given.
        actual: usize,
    },
    /// The store has failed before or is closed. Nothing is written.
    #[error("the store takes no more commits: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The device has too little room; there may be more later. Nothing is written.
    #[error("too little room on the device: {reason}")]
    DiskFull {
        /// How little.
        reason: String,
    },
    /// The commit failed half-way.
    #[error("the outcome of the commit is not known: {reason}")]
    OutcomeUnknown {
        /// What failed.
        reason: String,
        /// Whether the device was full.
        disk_full: bool,
    },
    /// The store can't read what it wrote.
    #[error("stored data is damaged: {what}")]
    Corrupt {
        /// What, and where.
        what: String,
        /// The engine's error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}
