//! The engine: one database with its tables, their search indexes, and their background work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use souk_storage::{Database, DatabaseOptions};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::call_slots::CallSlots;
use crate::catalog;
use crate::collection::Collection;
use crate::consumer_groups::ConsumerGroups;
use crate::deadline::Wait;
use crate::definition::{TableDefinition, index_name};
use crate::error::{EngineError, Result};
use crate::figures::EngineFigures;
use crate::health;
pub use crate::health::Health;
use crate::index_change;
use crate::index_state::IndexState;
use crate::inner::{self, Inner};
pub use crate::keeper::VerifyOptions;
use crate::keeper::{self, FollowOptions, Keeper, KeeperContext, Room};
use crate::kept_changes;
use crate::log_tail::LogTail;
use crate::observer::{Observer, Unobserved};
use crate::open_index::OpenIndex;
use crate::open_table::{Home, OpenTable};
use crate::read_ahead::ReadAhead;
use crate::resource::Resource;
use crate::search_pool::SearchPool;
use crate::slices::{SNAPSHOT_LIMITS, Snapshots};
use crate::stored;
use crate::table::{SCANS_MAX, SPLITS_MAX, TableHandle};
use crate::transactions::Transactions;
use crate::views::{VIEW_LIMITS, Views};
use crate::watch::WATCHES_MAX;

/// The tables that code declares. An engine opens them along with those of its catalog.
#[derive(Debug, Default)]
pub struct Tables {
    declared: Vec<TableDefinition>,
}

impl Tables {
    /// Declares no table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares the table of a resource.
    #[must_use]
    pub fn table<R: Resource>(mut self) -> Self {
        self.declared.push(stored::definition::<R>());
        self
    }
}

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
    /// The refresh interval: longest time until searches see a change, of an index that is searched and keeps up. A search that
    /// waits for a change refreshes at once.
    pub commit_interval: Duration,
    /// Bytes of memory of each index for changes that aren't committed yet, and as many again for deletes that merges haven't
    /// applied.
    pub writer_memory: usize,
    /// How long an index of a table of the catalog isn't searched, and its table not written, before it is closed; the next use opens
    /// it again. One that is large stays open.
    pub close_idle_after: Duration,
    /// Documents from which an index is reported to the observer as large.
    pub large_index_from: u64,
    /// How files of indexes are verified by their checksums.
    pub verify: VerifyOptions,
    /// Most searches that run at a time; 0 is twice the number of cores.
    pub search_threads: usize,
    /// Whether a call without a principal is refused. Otherwise it meets all rows.
    pub guarded: bool,
    /// Observes calls and indexes; the store's observer is in `storage`.
    pub observer: Arc<dyn Observer>,
}

impl EngineConfig {
    /// The defaults, in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            storage: DatabaseOptions::default(),
            commit_interval: Duration::from_millis(200),
            writer_memory: 64 << 20,
            close_idle_after: Duration::from_secs(300),
            large_index_from: 100_000,
            verify: VerifyOptions::default(),
            search_threads: 0,
            guarded: false,
            observer: Arc::new(Unobserved),
        }
    }
}

/// One database with its indexes. Clones share it.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// An [`Engine`] that may be gone.
#[derive(Clone, Debug)]
pub struct WeakEngine {
    inner: Weak<Inner>,
}

impl WeakEngine {
    /// The engine; `None` when it has gone, or closes.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine> {
        let inner = self.inner.upgrade()?;
        (!inner.closing.is_cancelled()).then_some(Engine { inner })
    }
}

impl Engine {
    /// Opens the database in a directory, or creates it. Must be called inside a tokio runtime. Indexes are opened, and
    /// built where there are none, in the background: [`Engine::health`] tells when all of them answer.
    ///
    /// A table of the catalog that can't be opened stays closed, which health reports.
    ///
    /// # Errors
    /// What storage and index refuse; [`EngineError::TableDeclaredTwice`], [`EngineError::TableOfCatalog`].
    pub async fn open(config: EngineConfig, tables: Tables) -> Result<Self> {
        check_distinct(&tables.declared)?;
        let clock = Arc::clone(&config.storage.clock);
        let room = Room::new(
            Arc::clone(&config.storage.fjall.free_space),
            config.directory.clone(),
            config.storage.fjall.reserve_bytes,
        );
        let database = Database::open(config.directory.join(STORE), config.storage).await?;
        let folder = config.directory.join(INDEX);
        let closing = CancellationToken::new();
        let declared: Vec<&str> = tables.declared.iter().map(TableDefinition::name).collect();
        let created = catalog::open(&database, &folder, &declared).await?;
        let mut open: BTreeMap<Arc<str>, Arc<OpenTable>> = BTreeMap::new();
        let named = |(name, reason): (String, String)| (Arc::from(name), reason);
        let mut closed: BTreeMap<Arc<str>, String> = created.closed.into_iter().map(named).collect();
        for definition in tables.declared {
            let table = declared_table(&database, definition).await?;
            open.insert(Arc::clone(table.shared_name()), Arc::new(table));
        }
        for table in created.open {
            open.insert(Arc::clone(table.shared_name()), Arc::new(table));
        }
        release_gone(&database, &folder, &open).await;
        let consumer_groups = ConsumerGroups::open(&database).await;
        let tail = Arc::new(LogTail::new(database.clone()));
        let keeper_context = KeeperContext {
            tail: Arc::clone(&tail),
            database: database.clone(),
            options: FollowOptions {
                commit_interval: config.commit_interval,
                writer_memory: config.writer_memory,
                close_idle_after: config.close_idle_after,
                large_index_from: config.large_index_from,
                verify: config.verify,
            },
            room,
            sleepers: Arc::default(),
            observer: Arc::clone(&config.observer),
            closing: closing.clone(),
        };
        let fed = keeper::with_feeds(&database);
        let mut keepers = BTreeMap::new();
        for (name, table) in &open {
            match Keeper::start_all(table, &keeper_context, &folder, &fed).await {
                Ok(started) => keepers.extend(started),
                Err(error) if table.home == Home::Catalog => {
                    error!(table = &**name, %error, "an index of a table can't be kept: it stays closed");
                    closed.insert(Arc::clone(name), error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        open.retain(|name, _| !closed.contains_key(name));
        let closed: BTreeMap<Arc<str>, Arc<IndexState>> = closed
            .into_iter()
            .map(|(name, reason)| (Arc::clone(&name), Arc::new(IndexState::of_closed(name, reason))))
            .collect();
        let tables: Vec<_> = open.values().map(Arc::clone).collect();
        let there = inner::indexes(&tables, closed.values().map(Arc::clone).collect());
        let (indexes, watched) = watch::channel(there);
        let health = health::watch(&database, watched, closing.clone());
        let sleepers = Arc::clone(&keeper_context.sleepers).watch(
            Arc::clone(&tail),
            &database,
            config.verify.interval,
            closing.clone(),
        );
        let inner = Arc::new(Inner {
            database,
            clock,
            searches: SearchPool::new(config.search_threads),
            snapshots: Snapshots::new(SNAPSHOT_LIMITS, closing.clone()),
            views: Views::new(VIEW_LIMITS, closing.clone()),
            watches: CallSlots::new(WATCHES_MAX),
            splits: CallSlots::new(SPLITS_MAX),
            scans: CallSlots::new(SCANS_MAX),
            transactions: Transactions::default(),
            consumer_groups,
            read_ahead: ReadAhead::default(),
            observer: config.observer,
            tail,
            guarded: config.guarded,
            tables: RwLock::new(open),
            closed: Mutex::new(closed),
            health,
            indexes,
            keepers: Mutex::new(keepers),
            sleepers: Mutex::new(Some(sleepers)),
            keeper_context,
            folder,
            changing: Arc::default(),
            closing,
        });
        Ok(Self { inner })
    }

    /// The collection of a resource.
    ///
    /// # Errors
    /// [`EngineError::UndeclaredTable`].
    pub fn collection<R: Resource>(&self) -> Result<Collection<R>> {
        let table = self
            .inner
            .table(R::TABLE)
            .filter(|table| table.home == Home::Code);
        let table = table.ok_or(EngineError::UndeclaredTable { table: R::TABLE })?;
        Ok(Collection::new(TableHandle::new(Arc::clone(&self.inner), table)))
    }

    /// A table, also one of a resource.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`], [`EngineError::TableClosed`].
    pub fn table(&self, name: &str) -> Result<TableHandle> {
        let table = self.opened(name)?;
        Ok(TableHandle::new(Arc::clone(&self.inner), table))
    }

    /// A table that is open.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`], [`EngineError::TableClosed`].
    pub(crate) fn opened(&self, name: &str) -> Result<Arc<OpenTable>> {
        self.inner.table(name).ok_or_else(|| {
            let table = name.to_owned();
            match self.inner.why_closed(name) {
                Some(reason) => EngineError::TableClosed { table, reason },
                None => EngineError::TableNotFound { table },
            }
        })
    }

    /// What the clones share.
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Watches the engine's health. It isn't serving while an index has to be built before it answers, or hasn't been able to
    /// apply changes for some seconds.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.health.clone()
    }

    /// The store: its rows are read and written through collections; it is backed up and inspected by itself.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.inner.database
    }

    /// What there is to measure now.
    pub async fn figures(&self) -> EngineFigures {
        EngineFigures::of(&self.inner).await
    }

    /// The engine without keeping it open.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine {
            inner: Arc::downgrade(&self.inner),
        }
    }

    /// Waits until the searches of all tables that name no index see a write.
    ///
    /// # Errors
    /// Those of a search with `min_sequence`.
    pub async fn refreshed(&self, sequence: u64, deadline: Option<Instant>) -> Result<()> {
        for table in self.tables() {
            for (index, _) in table.able() {
                index.state.refreshed(sequence, Wait::new(deadline)).await?;
            }
        }
        Ok(())
    }

    /// The tables that are open, by name.
    pub(crate) fn tables(&self) -> Vec<Arc<OpenTable>> {
        self.inner.tables()
    }

    /// The lock under which tables and their indexes are changed.
    pub(crate) fn changing(&self) -> &Arc<tokio::sync::Mutex<()>> {
        &self.inner.changing
    }

    /// The keeper of an index.
    ///
    /// # Errors
    /// [`EngineError::Closing`] when there is none: the engine has taken it to end it.
    pub(crate) fn keeper(&self, index: &str) -> Result<Keeper> {
        let keepers = self.inner.keepers.lock();
        keepers.get(index).cloned().ok_or(EngineError::Closing)
    }

    /// The time by the engine's clock, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.inner.clock.now()
    }

    /// Takes no more calls, checkpoints the indexes, and closes the store. Indexes that aren't done by `deadline` resume from their
    /// last checkpoints at the next start: nothing that was acknowledged is lost. The last sync of the store isn't bounded by it.
    ///
    /// # Errors
    /// What storage or index couldn't finish.
    pub async fn close(&self, deadline: Instant) -> Result<()> {
        self.inner.closing.cancel();
        self.inner.snapshots.clear();
        self.inner.views.clear();
        let keepers = std::mem::take(&mut *self.inner.keepers.lock());
        let joined = tokio::task::spawn_blocking(move || keepers.into_values().for_each(Keeper::join));
        // Meanwhile: the one doesn't take the time of the others.
        let sleepers = self.inner.sleepers.lock().take();
        if let Some(sleepers) = sleepers
            && !matches!(tokio::time::timeout_at(deadline, sleepers).await, Ok(Ok(())))
        {
            warn!("the watch over unopened indexes didn't end in order");
        }
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

/// Refuses two declarations of one table.
fn check_distinct(declared: &[TableDefinition]) -> Result<()> {
    for (at, definition) in declared.iter().enumerate() {
        let mut earlier = declared.iter().take(at);
        if earlier.any(|earlier| earlier.name() == definition.name()) {
            return Err(EngineError::TableDeclaredTwice {
                table: definition.name().to_owned(),
            });
        }
    }
    Ok(())
}

/// Lets go of what indexes hold that are gone: of the log, and the folders of those whose tables are still there.
async fn release_gone(database: &Database, folder: &Path, open: &BTreeMap<Arc<str>, Arc<OpenTable>>) {
    let indexes = open.values().flat_map(|table| table.indexes().to_vec());
    let names: Vec<Arc<str>> = indexes.map(|index| Arc::clone(index.shared_name())).collect();
    let there: Vec<&str> = names.iter().map(|name| &**name).collect();
    keeper::release_undeclared(database, &there).await;
    let tables: Vec<Arc<str>> = open.keys().map(Arc::clone).collect();
    let is_gone = move |index: &str| {
        let of_open = tables.iter().any(|table| **table == *index_name::table_of(index));
        of_open && !names.iter().any(|name| **name == *index)
    };
    if let Err(error) = keeper::remove_all(database, folder, is_gone).await {
        warn!(%error, "what indexes that are gone have left can't be removed; the next start tries again");
    }
}

/// The table of a resource, with the changes of its indexes.
async fn declared_table(database: &Database, definition: TableDefinition) -> Result<OpenTable> {
    definition.check()?;
    if definition.indexes.len() > usize::from(definition.search().is_some()) {
        return Err(definition.invalid(
            "declares a search index that hasn't its name: code declares one, others are created while it is served",
        ));
    }
    let table = database.ensure_table(definition.schema.clone()).await?;
    let kept = kept_changes::read(database, definition.name()).await?;
    let definition = kept.put_into(definition);
    let mut indexes = Vec::new();
    for index in &definition.indexes {
        indexes.push(match index.name == definition.name() {
            true => OpenIndex::new(&definition, &index_change::changed(index, &kept))?,
            false => OpenIndex::new(&definition, index)?,
        });
    }
    let kept = kept.taken_from(&definition);
    let last = database.last_sequence();
    Ok(OpenTable::new(Home::Code, definition, table, kept, indexes, last))
}
