//! Consumer groups: durable feeds of a table that several members share.
//!
//! A group has a number of shards, each a feed of the store ([`FeedShard`]): its rows, its changes, or both, of the partition keys
//! that belong to it, in order. What a shard's members have committed is its checkpoint, on the disk. Who is a member, and which
//! shards each has, is kept in memory alone (`members`): when the process starts again, members join again, and go on from
//! the checkpoints. A commit names the lease by which its member has the shard, so that one that was taken for dead, or belonged
//! to the process before, commits nothing: what it read is delivered to another member, from the checkpoint on.
//!
//! Kafka's consumer groups work so, as do Kinesis' leases and Tablestore's tunnels; here the server hands out the shards, and a
//! checkpoint may be a part of the write that it is about ([`ShardCheckpoint`]), which is then made exactly once.

pub(crate) mod members;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use souk_storage::limits::{MAX_FEED_HOLD, MAX_FEED_SHARDS};
use souk_storage::{
    Acknowledgement, Database, Error as StoreError, Feed, FeedBatch, FeedDescription, FeedOptions, FeedPhase,
    FeedRecord, FeedShard, FeedSource, FeedToken, Table, TableId,
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::members::{Fenced, Members};
pub use self::members::{MEMBERS_MAX, MemberId, ShardLease};
use crate::definition::check::limit;
use crate::error::{EngineError, Result};
use crate::token::{self, TokenKind};

/// Most consumer groups of a table.
pub const GROUPS_OF_TABLE_MAX: usize = 16;
/// Most shards of a consumer group.
pub const SHARDS_OF_GROUP_MAX: u16 = MAX_FEED_SHARDS;
/// Most shards of all consumer groups of a process: each is a feed, and search indexes need some, too.
pub const SHARDS_MAX: usize = 512;
/// Shards that are read at a time; other reads wait for their turn. Each has up to [`souk_storage::limits::MAX_FEED_SCANNED_BYTES`] of the
/// log in memory.
pub const SHARD_READS_MAX: usize = 4;
/// Shards of a consumer group, where its creator doesn't say.
pub const SHARDS_DEFAULT: u16 = 8;
/// The shortest session timeout: how long a member stays one without a heartbeat.
pub const SESSION_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// The longest session timeout.
pub const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// The session timeout of a member that sets none.
pub const SESSION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Heartbeats in a session timeout: one may get lost, and another one be late.
pub const HEARTBEATS: u32 = 3;

/// What a consumer group is created with.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// What it delivers.
    pub source: FeedSource,
    /// How many shards it has, 1 to [`SHARDS_OF_GROUP_MAX`] (0 counts as 1); more members than shards are idle.
    pub shards: u16,
    /// How long the log keeps changes for it, where that is longer than the retention; see [`FeedOptions::hold`].
    pub hold: Duration,
}

impl GroupOptions {
    /// [`SHARDS_DEFAULT`] shards, with the longest hold.
    #[must_use]
    pub fn new(source: FeedSource) -> Self {
        Self {
            source,
            shards: SHARDS_DEFAULT,
            hold: MAX_FEED_HOLD,
        }
    }
}

/// A consumer group, and where it stands.
#[derive(Clone, Debug)]
pub struct GroupDescription {
    /// Its name.
    pub name: String,
    /// Its members, in no order that means anything.
    pub members: Vec<MemberDescription>,
    /// Its shards, in their order.
    pub shards: Vec<ShardDescription>,
}

/// A member of a consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// Its id.
    pub member: MemberId,
    /// How its program calls itself.
    pub client: String,
    /// How long it stays a member without a heartbeat.
    pub session_timeout: Duration,
    /// How much of that is left.
    pub left: Duration,
}

/// A shard of a consumer group.
#[derive(Clone, Debug)]
pub struct ShardDescription {
    /// Its checkpoint.
    pub feed: FeedDescription,
    /// Who has it.
    pub holder: Option<(MemberId, ShardLease)>,
}

/// A shard, as a member has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldShard {
    /// The consumer group.
    pub group: String,
    /// The member.
    pub member: MemberId,
    /// The shard.
    pub shard: u16,
    /// The lease by which it has it.
    pub generation: u64,
}

/// That a member is done with a shard's records up to a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardCheckpoint {
    /// The group's table.
    pub table: String,
    /// The shard, as the member has it.
    pub held: HeldShard,
    /// Behind the records: [`ShardRecords::token`].
    pub token: String,
}

/// Records of a shard.
#[derive(Clone, Debug)]
pub struct ShardRecords {
    /// The records, in their order.
    pub records: Vec<FeedRecord>,
    /// Behind them: for a checkpoint, and to read on.
    pub token: String,
    /// What the shard is at behind them.
    pub phase: FeedPhase,
    /// The sequence that they reach.
    pub sequence: u64,
    /// Whether there was nothing more.
    pub caught_up: bool,
}

impl From<FeedBatch> for ShardRecords {
    fn from(batch: FeedBatch) -> Self {
        Self {
            records: batch.records,
            token: seal_token(&batch.token),
            phase: batch.phase,
            sequence: batch.sequence,
            caught_up: batch.caught_up,
        }
    }
}

/// A feed's token as clients get it. The payload names the feed, so the fingerprint is 0.
pub(crate) fn seal_token(token: &FeedToken) -> String {
    token::seal(TokenKind::Shard, 0, token.as_bytes())
}

/// The feed's token in one that a client passed back.
pub(crate) fn open_token(given: &str) -> Result<FeedToken> {
    match token::open(TokenKind::Shard, 0, given) {
        Ok(bytes) => Ok(FeedToken::from_bytes(bytes)),
        Err(detail) => Err(StoreError::Invalid {
            subject: "token of a shard".to_owned(),
            problem: format!("can't be used: {detail}; pass it back as it was given"),
        }
        .into()),
    }
}

/// The consumer groups of all tables.
#[derive(Debug)]
pub(crate) struct ConsumerGroups {
    /// By table and name.
    groups: Mutex<BTreeMap<(TableId, String), Arc<ConsumerGroup>>>,
    reads: Semaphore,
}

/// A consumer group.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    table: Arc<str>,
    name: String,
    /// Its shards.
    feeds: Vec<Feed>,
    members: Mutex<Members>,
}

/// A checkpoint that its member may commit: nobody else gets the shard while this is there.
#[derive(Debug)]
pub(crate) struct Committing {
    group: Arc<ConsumerGroup>,
    shard: u16,
    pub(crate) acknowledgement: Acknowledgement,
}

impl Committing {
    /// Commits it by itself. It has to run to its end.
    pub(crate) async fn commit(self) -> Result<()> {
        let committed = self.acknowledgement.clone().commit().await;
        committed.map_err(|error| self.refused(error))
    }

    /// What the store refused of a write with it.
    pub(crate) fn refused(&self, error: StoreError) -> EngineError {
        self.group.refused(error)
    }
}

impl Drop for Committing {
    fn drop(&mut self) {
        self.group.members.lock().end_commit(self.shard, Instant::now());
    }
}

impl ConsumerGroups {
    /// Opens the groups that the store has, and removes what those of dropped tables have left.
    pub(crate) async fn open(database: &Database) -> Self {
        let tables = database.tables();
        let (mut found, mut left) = (BTreeMap::<_, BTreeMap<u16, Feed>>::new(), Vec::new());
        for feed in database.feeds() {
            let Some((table, shard, name)) = parse_feed_name(feed.name()) else {
                continue;
            };
            match tables.iter().any(|there| there.id() == table) {
                true => {
                    let shards = found.entry((table, name.to_owned())).or_default();
                    shards.insert(shard, feed.clone());
                }
                false => left.push(feed.name().to_owned()),
            }
        }
        if !left.is_empty()
            && let Err(error) = database.remove_feeds(left).await
        {
            warn!(%error, "what consumer groups of dropped tables have left can't be removed; the next start tries again");
        }
        let named = |(id, name): (TableId, String), feeds: BTreeMap<u16, Feed>| {
            let table = tables.iter().find(|there| there.id() == id)?;
            let group = ConsumerGroup::new(table.name().into(), &name, feeds.into_values().collect());
            Some(((id, name), Arc::new(group)))
        };
        let groups = found.into_iter().filter_map(|(key, feeds)| named(key, feeds));
        Self {
            groups: Mutex::new(groups.collect()),
            reads: Semaphore::new(SHARD_READS_MAX),
        }
    }

    /// Waits for a permit to read a shard, of [`SHARD_READS_MAX`].
    pub(crate) async fn read_permit(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.reads.acquire().await.ok()
    }

    /// Creates a group, durably. The caller holds `Inner::changing`.
    pub(crate) async fn create(
        &self,
        database: &Database,
        table: &Table,
        name: &str,
        options: GroupOptions,
    ) -> Result<()> {
        let count = options.shards.max(1);
        limit("SHARDS_OF_GROUP_MAX", SHARDS_OF_GROUP_MAX.into(), count.into())?;
        let key = (table.id(), name.to_owned());
        let exists = || EngineError::ConsumerGroupExists {
            table: table.name().to_owned(),
            group: name.to_owned(),
        };
        {
            let groups = self.groups.lock();
            // Before the limits: a repeated creation fails because the group exists, not by a limit.
            if groups.contains_key(&key) {
                return Err(exists());
            }
            let of_table = groups.keys().filter(|(id, _)| *id == table.id()).count();
            limit("GROUPS_OF_TABLE_MAX", GROUPS_OF_TABLE_MAX, of_table + 1)?;
            let shards: usize = groups.values().map(|group| group.feeds.len()).sum();
            limit("SHARDS_MAX", SHARDS_MAX, shards + usize::from(count))?;
        }
        let feeds = (0..count).map(|index| {
            let options = FeedOptions::new(options.source)
                .table(table)
                .hold(options.hold)
                .shard(FeedShard { index, count });
            (feed_name(table.id(), index, name), options)
        });
        let feeds = database.create_feeds(feeds.collect()).await;
        let feeds = feeds.map_err(|error| match error {
            StoreError::FeedExists { .. } => exists(),
            error => error.into(),
        })?;
        let group = ConsumerGroup::new(table.name().into(), name, feeds);
        self.groups.lock().insert(key, Arc::new(group));
        Ok(())
    }

    /// Removes a group, durably.
    pub(crate) async fn remove(
        &self,
        database: &Database,
        table: TableId,
        group: &ConsumerGroup,
    ) -> Result<()> {
        let names = group.feeds.iter().map(|feed| feed.name().to_owned());
        let removed = database.remove_feeds(names.collect()).await;
        removed.map_err(|error| group.refused(error))?;
        self.groups.lock().remove(&(table, group.name.clone()));
        Ok(())
    }

    /// Removes the groups of a table that is dropped, by its name, and those of tables that are gone. The caller holds
    /// `Inner::changing`.
    pub(crate) async fn remove_of_table(&self, database: &Database, table: &str) -> Result<()> {
        let tables = database.tables();
        let stays = |id: TableId| {
            tables
                .iter()
                .any(|there| there.id() == id && there.name() != table)
        };
        let gone: Vec<_> = {
            let groups = self.groups.lock();
            let gone = groups.iter().filter(|((id, _), _)| !stays(*id));
            gone.map(|((id, _), group)| (*id, Arc::clone(group))).collect()
        };
        for (id, group) in gone {
            self.remove(database, id, &group).await?;
        }
        Ok(())
    }

    /// The groups of a table, by name.
    pub(crate) fn of_table(&self, table: TableId) -> Vec<Arc<ConsumerGroup>> {
        let groups = self.groups.lock();
        let of_table = groups.iter().filter(|((id, _), _)| *id == table);
        of_table.map(|(_, group)| Arc::clone(group)).collect()
    }

    /// A table's group of this name.
    pub(crate) fn get(&self, table: &Table, name: &str) -> Result<Arc<ConsumerGroup>> {
        let groups = self.groups.lock();
        let group = groups.get(&(table.id(), name.to_owned())).map(Arc::clone);
        group.ok_or_else(|| EngineError::ConsumerGroupNotFound {
            table: table.name().to_owned(),
            group: name.to_owned(),
        })
    }
}

impl ConsumerGroup {
    fn new(table: Arc<str>, name: &str, feeds: Vec<Feed>) -> Self {
        let shards = u16::try_from(feeds.len()).unwrap_or(SHARDS_OF_GROUP_MAX);
        Self {
            table,
            name: name.to_owned(),
            feeds,
            members: Mutex::new(Members::new(shards)),
        }
    }

    /// When it was created, nanoseconds since the Unix epoch.
    pub(crate) fn created(&self) -> Result<i64> {
        let created = self.feeds.first().map_or(Ok(0), Feed::created);
        created.map_err(|error| self.refused(error))
    }

    /// See [`Feed::describe_all`].
    pub(crate) async fn describe(&self, lags: bool) -> Result<GroupDescription> {
        let now = Instant::now();
        let (members, holders) = self.members.lock().at(now);
        let members = members.into_iter().map(|(member, is)| MemberDescription {
            member,
            client: is.client,
            session_timeout: is.timeout,
            left: is.until.saturating_duration_since(now),
        });
        let feeds = Feed::describe_all(&self.feeds, lags).await;
        let feeds = feeds.map_err(|error| self.refused(error))?;
        let shards = feeds.into_iter().zip(holders);
        Ok(GroupDescription {
            name: self.name.clone(),
            members: members.collect(),
            shards: shards
                .map(|(feed, holder)| ShardDescription { feed, holder })
                .collect(),
        })
    }

    pub(crate) fn join(
        &self,
        caller: Option<Arc<str>>,
        client: String,
        timeout: Duration,
    ) -> Result<(MemberId, Vec<ShardLease>)> {
        let (id, now) = (MemberId::random(), Instant::now());
        let joined = self.members.lock().join(id, client, caller, timeout, now);
        let leases = joined.map_err(|of| EngineError::TooManyMembers { max: MEMBERS_MAX, of })?;
        Ok((id, leases))
    }

    /// The members, locked, if this one is the caller's.
    fn members_of(&self, caller: Option<&Arc<str>>, member: MemberId) -> Result<MutexGuard<'_, Members>> {
        let members = self.members.lock();
        match members.is_of(member, caller) {
            true => Ok(members),
            false => Err(self.no_member(member)),
        }
    }

    pub(crate) fn heartbeat(
        &self,
        caller: Option<&Arc<str>>,
        member: MemberId,
        released: &[(u16, u64)],
    ) -> Result<Vec<ShardLease>> {
        let mut members = self.members_of(caller, member)?;
        let leases = members.heartbeat(member, released, Instant::now());
        leases.ok_or_else(|| self.no_member(member))
    }

    pub(crate) fn leave(&self, caller: Option<&Arc<str>>, member: MemberId) -> Result<()> {
        match self.members_of(caller, member)?.leave(member, Instant::now()) {
            true => Ok(()),
            false => Err(self.no_member(member)),
        }
    }

    /// A shard, as a member has it now.
    pub(crate) fn holding(
        &self,
        caller: Option<&Arc<str>>,
        member: MemberId,
        shard: u16,
    ) -> Result<HeldShard> {
        let lease = self
            .members_of(caller, member)?
            .lease(member, shard, Instant::now());
        let mut held = HeldShard {
            group: self.name.clone(),
            member,
            shard,
            generation: 0,
        };
        held.generation = lease.map_err(|fenced| self.fenced(&held, fenced))?.generation;
        Ok(held)
    }

    /// The feed of a shard, which its member has.
    pub(crate) fn held(&self, held: &HeldShard) -> Result<&Feed> {
        let now = Instant::now();
        let checked = self
            .members
            .lock()
            .check(held.member, held.shard, held.generation, now);
        checked.map_err(|fenced| self.fenced(held, fenced))?;
        self.feed(held)
    }

    /// Begins a read of a shard, and ends the one before. The token is cancelled when this read has to end.
    pub(crate) fn begin_read(
        &self,
        caller: Option<&Arc<str>>,
        held: &HeldShard,
    ) -> Result<CancellationToken> {
        let now = Instant::now();
        let begun =
            self.members_of(caller, held.member)?
                .begin_read(held.member, held.shard, held.generation, now);
        begun.map_err(|fenced| self.fenced(held, fenced))
    }

    /// Why a read of a shard was ended.
    pub(crate) fn ended(&self, held: &HeldShard) -> EngineError {
        match self.held(held) {
            Ok(_) => self.fenced(held, Fenced::Busy),
            Err(error) => error,
        }
    }

    /// Begins a commit of a checkpoint.
    pub(crate) fn begin_commit(
        self: &Arc<Self>,
        caller: Option<&Arc<str>>,
        checkpoint: &ShardCheckpoint,
    ) -> Result<Committing> {
        let ShardCheckpoint { held, token, .. } = checkpoint;
        let acknowledgement = Acknowledgement::new(self.feed(held)?, &open_token(token)?);
        let now = Instant::now();
        let begun =
            self.members_of(caller, held.member)?
                .begin_commit(held.member, held.shard, held.generation, now);
        begun.map_err(|fenced| self.fenced(held, fenced))?;
        Ok(Committing {
            group: Arc::clone(self),
            shard: held.shard,
            acknowledgement,
        })
    }

    /// The error for clients of what the store refused of a shard.
    pub(crate) fn refused(&self, error: StoreError) -> EngineError {
        match error {
            StoreError::FeedNotFound { .. } => EngineError::ConsumerGroupNotFound {
                table: self.table.to_string(),
                group: self.name.clone(),
            },
            // Clients know shards, not feeds.
            StoreError::FeedTokenInvalid { problem } => StoreError::Invalid {
                subject: "token of the shard".to_owned(),
                problem: problem.replace("feed", "shard"),
            }
            .into(),
            error => error.into(),
        }
    }

    fn feed(&self, held: &HeldShard) -> Result<&Feed> {
        let feed = self.feeds.get(usize::from(held.shard));
        feed.ok_or_else(|| self.fenced(held, Fenced::Lost))
    }

    fn no_member(&self, member: MemberId) -> EngineError {
        EngineError::MemberNotFound {
            group: self.name.clone(),
            member: member.to_string(),
        }
    }

    fn fenced(&self, held: &HeldShard, fenced: Fenced) -> EngineError {
        match fenced {
            Fenced::Unknown => self.no_member(held.member),
            Fenced::Lost => EngineError::ShardLost {
                group: self.name.clone(),
                shard: held.shard,
                generation: held.generation,
            },
            Fenced::Busy => EngineError::ShardBusy {
                group: self.name.clone(),
                shard: held.shard,
            },
        }
    }
}

const FEED_PREFIX: &str = "group_";

/// The feed of a shard.
fn feed_name(table: TableId, shard: u16, group: &str) -> String {
    format!("{FEED_PREFIX}{}_{shard}_{group}", table.0)
}

/// The table, the shard and the group in the name of a feed; `None` of one that isn't a consumer group's.
fn parse_feed_name(feed: &str) -> Option<(TableId, u16, &str)> {
    let (table, rest) = feed.strip_prefix(FEED_PREFIX)?.split_once('_')?;
    let (shard, group) = rest.split_once('_')?;
    Some((TableId(table.parse().ok()?), shard.parse().ok()?, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_its_callers_alone() {
        let group = ConsumerGroup::new("notes".into(), "copy", Vec::new());
        let [ann, bob] = ["ann", "bob"].map(Arc::<str>::from);
        let joined = group.join(Some(ann.clone()), String::new(), SESSION_TIMEOUT_DEFAULT);
        let (member, _) = joined.expect("room");
        let is_unknown = |error| matches!(error, Some(EngineError::MemberNotFound { .. }));
        for other in [Some(&bob), None] {
            assert!(is_unknown(group.heartbeat(other, member, &[]).err()));
            assert!(is_unknown(group.holding(other, member, 0).err()));
            assert!(is_unknown(group.leave(other, member).err()));
        }
        group.heartbeat(Some(&ann), member, &[]).expect("hers");
        group.leave(Some(&ann), member).expect("hers");
    }

    #[test]
    fn a_token_that_isnt_of_its_feed_is_told_as_one_of_a_shard() {
        let group = ConsumerGroup::new("notes".into(), "copy", Vec::new());
        let told = |error| match group.refused(error) {
            EngineError::Storage(StoreError::Invalid { subject, problem }) => (subject, problem),
            other => panic!("{other:?}"),
        };
        let problem = "lacks a stage of this feed".to_owned();
        let (subject, problem) = told(StoreError::FeedTokenInvalid { problem });
        assert_eq!(
            (&*subject, &*problem),
            ("token of the shard", "lacks a stage of this shard")
        );
        let (subject, problem) = ("column", "is no feed");
        let other = StoreError::Invalid {
            subject: subject.to_owned(),
            problem: problem.to_owned(),
        };
        assert_eq!(told(other), (subject.to_owned(), problem.to_owned()));
    }

    #[test]
    fn feeds_tell_their_groups_by_their_names() {
        for group in ["a", "_", "a_1_b", "group_7_3_x"] {
            let name = feed_name(TableId(7), 63, group);
            assert_eq!(parse_feed_name(&name), Some((TableId(7), 63, group)));
        }
        for other in ["copy", "group_", "group_7_a", "group_x_1_a", "index_7_1_a"] {
            assert_eq!(parse_feed_name(other), None, "{other}");
        }
    }
}
