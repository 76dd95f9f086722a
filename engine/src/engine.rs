//! One database: its tables, their indexes, and what runs beside them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use souk_storage::DatabaseOptions;
use tokio::sync::watch;

use crate::collection::Collection;
use crate::error::{EngineError, Result};
use crate::resource::Resource;

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Its directory: `store` and `index` are made inside. Locked while open.
    pub directory: PathBuf,
    /// The store's options, the clock among them.
    pub storage: DatabaseOptions,
    /// How often an index takes up changes while nobody waits for them.
    pub commit_interval: Duration,
    /// Searches that run at a time; 0 is twice the number of cores.
    pub search_threads: usize,
}

impl EngineConfig {
    /// The defaults, in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            storage: DatabaseOptions::default(),
            commit_interval: Duration::from_millis(200),
            search_threads: 0,
        }
    }
}

/// The tables of an engine.
#[derive(Debug, Default)]
pub struct Tables {}

impl Tables {
    /// No table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the table of a resource.
    #[must_use]
    pub fn table<R: Resource>(self) -> Self {
        self
    }
}

/// Whether an engine works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Serving,
    /// It doesn't; only a restart helps.
    NotServing {
        /// Why.
        reason: String,
    },
}

impl Health {
    /// Does it work?
    #[must_use]
    pub fn is_serving(&self) -> bool {
        *self == Self::Serving
    }
}

/// One database with its indexes. Clones share it.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    health: watch::Sender<Health>,
}

impl Engine {
    /// Opens the database in a directory, or creates it. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// What storage and index refuse; [`EngineError::TableDeclaredTwice`].
    pub async fn open(config: EngineConfig, tables: Tables) -> Result<Self> {
        let _ = (config, tables);
        Err(EngineError::Defect("not built yet"))
    }

    /// The collection of a resource.
    ///
    /// # Errors
    /// [`EngineError::UndeclaredTable`].
    pub fn collection<R: Resource>(&self) -> Result<Collection<R>> {
        Ok(Collection::new(Arc::clone(&self.inner)))
    }

    /// Whether the engine works, now and from now on.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.health.subscribe()
    }

    /// Takes no more calls; brings indexes and store to the disk. What isn't done by `deadline` is left to the next
    /// start: nothing that was acknowledged is lost.
    ///
    /// # Errors
    /// What storage or index couldn't finish.
    pub async fn close(&self, deadline: tokio::time::Instant) -> Result<()> {
        let _ = deadline;
        Err(EngineError::Defect("not built yet"))
    }
}
