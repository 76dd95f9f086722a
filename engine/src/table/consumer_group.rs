//! Consumer groups of a table, and what their members do.

use std::time::Duration;

use souk_storage::FeedPhase;
use tokio::time::{Instant, sleep, timeout_at};

use super::TableHandle;
use crate::call::Grant;
use crate::consumer_groups::{
    Committing, ConsumerGroup, GroupDescription, GroupOptions, HeldShard, MemberId, SESSION_TIMEOUT_MAX,
    SESSION_TIMEOUT_MIN, ShardCheckpoint, ShardLease, ShardRecords, open_token, seal_token,
};
use crate::error::{EngineError, Result};
use crate::undisturbed::undisturbed;

/// Longest wait of a read of a shard.
pub const READ_WAIT_MAX: Duration = Duration::from_secs(20);
/// How long a read that waits doesn't look again when there was nothing, at first: each write of any table wakes it.
const READ_PAUSE: Duration = Duration::from_millis(10);
/// The same, when there was nothing again and again.
const READ_PAUSE_MAX: Duration = Duration::from_millis(100);

impl TableHandle {
    /// Creates a consumer group, durably: from here on, changes are kept for it.
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupExists`]; [`EngineError::LimitExceeded`] for
    /// [`crate::consumer_groups::GROUPS_OF_TABLE_MAX`], [`crate::consumer_groups::SHARDS_OF_GROUP_MAX`],
    /// [`crate::consumer_groups::SHARDS_MAX`]; [`EngineError::NoOwnRows`], [`EngineError::PartitionNotAllowed`] to callers who meet some
    /// rows alone; as [`souk_storage::Database::create_feed`].
    pub async fn create_consumer_group(&self, name: &str, options: GroupOptions) -> Result<()> {
        self.check_all(&self.scope()?)?;
        let (table, name) = (self.clone(), name.to_owned());
        undisturbed(async move {
            let inner = &table.inner;
            let _changing = inner.changing.lock().await;
            table.open.check_there()?;
            inner
                .consumer_groups
                .create(&inner.database, &table.open.table, &name, options)
                .await
        })
        .await
    }

    /// Tells what a consumer group is, who its members are, and how far it is.
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupNotFound`]; what the store refuses.
    pub async fn consumer_group(&self, name: &str) -> Result<GroupDescription> {
        self.check_all(&self.scope()?)?;
        let group = self.inner.consumer_groups.get(&self.open.table, name)?;
        // The changes that lags are told by may be large.
        let _permit = self.inner.consumer_groups.read_permit().await;
        group.describe(true).await
    }

    /// When a consumer group was created, nanoseconds since the Unix epoch: tells it from others that had its name.
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupNotFound`].
    pub fn consumer_group_created(&self, name: &str) -> Result<i64> {
        self.check_all(&self.scope()?)?;
        let group = self.inner.consumer_groups.get(&self.open.table, name)?;
        group.created()
    }

    /// All consumer groups of the table, by name: [`crate::consumer_groups::GROUPS_OF_TABLE_MAX`] at most. Without the lags of their
    /// shards ([`souk_storage::FeedDescription::lag`]).
    ///
    /// # Errors
    /// What the store refuses.
    pub async fn consumer_groups(&self) -> Result<Vec<GroupDescription>> {
        self.check_all(&self.scope()?)?;
        let mut described = Vec::new();
        for group in self.inner.consumer_groups.of_table(self.open.table.id()) {
            match group.describe(false).await {
                Ok(group) => described.push(group),
                // It was deleted a moment ago.
                Err(EngineError::ConsumerGroupNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(described)
    }

    /// Deletes a consumer group, durably, with its checkpoints.
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupNotFound`]; what the store refuses.
    pub async fn delete_consumer_group(&self, name: &str) -> Result<()> {
        self.check_all(&self.scope()?)?;
        let (table, name) = (self.clone(), name.to_owned());
        undisturbed(async move {
            let inner = &table.inner;
            let _changing = inner.changing.lock().await;
            let group = inner.consumer_groups.get(&table.open.table, &name)?;
            let id = table.open.table.id();
            inner.consumer_groups.remove(&inner.database, id, &group).await
        })
        .await
    }

    /// Joins a consumer group, as a new member: its id, and the shards that it has. `client` is how its program calls itself; it is
    /// gone when it isn't heard of for `session_timeout`, which is held within [`SESSION_TIMEOUT_MIN`] and
    /// [`SESSION_TIMEOUT_MAX`].
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupNotFound`]; [`EngineError::TooManyMembers`] for all, or for the caller's share.
    pub fn join_consumer_group(
        &self,
        group: &str,
        client: String,
        session_timeout: Duration,
    ) -> Result<(MemberId, Vec<ShardLease>)> {
        self.check_all(&self.scope()?)?;
        let timeout = session_timeout.clamp(SESSION_TIMEOUT_MIN, SESSION_TIMEOUT_MAX);
        let group = self.inner.consumer_groups.get(&self.open.table, group)?;
        group.join(self.caller(), client, timeout)
    }

    /// Lets a consumer group hear of a member, which releases shards (by their numbers and generations); the shards that it has
    /// from now on.
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupNotFound`]; [`EngineError::MemberNotFound`] when it wasn't heard of for too long, the process was
    /// started again, or it is another caller's: it has to join again, and has no shards.
    pub fn heartbeat(
        &self,
        group: &str,
        member: MemberId,
        released: &[(u16, u64)],
    ) -> Result<Vec<ShardLease>> {
        self.check_all(&self.scope()?)?;
        let group = self.inner.consumer_groups.get(&self.open.table, group)?;
        group.heartbeat(self.caller().as_ref(), member, released)
    }

    /// Leaves a consumer group: others get the member's shards at once.
    ///
    /// # Errors
    /// As [`TableHandle::heartbeat`].
    pub fn leave_consumer_group(&self, group: &str, member: MemberId) -> Result<()> {
        self.check_all(&self.scope()?)?;
        let group = self.inner.consumer_groups.get(&self.open.table, group)?;
        group.leave(self.caller().as_ref(), member)
    }

    /// A shard, as a member has it now, where its client doesn't know by which lease.
    ///
    /// # Errors
    /// As [`TableHandle::heartbeat`]; [`EngineError::ShardLost`].
    pub fn held_shard(&self, group: &str, member: MemberId, shard: u16) -> Result<HeldShard> {
        self.check_all(&self.scope()?)?;
        let group = self.inner.consumer_groups.get(&self.open.table, group)?;
        group.holding(self.caller().as_ref(), member, shard)
    }

    /// Reads records of a shard: behind its checkpoint, when `after` is empty, or behind the token that an earlier read gave. `limit` is as in
    /// [`souk_storage::Feed::read`]. When there are none yet, it waits for some, for `wait`, [`READ_WAIT_MAX`] at most, and until
    /// shortly before the deadline of the call.
    ///
    /// # Errors
    /// [`EngineError::ConsumerGroupNotFound`], [`EngineError::MemberNotFound`]; [`EngineError::ShardLost`] when it isn't the member's,
    /// or no more; [`EngineError::ShardBusy`] when another read by the same lease began; [`EngineError::TooManyWatches`], [`EngineError::Closing`]; as [`souk_storage::Feed::read_after`].
    pub async fn read_shard(
        &self,
        held: &HeldShard,
        after: &str,
        limit: usize,
        wait: Duration,
    ) -> Result<ShardRecords> {
        self.check_all(&self.scope()?)?;
        let inner = &self.inner;
        let group = inner.consumer_groups.get(&self.open.table, &held.group)?;
        let ends = group.begin_read(self.caller().as_ref(), held)?;
        let read = self.read_on(&group, held, after, limit, wait);
        let read = ends.run_until_cancelled(read).await;
        read.unwrap_or_else(|| Err(group.ended(held)))
    }

    /// The same, of a group, where no other read of the lease is under way.
    async fn read_on(
        &self,
        group: &ConsumerGroup,
        held: &HeldShard,
        after: &str,
        limit: usize,
        wait: Duration,
    ) -> Result<ShardRecords> {
        let inner = &self.inner;
        let _slot = inner.watch_slot(self.caller())?;
        let mut until = Instant::now() + wait.min(READ_WAIT_MAX);
        if let Some(answer_by) = self.wait().answer_by() {
            until = until.min(answer_by);
        }
        let mut after = match after {
            "" => None,
            given => Some(open_token(given)?),
        };
        let mut sequences = inner.database.subscribe();
        let mut pause = READ_PAUSE;
        loop {
            if inner.closing.is_cancelled() {
                return Err(EngineError::Closing);
            }
            self.open.check_there()?;
            let feed = group.held(held)?;
            sequences.borrow_and_update();
            let read = async {
                let _permit = inner.consumer_groups.read_permit().await;
                match &after {
                    Some(token) => feed.read_after(token, limit).await,
                    None => feed.read(limit).await,
                }
            };
            let batch = read.await.map_err(|error| group.refused(error))?;
            // Whoever has it now goes on from there.
            group.held(held)?;
            let is_over = batch.phase == FeedPhase::Finished || Instant::now() >= until;
            if !batch.records.is_empty() || is_over {
                return Ok(batch.into());
            }
            if batch.caught_up {
                let changed = timeout_at(until, sequences.changed());
                match inner.closing.run_until_cancelled(changed).await {
                    Some(Ok(Ok(()))) => sleep(pause).await,
                    Some(Err(_)) => return Ok(batch.into()),
                    Some(Ok(Err(_))) | None => return Err(EngineError::Closing),
                }
                pause = (2 * pause).min(READ_PAUSE_MAX);
            }
            after = Some(batch.token);
        }
    }

    /// The token behind the last record of a shard of a group of rows alone, for clients that know that place by a name of their own.
    ///
    /// # Errors
    /// As [`TableHandle::heartbeat`]; [`EngineError::ShardLost`]; what the store refuses: a group that delivers changes has no end.
    pub fn end_of_shard(&self, held: &HeldShard) -> Result<String> {
        self.check_all(&self.scope()?)?;
        let group = self.inner.consumer_groups.get(&self.open.table, &held.group)?;
        let token = group.held(held)?.end().map_err(|error| group.refused(error))?;
        Ok(seal_token(&token))
    }

    /// Commits a checkpoint of a shard, durably: what is behind it comes never again. Does nothing for the token that was committed
    /// last. [`TableHandle::write_with`] and [`TableHandle::commit_transaction_with`] commit one with a write.
    ///
    /// # Errors
    /// As [`TableHandle::read_shard`] of the member and the shard; as [`souk_storage::Feed::acknowledge`].
    pub async fn commit_checkpoint(&self, checkpoint: &ShardCheckpoint) -> Result<()> {
        self.check_all(&self.scope()?)?;
        let committing = self.committing(checkpoint)?;
        undisturbed(committing.commit()).await
    }

    /// The right to commit a checkpoint of a shard, of this table or another one.
    pub(super) fn committing(&self, checkpoint: &ShardCheckpoint) -> Result<Committing> {
        let name = || checkpoint.table.clone();
        let table = match self.call.principal.grant(&checkpoint.table) {
            Grant::Whole => self.inner.table(&checkpoint.table),
            Grant::Partitions(_) => return Err(EngineError::PartitionNotAllowed { table: name() }),
            Grant::Nothing => None,
        };
        let table = table.ok_or_else(|| EngineError::TableNotFound { table: name() })?;
        let group = self
            .inner
            .consumer_groups
            .get(&table.table, &checkpoint.held.group)?;
        group.begin_commit(self.caller().as_ref(), checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use souk_storage::{FeedSource, KeyKind, TableSchema};

    use super::*;
    use crate::consumer_groups::{SESSION_TIMEOUT_DEFAULT, SHARD_READS_MAX};
    use crate::definition::TableDefinition;
    use crate::engine::{Engine, EngineConfig, Tables};

    #[tokio::test]
    async fn reads_of_more_shards_than_at_a_time_wait_for_their_turn() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Engine::open(EngineConfig::new(folder.path()), Tables::new()).await;
        let engine = engine.expect("an engine");
        let table = TableDefinition::new(TableSchema::new("notes").key("id", KeyKind::String));
        let table = engine.create_table(table).await.expect("a table");
        let group = table.create_consumer_group("copy", GroupOptions::new(FeedSource::Base));
        group.await.expect("a group");
        let joined = table.join_consumer_group("copy", String::new(), SESSION_TIMEOUT_DEFAULT);
        let (member, _) = joined.expect("a member");
        let held = table.held_shard("copy", member, 0).expect("a shard");
        let read = || table.read_shard(&held, "", 1, Duration::ZERO);

        let groups = &engine.inner().consumer_groups;
        let mut permits = Vec::new();
        for _ in 1..SHARD_READS_MAX {
            permits.push(groups.read_permit().await);
        }
        read().await.expect("the last permit");
        permits.push(groups.read_permit().await);
        let mut waiting = pin!(read());
        for _ in 0..100 {
            let is_waiting = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await;
            assert!(is_waiting);
            // Whatever else there is to do is done meanwhile.
            engine.database().snapshot().await.expect("a snapshot");
        }
        drop(permits);
        waiting.await.expect("a permit");
        let end = Instant::now() + Duration::from_secs(10);
        engine.close(end).await.expect("closed");
    }
}
