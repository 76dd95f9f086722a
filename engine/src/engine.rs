//! One database: its tables, their indexes, and what runs beside them.

use std::any::TypeId;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use souk_chassis::layers::pool::Pool;
use souk_chassis::server::METER;
use souk_storage::{Database, DatabaseOptions};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::collection::Collection;
use crate::error::{EngineError, Result};
use crate::export::{SNAPSHOT_AGE_MAX, SNAPSHOTS_MAX, SNAPSHOTS_OF_CALLER_MAX, Snapshots};
use crate::health;
pub use crate::health::Health;
use crate::index_admin;
pub use crate::keeper::VerifyOptions;
use crate::keeper::{self, FollowOptions, Keeper, Room, Surroundings};
use crate::leases::Bounds;
use crate::log_tail::LogTail;
use crate::metrics::{self, Commits, EngineMetrics};
use crate::resource::Resource;
use crate::search_pool::SearchPool;
pub use crate::table::Tables;
use crate::table::{Declaration, OpenTable, check_distinct};
use crate::views::{VIEW_AGE_MAX, VIEWS_MAX, VIEWS_OF_CALLER_MAX, Views};
use crate::watch::{ReadAhead, WATCHES_MAX};

/// Folder of the store in an engine's directory.
const STORE: &str = "store";
/// Folder of the indexes in an engine's directory.
const INDEX: &str = "index";

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Its directory: `store` and `index` are made inside. Locked while open.
    pub directory: PathBuf,
    /// The store's options, the clock among them.
    pub storage: DatabaseOptions,
    /// How long an index that keeps up may leave changes unseen while it is searched and nobody waits for them.
    pub commit_interval: Duration,
    /// Memory of each index for changes that no commit includes, and as much again for deletes that merges haven't applied;
    /// bytes.
    pub writer_memory: usize,
    /// Documents of one index from which on the process gets [huge pages](souk_chassis::huge_pages) of memory.
    pub huge_pages_from: u64,
    /// How the files of indexes are compared with their checksums.
    pub verify: VerifyOptions,
    /// Searches that run at a time; 0 is twice the number of cores.
    pub search_threads: usize,
    /// Every call has a caller (`souk_access::Caller`): one that lost it on the way is refused, instead of meeting all
    /// rows.
    pub guarded: bool,
}

impl EngineConfig {
    /// The defaults, in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            storage: DatabaseOptions::default(),
            commit_interval: Duration::from_millis(200),
            writer_memory: 64 << 20,
            huge_pages_from: 100_000,
            verify: VerifyOptions::default(),
            search_threads: 0,
            guarded: false,
        }
    }
}

/// One database with its indexes. Clones share it.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What the clones of an engine and its collections share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) database: Database,
    pub(crate) clock: Arc<dyn souk_storage::Clock>,
    pub(crate) searches: SearchPool,
    pub(crate) snapshots: Snapshots,
    pub(crate) views: Views,
    pub(crate) watches: Arc<Pool>,
    pub(crate) read_ahead: ReadAhead,
    /// Whether every call has a caller.
    pub(crate) guarded: bool,
    pub(crate) metrics: EngineMetrics,
    pub(crate) tail: Arc<LogTail>,
    tables: HashMap<TypeId, Arc<OpenTable>>,
    health: watch::Receiver<Health>,
    keepers: Mutex<HashMap<TypeId, Keeper>>,
    /// Held by whoever changes the design of an index.
    redesigning: tokio::sync::Mutex<()>,
    /// Cancelled when the engine closes.
    pub(crate) closing: CancellationToken,
}

impl Inner {
    /// The tables that are open.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<OpenTable>> {
        self.tables.values()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Keepers hold the database; without this, dropping an engine that wasn't closed would leave its directory locked.
        self.closing.cancel();
    }
}

impl Engine {
    /// Opens the database in a directory, or creates it. Must be called inside a tokio runtime. Indexes are opened, and
    /// built where there are none, in the background: [`Engine::health`] tells when all of them answer. It is measured on
    /// the meter of the role that it is opened in.
    ///
    /// # Errors
    /// What storage and index refuse; [`EngineError::TableDeclaredTwice`].
    pub async fn open(mut config: EngineConfig, tables: Tables) -> Result<Self> {
        check_distinct(&tables.declared)?;
        let meter = opentelemetry::global::meter(METER);
        let metrics = EngineMetrics::new(&meter);
        config.storage.fjall.observer = Arc::new(Commits::new(&meter));
        let clock = Arc::clone(&config.storage.clock);
        let room = Room::new(
            Arc::clone(&config.storage.fjall.free_space),
            config.directory.clone(),
            config.storage.fjall.reserve_bytes,
        );
        let database = Database::open(config.directory.join(STORE), config.storage).await?;
        let closing = CancellationToken::new();
        let mut open = HashMap::new();
        for declaration in tables.declared {
            let table = open_table(&database, declaration).await?;
            open.insert(table.declaration.resource, Arc::new(table));
        }
        let declared: Vec<&'static str> = open.values().map(|table| table.declaration.name).collect();
        keeper::release_undeclared(&database, &declared).await;
        let tail = Arc::new(LogTail::new(database.clone()));
        let around = Surroundings {
            tail: Arc::clone(&tail),
            database: database.clone(),
            options: FollowOptions {
                commit_interval: config.commit_interval,
                writer_memory: config.writer_memory,
                huge_pages_from: config.huge_pages_from,
                verify: config.verify,
            },
            room,
            metrics: metrics.clone(),
            closing: closing.clone(),
        };
        let mut keepers = HashMap::new();
        for (resource, table) in &open {
            let folder = config.directory.join(INDEX).join(table.declaration.name);
            let keeper = Keeper::start(Arc::clone(table), around.clone(), folder).await?;
            keepers.insert(*resource, keeper);
        }
        let indexes = open.values().map(|table| Arc::clone(&table.index)).collect();
        let health = health::watch(&database, indexes, closing.clone());
        let snapshots = Bounds {
            count: SNAPSHOTS_MAX,
            share: SNAPSHOTS_OF_CALLER_MAX,
            age: SNAPSHOT_AGE_MAX,
        };
        let snapshots = Snapshots::new(snapshots, closing.clone());
        let views = Bounds {
            count: VIEWS_MAX,
            share: VIEWS_OF_CALLER_MAX,
            age: VIEW_AGE_MAX,
        };
        let views = Views::new(views, closing.clone());
        let inner = Arc::new(Inner {
            database,
            clock,
            searches: SearchPool::new(config.search_threads),
            snapshots,
            views,
            watches: Pool::new(WATCHES_MAX),
            read_ahead: ReadAhead::default(),
            metrics,
            tail,
            guarded: config.guarded,
            tables: open,
            health,
            keepers: Mutex::new(keepers),
            redesigning: tokio::sync::Mutex::default(),
            closing,
        });
        metrics::observe(&inner, &meter);
        Ok(Self { inner })
    }

    /// The collection of a resource.
    ///
    /// # Errors
    /// [`EngineError::UndeclaredTable`].
    pub fn collection<R: Resource>(&self) -> Result<Collection<R>> {
        let table = self.inner.tables.get(&TypeId::of::<R>());
        let table = table.ok_or(EngineError::UndeclaredTable { table: R::TABLE })?;
        Ok(Collection::new(Arc::clone(&self.inner), Arc::clone(table)))
    }

    /// Whether the engine works, now and from now on. It doesn't serve while an index has to be built before it answers, or
    /// can't take in changes for some seconds.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.health.clone()
    }

    /// The store: its rows are read and written through collections; it is backed up and inspected by itself.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.inner.database
    }

    /// The tables that are open.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<OpenTable>> {
        self.inner.tables()
    }

    /// To be held while the design of an index is changed.
    pub(crate) fn redesigning(&self) -> &tokio::sync::Mutex<()> {
        &self.inner.redesigning
    }

    /// Who keeps the index of a table; nobody does when the engine is closing.
    pub(crate) fn keeper(&self, table: &OpenTable) -> Result<Keeper> {
        let keepers = self.inner.keepers.lock();
        keepers
            .get(&table.declaration.resource)
            .cloned()
            .ok_or(EngineError::Closing)
    }

    /// The time by the engine's clock, nanoseconds since the Unix epoch.
    pub(crate) fn now(&self) -> i64 {
        self.inner.clock.now()
    }

    /// Takes no more calls; brings indexes and store to the disk. What isn't done by `deadline` is left to the next
    /// start: nothing that was acknowledged is lost.
    ///
    /// # Errors
    /// What storage or index couldn't finish.
    pub async fn close(&self, deadline: tokio::time::Instant) -> Result<()> {
        self.inner.closing.cancel();
        self.inner.snapshots.clear();
        self.inner.views.clear();
        let keepers = std::mem::take(&mut *self.inner.keepers.lock());
        let joined = tokio::task::spawn_blocking(move || keepers.into_values().for_each(Keeper::join));
        match tokio::time::timeout_at(deadline, joined).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                error!(%error, "indexes didn't end in order; they resume from their last checkpoints")
            }
            Err(_) => warn!("indexes weren't done in time; they resume from their last checkpoints"),
        }
        Ok(self.inner.database.close().await?)
    }
}

async fn open_table(database: &Database, declaration: Declaration) -> Result<OpenTable> {
    let declared = declaration.design()?;
    let table = database.ensure_table(declaration.table.clone()).await?;
    let changes = index_admin::read_kept(database, declaration.name).await?;
    let wanted = index_admin::redesigned(&declared, &changes, declaration.name);
    let last = database.last_sequence();
    Ok(OpenTable::new(declaration, table, changes, wanted, last))
}
