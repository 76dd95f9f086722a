//! Opening a database: loads what the store holds, and starts maintenance and jobs in the background.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use souk_kv::histories::Histories;
use souk_kv::{Commit, Durability, FjallKv, Kv, KvSnapshot, MemoryKv, Mutation, Space};

use crate::consumer::position_commit;
use crate::database::{Database, DatabaseState};
use crate::error::{Error, Result};
use crate::feed;
use crate::feeds::Feeds;
use crate::job_runner;
use crate::key;
use crate::limits;
use crate::maintenance;
use crate::options::DatabaseOptions;
use crate::partitions::Partitions;
use crate::read::log;
use crate::row_cache::RowCache;
use crate::row_locks::RowLocks;
use crate::tables;
use crate::walk::all;

impl Database {
    /// Opens or creates the database in a directory. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::NotADatabase`], [`Error::UnsupportedFormat`], [`Error::LogShortened`],
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::Invalid`] for the options; [`Error::DiskFull`],
    /// [`Error::OutcomeUnknown`] or [`Error::Unavailable`] when what a new or shortened log takes can't be written.
    pub async fn open(directory: impl AsRef<Path>, options: DatabaseOptions) -> Result<Self> {
        options.check()?;
        let kv = FjallKv::open(directory.as_ref(), &options.fjall).await?;
        Self::start(Arc::new(kv), options).await
    }

    /// A database in memory, for tests: the same behaviour, nothing is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the options.
    pub async fn in_memory(options: DatabaseOptions) -> Result<Self> {
        options.check()?;
        Self::start(Arc::new(MemoryKv::new()), options).await
    }

    /// Loads what the store holds, and starts the background work.
    async fn start(kv: Arc<dyn Kv>, options: DatabaseOptions) -> Result<Self> {
        let snapshot = kv.snapshot().await?;
        log::check_gap_free(&*snapshot, limits::GAP_CHECK_CHANGES, limits::GAP_CHECK_BYTES).await?;
        let histories = load_histories(&*kv, &*snapshot).await?;
        let (catalog, jobs) = tables::load(&*snapshot).await?;
        let consumers = load_consumers(&*kv, &*snapshot).await?;
        let stored = all(&*snapshot, key::feeds()).await?;
        let (feeds, lost) = Feeds::load(&stored, snapshot.sequence())?;
        drop(snapshot);
        let shared = Arc::new(DatabaseState {
            kv,
            catalog: RwLock::new(catalog),
            consumers: Mutex::new(consumers),
            feeds,
            histories,
            locks: RowLocks::new(),
            partitions: Partitions::new(),
            admin: tokio::sync::Mutex::new(()),
            row_cache: RowCache::new(options.fjall.memory_bytes),
            options,
            schema_lock: Arc::default(),
            jobs,
            background: Mutex::new(Vec::new()),
        });
        feed::store_lost(&shared, &lost).await?;
        let background = [maintenance::start(&shared), job_runner::start(&shared)];
        shared.background.lock().extend(background);
        Ok(Self { shared })
    }
}

/// Reads the positions of the consumers. One that is ahead of a log whose loss was accepted is set back to its end, durably,
/// before its sequences are assigned again: later it would pass for one that has taken those changes.
async fn load_consumers(kv: &dyn Kv, snapshot: &dyn KvSnapshot) -> Result<BTreeMap<String, u64>> {
    let mut consumers = BTreeMap::new();
    for (key, value) in all(snapshot, key::consumers()).await? {
        let name = key::consumer_of(&key)?;
        let position = <[u8; 8]>::try_from(&*value)
            .map(u64::from_be_bytes)
            .map_err(|_| Error::corrupt(format!("the position of consumer {name:?} is no number")))?;
        let end = snapshot.sequence();
        if position > end {
            tracing::warn!(consumer = name, position, end, "the consumer is ahead of the log");
            kv.commit(position_commit(&name, end, Durability::Disk)).await?;
        }
        consumers.insert(name, position.min(end));
    }
    Ok(consumers)
}

/// Reads the histories of a database; a new database gets its first.
async fn load_histories(kv: &dyn Kv, snapshot: &dyn KvSnapshot) -> Result<Histories> {
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
