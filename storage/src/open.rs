//! Opening a database: loads what the store holds, and starts what runs in the background.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use souk_kv::histories::Histories;
use souk_kv::{Commit, Durability, FjallKv, Kv, KvSnapshot, MemoryKv, Mutation, Space};

use crate::database::{Database, Shared};
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
use crate::row_locks::RowLocks;
use crate::tables;
use crate::walk::all;

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
        feed::store_lost(&shared, &lost).await?;
        let background = [maintenance::start(&shared), job_runner::start(&shared)];
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
