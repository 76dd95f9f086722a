//! Creating, changing and deleting tables and their secondary indexes.
//!
//! A change is one commit of the catalog, with the background jobs it makes necessary. While it happens no write is
//! between its validation and its commit, so that a write knows the indexes it has to keep. It runs in a task of its
//! own: a caller that goes away can't leave the handles behind what is stored.

#[cfg(test)]
mod tests;
mod update;

use std::sync::Arc;

use souk_kv::{Check, Commit, Durability, KvSnapshot, Mutation, Space};

pub use self::update::TableUpdate;
use crate::catalog::{self, Catalog, Definition, ExpiryIndex, SecondaryIndexState, Table};
use crate::database::{Database, DatabaseState};
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::job_runner;
use crate::jobs::{self, Job, JobKey, JobKind, Jobs};
use crate::key;
use crate::limits;
use crate::schema::{SecondaryIndexSchema, TableSchema};
use crate::secondary::EXPIRY_INDEX;
use crate::undisturbed::undisturbed;
use crate::walk::all;

/// Whether a new index holds the rows that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backfill {
    /// It holds them, and can be read when they have been added in the background.
    #[default]
    Existing,
    /// It doesn't hold them, and can be read at once: a row gets its entry when it is next written.
    None,
}

impl Database {
    /// Creates a table with its secondary indexes, durably.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::Invalid`], [`Error::LimitExceeded`], [`Error::Unavailable`].
    pub async fn create_table(&self, schema: TableSchema) -> Result<Table> {
        schema.check()?;
        let shared = Arc::clone(&self.shared);
        undisturbed(async move {
            let _admin = shared.admin.lock().await;
            let existing = shared.catalog.read().by_name(&schema.name).cloned();
            if let Some(table) = existing {
                let difference = table.schema().difference(&schema);
                return Err(Error::TableExists {
                    table: schema.name,
                    difference: difference.unwrap_or_else(|| "not at all".to_owned()),
                });
            }
            create(&shared, schema).await
        })
        .await
    }

    /// The table of that name, created if there is none.
    ///
    /// # Errors
    /// [`Error::TableExists`] when it differs from the schema; else as [`Database::create_table`].
    pub async fn ensure_table(&self, schema: TableSchema) -> Result<Table> {
        schema.check()?;
        let shared = Arc::clone(&self.shared);
        undisturbed(async move {
            let _admin = shared.admin.lock().await;
            let existing = shared.catalog.read().by_name(&schema.name).cloned();
            let Some(table) = existing else {
                return create(&shared, schema).await;
            };
            match table.schema().difference(&schema) {
                None => Ok(table),
                Some(difference) => Err(Error::TableExists {
                    table: schema.name,
                    difference,
                }),
            }
        })
        .await
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

    /// Changes a table, durably; its handles follow at once. A table whose time to live was taken away gets one again
    /// only when what the first one left behind is removed: this waits for it.
    ///
    /// # Errors
    /// [`Error::TableNotFound`]; as [`Database::create_table`].
    pub async fn update_table(&self, table: &Table, update: TableUpdate) -> Result<()> {
        let removal = (table.id(), JobKind::RemoveIndex, EXPIRY_INDEX);
        for _ in 0..limits::MAX_WRITE_ATTEMPTS {
            if let Some(Some(_)) = update.time_to_live {
                job_runner::wait(&self.shared, || {
                    let pending = self.shared.jobs.contains(removal);
                    Ok((!pending).then_some(()))
                })
                .await?;
            }
            let (shared, id, update) = (Arc::clone(&self.shared), table.id(), update.clone());
            let changed = self
                .change(table, move |old| {
                    let schema = update.apply(&old.schema);
                    schema.check()?;
                    let change = updated(id, old, schema);
                    // Somebody else may have taken it away meanwhile.
                    if change.cancelled.contains(&removal) && shared.jobs.contains(removal) {
                        return Err(Error::Contended { attempts: 1 });
                    }
                    Ok(change)
                })
                .await;
            match changed {
                Err(Error::Contended { .. }) => {}
                changed => return changed,
            }
        }
        Err(Error::Contended {
            attempts: limits::MAX_WRITE_ATTEMPTS,
        })
    }

    /// Adds a secondary index, durably. Writes keep it from here on; with [`Backfill::Existing`] it can be read when
    /// the rows that are there have been added, see [`Database::index_ready`].
    ///
    /// # Errors
    /// [`Error::TableNotFound`], [`Error::IndexExists`], [`Error::LimitExceeded`] for
    /// [`crate::limits::MAX_INDEXES`] and others; as [`Database::create_table`].
    pub async fn create_index(
        &self,
        table: &Table,
        index: SecondaryIndexSchema,
        backfill: Backfill,
    ) -> Result<()> {
        let id = table.id();
        self.change(table, move |old| {
            let (state, partial) = match backfill {
                Backfill::Existing => (SecondaryIndexState::Building, false),
                Backfill::None => (SecondaryIndexState::Ready, true),
            };
            let (definition, index) = old.with_index(index, state, partial)?;
            let mut change = Change::to(definition);
            match backfill {
                Backfill::Existing => change.start(id, JobKind::FillIndex, index.number),
                Backfill::None => change.readable = Some(index.number),
            }
            Ok(change)
        })
        .await
    }

    /// Drops a secondary index, durably. Its entries are removed in the background; its name is free at once.
    ///
    /// # Errors
    /// [`Error::TableNotFound`], [`Error::IndexNotFound`], [`Error::Unavailable`].
    pub async fn drop_index(&self, table: &Table, index: &str) -> Result<()> {
        let (id, index) = (table.id(), index.to_owned());
        self.change(table, move |old| {
            let (definition, index) = old.without_index(&index)?;
            let mut change = Change::to(definition);
            change.cancelled.push((id, JobKind::FillIndex, index.number));
            change.start(id, JobKind::RemoveIndex, index.number);
            Ok(change)
        })
        .await
    }

    /// Deletes a table with its rows and indexes, durably. Its handles find it no more, its name is free at once, and
    /// its number is never used again; what it stored is removed in the background. Its changes stay in the log.
    ///
    /// # Errors
    /// [`Error::TableNotFound`], [`Error::Unavailable`].
    pub async fn delete_table(&self, table: &Table) -> Result<()> {
        let (shared, table) = (Arc::clone(&self.shared), table.clone());
        undisturbed(async move {
            let _admin = shared.admin.lock().await;
            let _alone = shared.schema_lock.write().await;
            shared.catalog.read().check_owned(&table)?;
            let cancelled = shared.jobs.of_table(table.id());
            let job = Job::new(table.id(), JobKind::RemoveTable, 0);
            let mut mutations: Vec<_> = cancelled.iter().map(|job| jobs::delete(*job)).collect();
            mutations.push(job.put());
            mutations.push(Mutation::Delete {
                space: Space::Catalog,
                key: key::table(table.id()),
            });
            commit(&shared, Vec::new(), mutations).await?;
            shared.catalog.write().remove(&table);
            shared.jobs.replace(&cancelled, vec![job]);
            Ok(())
        })
        .await
    }

    /// Waits until a secondary index can be read.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and [`Error::IndexNotFound`], also when they go away meanwhile;
    /// [`Error::IndexFailed`]; [`Error::Unavailable`] when the database fails or is closed.
    pub async fn index_ready(&self, table: &Table, index: &str) -> Result<()> {
        job_runner::wait(&self.shared, || {
            self.shared.catalog.read().check_owned(table)?;
            match table.index_state(index)? {
                SecondaryIndexState::Building => Ok(None),
                SecondaryIndexState::Ready => Ok(Some(())),
                SecondaryIndexState::Failed { reason } => Err(Error::IndexFailed {
                    table: table.name().to_owned(),
                    index: index.to_owned(),
                    reason,
                }),
            }
        })
        .await
    }

    /// What is still to be done in the background after tables were changed.
    pub fn jobs(&self) -> Vec<Job> {
        self.shared.jobs.list()
    }

    /// Waits until [`Database::jobs`] is empty.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database fails or is closed.
    pub async fn jobs_done(&self) -> Result<()> {
        job_runner::wait(&self.shared, || {
            let done = self.shared.jobs.list().is_empty();
            Ok(done.then_some(()))
        })
        .await
    }

    /// Changes a table as `make` says.
    async fn change(
        &self,
        table: &Table,
        make: impl FnOnce(&Definition) -> Result<Change> + Send + 'static,
    ) -> Result<()> {
        let (shared, table) = (Arc::clone(&self.shared), table.clone());
        undisturbed(async move {
            let _admin = shared.admin.lock().await;
            let _alone = shared.schema_lock.write().await;
            shared.catalog.read().check_owned(&table)?;
            let old = table.definition();
            let change = make(&old)?;
            if change.definition == *old {
                return Ok(());
            }
            let mut mutations = vec![table.put(&change.definition)];
            mutations.extend(change.cancelled.iter().map(|job| jobs::delete(*job)));
            mutations.extend(change.started.iter().map(Job::put));
            commit(&shared, Vec::new(), mutations).await?;
            let mut catalog = shared.catalog.write();
            catalog.define(&table, change.definition, change.readable);
            drop(catalog);
            shared.jobs.replace(&change.cancelled, change.started);
            Ok(())
        })
        .await
    }
}

/// What becomes of a table.
struct Change {
    definition: Definition,
    /// Number of an index that can be read from now on.
    readable: Option<u16>,
    cancelled: Vec<JobKey>,
    started: Vec<Job>,
}

impl Change {
    fn to(definition: Definition) -> Self {
        Self {
            definition,
            readable: None,
            cancelled: Vec::new(),
            started: Vec::new(),
        }
    }

    fn start(&mut self, table: TableId, kind: JobKind, index: u16) {
        self.started.push(Job::new(table, kind, index));
    }
}

/// The tables and jobs of the catalog.
pub(crate) async fn load(snapshot: &dyn KvSnapshot) -> Result<(Catalog, Jobs)> {
    let last = snapshot.get(Space::Catalog, key::LAST_TABLE).await?;
    let last = last.map_or(Ok(0), |last| {
        <[u8; 4]>::try_from(&*last)
            .map(u32::from_be_bytes)
            .map_err(|_| Error::corrupt(format!("the highest number of a table has {} bytes", last.len())))
    })?;
    let mut catalog = Catalog::new(last);
    let mut jobs = Vec::new();
    for (key, value) in all(snapshot, key::jobs()).await? {
        jobs.push(Job::decode(&key, &value)?);
    }
    let jobs = Jobs::new(jobs);
    for (key, value) in all(snapshot, key::tables()).await? {
        let id = key::table_of(&key)?;
        let mut definition = catalog::codec::decode(id, &value)?;
        if definition.expiry == ExpiryIndex::Absent && definition.schema.time_to_live.is_some() {
            // It is from before there were hidden indexes.
            definition.expiry = ExpiryIndex::Building;
        }
        if definition.expiry == ExpiryIndex::Building {
            jobs.ensure(Job::new(id, JobKind::FillIndex, EXPIRY_INDEX));
        }
        catalog.insert(Table::new(id, definition));
    }
    Ok((catalog, jobs))
}

/// A table with another schema of the same indexes.
fn updated(id: TableId, old: &Definition, schema: TableSchema) -> Change {
    let mut change = Change::to(old.with_schema(schema));
    let expires = |definition: &Definition| definition.schema.time_to_live.is_some();
    match (expires(old), expires(&change.definition)) {
        (false, true) => {
            change.definition.expiry = ExpiryIndex::Building;
            change.cancelled.push((id, JobKind::RemoveIndex, EXPIRY_INDEX));
            change.start(id, JobKind::FillIndex, EXPIRY_INDEX);
        }
        (true, false) => {
            change.definition.expiry = ExpiryIndex::Absent;
            change.cancelled.push((id, JobKind::FillIndex, EXPIRY_INDEX));
            change.start(id, JobKind::RemoveIndex, EXPIRY_INDEX);
        }
        // Another time to live only moves the line along the index.
        (true, true) | (false, false) => {}
    }
    if change.definition.schema.max_versions < old.schema.max_versions {
        change.start(id, JobKind::TrimVersions, 0);
    }
    change
}

/// Creates a table that isn't there; the caller holds the admin lock.
async fn create(shared: &DatabaseState, schema: TableSchema) -> Result<Table> {
    let id = {
        let catalog = shared.catalog.read();
        limits::check("MAX_TABLES", limits::MAX_TABLES, catalog.len() + 1)?;
        catalog.next_id()?
    };
    let definition = Definition::new(schema);
    let table = Table::new(id, definition.clone());
    let (space, key) = (Space::Catalog, key::table(id));
    let last = Mutation::Put {
        space,
        key: key::LAST_TABLE.into(),
        value: id.0.to_be_bytes().to_vec(),
        stamp: false,
    };
    let absent = Check::Absent { space, key };
    commit(shared, vec![absent], vec![table.put(&definition), last]).await?;
    shared.catalog.write().insert(table.clone());
    Ok(table)
}

async fn commit(shared: &DatabaseState, checks: Vec<Check>, mutations: Vec<Mutation>) -> Result<()> {
    let commit = Commit {
        checks,
        mutations,
        log: None,
        validated_at: None,
        durability: Durability::Disk,
    };
    shared.kv.commit(commit).await?;
    Ok(())
}
