//! What an index tells about itself.

use std::sync::Arc;
use std::time::Duration;

use souk_proto::search::v1 as pb;

use super::fields;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_state::{Build, Phase, Step};
use crate::key;
use crate::table::OpenTable;
use crate::wire::duration_to_wire;

/// A number of things as the wire has it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What is told of an index that isn't tried again; the last failure itself is for the log, as that of a stall.
const FAILED: &str =
    "it failed again and again, and building it anew didn't help: the server's log has the last failure";

/// An index as it is now.
pub(super) async fn index(engine: &Engine, table: &Arc<OpenTable>) -> Result<pb::Index> {
    let wanted = table.wanted();
    // What has taken its place already is no build any more: searches may find it before that is noted.
    let serves_wanted = table
        .index
        .serving()
        .is_some_and(|serving| serving.design.fingerprint() == wanted.fingerprint());
    let build = table.index.build().filter(|_| !serves_wanted);
    let mut described = pb::Index {
        index: table.declaration.name.to_owned(),
        ..pb::Index::default()
    };
    let last = engine.database().last_sequence();
    if let Some(stall) = table.index.stalled() {
        described.stalled_for = Some(duration_to_wire(nanos(stall.age())));
        // The last failure itself is for the log: it may name files, or what a program said when it broke.
        described.stalled = stall.why.to_owned();
    }
    if table.index.log_held().is_some() {
        described.log_held = "the store can't be told how far the index is".to_owned();
    }
    match table.index.phase() {
        Phase::Building => {
            described.phase = pb::IndexPhase::Building.into();
            described.fields_to_be = fields::fields(&wanted);
        }
        Phase::Failed(_) => {
            described.phase = pb::IndexPhase::Failed.into();
            described.failure = FAILED.to_owned();
        }
        Phase::Serving(serving) => {
            let is_building = build
                .as_ref()
                .is_some_and(|build| !matches!(build.step, Step::Failed(_)));
            described.phase = if is_building {
                pb::IndexPhase::Rebuilding.into()
            } else {
                pb::IndexPhase::Serving.into()
            };
            described.fields = fields::fields(&serving.design);
            if build.is_some() {
                described.fields_to_be = fields::fields(&wanted);
            }
            // As searches do: an index that has just begun to answer may be ahead of the number.
            let applied = table.index.applied().max(serving.index.applied_sequence());
            described.sequence = signed(applied);
            described.lag_changes = signed(last.saturating_sub(applied));
            described.lag = Some(duration_to_wire(lag(engine, applied).await?));
            let index = serving.index.clone();
            let size = tokio::task::spawn_blocking(move || index.size())
                .await
                .map_err(|_| EngineError::Defect("measuring an index panicked"))??;
            described.documents = signed(size.documents);
            described.bytes = signed(size.bytes);
            described.merging = !table.index.is_consolidated();
            described.segments = i64::try_from(size.segments).unwrap_or(i64::MAX);
            misfits(table, serving.index.misfits(), &mut described);
        }
    }
    described.build = build.map(|build| to_wire(build, last));
    Ok(described)
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The age of the first change behind a sequence, nanoseconds.
async fn lag(engine: &Engine, applied: u64) -> Result<i64> {
    let next = engine.database().changes(applied, 1).await?;
    let age = next
        .first()
        .map(|change| engine.now().saturating_sub(change.time));
    Ok(age.unwrap_or_default().max(0))
}

fn to_wire(build: Build, last: u64) -> pb::IndexBuild {
    let (step, failure) = match build.step {
        Step::Reading => (pb::IndexBuildStep::Reading, String::new()),
        Step::CatchingUp => (pb::IndexBuildStep::CatchingUp, String::new()),
        Step::Failed(_) => (pb::IndexBuildStep::Failed, FAILED.to_owned()),
    };
    pb::IndexBuild {
        step: step.into(),
        rows_done: signed(build.rows),
        rows_about: signed(build.about),
        sequence: signed(build.sequence),
        lag_changes: signed(last.saturating_sub(build.sequence)),
        failure,
        waiting: build.waiting.unwrap_or_default(),
    }
}

fn misfits(table: &OpenTable, report: souk_index::MisfitReport, described: &mut pb::Index) {
    described.misfits = signed(report.count);
    let counts = report.counts.into_iter().map(|counted| pb::MisfitCount {
        field: counted.field,
        reason: counted.reason.code().to_owned(),
        count: signed(counted.count),
    });
    described.misfit_counts = counts.collect();
    let recent = report.recent.into_iter().map(|misfit| {
        let id = key::from_document_key(&misfit.key).and_then(|key| (table.declaration.id)(&key).ok());
        pb::Misfit {
            id: id.unwrap_or_default(),
            field: misfit.field,
            reason: misfit.reason.code().to_owned(),
            message: misfit.message,
        }
    });
    described.recent_misfits = recent.collect();
}
