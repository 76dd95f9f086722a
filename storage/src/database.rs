//! The database: the handle everything is done through.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use souk_kv::{
    Commit, Direction, Durability, FjallKv, Health, Kv, KvSnapshot, MemoryKv, Mutation, Scan, Space,
    Statistics, histories::Histories,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::batch::{Committed, RequestRecord, WriteBatch, WrittenRow};
use crate::catalog::{Catalog, Table, TableId};
use crate::change::{Change, LogEntry};
use crate::consumer::{self, Consumer};
use crate::error::{Error, Result};
use crate::feed::Feeds;
use crate::jobs::{self, Jobs};
use crate::key;
use crate::limits;
use crate::maintenance;
use crate::options::DatabaseOptions;
use crate::read::{Snapshot, log};
use crate::schema::check_identifier;
use crate::tables;
use crate::transaction::{self, Partitions, Transaction, TransactionId};
use crate::value::KeyValue;
use crate::write::{self, RowLocks};

/// A database; clones share it. The directory stays locked until the last clone, [`Snapshot`], [`Consumer`] and
/// [`Transaction`] is dropped; [`Database::close`] makes everything durable before that.
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
    pub(crate) feeds: Feeds,
    pub(crate) histories: Histories,
    pub(crate) locks: RowLocks,
    /// Partitions that transactions hold.
    pub(crate) partitions: Arc<Partitions>,
    /// Held by whoever changes tables, consumers or feeds, or trims the log.
    pub(crate) admin: tokio::sync::Mutex<()>,
    pub(crate) options: DatabaseOptions,
    /// Shared by every write from its validation to its commit; held alone by whoever changes a table.
    pub(crate) schema_lock: Arc<tokio::sync::RwLock<()>>,
    pub(crate) jobs: Jobs,
    /// What runs in the background.
    pub(crate) background: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        for task in self.background.get_mut() {
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
        let kv = FjallKv::open(directory.as_ref(), &options.fjall).await?;
        Self::start(Arc::new(kv), options).await
    }

    /// A database in memory, for tests: the same behaviour, nothing is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the options.
    pub async fn in_memory(options: DatabaseOptions) -> Result<Self> {
        Self::start(Arc::new(MemoryKv::new()), options).await
    }

    /// Writes a batch: all of it or nothing, with one sequence and one change. Dropping the future doesn't undo the
    /// write: it may still happen.
    ///
    /// # Errors
    /// Nothing is written: [`Error::Invalid`], [`Error::LimitExceeded`], [`Error::ConditionFailed`],
    /// [`Error::RequestIdReused`], [`Error::TableNotFound`], [`Error::Contended`], [`Error::Unavailable`],
    /// [`Error::DiskFull`], [`Error::Corrupt`]. Not known: [`Error::OutcomeUnknown`].
    pub async fn write(&self, batch: WriteBatch) -> Result<Committed> {
        write::write(&self.shared, batch).await
    }

    /// What a batch with this request gives if one was written before; for whoever can't make the batch again
    /// because it depends on rows that may be gone. The reply in `request` is of no account.
    ///
    /// # Errors
    /// [`Error::RequestIdReused`], [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn replayed(&self, request: &RequestRecord) -> Result<Option<Committed>> {
        write::replayed(&self.shared, request, Durability::Disk).await
    }

    /// Writes the rows of a batch one by one instead of together: each is written or refused by itself, in as few
    /// commits, and changes, as they fit in. What became of each is given in their order.
    ///
    /// # Errors
    /// Of the call: [`Error::Invalid`] and [`Error::LimitExceeded`] for an argument of any row,
    /// [`Error::TableNotFound`]; no row is written. Of a row: as [`Database::write`].
    pub async fn write_rows(&self, batch: WriteBatch) -> Result<Vec<Result<WrittenRow>>> {
        write::rows::write(&self.shared, batch).await
    }

    /// Begins a transaction that holds a partition, when the writes to it that are on their way have ended. The table
    /// must have [`crate::TableSchema::transactions`]. It costs [`crate::CapacityUnits::TRANSACTION_STEP`].
    ///
    /// # Errors
    /// [`Error::TransactionConflict`] while another transaction holds it, [`Error::Invalid`],
    /// [`Error::TableNotFound`], [`Error::LimitExceeded`] for [`crate::limits::MAX_TRANSACTIONS`].
    pub async fn begin(&self, table: &Table, partition: KeyValue) -> Result<Transaction> {
        transaction::begin(&self.shared, table, partition).await
    }

    /// Takes up a transaction whose handle was given up by [`Transaction::detach`].
    ///
    /// # Errors
    /// [`Error::TransactionNotFound`], [`Error::TransactionBusy`] while somebody else has its handle.
    pub fn transaction(&self, id: TransactionId) -> Result<Transaction> {
        transaction::resume(&self.shared, id)
    }

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
    /// database, as etags are, has to compare this, too. Random; of a database that is the same to its last byte, the same.
    pub fn history_of(&self, sequence: u64) -> u64 {
        self.shared.histories.of(sequence)
    }

    /// Number of the history that gives the sequences to come.
    pub fn history(&self) -> u64 {
        self.shared.histories.of(u64::MAX)
    }

    /// One cut across rows, indexes and change log; it includes every write acknowledged before the call.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn snapshot(&self) -> Result<Snapshot> {
        // First: the cut then includes at least what this generation does.
        let generation = self.shared.catalog.read().generation();
        let kv = Arc::from(self.shared.kv.snapshot().await?);
        Ok(Snapshot {
            kv,
            generation,
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

    /// [`Snapshot::changes_of`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn changes_of(&self, table: TableId, after: u64, limit: usize) -> Result<Vec<Change>> {
        self.snapshot().await?.changes_of(table, after, limit).await
    }

    /// [`Snapshot::log_entries`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn log_entries(&self, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        self.snapshot().await?.log_entries(after, limit).await
    }

    /// [`Snapshot::sequence_at`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn sequence_at(&self, time: i64) -> Result<u64> {
        self.snapshot().await?.sequence_at(time).await
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

    /// All consumers of the change log, by name.
    pub fn consumers(&self) -> Vec<Consumer> {
        let names: Vec<String> = self.shared.consumers.lock().keys().cloned().collect();
        let consumer = |name| Consumer {
            name,
            shared: Arc::clone(&self.shared),
        };
        names.into_iter().map(consumer).collect()
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

    /// What runs in the background each [`DatabaseOptions::maintenance_interval`]: trims the log, sweeps request ids,
    /// frees expired cells, syncs what was buffered.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn maintain(&self) -> Result<()> {
        while maintenance::pass(&self.shared).await? {}
        Ok(())
    }

    /// Memory, journals, tables, compactions and disk, now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the engine can't tell.
    pub async fn statistics(&self) -> Result<Statistics> {
        Ok(self.shared.kv.statistics().await?)
    }

    /// Makes the disk hold little more than what is live, and returns when that is done: flushes, removes obsolete
    /// files, compacts what may be full of garbage. It happens by itself when nothing is written for
    /// [`souk_kv::FjallOptions::quiesce_after`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] after a failure or close.
    pub async fn quiesce(&self) -> Result<()> {
        Ok(self.shared.kv.quiesce().await?)
    }

    /// Takes no more writes, finishes those that wait, makes everything durable.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] when the last sync failed.
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

    /// Loads what the store knows, and starts the maintenance.
    async fn start(kv: Arc<dyn Kv>, options: DatabaseOptions) -> Result<Self> {
        if options.maintenance_interval.is_zero() {
            return Err(Error::invalid("maintenance_interval", "is zero"));
        }
        maintenance::trim::check(&options)?;
        let snapshot = kv.snapshot().await?;
        log::check_dense(&*snapshot, limits::DENSE_TAIL, limits::DENSE_TAIL_BYTES).await?;
        let histories = histories(&*kv, &*snapshot).await?;
        let (catalog, jobs) = tables::load(&*snapshot).await?;
        let mut consumers = BTreeMap::new();
        for (key, value) in all(&*snapshot, key::consumers()).await? {
            let name = key::consumer_of(&key)?;
            let position = <[u8; 8]>::try_from(&*value)
                .map(u64::from_be_bytes)
                .map_err(|_| Error::corrupt(format!("the position of consumer {name:?} is no number")))?;
            // It may lie beyond a log whose loss was accepted.
            consumers.insert(name, position.min(snapshot.sequence()));
        }
        let stored = all(&*snapshot, key::feeds()).await?;
        let (feeds, lost) = Feeds::load(&stored, snapshot.sequence())?;
        drop(snapshot);
        let shared = Arc::new(Shared {
            kv,
            catalog: RwLock::new(catalog),
            consumers: Mutex::new(consumers),
            feeds,
            histories,
            locks: RowLocks::new(),
            partitions: Partitions::new(),
            admin: tokio::sync::Mutex::new(()),
            options,
            schema_lock: Arc::default(),
            jobs,
            background: Mutex::new(Vec::new()),
        });
        Feeds::store_lost(&shared, &lost).await?;
        let background = [maintenance::start(&shared), jobs::start(&shared)];
        shared.background.lock().extend(background);
        Ok(Self { shared })
    }
}

/// The histories of a database; a new one begins its first.
async fn histories(kv: &dyn Kv, snapshot: &dyn KvSnapshot) -> Result<Histories> {
    if let Some(bytes) = snapshot.get(Space::Catalog, key::HISTORIES).await? {
        return Ok(Histories::decode(&bytes)?);
    }
    let mut histories = Histories::default();
    histories.begin(0);
    let commit = Commit {
        mutations: vec![Mutation::Put {
            space: Space::Catalog,
            key: key::HISTORIES.into(),
            value: histories.encode(),
            stamp: false,
        }],
        durability: Durability::Disk,
        ..Commit::default()
    };
    kv.commit(commit).await?;
    Ok(histories)
}

/// All entries of a part of the catalog.
pub(crate) async fn all(
    snapshot: &dyn KvSnapshot,
    (mut low, high): (Bytes, Bytes),
) -> Result<Vec<(Bytes, Bytes)>> {
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
