//! What an engine does: snapshot reads and one declarative commit.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use crate::commit::{Commit, KvCommitted};
use crate::error::Error;
use crate::scan::{Scan, ScanPage};
use crate::space::Space;
use crate::statistics::Statistics;

/// The largest commit that an engine takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvLimits {
    /// Longest key, bytes.
    pub key_bytes: usize,
    /// Most bytes of one commit.
    pub commit_bytes: usize,
}

/// One cut across all spaces.
#[async_trait]
pub trait KvSnapshot: std::fmt::Debug + Send + Sync {
    /// Exactly the last sequence this cut includes.
    fn sequence(&self) -> u64;

    /// Number of the last commit group this cut includes. It grows whenever something becomes visible, logged or not, and
    /// goes on where it was when the store is opened again.
    fn group(&self) -> u64;

    /// True only if no group after this one wrote the key, of those in this cut and in cuts that the caller has read. May be false although
    /// none did.
    fn is_unwritten_since(&self, group: u64, space: Space, key: &[u8]) -> bool {
        let _ = (group, space, key);
        false
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read it.
    async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// The values of several keys, in their order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read one.
    async fn multi_get(&self, space: Space, keys: Vec<Bytes>) -> Result<Vec<Option<Bytes>>, Error> {
        self.multi_get_within(space, keys, usize::MAX).await
    }

    /// The values of several keys, in their order, until the values exceed `bytes`: the one that does is the last returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read one.
    async fn multi_get_within(
        &self,
        space: Space,
        keys: Vec<Bytes>,
        bytes: usize,
    ) -> Result<Vec<Option<Bytes>>, Error>;

    /// A page of a range.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read a part of it.
    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error>;
}

/// [`KvSnapshot::multi_get_within`] by a `get` of each key.
///
/// # Errors
/// Those of `get`.
pub(crate) fn values_within(
    keys: &[Bytes],
    bytes: usize,
    get: impl Fn(&Bytes) -> Result<Option<Bytes>, Error>,
) -> Result<Vec<Option<Bytes>>, Error> {
    let mut values = Vec::with_capacity(keys.len());
    let mut left = Some(bytes);
    for key in keys {
        let value = get(key)?;
        left = left.and_then(|left| left.checked_sub(value.as_ref().map_or(0, Bytes::len)));
        values.push(value);
        if left.is_none() {
            break;
        }
    }
    Ok(values)
}

/// Health of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It takes writes and reads.
    Serving,
    /// Writes are refused while the device has too little space, reads go on. It recovers by itself.
    Full {
        /// The free bytes and the reserve.
        reason: String,
    },
    /// It takes no more writes; only a restart helps. Reads go on.
    Failed {
        /// The first failure.
        reason: String,
    },
}

/// An ordered, transactional key-value store.
#[async_trait]
pub trait Kv: std::fmt::Debug + Send + Sync + 'static {
    /// The limits that it enforces.
    fn limits(&self) -> KvLimits;

    /// Its directory, if it has one in this machine's file system.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// A snapshot of the present state. It includes every commit acknowledged before the call.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the engine can't read its state, [`Error::Unavailable`] after close.
    async fn snapshot(&self) -> Result<Box<dyn KvSnapshot>, Error>;

    /// Evaluates the checks and writes, atomically. Dropping the future doesn't undo the commit: it may still happen.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a check failed, [`Error::TooLarge`] above the limits, [`Error::Malformed`],
    /// [`Error::Unavailable`] after a failure or close, [`Error::DiskFull`] while the device is short of space: nothing is written.
    /// [`Error::OutcomeUnknown`] when writing failed.
    async fn commit(&self, commit: Commit) -> Result<KvCommitted, Error>;

    /// Watches the last sequence that is acknowledged and visible.
    fn sequence(&self) -> watch::Receiver<u64>;

    /// Watches its health.
    fn health(&self) -> watch::Receiver<Health>;

    /// Makes everything that is committed durable.
    ///
    /// # Errors
    /// As [`Kv::commit`].
    async fn sync(&self) -> Result<(), Error>;

    /// Quiesces the store: flushes everything, removes obsolete files, and compacts spaces that may be full of garbage.
    /// It happens by itself when nothing is written for [`crate::FjallOptions::quiesce_after`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] after a failure or close.
    async fn quiesce(&self) -> Result<(), Error>;

    /// What it holds and does, for metrics.
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
