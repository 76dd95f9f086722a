//! What a feed tells about itself.

use std::time::Duration;

use crate::error::Result;
use crate::feed::Feed;
use crate::feeds::checkpoint::{Checkpoint, Definition, Delivers, Stage};
use crate::feeds::shard::FeedShard;
use crate::id::TableId;
use crate::read::log;
use crate::value::PrimaryKey;

/// A feed, where it stands, and how far behind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedDescription {
    /// Its name.
    pub name: String,
    /// When it was created, nanoseconds since the Unix epoch.
    pub created: i64,
    /// Whether it delivers the rows that are there.
    pub base: bool,
    /// Whether it delivers changes.
    pub changes: bool,
    /// Its tables; empty: all.
    pub tables: Vec<TableId>,
    /// How long changes are kept for it.
    pub hold: Duration,
    /// Which part of the rows it delivers; `None`: all.
    pub shard: Option<FeedShard>,
    /// What it is at.
    pub phase: FeedPhase,
    /// The sequence as of which the acknowledged rows have been delivered.
    pub position: u64,
    /// Changes behind the position, of all tables; 0 when it doesn't wait for any.
    pub lag_changes: u64,
    /// How long ago the first change behind the position was made.
    pub lag: Duration,
}

/// What a feed is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedPhase {
    /// It delivers base rows.
    Base {
        /// The table it is at; it may have been dropped.
        table: TableId,
        /// The row it goes on with; `None`: the first.
        next: Option<PrimaryKey>,
    },
    /// It delivers changes.
    Changes,
    /// It has delivered all base rows, and was to deliver no more.
    Finished,
    /// Changes that it hasn't delivered are gone.
    Expired {
        /// The oldest that is kept.
        oldest: u64,
    },
    /// It is ahead of a log whose loss was accepted.
    AheadOfLog,
}

impl FeedPhase {
    pub(super) fn of(stage: &Stage) -> Self {
        match stage {
            Stage::Base { cut } => {
                let (table, next) = cut.place();
                Self::Base { table, next }
            }
            Stage::Changes => Self::Changes,
            Stage::Finished => Self::Finished,
            Stage::Lost => Self::AheadOfLog,
        }
    }
}

pub(super) async fn describe(
    feed: &Feed,
    definition: &Definition,
    checkpoint: &Checkpoint,
) -> Result<FeedDescription> {
    let snapshot = feed.shared.kv.snapshot().await?;
    let trimmed = log::trimmed(&*snapshot).await?;
    let waits = match checkpoint.stage {
        Stage::Base { .. } => definition.delivers != Delivers::Base,
        Stage::Changes => true,
        Stage::Finished | Stage::Lost => false,
    };
    let phase = if waits && checkpoint.position < trimmed {
        FeedPhase::Expired {
            oldest: trimmed.saturating_add(1),
        }
    } else {
        FeedPhase::of(&checkpoint.stage)
    };
    let last = snapshot.sequence();
    let lag_changes = if waits {
        last.saturating_sub(checkpoint.position)
    } else {
        0
    };
    let first = checkpoint.position.max(trimmed).saturating_add(1);
    let lag = if lag_changes > 0 && first <= last {
        let since = log::time::time_of(&*snapshot, first).await?;
        let age = feed.shared.options.clock.now().saturating_sub(since);
        Duration::from_nanos(u64::try_from(age).unwrap_or(0))
    } else {
        Duration::ZERO
    };
    Ok(FeedDescription {
        name: feed.name.clone(),
        created: definition.created,
        base: definition.delivers != Delivers::Changes,
        changes: definition.delivers != Delivers::Base,
        tables: definition.tables.clone(),
        hold: definition.hold,
        shard: definition.shard,
        phase,
        position: checkpoint.position,
        lag_changes,
        lag,
    })
}
