//! Tables that are created, changed and dropped at run time.
//!
//! Each change runs in a task of its own: a caller that goes away can't leave it half-way.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use souk_storage::{Backfill, Database, SecondaryIndexSchema, Table, TableSchema, TableUpdate};
use tracing::warn;

use crate::call::{Grant, Principal};
use crate::catalog::{self, MAX_CREATED_TABLES};
use crate::definition::TableDefinition;
use crate::definition::check::limit;
use crate::design::Design;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_admin::{self, rebuild};
use crate::index_state::Phase;
use crate::keeper::{self, Keeper};
use crate::open_table::{Home, OpenTable};
use crate::table::TableHandle;
use crate::token::{self, TokenKind};
use crate::undisturbed::undisturbed;

/// How long the creation of a table waits for its empty index. It answers later where that takes longer.
const EMPTY_INDEX_MAX: Duration = Duration::from_secs(10);

/// A page of the tables that were created at run time.
#[derive(Clone, Debug)]
pub struct TablesPage {
    /// What they are, by name.
    pub tables: Vec<Arc<TableDefinition>>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
}

impl Engine {
    /// Creates a table, durably. It takes writes and searches when this returns.
    ///
    /// # Errors
    /// [`EngineError::TableExists`], [`EngineError::InvalidDefinition`], [`EngineError::LimitExceeded`];
    /// [`souk_index::Error::InvalidSchema`]; what the store refuses.
    pub async fn create_table(&self, definition: TableDefinition) -> Result<TableHandle> {
        let Ok(table) = self
            .create_table_when(definition, || Ok::<_, Infallible>(()))
            .await?;
        Ok(table)
    }

    /// [`Engine::create_table`] unless `check` refuses, whose error is given back then: no other change of tables comes between.
    ///
    /// # Errors
    /// As there.
    pub async fn create_table_when<E: Send + 'static>(
        &self,
        definition: TableDefinition,
        check: impl FnOnce() -> std::result::Result<(), E> + Send + 'static,
    ) -> Result<std::result::Result<TableHandle, E>> {
        let engine = self.clone();
        undisturbed(async move { engine.create(definition, check).await }).await
    }

    /// Makes a table that was created at run time what a definition of its name says: options, secondary indexes, columns,
    /// search fields, weights, owners. A changed search index is built beside the present one, which answers until then. Key and
    /// transactions stay, and which search indexes there are: [`Engine::create_index`], [`Engine::drop_index`].
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`], [`EngineError::TableOfCode`], [`EngineError::InvalidDefinition`],
    /// [`EngineError::LimitExceeded`], [`EngineError::IndexBuilding`]; what the store refuses.
    pub async fn alter_table(&self, definition: TableDefinition) -> Result<()> {
        definition.check()?;
        let name = definition.name().to_owned();
        let change = |present: &mut TableDefinition| {
            *present = definition;
            Ok::<_, Infallible>(())
        };
        let Ok(()) = self.change_table(&name, BTreeSet::new(), change).await?;
        Ok(())
    }

    /// [`Engine::alter_table`] of what the table is by then: no other change comes between. Nothing changes when `change` refuses, whose
    /// error is given back then. Secondary indexes that this creates aren't backfilled where their names are in `skip_backfill`.
    ///
    /// # Errors
    /// As there.
    pub async fn change_table<E: Send + 'static>(
        &self,
        name: &str,
        skip_backfill: BTreeSet<String>,
        change: impl FnOnce(&mut TableDefinition) -> std::result::Result<(), E> + Send + 'static,
    ) -> Result<std::result::Result<(), E>> {
        let (engine, name) = (self.clone(), name.to_owned());
        undisturbed(async move { engine.alter(&name, &skip_backfill, change).await }).await
    }

    /// Drops a table that was created at run time, durably, with its rows and its indexes. Its name is free when this returns.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`], [`EngineError::TableOfCode`]; what disk and store refuse: dropping it again, or the next
    /// opening of the engine, then goes on.
    pub async fn drop_table(&self, name: &str) -> Result<()> {
        let (engine, name) = (self.clone(), name.to_owned());
        undisturbed(async move { engine.remove(&name).await }).await
    }

    /// What the tables are, by name: those of resources, too.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<TableDefinition>> {
        self.tables().iter().map(|table| table.definition()).collect()
    }

    /// Whether a principal may access a table of this name, or some partitions of it, whether there is one or not.
    ///
    /// # Errors
    /// [`EngineError::Defect`] of a call that has lost its caller.
    pub fn may_access(&self, principal: &Principal, table: &str) -> Result<bool> {
        Ok(principal.known(self.inner().guarded)?.grant(table) != Grant::Nothing)
    }

    /// Whether a principal may access all of a table of this name, as who changes it or its indexes has to.
    ///
    /// # Errors
    /// As [`Engine::may_access`].
    pub fn may_access_all(&self, principal: &Principal, table: &str) -> Result<bool> {
        Ok(principal.known(self.inner().guarded)?.grant(table) == Grant::Whole)
    }

    /// A page of the tables that were created at run time, by name: those that a principal may access.
    ///
    /// # Errors
    /// [`EngineError::PageTokenInvalid`]; as [`Engine::may_access`].
    pub fn tables_page(
        &self,
        principal: &Principal,
        page_size: usize,
        page_token: &str,
    ) -> Result<TablesPage> {
        let principal = principal.known(self.inner().guarded)?;
        let after = match page_token {
            "" => Vec::new(),
            sealed => token::open(TokenKind::Tables, 0, sealed)
                .map_err(|detail| EngineError::PageTokenInvalid { detail })?,
        };
        let tables = self.tables();
        let created = tables.iter().filter(|table| table.home == Home::Catalog);
        let mut rest = created
            .filter(|table| principal.grant(table.name()) != Grant::Nothing)
            .filter(|table| table.name().as_bytes() > after.as_slice())
            .peekable();
        let page: Vec<_> = rest
            .by_ref()
            .take(page_size)
            .map(|table| table.definition())
            .collect();
        let last = page.last().filter(|_| rest.peek().is_some());
        Ok(TablesPage {
            next_page_token: last.map_or_else(String::new, |last| {
                token::seal(TokenKind::Tables, 0, last.name().as_bytes())
            }),
            tables: page,
        })
    }

    async fn create<E>(
        &self,
        definition: TableDefinition,
        check: impl FnOnce() -> std::result::Result<(), E>,
    ) -> Result<std::result::Result<TableHandle, E>> {
        definition.check()?;
        let _changing = self.changing().lock().await;
        self.check_open()?;
        if let Err(refused) = check() {
            return Ok(Err(refused));
        }
        let tables = self.tables();
        let created = tables.iter().filter(|table| table.home == Home::Catalog);
        limit(
            "MAX_CREATED_TABLES",
            MAX_CREATED_TABLES,
            created.count() + self.inner().closed.lock().len() + 1,
        )?;
        self.check_room(definition.indexes.len())?;
        // Folders of indexes are named after tables, and some file systems take no notice of case.
        let same = |name: &str| name.eq_ignore_ascii_case(definition.name());
        if self.database().tables().iter().any(|table| same(table.name())) {
            return Err(EngineError::TableExists {
                table: definition.name().to_owned(),
            });
        }
        let name = definition.name().to_owned();
        if catalog::contains(self.database(), &name).await? {
            // Of an earlier one, which couldn't be removed as a whole.
            self.clear(&name).await?;
        }
        catalog::begin(self.database(), &definition).await?;
        let open = match self.begun(definition).await {
            Ok(open) => open,
            Err(error) => {
                if let Err(left) = self.clear(&name).await {
                    warn!(table = name, error = %left, "a table that couldn't be created is still to be dropped");
                }
                return Err(error);
            }
        };
        let answer = async {
            for index in open.indexes().iter() {
                let mut phase = index.state.watch_phase();
                let answers = phase.wait_for(|()| !matches!(index.state.phase(), Phase::Building));
                // The sender lives as long as the index.
                let _ = answers.await;
            }
        };
        // What hasn't come by then is told by health, as of any other index.
        let _in_time = tokio::time::timeout(EMPTY_INDEX_MAX, answer).await;
        self.inner().count_indexes();
        Ok(Ok(TableHandle::new(Arc::clone(self.inner()), open)))
    }

    /// Makes a table of which the catalog has an entry that isn't complete.
    async fn begun(&self, definition: TableDefinition) -> Result<Arc<OpenTable>> {
        let (database, inner) = (self.database(), self.inner());
        let table = database.create_table(definition.schema.clone()).await?;
        let open = Arc::new(OpenTable::created(definition, table, database.last_sequence())?);
        // What an earlier table of its name has left is removed: no feed is of its indexes.
        let fed = BTreeSet::new();
        let keepers = Keeper::start_all(&open, &inner.keeper_context, &inner.folder, &fed).await?;
        // Last: from here on it is there, whatever happens.
        if let Err(error) = catalog::write(database, &open.definition()).await {
            keeper::end(keepers.into_iter().map(|(_, keeper)| keeper).collect()).await?;
            return Err(error);
        }
        inner.keepers.lock().extend(keepers);
        let name = Arc::clone(open.shared_name());
        inner.tables.write().insert(name, Arc::clone(&open));
        Ok(open)
    }

    async fn alter<E>(
        &self,
        name: &str,
        skip_backfill: &BTreeSet<String>,
        change: impl FnOnce(&mut TableDefinition) -> std::result::Result<(), E>,
    ) -> Result<std::result::Result<(), E>> {
        let _changing = self.changing().lock().await;
        self.check_open()?;
        let open = self.created(name)?;
        let present = open.definition();
        let mut definition = (*present).clone();
        if let Err(refused) = change(&mut definition) {
            return Ok(Err(refused));
        }
        definition.check()?;
        let (old, new) = (open.table.schema(), &definition.schema);
        if (&old.key, old.auto_increment, old.transactions)
            != (&new.key, new.auto_increment, new.transactions)
        {
            return Err(definition.invalid("has a key, numbering and transactions for ever"));
        }
        if index_names(&present) != index_names(&definition) {
            return Err(
                definition.invalid("has other search indexes: they are created and dropped one by one")
            );
        }
        for index in &mut definition.indexes {
            // It isn't a part of what a table is: who defines one needn't know that its index was built anew.
            let present = present.search_index(&index.name);
            (index.builds, index.created_after) =
                present.map_or((0, 0), |present| (present.builds, present.created_after));
        }
        let mut rebuilt = Vec::new();
        for index in &definition.indexes {
            let Some(open) = open.index(&index.name) else {
                continue;
            };
            let design = Design::new(&definition, index)?;
            if design.fingerprint() == open.wanted().fingerprint() {
                continue;
            }
            if matches!(open.state.phase(), Phase::Building) {
                return Err(EngineError::IndexBuilding {
                    index: index.name.clone(),
                });
            }
            rebuilt.push((open, design));
        }
        if open.would_silence(&definition) {
            return Err(definition.invalid("has weights that leave searches to indexes that don't answer"));
        }
        // What can be refused is refused before anything changes.
        new.check()?;
        catalog::check(&definition)?;
        let changed = async {
            change_schema(self.database(), &open.table, new, skip_backfill).await?;
            catalog::write(self.database(), &definition).await
        };
        let changed = changed.await;
        let there = match changed {
            Ok(()) => definition,
            Err(_) => (*present).clone(),
        };
        // Of what fails a part may have been done: what is told is what the store has.
        let schema = (*open.table.schema()).clone();
        open.define(TableDefinition { schema, ..there });
        changed?;
        index_admin::weigh(self, &open);
        for (index, design) in rebuilt {
            rebuild(self, &index, design).await?;
        }
        Ok(Ok(()))
    }

    async fn remove(&self, name: &str) -> Result<()> {
        let _changing = self.changing().lock().await;
        self.check_open()?;
        match self.created(name) {
            Ok(open) => {
                // From here on it is gone, whatever happens: its entry has no table.
                self.database().delete_table(&open.table).await?;
                self.close_table(&open).await?;
            }
            Err(error @ EngineError::TableOfCode { .. }) => return Err(error),
            // It couldn't be opened, or only half of it is there.
            Err(error) => {
                if !catalog::contains(self.database(), name).await? {
                    return Err(error);
                }
            }
        }
        self.clear(name).await
    }

    /// Lets nobody have a table any more, and ends its indexes.
    async fn close_table(&self, open: &Arc<OpenTable>) -> Result<()> {
        let (inner, name) = (self.inner(), open.name());
        open.set_dropped();
        inner.tables.write().remove(name);
        inner.count_indexes();
        let indexes = open.indexes();
        let keepers = {
            let mut keepers = inner.keepers.lock();
            let ended = indexes.iter().filter_map(|index| keepers.remove(index.name()));
            ended.collect()
        };
        keeper::end(keepers).await?;
        for index in indexes.iter() {
            // Searches that wait look again, and find it gone; its files are closed.
            index.state.set_phase(Phase::Absent);
        }
        Ok(())
    }

    /// Removes what there is of a table that isn't open.
    async fn clear(&self, name: &str) -> Result<()> {
        let inner = self.inner();
        // Before its entry: whoever repeats what failed half-way comes here again.
        let groups = &inner.consumer_groups;
        groups.remove_of_table(self.database(), name).await?;
        catalog::remove(self.database(), &inner.folder, name).await?;
        let closed = inner.closed.lock().remove(name);
        if closed.is_some() {
            inner.count_indexes();
        }
        Ok(())
    }

    /// A table that was created at run time.
    fn created(&self, name: &str) -> Result<Arc<OpenTable>> {
        let open = self.opened(name)?;
        match open.home {
            Home::Catalog => Ok(open),
            Home::Code => Err(EngineError::TableOfCode {
                table: name.to_owned(),
            }),
        }
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        match self.inner().closing.is_cancelled() {
            true => Err(EngineError::Closing),
            false => Ok(()),
        }
    }
}

/// Changes options and secondary indexes, one by one: each is durable, and what fails leaves those before.
async fn change_schema(
    database: &Database,
    table: &Table,
    new: &TableSchema,
    skip_backfill: &BTreeSet<String>,
) -> Result<()> {
    let old = table.schema();
    let mut update = TableUpdate::new();
    if old.max_versions != new.max_versions {
        update = update.max_versions(new.max_versions);
    }
    if old.time_to_live != new.time_to_live {
        update = update.time_to_live(new.time_to_live);
    }
    if old.max_version_offset != new.max_version_offset {
        update = update.max_version_offset(new.max_version_offset);
    }
    if old.allow_update != new.allow_update {
        update = update.allow_update(new.allow_update);
    }
    if update != TableUpdate::new() {
        database.update_table(table, update).await?;
    }
    let present = table.schema();
    let is_in = |indexes: &[SecondaryIndexSchema], index: &SecondaryIndexSchema| indexes.contains(index);
    for index in present.indexes.iter().filter(|index| !is_in(&new.indexes, index)) {
        database.drop_index(table, &index.name).await?;
    }
    for index in new.indexes.iter().filter(|index| !is_in(&present.indexes, index)) {
        let backfill = match skip_backfill.contains(&index.name) {
            true => Backfill::None,
            false => Backfill::Existing,
        };
        database.create_index(table, index.clone(), backfill).await?;
    }
    Ok(())
}

/// The names of the search indexes of a table.
fn index_names(definition: &TableDefinition) -> BTreeSet<&str> {
    let indexes = definition.indexes.iter();
    indexes.map(|index| index.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use souk_storage::KeyKind;
    use tokio::time::Instant;

    use super::*;
    use crate::engine::{EngineConfig, Tables};
    use crate::index_state::IndexState;

    #[tokio::test]
    async fn so_many_tables_are_created_and_no_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Engine::open(EngineConfig::new(folder.path()), Tables::new()).await;
        let engine = engine.expect("an engine");
        // All but one are there, and can't be opened: they count, too.
        let closed = (1..MAX_CREATED_TABLES).map(|nth| {
            let name: Arc<str> = format!("closed_{nth}").into();
            (Arc::clone(&name), Arc::new(IndexState::new(name)))
        });
        engine.inner().closed.lock().extend(closed);
        let table = |name: &str| TableDefinition::new(TableSchema::new(name).key("id", KeyKind::String));
        engine.create_table(table("last")).await.expect("room for one");
        let refused = engine.create_table(table("beyond")).await.err();
        let Some(EngineError::LimitExceeded { limit, max, actual }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(
            (limit, max, actual),
            ("MAX_CREATED_TABLES", MAX_CREATED_TABLES, MAX_CREATED_TABLES + 1)
        );
        engine.drop_table("last").await.expect("dropped");
        engine.create_table(table("beyond")).await.expect("room again");
        engine
            .close(Instant::now() + EMPTY_INDEX_MAX)
            .await
            .expect("closed");
    }
}
