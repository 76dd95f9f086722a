//! Feeds: change data capture. A feed delivers the rows of tables, then every change of them, at least once.
//!
//! A [`Feed`] has a name and a durable position. [`Feed::read`] returns the records behind the position and a token;
//! [`Feed::acknowledge`] moves the position to the token, durably. What was read and not acknowledged is delivered
//! again, also after a restart. What was acknowledged never comes again.
//!
//! # How rows and changes fit together
//!
//! The position is a cursor, a key in the order of all rows, and a sequence: the rows before the cursor have been delivered as
//! they were at that sequence. A page of base rows is read from a snapshot of just that sequence and moves the cursor.
//!
//! When the snapshot is gone (a restart, or it grew too old), a new one is taken. First the changes from the position up
//! to the new snapshot's sequence are delivered, of rows before the cursor alone: rows behind it will be read from the new
//! snapshot. So a change is delivered if and only if its sequence is above the one at which its row was read. The
//! position stays small, and the log is held back for no longer than a snapshot lives.
//!
//! A page that was delivered but not acknowledged may hold rows behind the cursor that are deleted before it is read again.
//! Therefore those changes include deletes of rows behind the cursor that the new snapshot doesn't have, if such rows may
//! have been delivered. So a delete may be of a row that was never delivered.
//!
//! ```
//! use souk_storage::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let database = Database::in_memory(DatabaseOptions::default()).await?;
//! let table = database.ensure_table(TableSchema::new("shops").key("id", KeyKind::Integer)).await?;
//! let put = |id| RowOperation::Put { key: PrimaryKey::integer(id), columns: vec![] };
//! database.write(WriteBatch::of(&table, put(1), Condition::none())).await?;
//!
//! let feed = database.create_feed("copy", FeedOptions::new(FeedSource::BaseAndChanges)).await?;
//! let base = feed.read(100).await?;
//! assert_eq!(base.records[0].kind, RecordKind::Base);
//! feed.acknowledge(&base.token).await?;
//! let end = feed.read(100).await?;
//! assert_eq!((end.records.len(), &end.phase), (0, &FeedPhase::Changes));
//! feed.acknowledge(&end.token).await?;
//!
//! database.write(WriteBatch::of(&table, put(2), Condition::none())).await?;
//! let change = feed.read(100).await?;
//! assert_eq!(change.records[0].key, PrimaryKey::integer(2));
//! feed.acknowledge(&change.token).await?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod acknowledgement;
mod base;
mod changes;
pub(crate) mod creation;
mod description;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use souk_kv::{Commit, Durability, Mutation, Space};
use tokio::sync::OwnedMutexGuard;

use crate::catalog::Table;
use crate::change::ChangeKind;
use crate::database::DatabaseState;
use crate::error::{Error, Result};
use crate::feeds::checkpoint::{Checkpoint, Delivers, FeedDefinition, Stage};
use crate::feeds::codec;
use crate::id::TableId;
use crate::key;
use crate::limits::{MAX_FEED_HOLD, MAX_FEED_RECORDS};
use crate::row::Row;
use crate::undisturbed::undisturbed;
use crate::value::PrimaryKey;

pub use self::acknowledgement::Acknowledgement;
pub use self::description::{FeedDescription, FeedPhase};
pub use crate::feeds::codec::FeedToken;
pub use crate::feeds::shard::FeedShard;

/// What a feed delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedSource {
    /// The rows, once. Pages may be of different sequences, and the log isn't held back.
    Base,
    /// The changes from here on.
    Changes(FeedStart),
    /// The rows, and every change of them since they were read.
    BaseAndChanges,
}

impl From<FeedSource> for Delivers {
    fn from(source: FeedSource) -> Self {
        match source {
            FeedSource::Base => Self::Base,
            FeedSource::Changes(_) => Self::Changes,
            FeedSource::BaseAndChanges => Self::BaseAndChanges,
        }
    }
}

/// Where the changes of a feed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// At the oldest change that is kept.
    Oldest,
    /// Behind the last change there is.
    Newest,
    /// Behind this sequence.
    After(u64),
    /// At a time, nanoseconds since the Unix epoch: not in the future, and inside of the retention by at least
    /// [`crate::limits::FEED_START_MARGIN`].
    Time(i64),
}

/// What a feed is created with.
#[derive(Debug, Clone)]
pub struct FeedOptions {
    /// What it delivers.
    pub source: FeedSource,
    /// Of which tables; empty: of all, also of those that are created later.
    pub tables: Vec<Table>,
    /// How long the log keeps a change for the feed until it is acknowledged, where that is longer than the retention;
    /// at most [`crate::limits::MAX_FEED_HOLD`]. A feed that falls further behind has expired: [`Error::ChangesTrimmed`].
    pub hold: Duration,
    /// Which part of the rows; `None`: all.
    pub shard: Option<FeedShard>,
}

impl FeedOptions {
    /// A feed of all tables, with the longest hold.
    pub fn new(source: FeedSource) -> Self {
        Self {
            source,
            tables: Vec::new(),
            hold: MAX_FEED_HOLD,
            shard: None,
        }
    }

    /// Adds a table to those that it delivers.
    #[must_use]
    pub fn table(mut self, table: &Table) -> Self {
        self.tables.push(table.clone());
        self
    }

    /// Sets [`Self::hold`].
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// Delivers the rows of one shard alone.
    #[must_use]
    pub fn shard(mut self, shard: FeedShard) -> Self {
        self.shard = Some(shard);
        self
    }
}

/// Where a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A row as it was read.
    Base,
    /// A change.
    Change(ChangeKind),
}

/// A row, or what happened to one.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedRecord {
    /// The row's table.
    pub table: TableId,
    /// The row.
    pub key: PrimaryKey,
    /// Sequence of the change; of a base row, of the change that last wrote it.
    pub sequence: u64,
    /// Which row of that change it is, from 0, among all that it has; 0 for base rows.
    pub index: usize,
    /// When that change was made, nanoseconds since the Unix epoch.
    pub time: i64,
    /// W3C `traceparent` of the change's writer; `None` for base rows.
    pub trace: Option<String>,
    /// Whether it is a row or a change.
    pub kind: RecordKind,
    /// The row as it was read, or as the change left it, with all stored versions, expired or not; `None` for a delete.
    pub row: Option<Row>,
}

/// The records of one read of a feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedBatch {
    /// The records, to be applied in this order. May be empty although there is more: acknowledge it all the same.
    pub records: Vec<FeedRecord>,
    /// A reader that has applied all records up to here has the delivered rows as of this sequence.
    pub sequence: u64,
    /// The phase of the feed after these records.
    pub phase: FeedPhase,
    /// Where these records end: for [`Feed::acknowledge`] and [`Feed::read_after`].
    pub token: FeedToken,
    /// Whether there was nothing more at the time of the read.
    pub caught_up: bool,
}

/// A handle of a feed. Handles of one name share its position, so one reader at a time should use it. Several readers share the
/// rows of tables by feeds of a [`FeedShard`] each.
#[derive(Debug, Clone)]
pub struct Feed {
    name: String,
    shared: Arc<DatabaseState>,
}

impl Feed {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads on from the acknowledged position. Returns at most `limit` records (0, or more than [`MAX_FEED_RECORDS`],
    /// means [`MAX_FEED_RECORDS`]), or more where the last change has more rows, and at most [`crate::limits::MAX_FEED_BYTES`], or one record that is larger: only a
    /// change that is larger than that comes in parts, its sequence with the last of them. The same records come again until they are acknowledged. [`crate::Database::subscribe`] tells when there may be more.
    ///
    /// # Errors
    /// [`Error::FeedNotFound`]; [`Error::ChangesTrimmed`] when it has expired; [`Error::FeedAheadOfLog`];
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub async fn read(&self, limit: usize) -> Result<FeedBatch> {
        let (definition, checkpoint) = self.shared.feeds.get(&self.name)?;
        self.read_from(&definition, checkpoint, limit).await
    }

    /// Reads on from a token, so that a reader may prefetch before it acknowledges. `limit` is as in [`Self::read`].
    ///
    /// # Errors
    /// As [`Feed::read`]; [`Error::FeedTokenInvalid`] when the token isn't of this feed.
    pub async fn read_after(&self, token: &FeedToken, limit: usize) -> Result<FeedBatch> {
        let (definition, _) = self.shared.feeds.get(&self.name)?;
        let checkpoint = self.checkpoint_of(&definition, token)?;
        self.read_from(&definition, checkpoint, limit).await
    }

    /// Acknowledges all records up to the token, durably: they never come again. An [`Acknowledgement`] does so as a part of a write. Does nothing for the token that was
    /// acknowledged last.
    ///
    /// # Errors
    /// [`Error::FeedTokenStale`] when more was acknowledged before; [`Error::FeedTokenInvalid`] when the token isn't of this
    /// feed; [`Error::FeedAheadOfLog`], [`Error::FeedNotFound`], [`Error::Unavailable`], [`Error::OutcomeUnknown`].
    pub async fn acknowledge(&self, token: &FeedToken) -> Result<()> {
        Acknowledgement::new(self, token).commit().await
    }

    /// The token behind the last row of a feed of rows alone ([`FeedSource::Base`]), for whoever has been told that there is no more.
    /// Nothing is read.
    ///
    /// # Errors
    /// [`Error::FeedNotFound`], [`Error::FeedAheadOfLog`]; [`Error::FeedTokenInvalid`] of a feed that delivers changes: it has no end.
    pub fn end(&self) -> Result<FeedToken> {
        let (definition, mut checkpoint) = self.shared.feeds.get(&self.name)?;
        if checkpoint.stage == Stage::Lost {
            return Err(self.ahead_of_log(&checkpoint));
        }
        if definition.delivers != Delivers::Base {
            return Err(Error::feed_token("is of no end: changes are told"));
        }
        checkpoint.stage = Stage::Finished;
        checkpoint.rows = 0;
        Ok(FeedToken::new(&definition, &checkpoint, &self.shared.histories))
    }

    /// Describes its options, its position, and how far it is behind the log.
    ///
    /// # Errors
    /// [`Error::FeedNotFound`], [`Error::Corrupt`], [`Error::Unavailable`].
    pub async fn describe(&self) -> Result<FeedDescription> {
        let described = description::describe(std::slice::from_ref(self), true).await?;
        let described = described.into_iter().next();
        described.ok_or_else(|| Error::FeedNotFound {
            feed: self.name.clone(),
        })
    }

    /// Describes feeds of one database as of one moment, in their order: without [`FeedDescription::lag`], nothing of the log is read.
    ///
    /// # Errors
    /// As [`Feed::describe`], of any of them.
    pub async fn describe_all(feeds: &[Self], lags: bool) -> Result<Vec<FeedDescription>> {
        description::describe(feeds, lags).await
    }

    /// When it was created, nanoseconds since the Unix epoch: tells it from others that had its name.
    ///
    /// # Errors
    /// [`Error::FeedNotFound`].
    pub fn created(&self) -> Result<i64> {
        Ok(self.shared.feeds.get(&self.name)?.0.created)
    }

    /// Removes the feed, so that the log isn't held back for it any more. While the device is short of space this still
    /// works, like trimming of the log, down to a quarter of [`souk_kv::FjallOptions::reserve_bytes`]; below that it is
    /// refused, and may be retried.
    ///
    /// # Errors
    /// [`Error::FeedNotFound`], [`Error::Unavailable`], [`Error::OutcomeUnknown`], [`Error::DiskFull`].
    pub async fn remove(&self) -> Result<()> {
        remove(&self.shared, vec![self.name.clone()]).await
    }

    async fn read_from(
        &self,
        definition: &FeedDefinition,
        mut checkpoint: Checkpoint,
        limit: usize,
    ) -> Result<FeedBatch> {
        let limit = match limit {
            0 => MAX_FEED_RECORDS,
            limit => limit.min(MAX_FEED_RECORDS),
        };
        let (records, caught_up) = match checkpoint.stage {
            Stage::Base { .. } => (
                base::read(self, definition, &mut checkpoint, limit).await?,
                checkpoint.stage == Stage::Finished,
            ),
            Stage::Changes => changes::read(self, definition, &mut checkpoint, limit).await?,
            Stage::Finished => (Vec::new(), true),
            Stage::Lost => return Err(self.ahead_of_log(&checkpoint)),
        };
        Ok(FeedBatch {
            records,
            sequence: checkpoint.position,
            phase: FeedPhase::of(&checkpoint.stage),
            token: FeedToken::new(definition, &checkpoint, &self.shared.histories),
            caught_up,
        })
    }

    /// Decodes a token, which must be of this feed and of this log.
    fn checkpoint_of(&self, definition: &FeedDefinition, token: &FeedToken) -> Result<Checkpoint> {
        let checkpoint = token.checkpoint(definition, &self.shared.histories)?;
        let last = *self.shared.kv.sequence().borrow();
        if checkpoint.reached() > last {
            return Err(Error::feed_token("is beyond the end of the log"));
        }
        Ok(checkpoint)
    }

    fn ahead_of_log(&self, checkpoint: &Checkpoint) -> Error {
        Error::FeedAheadOfLog {
            feed: self.name.clone(),
            position: checkpoint.position,
        }
    }
}

/// Writes a feed to the catalog.
pub(crate) fn put(name: &str, definition: &FeedDefinition, checkpoint: &Checkpoint) -> Mutation {
    Mutation::Put {
        space: Space::Catalog,
        key: key::feed(name),
        value: codec::encode(definition, checkpoint),
        stamp: false,
    }
}

/// Removes feeds, all or none.
async fn remove(shared: &Arc<DatabaseState>, names: Vec<String>) -> Result<()> {
    // Each once: a turn can't be had twice.
    let (shared, names) = (Arc::clone(shared), BTreeSet::from_iter(names));
    undisturbed(async move {
        // Before the lock of all administration, which isn't to wait for those who write. Whoever has a turn never waits for it.
        let mut turns = Vec::with_capacity(names.len());
        for name in &names {
            turns.push(shared.feeds.turn(name)?.lock_owned().await);
        }
        let _admin = shared.admin.lock().await;
        for (name, turn) in names.iter().zip(&turns) {
            // Somebody else has removed it meanwhile; another one may have its name.
            if !Arc::ptr_eq(&shared.feeds.turn(name)?, OwnedMutexGuard::mutex(turn)) {
                return Err(Error::FeedNotFound { feed: name.clone() });
            }
        }
        let mutations = names.iter().map(|name| Mutation::Delete {
            space: Space::Catalog,
            key: key::feed(name),
        });
        let commit = Commit {
            mutations: mutations.collect(),
            ..Commit::default()
        };
        shared.kv.commit(commit).await?;
        names.iter().for_each(|name| shared.feeds.remove(name));
        Ok(())
    })
    .await
}

/// Stores the checkpoints of feeds that are ahead of a shortened log, durably, before their sequences are assigned again:
/// later they couldn't be told from feeds that are not.
pub(crate) async fn store_lost(shared: &DatabaseState, lost: &[String]) -> Result<()> {
    for name in lost {
        let (definition, checkpoint) = shared.feeds.get(name)?;
        tracing::warn!(
            feed = name,
            position = checkpoint.position,
            "the feed is ahead of the log"
        );
        let commit = Commit {
            mutations: vec![put(name, &definition, &checkpoint)],
            durability: Durability::Disk,
            ..Commit::default()
        };
        shared.kv.commit(commit).await?;
    }
    Ok(())
}
