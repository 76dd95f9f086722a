//! Administration of search indexes: descriptions of them, and changes of what can be searched.

use std::sync::Arc;
use std::time::Duration;

use souk_index::{FieldKind, IndexSize, MisfitReport};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use crate::call::{Grant, Principal};
use crate::catalog;
use crate::deadline::Wait;
use crate::definition::{DateFormat, MAX_WEIGHT, SearchIndexDefinition, Source, TableDefinition, index_name};
use crate::design::Design;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_change::{self, ChangeProblem, IndexChange, KeptChanges};
use crate::index_state::{Build, Phase, Step};
use crate::kept_changes;
use crate::key;
use crate::open_index::OpenIndex;
use crate::open_table::{Home, OpenTable};
use crate::undisturbed::undisturbed;

/// How long the description of an index, or a change of it, waits until it is open.
const OPENING_WAIT_MAX: Duration = Duration::from_secs(10);

/// An index of a table, as it is at one moment.
#[derive(Clone, Debug)]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// [`SearchIndexDefinition::weight`].
    pub weight: u8,
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
    /// [`Source::json`]; of a top-level field.
    pub json: bool,
    /// How its times are written: [`Source::dates`].
    pub dates: Vec<DateFormat>,
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
    /// Describes all indexes of the tables that a principal may access all of, in the order of their tables' names, and those of a table in the
    /// order in which they were created. None is opened for that: nested objects count as documents of those that aren't.
    ///
    /// # Errors
    /// As [`Engine::may_access`]; what store and indexes refuse.
    pub async fn indexes(&self, principal: &Principal) -> Result<Vec<IndexDescription>> {
        let principal = principal.known(self.inner().guarded)?;
        let mut indexes = Vec::new();
        for table in self.tables() {
            if principal.grant(table.name()) != Grant::Whole {
                continue;
            }
            for index in table.indexes().iter() {
                indexes.push(described(self, &table, index).await?);
            }
        }
        Ok(indexes)
    }

    /// Describes an index, which is opened for that.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what store and indexes refuse.
    pub async fn index(&self, name: &str) -> Result<IndexDescription> {
        let (table, index) = self.indexed(name)?;
        // One that can't be opened is described as what it is.
        let _opened = index
            .state
            .opened(Wait::new(Some(Instant::now() + OPENING_WAIT_MAX)))
            .await;
        described(self, &table, &index).await
    }

    /// Begins to change what can be searched by an index. Waits for other changes of tables and indexes, and keeps them
    /// waiting until this one is made or dropped.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn redesign(&self, name: &str) -> Result<Redesign> {
        // Before it waits: a gateway that asks one process after the other can go on with the next.
        self.indexed(name)?;
        let lock = Arc::clone(self.changing()).lock_owned().await;
        let (table, index) = self.indexed(name)?;
        let definition = table.definition();
        let declared = definition.search_index(name).cloned();
        let declared = declared.ok_or_else(|| EngineError::no_index(name))?;
        let kept = table.kept.read().clone();
        Ok(Redesign {
            engine: self.clone(),
            search: match is_declared(&table, name) {
                true => index_change::changed(&declared, &kept),
                false => declared.clone(),
            },
            declared,
            definition,
            table,
            index,
            kept,
            weights: Vec::new(),
            is_redesigned: false,
            _changing: lock,
        })
    }

    pub(crate) fn indexed(&self, name: &str) -> Result<(Arc<OpenTable>, Arc<OpenIndex>)> {
        let table = self.inner().table(index_name::table_of(name));
        let index = table.and_then(|table| Some((Arc::clone(&table), table.index(name)?)));
        index.ok_or_else(|| EngineError::no_index(name))
    }
}

/// A change of what can be searched by an index: several [`IndexChange`]s that are made together, with weights of the indexes of
/// its table.
#[derive(Debug)]
#[must_use = "nothing is changed before `make`"]
pub struct Redesign {
    engine: Engine,
    table: Arc<OpenTable>,
    index: Arc<OpenIndex>,
    definition: Arc<TableDefinition>,
    /// The search index of the table's definition.
    declared: SearchIndexDefinition,
    /// The changes of it that are stored, and those of this change: only where code declares the definition.
    kept: KeptChanges,
    /// The search index with all of them.
    search: SearchIndexDefinition,
    /// By the names of indexes of the table.
    weights: Vec<(String, u8)>,
    /// Whether anything but weights is asked for.
    is_redesigned: bool,
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
        self.is_redesigned = true;
        if is_declared(&self.table, self.index.name()) {
            index_change::add(&mut self.kept.changes, change);
        }
        Ok(())
    }

    /// Gives an index of the table another weight.
    ///
    /// # Errors
    /// When it is none of the table's, or was given one already; when the weight is above [`MAX_WEIGHT`].
    pub fn weigh(&mut self, index: &str, weight: u8) -> std::result::Result<(), ChangeProblem> {
        if self.definition.search_index(index).is_none() {
            let message = format!("{index:?} is no index of {}", self.table.name());
            return Err(ChangeProblem::new("UNKNOWN_INDEX", message));
        }
        if self.weights.iter().any(|(given, _)| given == index) {
            return Err(ChangeProblem::new(
                "DUPLICATE",
                format!("{index:?} is given a weight twice"),
            ));
        }
        if weight > MAX_WEIGHT {
            return Err(ChangeProblem::new(
                "OUT_OF_RANGE",
                format!("must be 0 to {MAX_WEIGHT}"),
            ));
        }
        self.weights.push((index.to_owned(), weight));
        Ok(())
    }

    /// Says what is wrong with all weights together.
    ///
    /// # Errors
    /// When no index has any, or none of those that have answers, while one answers now.
    pub fn check_weights(&self) -> std::result::Result<(), ChangeProblem> {
        let changed = self.changed(&self.search);
        if changed.indexes.iter().all(|index| index.weight == 0) {
            return Err(ChangeProblem::new(
                "LAST_WEIGHT",
                "leaves no index with a weight above 0: searches that name none need one",
            ));
        }
        if self.table.would_silence(&changed) {
            return Err(ChangeProblem::new(
                "NOT_SERVING",
                "leaves the searches that name no index to indexes that don't answer: wait until one is INDEX_PHASE_SERVING, or leave \
                 a weight to one that is",
            ));
        }
        Ok(())
    }

    /// Adds a rebuild from the rows, also where nothing else changes. Does nothing while a build is under way.
    pub fn rebuild(&mut self) {
        self.is_redesigned = true;
        let is_built =
            build_under_way(&self.index).is_some_and(|build| !matches!(build.step, Step::Failed(_)));
        if !is_built {
            if is_declared(&self.table, self.index.name()) {
                self.kept.builds = self.kept.builds.wrapping_add(1);
            }
            self.search.builds = self.search.builds.wrapping_add(1);
        }
    }

    fn checked(
        &self,
        change: &IndexChange,
    ) -> std::result::Result<SearchIndexDefinition, Vec<ChangeProblem>> {
        index_change::check_not_needed(change, &self.definition.owners).map_err(|problem| vec![problem])?;
        let search = index_change::applied(&self.declared, &self.search, change)?;
        let refused = self.changed(&search).check();
        refused.map_err(|error| vec![ChangeProblem::of(&error)])?;
        Ok(search)
    }

    /// The table with what an index of it is to be, and the weights that were given.
    fn changed(&self, search: &SearchIndexDefinition) -> TableDefinition {
        let mut changed = (*self.definition).clone();
        for index in &mut changed.indexes {
            if index.name == search.name {
                index.clone_from(search);
            }
            let given = self.weights.iter().find(|(name, _)| *name == index.name);
            index.weight = given.map_or(index.weight, |(_, weight)| *weight);
        }
        changed
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
        let (engine, table, index) = (&self.engine, &self.table, &self.index);
        let name = index.name();
        let search = match is_declared(table, name) {
            // Of the stored changes, as a restart computes it: some of them may have cancelled each other out.
            true => index_change::changed(&self.declared, &self.kept),
            false => self.search.clone(),
        };
        let design = Design::new(&self.definition, &search)?;
        let (size, instant) = match index.state.phase() {
            _ if !self.is_redesigned => (IndexSize::default(), true),
            Phase::Serving(serving) => (
                serving
                    .index
                    .size()
                    .map_err(|error| EngineError::of_index(name, error))?,
                serving.design.fingerprint() == design.fingerprint(),
            ),
            Phase::Unopened(unopened) => (
                unopened.size,
                unopened.design.fingerprint() == design.fingerprint(),
            ),
            // The change may be the remedy; how large the index will be isn't known.
            Phase::Failed(_) => (IndexSize::default(), false),
            Phase::Absent | Phase::Building => {
                return Err(EngineError::IndexBuilding {
                    index: name.to_owned(),
                });
            }
        };
        let effect = IndexEffect {
            instant,
            rows_about: if instant { 0 } else { size.documents },
            bytes_about: if instant { 0 } else { size.bytes },
        };
        let is_other = self.is_redesigned && design.fingerprint() != index.wanted().fingerprint();
        if !validate_only && (is_other || !self.weights.is_empty()) {
            let definition = match is_declared(table, name) {
                true => self.changed(&self.declared),
                false => self.changed(&search),
            };
            keep(engine, table, definition, self.kept.clone()).await?;
            weigh(engine, table);
            if is_other {
                rebuild(engine, index, design).await?;
            }
        }
        Ok((described(engine, table, index).await?, effect))
    }
}

/// Whether an index is the one that code declares: what was changed of it is kept beside the declaration.
fn is_declared(table: &OpenTable, index: &str) -> bool {
    table.home == Home::Code && index == table.name()
}

/// Keeps what a table and its indexes are from now on, durably.
///
/// # Errors
/// [`EngineError::LimitExceeded`]; what the store refuses.
pub(crate) async fn keep(
    engine: &Engine,
    table: &OpenTable,
    definition: TableDefinition,
    kept: KeptChanges,
) -> Result<()> {
    match table.home {
        Home::Code => {
            let kept = kept.taken_from(&definition);
            kept_changes::write(engine.database(), table.name(), &kept).await?;
            *table.kept.write() = kept;
        }
        Home::Catalog => catalog::write(engine.database(), &definition).await?,
    }
    table.define(definition);
    Ok(())
}

/// Gives the indexes of a table the weights that it is defined with.
pub(crate) fn weigh(engine: &Engine, table: &OpenTable) {
    table.weigh();
    engine.inner().count_indexes();
}

/// Makes a design the wanted one of an index, and starts its build. When that fails, the design before is wanted again, so
/// that a retry isn't taken for done.
pub(crate) async fn rebuild(engine: &Engine, index: &OpenIndex, design: Design) -> Result<()> {
    // It answers until the other one is built. One that can't be opened finds what is wanted when it can.
    let _opened = index
        .state
        .opened(Wait::new(Some(Instant::now() + OPENING_WAIT_MAX)))
        .await;
    let before = index.wanted();
    index.want(design);
    let keeper = engine.keeper(index.name())?;
    let redesigned = tokio::task::spawn_blocking(move || keeper.redesign()).await;
    let redesigned = redesigned.map_err(|_| EngineError::Defect("redesigning an index panicked"))?;
    if redesigned.is_err() {
        index.want(before);
    }
    redesigned
}

/// The build under way, or the one that failed. None once the wanted index serves, which may be before its build is noted
/// as done.
fn build_under_way(index: &OpenIndex) -> Option<Build> {
    let wanted = index.wanted();
    let served = index.state.served_design();
    let serves_wanted = served.is_some_and(|design| design.fingerprint() == wanted.fingerprint());
    index.state.build().filter(|_| !serves_wanted)
}

/// Describes an index.
pub(crate) async fn described(
    engine: &Engine,
    table: &OpenTable,
    index: &OpenIndex,
) -> Result<IndexDescription> {
    let wanted = index.wanted();
    let build = build_under_way(index);
    let state = &index.state;
    let last = engine.database().last_sequence();
    let mut described = IndexDescription {
        name: index.name().to_owned(),
        table: table.name().to_owned(),
        weight: index.weight(),
        phase: IndexPhase::Building,
        stalled: state.current_stall().map(|stall| (stall.why, stall.age())),
        is_log_held: state.log_held().is_some(),
        fields: Vec::new(),
        fields_to_be: Vec::new(),
        serving: None,
        build: None,
    };
    match state.phase() {
        Phase::Absent => {}
        Phase::Building => described.fields_to_be = fields(table, index, &wanted),
        Phase::Failed(_) => described.phase = IndexPhase::Failed,
        Phase::Unopened(unopened) => {
            described.phase = IndexPhase::Serving;
            described.fields = fields(table, index, &unopened.design);
            let sequence = state.applied();
            described.serving = Some(ServingIndex {
                sequence,
                lag_changes: last.saturating_sub(sequence),
                lag: lag(engine, sequence).await?,
                size: unopened.size,
                is_merging: false,
                misfit_ids: ids_of(&unopened.misfits),
                misfits: unopened.misfits.clone(),
            });
        }
        Phase::Serving(serving) => {
            let is_building = build
                .as_ref()
                .is_some_and(|build| !matches!(build.step, Step::Failed(_)));
            described.phase = match is_building {
                true => IndexPhase::Rebuilding,
                false => IndexPhase::Serving,
            };
            described.fields = fields(table, index, &serving.design);
            if build.is_some() {
                described.fields_to_be = fields(table, index, &wanted);
            }
            // An index that has just begun to serve may be ahead of the state; searches take the later one, too.
            let applied = state.applied().max(serving.index.applied_sequence());
            let lag = lag(engine, applied).await?;
            let misfits = serving.index.misfits();
            let misfit_ids = ids_of(&misfits);
            let answering = serving.index.clone();
            let size = tokio::task::spawn_blocking(move || answering.size())
                .await
                .map_err(|_| EngineError::Defect("measuring an index panicked"))?
                .map_err(|error| EngineError::of_index(index.name(), error))?;
            described.serving = Some(ServingIndex {
                sequence: applied,
                lag_changes: last.saturating_sub(applied),
                lag,
                size,
                is_merging: !state.is_consolidated(),
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

/// [`ServingIndex::misfit_ids`].
fn ids_of(misfits: &MisfitReport) -> Vec<Option<String>> {
    let recent = misfits.recent.iter();
    recent.map(|misfit| key::document_name(&misfit.key)).collect()
}

/// The fields of a design, without the sources of those that code declares.
fn fields(table: &OpenTable, index: &OpenIndex, design: &Design) -> Vec<IndexedField> {
    let definition = table.definition();
    let declared = definition.search().filter(|_| is_declared(table, index.name()));
    let source = |path: &str| {
        let is_declared =
            |source: &&Source| declared.is_some_and(|search| search.sources.get(path) == Some(source));
        let source = design.source(path).filter(|source| !is_declared(source));
        source.map(ToString::to_string)
    };
    let fields = design.schema.resolved().iter().map(|field| {
        let (name, inside) = field.path.split_once('.').unwrap_or((field.path.as_str(), ""));
        let read = design.source(name);
        let dates = read.and_then(|read| read.dates.get(inside));
        IndexedField {
            path: field.path.clone(),
            kind: field.kind.clone(),
            array: field.array,
            source: source(&field.path),
            json: inside.is_empty() && read.is_some_and(|read| read.json),
            dates: dates.cloned().unwrap_or_default(),
        }
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
