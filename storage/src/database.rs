//! The database: the handle everything is done through.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::batch::{Committed, WriteBatch};
use crate::catalog::{Catalog, Table, TableId};
use crate::change::Change;
use crate::consumer::Consumer;
use crate::error::{Error, Result};
pub use crate::kv::Health;
use crate::kv::Kv;
use crate::options::DatabaseOptions;
use crate::read::Snapshot;
use crate::schema::TableSchema;

/// A database; clones share it. The directory stays locked until the last clone, [`Snapshot`] and [`Consumer`] is
/// dropped; [`Database::close`] makes everything durable before that.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
}

/// What the clones of a database share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) catalog: RwLock<Catalog>,
    pub(crate) options: DatabaseOptions,
}

impl Database {
    /// Opens or creates the database in a directory. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::NotADatabase`], [`Error::UnsupportedFormat`], [`Error::LogShortened`],
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::Invalid`] for the options.
    pub async fn open(_directory: impl AsRef<Path>, _options: DatabaseOptions) -> Result<Self> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// A database in memory, for tests: the same behaviour, nothing is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the options.
    pub async fn in_memory(_options: DatabaseOptions) -> Result<Self> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// Creates a table with its secondary indexes, durably.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::Invalid`], [`Error::LimitExceeded`], [`Error::Unavailable`].
    pub async fn create_table(&self, _schema: TableSchema) -> Result<Table> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// The table of that name, created if there is none.
    ///
    /// # Errors
    /// [`Error::TableExists`] when it differs from the schema; else as [`Database::create_table`].
    pub async fn ensure_table(&self, _schema: TableSchema) -> Result<Table> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// A table by name.
    pub fn table(&self, name: &str) -> Option<Table> {
        self.shared.catalog.read().by_name(name).cloned()
    }

    /// A table by its number, as changes name it.
    pub fn table_by_id(&self, id: TableId) -> Option<Table> {
        self.shared.catalog.read().by_id(id).cloned()
    }

    /// All tables, by name.
    pub fn tables(&self) -> Vec<Table> {
        self.shared.catalog.read().tables()
    }

    /// Writes a batch: all of it or nothing, with one sequence and one change. Dropping the future doesn't undo the
    /// write: it may still happen.
    ///
    /// # Errors
    /// Nothing is written: [`Error::Invalid`], [`Error::LimitExceeded`], [`Error::ConditionFailed`],
    /// [`Error::RequestIdReused`], [`Error::TableNotFound`], [`Error::Contended`], [`Error::Unavailable`],
    /// [`Error::Corrupt`]. Not known: [`Error::OutcomeUnknown`], [`Error::DiskFull`].
    pub async fn write(&self, _batch: WriteBatch) -> Result<Committed> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// The last sequence that is acknowledged and visible.
    pub fn last_sequence(&self) -> u64 {
        *self.shared.kv.sequence().borrow()
    }

    /// Follows [`Database::last_sequence`]. A receiver sees the latest value, not each.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.kv.sequence()
    }

    /// One cut across rows, indexes and change log; it includes every write acknowledged before the call.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let kv = Arc::from(self.shared.kv.snapshot().await?);
        Ok(Snapshot {
            kv,
            shared: Arc::clone(&self.shared),
        })
    }

    /// [`Snapshot::changes`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn changes(&self, after: u64, limit: usize) -> Result<Vec<Change>> {
        self.snapshot().await?.changes(after, limit).await
    }

    /// The consumer of the change log with this name, registered durably if there is none. While it is registered,
    /// changes it hasn't taken are not trimmed; a new one starts before the oldest change that is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the name, [`Error::LimitExceeded`] for [`crate::limits::MAX_CONSUMERS`],
    /// [`Error::Unavailable`].
    pub async fn consumer(&self, _name: &str) -> Result<Consumer> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// Whether the database works. Failed is for good: writes are refused, only a restart helps.
    pub fn health(&self) -> Health {
        self.shared.kv.health().borrow().clone()
    }

    /// Follows [`Database::health`].
    pub fn watch_health(&self) -> watch::Receiver<Health> {
        self.shared.kv.health()
    }

    /// One pass of what runs in the background each [`DatabaseOptions::maintenance_interval`]: trims the log, sweeps
    /// request ids, syncs what was buffered.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn maintain(&self) -> Result<()> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// Takes no more writes, finishes those that wait, makes everything durable.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] when the last sync failed.
    pub async fn close(&self) -> Result<()> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }
}
