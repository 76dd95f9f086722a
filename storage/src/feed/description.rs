//! What a feed tells about itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Result;
use crate::feed::Feed;
use crate::feeds::checkpoint::{Delivers, Stage};
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
    /// How long ago the first change behind the position was made; zero where that wasn't asked for.
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
            Stage::Base { cursor } => {
                let (table, next) = cursor.place();
                Self::Base { table, next }
            }
            Stage::Changes => Self::Changes,
            Stage::Finished => Self::Finished,
            Stage::Lost => Self::AheadOfLog,
        }
    }
}

/// Describes feeds of one database as of one moment. Only for their lags anything of the log is read, each change of it once.
pub(super) async fn describe(feeds: &[Feed], lags: bool) -> Result<Vec<FeedDescription>> {
    let Some(shared) = feeds.first().map(|feed| &feed.shared) else {
        return Ok(Vec::new());
    };
    let snapshot = shared.kv.snapshot().await?;
    let trimmed = log::trimmed(&*snapshot).await?;
    let mut described = Vec::with_capacity(feeds.len());
    let mut times = BTreeMap::<u64, i64>::new();
    for feed in feeds {
        let (mut description, first) = standing(feed, snapshot.sequence(), trimmed)?;
        if let Some(first) = first.filter(|_| lags) {
            let since = match times.get(&first) {
                Some(since) => *since,
                None => log::time::time_of(&*snapshot, first).await?,
            };
            times.insert(first, since);
            let age = shared.options.clock.now().saturating_sub(since);
            description.lag = Duration::from_nanos(u64::try_from(age).unwrap_or(0));
        }
        described.push(description);
    }
    Ok(described)
}

/// A feed where the log ends and is trimmed so, and the first change that it waits for, if there is one.
fn standing(feed: &Feed, last: u64, trimmed: u64) -> Result<(FeedDescription, Option<u64>)> {
    let (definition, checkpoint) = feed.shared.feeds.get(&feed.name)?;
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
    let lag_changes = if waits {
        last.saturating_sub(checkpoint.position)
    } else {
        0
    };
    let first = checkpoint.position.max(trimmed).saturating_add(1);
    let description = FeedDescription {
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
        lag: Duration::ZERO,
    };
    Ok((description, (lag_changes > 0 && first <= last).then_some(first)))
}
