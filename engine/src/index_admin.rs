//! Indexes as their users see and change them.

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
    /// Why searches don't see new changes, for clients, and for how long that has been so.
    pub stalled: Option<(&'static str, Duration)>,
    /// Whether the log is kept for it longer than it needs, as the store can't be told how far it is.
    pub is_log_held: bool,
    /// What can be searched; nothing of an index that doesn't answer.
    pub fields: Vec<IndexedField>,
    /// What can be searched when it is built; nothing where that is the same.
    pub fields_to_be: Vec<IndexedField>,
    /// Of an index that answers.
    pub serving: Option<ServingIndex>,
    /// Of an index that is built.
    pub build: Option<IndexBuild>,
}

/// Whether an index answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPhase {
    /// It is being opened, or built from the table.
    Building,
    /// It answers.
    Serving,
    /// It answers, and another is built to take its place.
    Rebuilding,
    /// It doesn't answer, and isn't tried again before a restart.
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
    /// What fills it, where that isn't the resource: `<column>` or `<column>.<attribute>`.
    pub source: Option<String>,
}

/// An index that answers.
#[derive(Clone, Debug)]
pub struct ServingIndex {
    /// The last change that searches see.
    pub sequence: u64,
    /// Changes that they don't see yet.
    pub lag_changes: u64,
    /// Age of the first of them.
    pub lag: Duration,
    /// How large it is.
    pub size: IndexSize,
    /// Whether its segments become fewer while nobody writes.
    pub is_merging: bool,
    /// Values that don't fit their fields.
    pub misfits: MisfitReport,
    /// Which rows those of [`MisfitReport::recent`] are of, in the same order: their ids, or keys; `None` where a key isn't one.
    pub misfit_ids: Vec<Option<String>>,
}

/// An index that is built.
#[derive(Clone, Debug)]
pub struct IndexBuild {
    /// What it is at.
    pub step: BuildStep,
    /// Rows that are in it.
    pub rows: u64,
    /// Rows of the table, about.
    pub rows_about: u64,
    /// It has those rows as of this sequence.
    pub sequence: u64,
    /// Changes since.
    pub lag_changes: u64,
    /// Why it doesn't go on at the moment; it tries again by itself.
    pub waiting: Option<String>,
}

/// What a build is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildStep {
    /// It takes the rows of the table.
    Reading,
    /// It has them, and takes the changes since.
    CatchingUp,
    /// It has ended, and begins again with the process.
    Failed,
}

/// What a change of an index comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEffect {
    /// Whether the present index does as it is.
    pub instant: bool,
    /// Rows that are read for a new one, about.
    pub rows_about: u64,
    /// Bytes of a new one, about.
    pub bytes_about: u64,
}

impl Engine {
    /// All indexes, by name.
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

    /// The index of a table.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what store and indexes refuse.
    pub async fn index(&self, name: &str) -> Result<IndexDescription> {
        described(self, &self.indexed(name)?).await
    }

    /// Begins to change what can be searched in a table. Another change waits until this one is made or dropped.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn redesign(&self, name: &str) -> Result<Redesign> {
        // Before it waits: whoever asks several processes goes on with the next.
        self.indexed(name)?;
        let turn = Arc::clone(self.changing()).lock_owned().await;
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
            _turn: turn,
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

/// Changes of what can be searched in a table, which are made together.
#[derive(Debug)]
#[must_use = "nothing is changed before `make`"]
pub struct Redesign {
    engine: Engine,
    table: Arc<OpenTable>,
    definition: Arc<TableDefinition>,
    /// The search index of the definition.
    declared: SearchIndexDefinition,
    /// What is to be kept beside what code declares.
    kept: KeptChanges,
    /// What they lead to.
    search: SearchIndexDefinition,
    _turn: OwnedMutexGuard<()>,
}

impl Redesign {
    /// Says what is wrong with a change behind those that were added.
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

    /// Has the index built anew from the rows, also where nothing else changes. One that is being built is left to that.
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

    /// Makes the changes that were added, or with `validate_only` only says what they come to. The present index answers
    /// until one with the changes is built. When this returns, the changes are durable. They are made also when nobody waits for
    /// it any more.
    ///
    /// # Errors
    /// [`EngineError::IndexBuilding`]; what store and indexes refuse.
    pub async fn make(self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        undisturbed(self.made(validate_only)).await
    }

    async fn made(self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        let (engine, table) = (&self.engine, &self.table);
        let name = table.name();
        let search = match table.home {
            // What is kept may be fewer changes that come to the same: then they have to come to exactly the same.
            Home::Code => index_change::changed(&self.declared, &self.kept, name),
            Home::Catalog => self.search,
        };
        let design = Design::new(&self.definition, &search)?;
        let (size, instant) = match table.index.phase() {
            Phase::Serving(serving) => (
                serving.index.size()?,
                serving.design.fingerprint() == design.fingerprint(),
            ),
            // A change may be what helps; how large it will be isn't known.
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

/// Runs a change of tables or indexes to its end even when its caller goes away.
pub(crate) async fn undisturbed<T: Send + 'static>(
    change: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let changed = tokio::spawn(change.in_current_span()).await;
    changed.map_err(|_| EngineError::Defect("a change of tables or indexes panicked"))?
}

/// Has the index of a table built for another design. When that fails, the one before is wanted: whoever asks again has it built.
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

/// The build under way, or the one that failed. What has taken the place of the index that answered is no build any more: searches may
/// find it before that is noted.
fn build_under_way(table: &OpenTable) -> Option<Build> {
    let wanted = table.wanted();
    let serves_wanted = table
        .index
        .serving()
        .is_some_and(|serving| serving.design.fingerprint() == wanted.fingerprint());
    table.index.build().filter(|_| !serves_wanted)
}

/// An index as it is now.
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
            // As searches do: an index that has just begun to answer may be ahead of the number.
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

/// The fields of a design. Where what code declares comes from is its own affair.
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

/// The age of the first change behind a sequence.
async fn lag(engine: &Engine, applied: u64) -> Result<Duration> {
    let next = engine.database().changes(applied, 1).await?;
    let age = next
        .first()
        .map(|change| engine.now().saturating_sub(change.time));
    let age = u64::try_from(age.unwrap_or_default()).unwrap_or_default();
    Ok(Duration::from_nanos(age))
}
