//! Administration of search indexes: descriptions of them, and changes of what can be searched.

use std::sync::Arc;
use std::time::Duration;

use souk_index::{FieldKind, IndexSize, MisfitReport};
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument as _;

use crate::catalog;
use crate::definition::{SearchIndexDefinition, Source, TableDefinition};
use crate::design::Design;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_change::{self, ChangeProblem, IndexChange, KeptChanges};
use crate::index_state::{Build, Phase, Step};
use crate::kept_changes;
use crate::key;
use crate::open_table::{Home, OpenTable};

/// The index of a table, as it is at one moment.
#[derive(Clone, Debug)]
pub struct IndexDescription {
    /// The table.
    pub table: String,
    /// Whether it answers.
    pub phase: IndexPhase,
    /// Why searches don't see new changes, in words for clients, and for how long they haven't.
    pub stalled: Option<(&'static str, Duration)>,
    /// Whether the log is held back longer than the index needs it: its position couldn't be stored.
    pub is_log_held: bool,
    /// The fields that can be searched; empty unless it serves.
    pub fields: Vec<IndexedField>,
    /// The fields that can be searched once the build under way is done; empty without one.
    pub fields_to_be: Vec<IndexedField>,
    /// The index that serves, if one does.
    pub serving: Option<ServingIndex>,
    /// The build under way, or the one that failed.
    pub build: Option<IndexBuild>,
}

/// The state of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPhase {
    /// It is being opened, or built from the table.
    Building,
    /// It serves searches.
    Serving,
    /// It serves searches, and its replacement is being built.
    Rebuilding,
    /// It doesn't serve, and isn't tried again before a restart.
    Failed,
}

/// A field that can be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedField {
    /// Its full path.
    pub path: String,
    /// Its type.
    pub kind: FieldKind,
    /// Whether it may have several values.
    pub array: bool,
    /// The column, or the path into one, that its values come from: `<column>` or `<column>.<attribute>`. `None` where code
    /// declares it.
    pub source: Option<String>,
}

/// The index that serves searches.
#[derive(Clone, Debug)]
pub struct ServingIndex {
    /// The last change that searches see.
    pub sequence: u64,
    /// Changes of the log that they don't see yet.
    pub lag_changes: u64,
    /// Age of the first of those; zero without any.
    pub lag: Duration,
    /// Its documents and bytes.
    pub size: IndexSize,
    /// Whether it still merges segments that could be fewer.
    pub is_merging: bool,
    /// Values that don't fit their fields.
    pub misfits: MisfitReport,
    /// The ids, or keys, of the rows of [`MisfitReport::recent`], in the same order; `None` where a document's key is damaged.
    pub misfit_ids: Vec<Option<String>>,
}

/// The build of an index.
#[derive(Clone, Debug)]
pub struct IndexBuild {
    /// Its step.
    pub step: BuildStep,
    /// Rows that are indexed.
    pub rows: u64,
    /// Estimate of the table's rows.
    pub rows_about: u64,
    /// The sequence as of which those rows are indexed.
    pub sequence: u64,
    /// Changes of the log behind that sequence.
    pub lag_changes: u64,
    /// Why it waits, if it does; it goes on by itself.
    pub waiting: Option<String>,
}

/// The step of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildStep {
    /// Reads the rows of the table.
    Reading,
    /// Has read them, and applies the changes since.
    CatchingUp,
    /// Has failed; begins again with the process.
    Failed,
}

/// The cost of a change of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEffect {
    /// Whether it takes effect without a build.
    pub instant: bool,
    /// Estimate of the rows that a build reads; 0 without one.
    pub rows_about: u64,
    /// Estimate of the bytes of the new index; 0 without one.
    pub bytes_about: u64,
}

impl Engine {
    /// Describes all indexes, in the order of their tables' names.
    ///
    /// # Errors
    /// What store and indexes refuse.
    pub async fn indexes(&self) -> Result<Vec<IndexDescription>> {
        let mut indexes = Vec::new();
        for table in self.tables().iter().filter(|table| table.is_searched()) {
            indexes.push(described(self, table).await?);
        }
        Ok(indexes)
    }

    /// Describes the index of a table.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what store and indexes refuse.
    pub async fn index(&self, name: &str) -> Result<IndexDescription> {
        described(self, &self.indexed(name)?).await
    }

    /// Begins to change what can be searched in a table. Waits for other changes of tables and indexes, and keeps them
    /// waiting until this one is made or dropped.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn redesign(&self, name: &str) -> Result<Redesign> {
        // Before it waits: a gateway that asks one process after the other can go on with the next.
        self.indexed(name)?;
        let lock = Arc::clone(self.changing()).lock_owned().await;
        let table = self.indexed(name)?;
        let definition = table.definition();
        let declared = definition.search.clone().unwrap_or_default();
        let kept = table.kept.read().clone();
        Ok(Redesign {
            engine: self.clone(),
            search: index_change::changed(&declared, &kept, name),
            declared,
            definition,
            table,
            kept,
            _changing: lock,
        })
    }

    fn indexed(&self, name: &str) -> Result<Arc<OpenTable>> {
        let table = self.inner().table(name).filter(|table| table.is_searched());
        table.ok_or_else(|| EngineError::NotFound {
            name: "index",
            id: name.to_owned(),
        })
    }
}

/// A change of what can be searched in a table: several [`IndexChange`]s that are made together.
#[derive(Debug)]
#[must_use = "nothing is changed before `make`"]
pub struct Redesign {
    engine: Engine,
    table: Arc<OpenTable>,
    definition: Arc<TableDefinition>,
    /// The search index of the table's definition.
    declared: SearchIndexDefinition,
    /// The changes of it that are stored, and those of this change: only where code declares the definition.
    kept: KeptChanges,
    /// The search index with all of them.
    search: SearchIndexDefinition,
    /// Keeps other changes of tables and indexes waiting.
    _changing: OwnedMutexGuard<()>,
}

impl Redesign {
    /// Checks a change as if it were added next.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn check(&self, change: &IndexChange) -> std::result::Result<(), Vec<ChangeProblem>> {
        self.checked(change).map(drop)
    }

    /// Adds a change.
    ///
    /// # Errors
    /// All that is wrong with it; it isn't added then.
    pub fn add(&mut self, change: &IndexChange) -> std::result::Result<(), Vec<ChangeProblem>> {
        self.search = self.checked(change)?;
        index_change::add(&mut self.kept.changes, change);
        Ok(())
    }

    /// Adds a rebuild from the rows, also where nothing else changes. Does nothing while a build is under way.
    pub fn rebuild(&mut self) {
        let is_built =
            build_under_way(&self.table).is_some_and(|build| !matches!(build.step, Step::Failed(_)));
        if !is_built {
            self.kept.builds = self.kept.builds.wrapping_add(1);
            self.search.builds = self.search.builds.wrapping_add(1);
        }
    }

    fn checked(
        &self,
        change: &IndexChange,
    ) -> std::result::Result<SearchIndexDefinition, Vec<ChangeProblem>> {
        index_change::check_not_needed(change, &self.definition.owners).map_err(|problem| vec![problem])?;
        let search = index_change::applied(&self.declared, &self.search, change)?;
        let changed = TableDefinition {
            search: Some(search.clone()),
            ..(*self.definition).clone()
        };
        let refused = changed.check().map_err(|error| ChangeProblem::of(&error));
        refused.map_err(|problem| vec![problem])?;
        Ok(search)
    }

    /// Makes the changes that were added, durably, or with `validate_only` only returns their cost. The present index serves
    /// until one with the changes is built. The changes are made also when the caller drops the future.
    ///
    /// # Errors
    /// [`EngineError::IndexBuilding`] while a first build is under way; what store and indexes refuse.
    pub async fn make(self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        undisturbed(self.made(validate_only)).await
    }

    async fn made(self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        let (engine, table) = (&self.engine, &self.table);
        let name = table.name();
        let search = match table.home {
            // Of the stored changes, as a restart computes it: some of them may have cancelled each other out.
            Home::Code => index_change::changed(&self.declared, &self.kept, name),
            Home::Catalog => self.search,
        };
        let design = Design::new(&self.definition, &search)?;
        let (size, instant) = match table.index.phase() {
            Phase::Serving(serving) => (
                serving.index.size()?,
                serving.design.fingerprint() == design.fingerprint(),
            ),
            // The change may be the remedy; how large the index will be isn't known.
            Phase::Failed(_) => (IndexSize::default(), false),
            Phase::Absent | Phase::Building => {
                return Err(EngineError::IndexBuilding {
                    table: name.to_owned(),
                });
            }
        };
        let effect = IndexEffect {
            instant,
            rows_about: if instant { 0 } else { size.documents },
            bytes_about: if instant { 0 } else { size.bytes },
        };
        if !validate_only && design.fingerprint() != table.wanted().fingerprint() {
            match table.home {
                Home::Code => {
                    kept_changes::write(engine.database(), name, &self.kept).await?;
                    table.kept.write().clone_from(&self.kept);
                }
                Home::Catalog => {
                    let search = Some(search);
                    let definition = TableDefinition {
                        search,
                        ..(*self.definition).clone()
                    };
                    catalog::write(engine.database(), &definition).await?;
                    table.define(definition);
                }
            }
            rebuild(engine, table, design).await?;
        }
        Ok((described(engine, table).await?, effect))
    }
}

/// Runs a change of tables or indexes to its end, even when the caller drops the future.
pub(crate) async fn undisturbed<T: Send + 'static>(
    change: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let changed = tokio::spawn(change.in_current_span()).await;
    changed.map_err(|_| EngineError::Defect("a change of tables or indexes panicked"))?
}

/// Makes a design the wanted one of a table's index, and starts its build. When that fails, the design before is wanted
/// again, so that a retry isn't taken for done.
pub(crate) async fn rebuild(engine: &Engine, table: &OpenTable, design: Design) -> Result<()> {
    let before = table.wanted();
    table.want(design);
    let keeper = engine.keeper(table)?;
    let redesigned = tokio::task::spawn_blocking(move || keeper.redesign()).await;
    let redesigned = redesigned.map_err(|_| EngineError::Defect("redesigning an index panicked"))?;
    if redesigned.is_err() {
        table.want(before);
    }
    redesigned
}

/// The build under way, or the one that failed. None once the wanted index serves, which may be before its build is noted
/// as done.
fn build_under_way(table: &OpenTable) -> Option<Build> {
    let wanted = table.wanted();
    let serves_wanted = table
        .index
        .serving()
        .is_some_and(|serving| serving.design.fingerprint() == wanted.fingerprint());
    table.index.build().filter(|_| !serves_wanted)
}

/// Describes an index.
async fn described(engine: &Engine, table: &Arc<OpenTable>) -> Result<IndexDescription> {
    let wanted = table.wanted();
    let build = build_under_way(table);
    let last = engine.database().last_sequence();
    let mut described = IndexDescription {
        table: table.name().to_owned(),
        phase: IndexPhase::Building,
        stalled: table.index.stalled().map(|stall| (stall.why, stall.age())),
        is_log_held: table.index.log_held().is_some(),
        fields: Vec::new(),
        fields_to_be: Vec::new(),
        serving: None,
        build: None,
    };
    match table.index.phase() {
        Phase::Absent => {}
        Phase::Building => described.fields_to_be = fields(table, &wanted),
        Phase::Failed(_) => described.phase = IndexPhase::Failed,
        Phase::Serving(serving) => {
            let is_building = build
                .as_ref()
                .is_some_and(|build| !matches!(build.step, Step::Failed(_)));
            described.phase = match is_building {
                true => IndexPhase::Rebuilding,
                false => IndexPhase::Serving,
            };
            described.fields = fields(table, &serving.design);
            if build.is_some() {
                described.fields_to_be = fields(table, &wanted);
            }
            // An index that has just begun to serve may be ahead of the state; searches take the later one, too.
            let applied = table.index.applied().max(serving.index.applied_sequence());
            let lag = lag(engine, applied).await?;
            let misfits = serving.index.misfits();
            let ids = misfits.recent.iter();
            let misfit_ids = ids.map(|misfit| key::document_name(&misfit.key)).collect();
            let index = serving.index.clone();
            let size = tokio::task::spawn_blocking(move || index.size())
                .await
                .map_err(|_| EngineError::Defect("measuring an index panicked"))??;
            described.serving = Some(ServingIndex {
                sequence: applied,
                lag_changes: last.saturating_sub(applied),
                lag,
                size,
                is_merging: !table.index.is_consolidated(),
                misfits,
                misfit_ids,
            });
        }
    }
    described.build = build.map(|build| IndexBuild {
        step: match build.step {
            Step::Reading => BuildStep::Reading,
            Step::CatchingUp => BuildStep::CatchingUp,
            Step::Failed(_) => BuildStep::Failed,
        },
        rows: build.rows,
        rows_about: build.about,
        sequence: build.sequence,
        lag_changes: last.saturating_sub(build.sequence),
        waiting: build.waiting,
    });
    Ok(described)
}

/// The fields of a design, without the sources of those that code declares.
fn fields(table: &OpenTable, design: &Design) -> Vec<IndexedField> {
    let definition = table.definition();
    let declared = definition.search.as_ref().filter(|_| table.home == Home::Code);
    let source = |path: &str| {
        let is_declared =
            |source: &&Source| declared.is_some_and(|search| search.sources.get(path) == Some(source));
        let source = design.source(path).filter(|source| !is_declared(source));
        source.map(ToString::to_string)
    };
    let fields = design.schema.resolved().iter().map(|field| IndexedField {
        path: field.path.clone(),
        kind: field.kind.clone(),
        array: field.array,
        source: source(&field.path),
    });
    fields.collect()
}

/// The age of the first change behind a sequence; zero without one.
async fn lag(engine: &Engine, applied: u64) -> Result<Duration> {
    let next = engine.database().changes(applied, 1).await?;
    let age = next
        .first()
        .map(|change| engine.now().saturating_sub(change.time));
    let age = u64::try_from(age.unwrap_or_default()).unwrap_or_default();
    Ok(Duration::from_nanos(age))
}
