//! Indexes that are created and dropped while their table is served.
//!
//! An index exists from the moment when the table's definition with it is durable, and no longer when the one without it is. After a
//! crash the next opening removes the files of an index that doesn't exist, and goes on with building one that does. An index is built
//! beside those that answer, by a keeper of its own.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use souk_storage::limits::{MAX_CONSUMERS, MAX_FEEDS};
use tokio::sync::OwnedMutexGuard;
use tracing::warn;

use crate::catalog;
use crate::definition::check::limit;
use crate::definition::{MAX_SEARCH_INDEXES, MAX_WEIGHT, SearchIndexDefinition, TableDefinition, index_name};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_admin::{IndexDescription, IndexEffect, described, keep};
use crate::index_change::{self, ChangeProblem, IndexChange};
use crate::index_state::Phase;
use crate::keeper::{self, Keeper};
use crate::open_index::OpenIndex;
use crate::open_table::{Home, OpenTable};
use crate::owners::OwnerPlace;
use crate::undisturbed::undisturbed;

/// Most search indexes of an engine, over all tables: each has a place in the change log, and threads and memory while it is open.
pub const MAX_INDEXES: usize = 1_024;

// Each has a consumer of the log, and a feed while it is built.
const _: () = assert!(MAX_INDEXES <= MAX_CONSUMERS / 2 && MAX_INDEXES <= MAX_FEEDS / 2);

impl Engine {
    /// Creates a search index of a table, durably. It is built from the rows in the background, and answers once it is built:
    /// [`Engine::index`] tells the progress.
    ///
    /// # Errors
    /// As [`Engine::begin_index`] and [`NewIndex::make`].
    pub async fn create_index(&self, index: SearchIndexDefinition) -> Result<IndexDescription> {
        let table = index_name::table_of(&index.name).to_owned();
        let Ok(created) = self
            .create_index_when(&table, |_| Ok::<_, Infallible>(index))
            .await?;
        Ok(created)
    }

    /// [`Engine::create_index`] of what `define` makes of the table as it is by then: no other change comes between. Nothing is created
    /// when `define` refuses, whose error is given back then.
    ///
    /// # Errors
    /// As there.
    pub async fn create_index_when<E>(
        &self,
        table: &str,
        define: impl FnOnce(&TableDefinition) -> std::result::Result<SearchIndexDefinition, E>,
    ) -> Result<std::result::Result<IndexDescription, E>> {
        let turn = self.turn(table).await?;
        let search = match define(&self.opened(table)?.definition()) {
            Ok(search) => search,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut creation = self.new_index(&search.name, turn)?;
        creation.search = search;
        Ok(Ok(creation.make(false).await?.0))
    }

    /// Begins to create a search index, without fields. Its weight is 0, or [`MAX_WEIGHT`] when it is its table's only one. Other
    /// changes of tables and indexes wait until it is made or dropped.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`], [`EngineError::TableClosed`], [`EngineError::IndexExists`],
    /// [`EngineError::InvalidDefinition`], [`EngineError::LimitExceeded`], [`EngineError::Closing`].
    pub async fn begin_index(&self, name: &str) -> Result<NewIndex> {
        let turn = self.turn(index_name::table_of(name)).await?;
        self.new_index(name, turn)
    }

    /// Waits until a table can be changed; nothing else changes while it is held.
    async fn turn(&self, table: &str) -> Result<OwnedMutexGuard<()>> {
        // Before waiting for other changes, too: a caller that asks several processes goes on with the next at once.
        self.opened(table)?;
        let turn = Arc::clone(self.changing()).lock_owned().await;
        self.check_open()?;
        Ok(turn)
    }

    fn new_index(&self, name: &str, turn: OwnedMutexGuard<()>) -> Result<NewIndex> {
        let table = self.opened(index_name::table_of(name))?;
        let definition = table.definition();
        if definition.search_index(name).is_some() {
            return Err(EngineError::IndexExists {
                index: name.to_owned(),
            });
        }
        if !index_name::is_name(name, table.name())? || (table.home == Home::Code && name == table.name()) {
            return Err(definition.invalid(format!(
                "can't have a search index {name:?}: name it {}.<name>, of lower-case letters, digits and single underscores",
                table.name()
            )));
        }
        let count = definition.indexes.len() + 1;
        limit("MAX_SEARCH_INDEXES", MAX_SEARCH_INDEXES, count)?;
        self.check_room(1)?;
        let search = SearchIndexDefinition::new(name).weight(if count == 1 { MAX_WEIGHT } else { 0 });
        Ok(NewIndex {
            engine: self.clone(),
            table,
            definition,
            source: search.clone(),
            search,
            _turn: turn,
        })
    }

    /// Drops a search index, durably: what it holds is gone when this returns. Searches that name none go to the others.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::IndexNeeded`] of one that code declares, that alone has a weight beside others, or that
    /// says whose a row is; what the store refuses.
    pub async fn drop_index(&self, name: &str) -> Result<()> {
        // Before waiting for other changes, too: a caller that asks several processes goes on with the next at once.
        self.indexed(name)?;
        let (table, name) = (index_name::table_of(name).to_owned(), name.to_owned());
        let Ok(()) = self
            .drop_index_when(&table, |_, _| Ok::<_, Infallible>(name))
            .await?;
        Ok(())
    }

    /// [`Engine::drop_index`] of the one that `choose` names of the table as it is by then: no other change comes between. It may give the
    /// others other weights, and is told which of them answer. Nothing changes when it refuses, whose error is given back then.
    ///
    /// # Errors
    /// As there; [`EngineError::TableNotFound`].
    pub async fn drop_index_when<E: Send + 'static>(
        &self,
        table: &str,
        choose: impl FnOnce(&mut TableDefinition, &dyn Fn(&str) -> bool) -> std::result::Result<String, E>
        + Send
        + 'static,
    ) -> Result<std::result::Result<(), E>> {
        let (engine, table) = (self.clone(), table.to_owned());
        undisturbed(async move { engine.remove_index(&table, choose).await }).await
    }

    async fn remove_index<E>(
        &self,
        table: &str,
        choose: impl FnOnce(&mut TableDefinition, &dyn Fn(&str) -> bool) -> std::result::Result<String, E>,
    ) -> Result<std::result::Result<(), E>> {
        let _changing = self.turn(table).await?;
        let table = self.opened(table)?;
        let definition = table.definition();
        let mut without = (*definition).clone();
        let answers = |name: &str| table.index(name).is_some_and(|index| index.answers());
        let name = match choose(&mut without, &answers) {
            Ok(name) => name,
            Err(refused) => return Ok(Err(refused)),
        };
        let name = name.as_str();
        let index = table.index(name).ok_or_else(|| EngineError::no_index(name))?;
        let needed = |why| {
            Err(EngineError::IndexNeeded {
                index: name.to_owned(),
                why,
            })
        };
        if table.home == Home::Code && name == table.name() {
            return needed("it is declared by its service; give it the weight 0 to have it take no searches");
        }
        without.indexes.retain(|index| index.name != name);
        if !without.indexes.is_empty() {
            if without.indexes.iter().all(|index| index.weight == 0) {
                return needed(
                    "searches that name no index go to it alone; give another index a weight first",
                );
            }
            if table.would_silence(&without) {
                return needed(
                    "none of the other indexes with a weight answers; wait until one is INDEX_PHASE_SERVING",
                );
            }
        }
        if places(&without) != places(&definition) {
            return needed("it says whose a row is");
        }
        let kept = table.kept.read().clone();
        // From here on it is gone, whatever happens.
        keep(self, &table, without, kept).await?;
        // First: so searches that name none always have one.
        table.weigh();
        table.take_out(name);
        let inner = self.inner();
        inner.count_indexes();
        let keeper = inner.keepers.lock().remove(name);
        keeper::end(keeper.into_iter().collect()).await?;
        // Searches that wait look again, and find it gone; its files are closed.
        index.state.set_phase(Phase::Absent);
        if let Err(error) = self.clear_index(name).await {
            warn!(index = name, %error, "what a dropped index has left can't be removed; the next start tries again");
        }
        Ok(Ok(()))
    }

    /// Refuses more indexes than one engine keeps.
    ///
    /// # Errors
    /// [`EngineError::LimitExceeded`].
    pub(crate) fn check_room(&self, more: usize) -> Result<()> {
        let tables = self.tables();
        let there: usize = tables.iter().map(|table| table.indexes().len()).sum();
        limit("MAX_INDEXES", MAX_INDEXES, there + more)
    }

    /// Removes what there is of an index that isn't there.
    async fn clear_index(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        keeper::remove_all(self.database(), &self.inner().folder, move |index| index == name).await
    }
}

/// Which parts of rows name their owners.
fn places(table: &TableDefinition) -> Vec<OwnerPlace> {
    let owners = table.owners.iter();
    owners.map(|owner| OwnerPlace::new(table, owner)).collect()
}

/// A search index that is to be created.
#[derive(Debug)]
#[must_use = "nothing is created before `make`"]
pub struct NewIndex {
    engine: Engine,
    table: Arc<OpenTable>,
    definition: Arc<TableDefinition>,
    /// What it began with.
    source: SearchIndexDefinition,
    search: SearchIndexDefinition,
    _turn: OwnedMutexGuard<()>,
}

impl NewIndex {
    /// Gives it the fields of another index of its table.
    ///
    /// # Errors
    /// When that is none of the table's.
    pub fn begin_with(&mut self, source: &str) -> std::result::Result<(), ChangeProblem> {
        let Some(from) = self.definition.search_index(source) else {
            let message = format!("{source:?} is no index of {}", self.table.name());
            return Err(ChangeProblem::new("UNKNOWN_INDEX", message));
        };
        let from = match self.table.home == Home::Code && source == self.table.name() {
            true => index_change::changed(from, &self.table.kept.read()),
            false => from.clone(),
        };
        (self.search.fields, self.search.sources) = (from.fields, from.sources);
        self.source = self.search.clone();
        Ok(())
    }

    /// Says what is wrong with a change behind those that were added.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn check(&self, change: &IndexChange) -> std::result::Result<(), Vec<ChangeProblem>> {
        index_change::applied(&self.source, &self.search, change).map(drop)
    }

    /// Adds a change of what it began with.
    ///
    /// # Errors
    /// All that is wrong with it; it isn't added then.
    pub fn add(&mut self, change: &IndexChange) -> std::result::Result<(), Vec<ChangeProblem>> {
        self.search = index_change::applied(&self.source, &self.search, change)?;
        Ok(())
    }

    /// Gives it a weight.
    pub fn weigh(&mut self, weight: u8) {
        self.search.weight = weight;
    }

    /// Says what is wrong with it as a whole.
    ///
    /// # Errors
    /// When it has no fields, or not those that say whose a row is; when the table can't have it.
    pub fn check_whole(&self) -> std::result::Result<(), ChangeProblem> {
        if self.search.fields.is_empty() {
            let message = "leaves the index without a field; add some, or begin with those of another index";
            return Err(ChangeProblem::new("FIELD_REQUIRED", message));
        }
        self.defined()
            .map(drop)
            .map_err(|error| ChangeProblem::of(&error))
    }

    /// The table with it.
    fn defined(&self) -> Result<TableDefinition> {
        let defined = (*self.definition).clone().index(self.search.clone());
        defined.check()?;
        if places(&defined) != places(&self.definition) {
            return Err(defined.invalid("has owners that its rows name by another column"));
        }
        if self.table.home == Home::Catalog {
            catalog::check(&defined)?;
        }
        Ok(defined)
    }

    /// Creates it, or with `validate_only` only says what that comes to. When this returns, it is durable, and is being built. It is
    /// created also when nobody waits for it any more.
    ///
    /// # Errors
    /// [`EngineError::InvalidDefinition`], [`EngineError::LimitExceeded`]; [`souk_index::Error::InvalidSchema`]; what store and
    /// disk refuse.
    pub async fn make(self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        undisturbed(self.made(validate_only)).await
    }

    async fn made(mut self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        // Creations follow each other, and each writes: no two indexes of a name have the same.
        self.search.created_after = self.engine.database().last_sequence();
        let (engine, table) = (&self.engine, &self.table);
        let defined = self.defined()?;
        let index = Arc::new(OpenIndex::new(&defined, &self.search)?);
        index.state.expect_later();
        let size = table.measured().unwrap_or_default();
        let effect = IndexEffect {
            instant: false,
            rows_about: size.documents,
            bytes_about: size.bytes,
        };
        if !validate_only {
            self.create(defined, &index).await?;
        }
        Ok((described(engine, table, &index).await?, effect))
    }

    async fn create(&self, defined: TableDefinition, index: &Arc<OpenIndex>) -> Result<()> {
        let (engine, table, name) = (&self.engine, &self.table, index.name());
        let inner = engine.inner();
        // Of an earlier one, which couldn't be removed as a whole: no feed is of it then.
        engine.clear_index(name).await?;
        let context = inner.keeper_context.clone();
        let fed = BTreeSet::new();
        let started = Keeper::start(Arc::clone(table), Arc::clone(index), context, &inner.folder, &fed).await;
        let kept = table.kept.read().clone();
        let created = match started {
            // Last: from then on it is there, whatever happens.
            Ok(keeper) => match keep(engine, table, defined, kept).await {
                Ok(()) => Ok(keeper),
                Err(error) => keeper::end(vec![keeper]).await.and(Err(error)),
            },
            Err(error) => Err(error),
        };
        let keeper = match created {
            Ok(keeper) => keeper,
            Err(error) => {
                // A keeper that couldn't be started has a place in the log, too.
                if let Err(left) = engine.clear_index(name).await {
                    warn!(index = name, error = %left, "what is left of an index that couldn't be created is still to be removed");
                }
                return Err(error);
            }
        };
        inner
            .keepers
            .lock()
            .insert(Arc::clone(index.shared_name()), keeper);
        table.add(Arc::clone(index));
        inner.count_indexes();
        Ok(())
    }
}
