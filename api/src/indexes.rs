//! Indexes on the wire: what the calls of `souk.index.v1.IndexService` do and answer.

mod definition;
mod fields;
mod service;

use std::time::Duration;

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::definition::{MAX_SEARCH_INDEXES, index_name};
use souk_engine::index_admin::{
    BuildStep, IndexBuild, IndexDescription, IndexEffect, IndexPhase, ServingIndex,
};
use souk_engine::{ChangeProblem, Engine, EngineError, IndexChange};
use souk_proto::index::v1::CreateIndexRequest;
use souk_proto::search::v1::{self as pb, index_change::Kind};

pub use definition::{search_index, search_index_to_wire};
pub(crate) use service::IndexApi;

use crate::error::{Error, Result};
use crate::resources::current_call;
use crate::rows::check_whole;
use crate::wire::{duration_to_wire, settled, signed};

/// Most changes of one request that are looked at; more break its rules.
const CHANGES_MAX: usize = 64;
/// Longest name of what fills a field, in characters.
const SOURCE_CHARS_MAX: usize = 256;
/// What is told of an index that isn't tried again; the last failure itself is for the log, as that of a stall.
const FAILED: &str =
    "it failed again and again, and building it anew didn't help: the server's log has the last failure";

/// All indexes of an engine whose tables the current call meets all of: by table, and of each in the order in which they were created.
///
/// # Errors
/// What store and indexes refuse.
pub async fn list(engine: &Engine) -> Result<Vec<pb::Index>> {
    let indexes = engine.indexes(&current_call().principal).await?;
    Ok(indexes.into_iter().map(to_wire).collect())
}

/// Refuses an index of a table that the current call doesn't meet, as one that isn't there, or doesn't meet all of.
fn check_met(engine: &Engine, index: &str) -> Result<()> {
    check_whole(engine, index_name::table_of(index)).map_err(|refused| match refused {
        Error::Engine(EngineError::TableNotFound { .. }) => EngineError::no_index(index).into(),
        refused => refused,
    })
}

/// An index.
///
/// # Errors
/// [`souk_engine::EngineError::NotFound`]; what store and indexes refuse.
pub async fn get(engine: &Engine, name: &str) -> Result<pb::Index> {
    check_met(engine, name)?;
    Ok(to_wire(engine.index(name).await?))
}

/// Creates an index, or only says what that would come to. Of the request `violations` are known.
///
/// # Errors
/// [`souk_engine::EngineError::TableNotFound`], [`souk_engine::EngineError::IndexExists`], [`crate::Error::Invalid`],
/// [`souk_engine::EngineError::LimitExceeded`]; what store and indexes refuse.
pub async fn create(
    engine: &Engine,
    request: &CreateIndexRequest,
    mut violations: Violations,
) -> Result<(pb::Index, pb::IndexUpdateEffect)> {
    if violations.paths().any(|path| path.as_str() == "index") {
        return Err(violations.into());
    }
    // Before whatever else is wrong: a gateway asks another process when the table isn't here.
    check_whole(engine, index_name::table_of(&request.index))?;
    let mut creation = engine.begin_index(&request.index).await?;
    if !request.source_index.is_empty()
        && let Err(ChangeProblem { reason, message }) = creation.begin_with(&request.source_index)
    {
        violations.push("source_index", reason, message);
    }
    let unread = read(
        &request.changes,
        &mut violations,
        |change, is_sound| match is_sound {
            true => creation.add(change),
            false => creation.check(change),
        },
    );
    if let Some(weight) = request.weight {
        creation.weigh(u8::try_from(weight).unwrap_or(u8::MAX));
    }
    // What it is as a whole is known when all of it could be read.
    if unread == 0
        && violations.is_empty()
        && let Err(ChangeProblem { reason, message }) = creation.check_whole()
    {
        violations.push("changes", reason, message);
    }
    settled(violations)?;
    Ok(told(creation.make(request.validate_only).await?))
}

/// Changes what can be searched by an index, and weights of the indexes of its table, or only says what that would come to. Of
/// the request `violations` are known.
///
/// # Errors
/// [`souk_engine::EngineError::NotFound`], [`crate::Error::Invalid`], [`souk_engine::EngineError::IndexBuilding`]; what store
/// and indexes refuse.
pub async fn update(
    engine: &Engine,
    name: &str,
    changes: &[pb::IndexChange],
    weights: &[pb::IndexWeight],
    validate_only: bool,
    mut violations: Violations,
) -> Result<(pb::Index, pb::IndexUpdateEffect)> {
    // First, whatever else is wrong: a gateway asks another process then.
    check_met(engine, name)?;
    let mut redesign = engine.redesign(name).await?;
    if changes.is_empty() && weights.is_empty() {
        violations.push(
            "changes",
            "FIELD_REQUIRED",
            "needs one change at least, or a weight",
        );
    }
    read(changes, &mut violations, |change, is_sound| match is_sound {
        true => redesign.add(change),
        false => redesign.check(change),
    });
    let path = FieldPath::root("weights");
    let before = violations.len();
    for (at, weight) in weights.iter().enumerate().take(MAX_SEARCH_INDEXES) {
        let problem = match u8::try_from(weight.weight) {
            Ok(number) if !weight.index.is_empty() => redesign.weigh(&weight.index, number),
            // It breaks a rule.
            _ => continue,
        };
        if let Err(ChangeProblem { reason, message }) = problem {
            violations.push(path.index(at), reason, message);
        }
    }
    if violations.len() == before
        && let Err(ChangeProblem { reason, message }) = redesign.check_weights()
    {
        violations.push(path, reason, message);
    }
    settled(violations)?;
    Ok(told(redesign.make(validate_only).await?))
}

/// Has an index built anew as it is, or only says what that would come to.
///
/// # Errors
/// [`souk_engine::EngineError::NotFound`], [`souk_engine::EngineError::IndexBuilding`]; what store and indexes refuse.
pub async fn rebuild(
    engine: &Engine,
    name: &str,
    validate_only: bool,
) -> Result<(pb::Index, pb::IndexUpdateEffect)> {
    check_met(engine, name)?;
    let mut redesign = engine.redesign(name).await?;
    redesign.rebuild();
    Ok(told(redesign.make(validate_only).await?))
}

/// Drops an index.
///
/// # Errors
/// As [`Engine::drop_index`].
pub async fn delete(engine: &Engine, name: &str) -> Result<()> {
    check_met(engine, name)?;
    Ok(engine.drop_index(name).await?)
}

/// Reads changes, and has `take` say what is wrong with each, which takes those that are sound as messages. How many couldn't be
/// read.
fn read(
    changes: &[pb::IndexChange],
    violations: &mut Violations,
    mut take: impl FnMut(&IndexChange, bool) -> std::result::Result<(), Vec<ChangeProblem>>,
) -> usize {
    let path = FieldPath::root("changes");
    let mut unread = 0;
    for (at, change) in changes.iter().enumerate().take(CHANGES_MAX) {
        let at = path.index(at);
        let before = violations.len();
        let Some(change) = from_wire(change, &at, violations) else {
            unread += 1;
            continue;
        };
        let problems = take(&change, violations.len() == before);
        let at = at.field(kind(&change)).field("field");
        for ChangeProblem { reason, message } in problems.err().into_iter().flatten() {
            violations.push(&at, reason, message);
        }
    }
    unread
}

fn told((index, effect): (IndexDescription, IndexEffect)) -> (pb::Index, pb::IndexUpdateEffect) {
    let effect = pb::IndexUpdateEffect {
        instant: effect.instant,
        rows_about: signed(effect.rows_about),
        bytes_about: signed(effect.bytes_about),
    };
    (to_wire(index), effect)
}

/// The field of a message with a change.
fn kind(change: &IndexChange) -> &'static str {
    match change {
        IndexChange::AddField { .. } => "add_field",
        IndexChange::DropField { .. } => "drop_field",
        IndexChange::SetAnalyzer { .. } => "set_analyzer",
    }
}

/// Reads a change; `None` comes with a violation.
fn from_wire(change: &pb::IndexChange, at: &FieldPath, violations: &mut Violations) -> Option<IndexChange> {
    Some(match change.kind.as_ref()? {
        Kind::AddField(add) => {
            let at = at.field("add_field");
            check_source(&add.source, &at, violations);
            IndexChange::AddField {
                field: Some(add.field.clone()).filter(|field| !field.is_empty())?,
                kind: fields::kind(add, &at, violations)?,
                source: add.source.clone(),
            }
        }
        Kind::DropField(drop) => IndexChange::DropField {
            field: drop.field.clone(),
        },
        Kind::SetAnalyzer(set) => {
            let at = at.field("set_analyzer").field("analyzer");
            IndexChange::SetAnalyzer {
                field: set.field.clone(),
                analyzer: fields::analyzer(set.analyzer.as_ref()?, &at, violations)?,
            }
        }
    })
}

/// Checks what fills an added field.
fn check_source(source: &str, at: &FieldPath, violations: &mut Violations) {
    let too_long = source.chars().count() > SOURCE_CHARS_MAX;
    let no_name = source.starts_with('.') || source.ends_with('.');
    if too_long || no_name || source.starts_with('_') {
        let message = format!(
            "must be `<column>` or `<column>.<attribute>`, at most {SOURCE_CHARS_MAX} characters, no column of the engine"
        );
        violations.push(at.field("source"), "INVALID_NAME", message);
    }
}

fn to_wire(index: IndexDescription) -> pb::Index {
    let mut described = pb::Index {
        index: index.name,
        table: index.table,
        weight: index.weight.into(),
        fields: index.fields.into_iter().map(fields::to_wire).collect(),
        fields_to_be: index.fields_to_be.into_iter().map(fields::to_wire).collect(),
        build: index.build.map(build),
        ..pb::Index::default()
    };
    if let Some((why, lasts)) = index.stalled {
        described.stalled_for = Some(duration_to_wire(nanos(lasts)));
        // The last failure itself is for the log: it may name files, or what a program said when it broke.
        described.stalled = why.to_owned();
    }
    if index.is_log_held {
        described.log_held = "the store can't be told how far the index is".to_owned();
    }
    let phase = match index.phase {
        IndexPhase::Building => pb::IndexPhase::Building,
        IndexPhase::Serving => pb::IndexPhase::Serving,
        IndexPhase::Rebuilding => pb::IndexPhase::Rebuilding,
        IndexPhase::Failed => {
            described.failure = FAILED.to_owned();
            pb::IndexPhase::Failed
        }
    };
    described.phase = phase.into();
    if let Some(serving) = index.serving {
        add_serving(serving, &mut described);
    }
    described
}

fn add_serving(serving: ServingIndex, described: &mut pb::Index) {
    described.sequence = signed(serving.sequence);
    described.lag_changes = signed(serving.lag_changes);
    described.lag = Some(duration_to_wire(nanos(serving.lag)));
    described.documents = signed(serving.size.documents);
    described.bytes = signed(serving.size.bytes);
    described.merging = serving.is_merging;
    described.segments = i64::try_from(serving.size.segments).unwrap_or(i64::MAX);
    described.misfits = signed(serving.misfits.count);
    let counts = serving.misfits.counts.into_iter().map(|counted| pb::MisfitCount {
        field: counted.field,
        reason: counted.reason.code().to_owned(),
        count: signed(counted.count),
    });
    described.misfit_counts = counts.collect();
    let recent = serving.misfits.recent.into_iter().zip(serving.misfit_ids);
    let recent = recent.map(|(misfit, id)| pb::Misfit {
        id: id.unwrap_or_default(),
        field: misfit.field,
        reason: misfit.reason.code().to_owned(),
        message: misfit.message,
    });
    described.recent_misfits = recent.collect();
}

fn build(build: IndexBuild) -> pb::IndexBuild {
    let (step, failure) = match build.step {
        BuildStep::Reading => (pb::IndexBuildStep::Reading, ""),
        BuildStep::CatchingUp => (pb::IndexBuildStep::CatchingUp, ""),
        BuildStep::Failed => (pb::IndexBuildStep::Failed, FAILED),
    };
    pb::IndexBuild {
        step: step.into(),
        rows_done: signed(build.rows),
        rows_about: signed(build.rows_about),
        sequence: signed(build.sequence),
        lag_changes: signed(build.lag_changes),
        failure: failure.to_owned(),
        waiting: build.waiting.unwrap_or_default(),
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
