//! Indexes as their users see and change them.

use std::sync::Arc;
use std::time::Duration;

use souk_index::{FieldKind, IndexSize, MisfitReport};
use tokio::sync::MutexGuard;

use crate::design::Design;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_change::{self, ChangeProblem, IndexChange};
use crate::index_state::{Phase, Step};
use crate::kept_changes;
use crate::key;
use crate::table::OpenTable;

/// The index of a table, as it is at one moment.
#[derive(Clone, Debug)]
pub struct IndexDescription {
    /// The table.
    pub table: &'static str,
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
    /// The ids of the resources of [`MisfitReport::recent`], in the same order; `None` where a key isn't one.
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
        let mut tables: Vec<_> = self.tables().collect();
        tables.sort_by_key(|table| table.declaration.name);
        let mut indexes = Vec::with_capacity(tables.len());
        for table in tables {
            indexes.push(described(self, table).await?);
        }
        Ok(indexes)
    }

    /// The index of a table.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what store and indexes refuse.
    pub async fn index(&self, name: &str) -> Result<IndexDescription> {
        described(self, self.indexed(name)?).await
    }

    /// Begins to change what can be searched in a table. Another change waits until this one is made or dropped.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn redesign(&self, name: &str) -> Result<Redesign<'_>> {
        let table = self.indexed(name)?;
        let turn = self.redesigning().lock().await;
        Ok(Redesign {
            engine: self,
            table,
            kept: table.changes.read().clone(),
            design: (*table.wanted()).clone(),
            _turn: turn,
        })
    }

    fn indexed(&self, name: &str) -> Result<&Arc<OpenTable>> {
        let table = self.tables().find(|table| table.declaration.name == name);
        table.ok_or_else(|| EngineError::NotFound {
            name: "index",
            id: name.to_owned(),
        })
    }
}

/// Changes of what can be searched in a table, which are made together.
#[derive(Debug)]
#[must_use = "nothing is changed before `make`"]
pub struct Redesign<'a> {
    engine: &'a Engine,
    table: &'a Arc<OpenTable>,
    /// All changes that are to be kept.
    kept: Vec<IndexChange>,
    /// What they lead to.
    design: Design,
    _turn: MutexGuard<'a, ()>,
}

impl Redesign<'_> {
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
        self.design = self.checked(change)?;
        index_change::add(&mut self.kept, change);
        Ok(())
    }

    fn checked(&self, change: &IndexChange) -> std::result::Result<Design, Vec<ChangeProblem>> {
        index_change::check_not_needed(change, self.table.declaration.owners)
            .map_err(|problem| vec![problem])?;
        index_change::applied(&self.design, change)
    }

    /// Makes the changes that were added, or with `validate_only` only says what they come to. The present index answers
    /// until one with the changes is built. When this returns, the changes are durable.
    ///
    /// # Errors
    /// [`EngineError::IndexBuilding`]; what store and indexes refuse.
    pub async fn make(self, validate_only: bool) -> Result<(IndexDescription, IndexEffect)> {
        let (engine, table) = (self.engine, self.table);
        let name = table.declaration.name;
        // What is kept may be fewer changes that come to the same: then they have to come to exactly the same.
        let declared = Design::declared(&table.declaration)?;
        let design = index_change::redesigned(&declared, &self.kept, name);
        let (size, instant) = match table.index.phase() {
            Phase::Serving(serving) => (
                serving.index.size()?,
                serving.design.fingerprint() == design.fingerprint(),
            ),
            // A change may be what helps; how large it will be isn't known.
            Phase::Failed(_) => (IndexSize::default(), false),
            Phase::Building => return Err(EngineError::IndexBuilding { table: name }),
        };
        let effect = IndexEffect {
            instant,
            rows_about: if instant { 0 } else { size.documents },
            bytes_about: if instant { 0 } else { size.bytes },
        };
        if !validate_only && design.fingerprint() != table.wanted().fingerprint() {
            kept_changes::write(engine.database(), name, &self.kept).await?;
            table.changes.write().clone_from(&self.kept);
            table.want(design);
            let keeper = engine.keeper(table)?;
            tokio::task::spawn_blocking(move || keeper.redesign())
                .await
                .map_err(|_| EngineError::Defect("redesigning an index panicked"))??;
        }
        Ok((described(engine, table).await?, effect))
    }
}

/// An index as it is now.
async fn described(engine: &Engine, table: &Arc<OpenTable>) -> Result<IndexDescription> {
    let wanted = table.wanted();
    // What has taken its place already is no build any more: searches may find it before that is noted.
    let serves_wanted = table
        .index
        .serving()
        .is_some_and(|serving| serving.design.fingerprint() == wanted.fingerprint());
    let build = table.index.build().filter(|_| !serves_wanted);
    let last = engine.database().last_sequence();
    let mut described = IndexDescription {
        table: table.declaration.name,
        phase: IndexPhase::Building,
        stalled: table.index.stalled().map(|stall| (stall.why, stall.age())),
        is_log_held: table.index.log_held().is_some(),
        fields: Vec::new(),
        fields_to_be: Vec::new(),
        serving: None,
        build: None,
    };
    match table.index.phase() {
        Phase::Building => described.fields_to_be = fields(&wanted),
        Phase::Failed(_) => described.phase = IndexPhase::Failed,
        Phase::Serving(serving) => {
            let is_building = build
                .as_ref()
                .is_some_and(|build| !matches!(build.step, Step::Failed(_)));
            described.phase = match is_building {
                true => IndexPhase::Rebuilding,
                false => IndexPhase::Serving,
            };
            described.fields = fields(&serving.design);
            if build.is_some() {
                described.fields_to_be = fields(&wanted);
            }
            // As searches do: an index that has just begun to answer may be ahead of the number.
            let applied = table.index.applied().max(serving.index.applied_sequence());
            let lag = lag(engine, applied).await?;
            let misfits = serving.index.misfits();
            let ids = misfits.recent.iter().map(|misfit| {
                key::from_document_key(&misfit.key).and_then(|key| (table.declaration.id)(&key).ok())
            });
            let misfit_ids = ids.collect();
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

/// The fields of a design.
fn fields(design: &Design) -> Vec<IndexedField> {
    let fields = design.schema.resolved().iter().map(|field| IndexedField {
        path: field.path.clone(),
        kind: field.kind.clone(),
        array: field.array,
        source: design.sources.get(&field.path).cloned(),
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
