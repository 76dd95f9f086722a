//! The database: the handle everything is done through.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::batch::{Committed, Durability, RequestRecord, WriteBatch};
use crate::catalog::{self, Catalog, Table, TableId};
use crate::change::Change;
use crate::consumer::{self, Consumer};
use crate::error::{Error, Result};
use crate::key;
pub use crate::kv::Health;
use crate::kv::fjall::FjallKv;
use crate::kv::memory::MemoryKv;
use crate::kv::{Check, Commit, Direction, Kv, KvSnapshot, Mutation, Scan, Space};
use crate::limits;
use crate::maintenance;
use crate::options::DatabaseOptions;
use crate::read::{Snapshot, log};
use crate::schema::{TableSchema, check_identifier};
use crate::write::{self, RowLocks};

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
    /// Position of each consumer.
    pub(crate) consumers: Mutex<BTreeMap<String, u64>>,
    pub(crate) locks: RowLocks,
    /// Held by whoever changes tables or consumers, or trims the log.
    pub(crate) admin: tokio::sync::Mutex<()>,
    pub(crate) options: DatabaseOptions,
    maintenance: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(task) = self.maintenance.get_mut().take() {
            task.abort();
        }
    }
}

impl Database {
    /// Opens or creates the database in a directory. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::NotADatabase`], [`Error::UnsupportedFormat`], [`Error::LogShortened`],
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::Invalid`] for the options.
    pub async fn open(directory: impl AsRef<Path>, options: DatabaseOptions) -> Result<Self> {
        let kv = FjallKv::open(directory.as_ref(), &options).await?;
        Self::start(Arc::new(kv), options).await
    }

    /// A database in memory, for tests: the same behaviour, nothing is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the options.
    pub async fn in_memory(options: DatabaseOptions) -> Result<Self> {
        Self::start(Arc::new(MemoryKv::new()), options).await
    }

    /// Creates a table with its secondary indexes, durably.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::Invalid`], [`Error::LimitExceeded`], [`Error::Unavailable`].
    pub async fn create_table(&self, schema: TableSchema) -> Result<Table> {
        schema.check()?;
        let _admin = self.shared.admin.lock().await;
        if let Some(table) = self.table(&schema.name) {
            let difference = table.schema().difference(&schema);
            return Err(Error::TableExists {
                table: schema.name,
                difference: difference.unwrap_or_else(|| "not at all".to_owned()),
            });
        }
        self.create(schema).await
    }

    /// The table of that name, created if there is none.
    ///
    /// # Errors
    /// [`Error::TableExists`] when it differs from the schema; else as [`Database::create_table`].
    pub async fn ensure_table(&self, schema: TableSchema) -> Result<Table> {
        schema.check()?;
        let _admin = self.shared.admin.lock().await;
        let Some(table) = self.table(&schema.name) else {
            return self.create(schema).await;
        };
        match table.schema().difference(&schema) {
            None => Ok(table),
            Some(difference) => Err(Error::TableExists {
                table: schema.name,
                difference,
            }),
        }
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
    pub async fn write(&self, batch: WriteBatch) -> Result<Committed> {
        write::write(&self.shared, batch).await
    }

    /// What a batch with this request gives if one was written before; for whoever can't make the batch again
    /// because it depends on rows that may be gone. The reply in `request` is of no account.
    ///
    /// # Errors
    /// [`Error::RequestIdReused`], [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn replayed(&self, request: &RequestRecord) -> Result<Option<Committed>> {
        write::replayed(&self.shared, request).await
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
    pub async fn consumer(&self, name: &str) -> Result<Consumer> {
        check_identifier("consumer", name)?;
        let consumer = Consumer {
            name: name.to_owned(),
            shared: Arc::clone(&self.shared),
        };
        let _admin = self.shared.admin.lock().await;
        let registered = {
            let consumers = self.shared.consumers.lock();
            if consumers.contains_key(name) {
                return Ok(consumer);
            }
            consumers.len()
        };
        limits::check("MAX_CONSUMERS", limits::MAX_CONSUMERS, registered + 1)?;
        let snapshot = self.shared.kv.snapshot().await?;
        let trimmed = log::trimmed(&*snapshot).await?;
        let commit = consumer::position_commit(name, trimmed, Durability::Disk);
        self.shared.kv.commit(commit).await?;
        self.shared.consumers.lock().insert(name.to_owned(), trimmed);
        Ok(consumer)
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
        maintenance::pass(&self.shared).await
    }

    /// Takes no more writes, finishes those that wait, makes everything durable.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] when the last sync failed.
    pub async fn close(&self) -> Result<()> {
        let maintenance = self.shared.maintenance.lock().take();
        if let Some(task) = maintenance {
            task.abort();
            // It ends by being aborted; only then does it hold nothing of the database any more.
            let _ = task.await;
        }
        Ok(self.shared.kv.close().await?)
    }

    /// Loads what the store knows, and starts the maintenance.
    async fn start(kv: Arc<dyn Kv>, options: DatabaseOptions) -> Result<Self> {
        if options.maintenance_interval.is_zero() {
            return Err(Error::invalid("maintenance_interval", "is zero"));
        }
        let snapshot = kv.snapshot().await?;
        log::check_dense(&*snapshot, limits::DENSE_TAIL).await?;
        let mut catalog = Catalog::default();
        for (key, value) in all(&*snapshot, key::tables()).await? {
            let id = key::table_of(&key)?;
            catalog.insert(Table::new(id, catalog::codec::decode(id, &value)?));
        }
        let mut consumers = BTreeMap::new();
        for (key, value) in all(&*snapshot, key::consumers()).await? {
            let name = key::consumer_of(&key)?;
            let position = <[u8; 8]>::try_from(&*value)
                .map(u64::from_be_bytes)
                .map_err(|_| Error::corrupt(format!("the position of consumer {name:?} is no number")))?;
            // It may lie beyond a log whose loss was accepted.
            consumers.insert(name, position.min(snapshot.sequence()));
        }
        drop(snapshot);
        let shared = Arc::new(Shared {
            kv,
            catalog: RwLock::new(catalog),
            consumers: Mutex::new(consumers),
            locks: RowLocks::new(),
            admin: tokio::sync::Mutex::new(()),
            options,
            maintenance: Mutex::new(None),
        });
        *shared.maintenance.lock() = Some(maintenance::start(&shared));
        Ok(Self { shared })
    }

    /// Creates a table that isn't there; the caller holds the admin lock.
    async fn create(&self, schema: TableSchema) -> Result<Table> {
        let id = {
            let catalog = self.shared.catalog.read();
            limits::check("MAX_TABLES", limits::MAX_TABLES, catalog.len() + 1)?;
            catalog.next_id()?
        };
        let commit = Commit {
            checks: vec![Check::Absent {
                space: Space::Catalog,
                key: key::table(id),
            }],
            mutations: vec![Mutation::Put {
                space: Space::Catalog,
                key: key::table(id),
                value: catalog::codec::encode(&schema),
                stamp: false,
            }],
            ..Commit::default()
        };
        self.shared.kv.commit(commit).await?;
        let table = Table::new(id, schema);
        self.shared.catalog.write().insert(table.clone());
        Ok(table)
    }
}

/// All entries of a part of the catalog.
async fn all(snapshot: &dyn KvSnapshot, (mut low, high): (Bytes, Bytes)) -> Result<Vec<(Bytes, Bytes)>> {
    let mut entries = Vec::new();
    loop {
        let scan = Scan {
            space: Space::Catalog,
            low,
            high: high.clone(),
            direction: Direction::Forward,
            rows: limits::MAX_SCANNED_ROWS,
            bytes: limits::MAX_SCANNED_BYTES,
        };
        let page = snapshot.scan(scan).await?;
        entries.extend(page.entries);
        match page.next {
            Some(next) => low = next,
            None => return Ok(entries),
        }
    }
}
