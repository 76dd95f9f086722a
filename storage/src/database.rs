//! The handle of a database, and the state that its clones share. Its methods are in the modules of what they do: `open`,
//! `read`, `write`, `transaction`, `tables`, `feed` and others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use souk_kv::histories::Histories;
use souk_kv::{Health, Kv, Statistics};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::feeds::Feeds;
use crate::jobs::Jobs;
use crate::options::DatabaseOptions;
use crate::partitions::Partitions;
use crate::row_cache::RowCache;
use crate::row_locks::RowLocks;

/// A database; clones share it. The directory stays locked until the last clone, [`crate::Snapshot`], [`crate::Consumer`] and
/// [`crate::Transaction`] is dropped; [`Database::close`] makes everything durable before that.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) shared: Arc<DatabaseState>,
}

/// What the clones of a database share.
#[derive(Debug)]
pub(crate) struct DatabaseState {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) catalog: RwLock<Catalog>,
    /// Position of each consumer.
    pub(crate) consumers: Mutex<BTreeMap<String, u64>>,
    pub(crate) feeds: Feeds,
    pub(crate) histories: Histories,
    pub(crate) locks: RowLocks,
    /// Partitions that transactions hold.
    pub(crate) partitions: Arc<Partitions>,
    /// Held by whoever changes tables, consumers or feeds, or trims the log.
    pub(crate) admin: tokio::sync::Mutex<()>,
    pub(crate) options: DatabaseOptions,
    pub(crate) row_cache: RowCache,
    /// Shared by every write from its validation to its commit; held alone by whoever changes a table.
    pub(crate) schema_lock: Arc<tokio::sync::RwLock<()>>,
    pub(crate) jobs: Jobs,
    /// The tasks of maintenance and of jobs. They hold the state only for a pass or step, so that it can be dropped.
    pub(crate) background: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for DatabaseState {
    fn drop(&mut self) {
        for task in self.background.get_mut() {
            task.abort();
        }
    }
}

impl Database {
    /// The last sequence that is acknowledged and visible.
    pub fn last_sequence(&self) -> u64 {
        *self.shared.kv.sequence().borrow()
    }

    /// Follows [`Database::last_sequence`]. A receiver sees the latest value, not each.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.kv.sequence()
    }

    /// Number of the history that gave a sequence. Sequences are given again after a restore and after a shorter log was accepted
    /// ([`crate::Recovery::AcceptShorterLog`]), but not in the same history: what is compared by sequence beyond the life of a
    /// database, as etags are, has to compare this, too. Random; a copy of a database has the numbers of its original.
    pub fn history_of(&self, sequence: u64) -> u64 {
        self.shared.histories.of(sequence)
    }

    /// Number of the history that gives the sequences to come.
    pub fn history(&self) -> u64 {
        self.shared.histories.of(u64::MAX)
    }

    /// How long changes are kept in the log ([`DatabaseOptions::retention`]).
    pub fn retention(&self) -> Duration {
        self.shared.options.retention
    }

    /// Whether the database works. Full passes by itself; failed is for good: writes are refused, only a restart
    /// helps. Reads go on in both.
    pub fn health(&self) -> Health {
        self.shared.kv.health().borrow().clone()
    }

    /// Follows [`Database::health`].
    pub fn watch_health(&self) -> watch::Receiver<Health> {
        self.shared.kv.health()
    }

    /// Memory, journals, tables, compactions and disk, now.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the engine can't tell.
    pub async fn statistics(&self) -> Result<Statistics> {
        Ok(self.shared.kv.statistics().await?)
    }

    /// Makes the disk hold little more than what is live, and returns when that is done: flushes, removes obsolete
    /// files, compacts what may be full of garbage. It happens by itself when nothing is written for
    /// [`souk_kv::FjallOptions::quiesce_after`].
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] after a failure or close.
    pub async fn quiesce(&self) -> Result<()> {
        Ok(self.shared.kv.quiesce().await?)
    }

    /// Takes no more writes, finishes those that wait, makes everything durable.
    ///
    /// # Errors
    /// [`crate::Error::OutcomeUnknown`] when the last sync failed.
    pub async fn close(&self) -> Result<()> {
        let background = std::mem::take(&mut *self.shared.background.lock());
        for task in background {
            task.abort();
            // It ends by being aborted; only then does it hold nothing of the database any more.
            let _ = task.await;
        }
        self.shared.jobs.close();
        Ok(self.shared.kv.close().await?)
    }
}
