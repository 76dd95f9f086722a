//! The RPCs of `souk.table.v1.ConsumerGroupService`.

use souk_api::rows::refused;
use souk_api::wire::{checked, page_size, received, signed, time, time_to_wire, unsigned, valid};
use souk_api::{Result, Rows};
use souk_chassis::status::Violations;
use souk_engine::consumer_groups::{
    GroupDescription, GroupOptions, HEARTBEATS, HeldShard, MemberId, SESSION_TIMEOUT_DEFAULT, SHARDS_DEFAULT,
    ShardCheckpoint, ShardDescription, ShardLease,
};
use souk_engine::storage::limits::{MAX_FEED_HOLD, MAX_FEED_RECORDS};
use souk_engine::storage::{ChangeKind, FeedPhase, FeedRecord, FeedSource, FeedStart, RecordKind};
use souk_engine::{Engine, EngineError};
use souk_proto::table::v1 as pb;
use souk_proto::table::v1::consumer_group_service_server::ConsumerGroupService;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::rows::RowsToWire;
use crate::table::{length, length_to_wire};

/// Records of an answer of `ReadShard`, where the request doesn't say.
const SHARD_RECORDS_DEFAULT: usize = 500;

/// The RPCs on an engine's consumer groups. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerGroupApi {
    engine: Engine,
    /// Ends reads that wait for records when the process drains.
    draining: CancellationToken,
}

impl ConsumerGroupApi {
    pub(crate) fn new(engine: Engine, draining: CancellationToken) -> Self {
        Self { engine, draining }
    }

    fn rows(&self, table: &str) -> Result<Rows> {
        Rows::open(&self.engine, table)
    }

    async fn described(&self, table: &str, group: &str) -> Result<pb::GetConsumerGroupResponse> {
        let described = self.rows(table)?.consumer_group(group).await.map_err(refused)?;
        Ok(group_to_wire(&described))
    }
}

#[tonic::async_trait]
impl ConsumerGroupService for ConsumerGroupApi {
    async fn create_consumer_group(
        &self,
        request: Request<pb::CreateConsumerGroupRequest>,
    ) -> Result<Response<pb::CreateConsumerGroupResponse>, Status> {
        let (request, mut violations) = received(request);
        let options = options(&request, &mut violations);
        let options = checked(options, violations)?;
        let name = request.group.unwrap_or_default().name;
        let rows = self.rows(&request.table)?;
        rows.create_consumer_group(&name, options)
            .await
            .map_err(refused)?;
        let described = self.described(&request.table, &name).await?;
        Ok(Response::new(pb::CreateConsumerGroupResponse {
            group: described.group,
        }))
    }

    async fn get_consumer_group(
        &self,
        request: Request<pb::GetConsumerGroupRequest>,
    ) -> Result<Response<pb::GetConsumerGroupResponse>, Status> {
        let request = valid(request)?;
        let described = self.described(&request.table, &request.group).await?;
        Ok(Response::new(described))
    }

    async fn list_consumer_groups(
        &self,
        request: Request<pb::ListConsumerGroupsRequest>,
    ) -> Result<Response<pb::ListConsumerGroupsResponse>, Status> {
        let rows = self.rows(&valid(request)?.table)?;
        let groups = rows.consumer_groups().await.map_err(refused)?;
        let groups = groups.iter().filter_map(|group| group_to_wire(group).group);
        Ok(Response::new(pb::ListConsumerGroupsResponse {
            groups: groups.collect(),
        }))
    }

    async fn delete_consumer_group(
        &self,
        request: Request<pb::DeleteConsumerGroupRequest>,
    ) -> Result<Response<pb::DeleteConsumerGroupResponse>, Status> {
        let request = valid(request)?;
        let rows = self.rows(&request.table)?;
        let deleted = rows.delete_consumer_group(&request.group).await;
        deleted.map_err(refused)?;
        Ok(Response::new(pb::DeleteConsumerGroupResponse {}))
    }

    async fn join_consumer_group(
        &self,
        request: Request<pb::JoinConsumerGroupRequest>,
    ) -> Result<Response<pb::JoinConsumerGroupResponse>, Status> {
        let request = valid(request)?;
        let timeout = request.session_timeout.as_ref().and_then(length);
        let timeout = timeout.unwrap_or(SESSION_TIMEOUT_DEFAULT);
        let rows = self.rows(&request.table)?;
        let joined = rows.join_consumer_group(&request.group, request.client, timeout);
        let (member, held) = joined.map_err(refused)?;
        Ok(Response::new(pb::JoinConsumerGroupResponse {
            member_id: member.to_string(),
            session_timeout: Some(length_to_wire(timeout)),
            heartbeat_interval: Some(length_to_wire(timeout / HEARTBEATS)),
            leases: leases(&held),
        }))
    }

    async fn send_heartbeat(
        &self,
        request: Request<pb::SendHeartbeatRequest>,
    ) -> Result<Response<pb::SendHeartbeatResponse>, Status> {
        let (request, violations) = received(request);
        let member = checked(member(&request.member_id), violations)?;
        let released = request.released.iter();
        let released: Vec<_> = released
            .map(|lease| (shard(lease.shard), unsigned(lease.generation)))
            .collect();
        let rows = self.rows(&request.table)?;
        let held = rows.heartbeat(&request.group, member, &released);
        Ok(Response::new(pb::SendHeartbeatResponse {
            leases: leases(&held.map_err(refused)?),
        }))
    }

    async fn leave_consumer_group(
        &self,
        request: Request<pb::LeaveConsumerGroupRequest>,
    ) -> Result<Response<pb::LeaveConsumerGroupResponse>, Status> {
        let (request, violations) = received(request);
        let member = checked(member(&request.member_id), violations)?;
        let rows = self.rows(&request.table)?;
        rows.leave_consumer_group(&request.group, member)
            .map_err(refused)?;
        Ok(Response::new(pb::LeaveConsumerGroupResponse {}))
    }

    async fn read_shard(
        &self,
        request: Request<pb::ReadShardRequest>,
    ) -> Result<Response<pb::ReadShardResponse>, Status> {
        let (request, violations) = received(request);
        let member = checked(member(&request.member_id), violations)?;
        let held = HeldShard {
            group: request.group,
            member,
            shard: shard(request.shard),
            generation: unsigned(request.generation),
        };
        let limit = page_size(request.max_records, SHARD_RECORDS_DEFAULT, MAX_FEED_RECORDS);
        let wait = request.wait.as_ref().and_then(length).unwrap_or_default();
        let rows = self.rows(&request.table)?;
        let read = rows.read_shard(&held, &request.after, limit, wait);
        let read = self.draining.run_until_cancelled(read).await;
        let batch = read.unwrap_or(Err(EngineError::Closing)).map_err(refused)?;
        let to_wire = RowsToWire::new(rows.definition(), false);
        Ok(Response::new(pb::ReadShardResponse {
            records: batch.records.iter().map(|each| record(&to_wire, each)).collect(),
            token: batch.token,
            phase: phase(&batch.phase).into(),
            sequence: signed(batch.sequence),
            caught_up: batch.caught_up,
        }))
    }

    async fn commit_checkpoint(
        &self,
        request: Request<pb::CommitCheckpointRequest>,
    ) -> Result<Response<pb::CommitCheckpointResponse>, Status> {
        let (request, violations) = received(request);
        let checkpoint = request.checkpoint.as_ref().and_then(checkpoint);
        let checkpoint = checked(checkpoint, violations)?;
        let rows = self.rows(&checkpoint.table)?;
        rows.commit_checkpoint(&checkpoint).await.map_err(refused)?;
        Ok(Response::new(pb::CommitCheckpointResponse {}))
    }
}

/// Reads a checkpoint; `None` breaks a rule.
pub(crate) fn checkpoint(given: &pb::Checkpoint) -> Option<ShardCheckpoint> {
    Some(ShardCheckpoint {
        table: given.table.clone(),
        held: HeldShard {
            group: given.group.clone(),
            member: member(&given.member_id)?,
            shard: shard(given.shard),
            generation: unsigned(given.generation),
        },
        token: given.token.clone(),
    })
}

/// What a group is to be created as; `None` breaks a rule, or comes with a violation.
fn options(request: &pb::CreateConsumerGroupRequest, violations: &mut Violations) -> Option<GroupOptions> {
    let given = request.group.as_ref()?;
    let start = match (request.after_sequence, &request.since) {
        (Some(0), _) => FeedStart::Oldest,
        (Some(after), _) => FeedStart::After(unsigned(after)),
        (None, Some(since)) => {
            let time = time(since);
            if time.is_none() {
                violations.push("since", "OUT_OF_RANGE", "must lie in 1677-09-21 to 2262-04-11");
            }
            FeedStart::Time(time?)
        }
        (None, None) => FeedStart::Newest,
    };
    let source = match given.source() {
        pb::ConsumerGroupSource::Unspecified => return None,
        pb::ConsumerGroupSource::Rows => FeedSource::Base,
        pb::ConsumerGroupSource::Changes => FeedSource::Changes(start),
        pb::ConsumerGroupSource::RowsAndChanges => FeedSource::BaseAndChanges,
    };
    if !matches!(source, FeedSource::Changes(_)) {
        let starts = [
            ("after_sequence", request.after_sequence.is_some()),
            ("since", request.since.is_some()),
        ];
        for (field, _) in starts.into_iter().filter(|(_, is_given)| *is_given) {
            let message = "is of changes alone: rows are delivered as they are; leave it out";
            violations.push(field, "CONFLICTING_FIELDS", message);
        }
    }
    Some(GroupOptions {
        source,
        shards: match shard(given.shards) {
            0 => SHARDS_DEFAULT,
            shards => shards,
        },
        hold: given.hold.as_ref().and_then(length).unwrap_or(MAX_FEED_HOLD),
    })
}

fn group_to_wire(group: &GroupDescription) -> pb::GetConsumerGroupResponse {
    let first = group.shards.first().map(|shard| &shard.feed);
    let source = first.map(|feed| match (feed.base, feed.changes) {
        (true, true) => pb::ConsumerGroupSource::RowsAndChanges,
        (true, false) => pb::ConsumerGroupSource::Rows,
        (false, _) => pb::ConsumerGroupSource::Changes,
    });
    let members = group.members.iter().map(|member| pb::ConsumerGroupMember {
        member_id: member.member.to_string(),
        client: member.client.clone(),
        session_timeout: Some(length_to_wire(member.session_timeout)),
        session_left: Some(length_to_wire(member.left)),
    });
    pb::GetConsumerGroupResponse {
        group: Some(pb::ConsumerGroup {
            name: group.name.clone(),
            source: source.unwrap_or_default().into(),
            shards: i32::try_from(group.shards.len()).unwrap_or(i32::MAX),
            hold: first.map(|feed| length_to_wire(feed.hold)),
        }),
        create_time: first.map(|feed| time_to_wire(feed.created)),
        shards: (0..).zip(&group.shards).map(shard_to_wire).collect(),
        members: members.collect(),
    }
}

fn shard_to_wire((number, shard): (i32, &ShardDescription)) -> pb::ConsumerGroupShard {
    let ShardDescription { feed, holder } = shard;
    let lease = holder.as_ref().map(|(_, lease)| lease);
    pb::ConsumerGroupShard {
        shard: number,
        phase: phase(&feed.phase).into(),
        sequence: signed(feed.position),
        lag_changes: signed(feed.lag_changes),
        lag: Some(length_to_wire(feed.lag)),
        member_id: holder
            .as_ref()
            .map_or_else(String::new, |(member, _)| member.to_string()),
        generation: lease.map_or(0, |lease| signed(lease.generation)),
        closing: lease.is_some_and(|lease| lease.is_closing),
    }
}

fn record(to_wire: &RowsToWire, record: &FeedRecord) -> pb::ShardRecord {
    let kind = match record.kind {
        RecordKind::Base => pb::ShardRecordKind::Row,
        RecordKind::Change(ChangeKind::Put) => pb::ShardRecordKind::Put,
        RecordKind::Change(ChangeKind::Update) => pb::ShardRecordKind::Update,
        RecordKind::Change(ChangeKind::Delete) => pb::ShardRecordKind::Delete,
    };
    pb::ShardRecord {
        kind: kind.into(),
        row: Some(to_wire.row_or_key(record.row.as_ref(), &record.key)),
        sequence: signed(record.sequence),
        time: Some(time_to_wire(record.time)),
    }
}

fn phase(phase: &FeedPhase) -> pb::ShardPhase {
    match phase {
        FeedPhase::Base { .. } => pb::ShardPhase::Rows,
        FeedPhase::Changes => pb::ShardPhase::Changes,
        FeedPhase::Finished => pb::ShardPhase::Finished,
        FeedPhase::Expired { .. } => pb::ShardPhase::Expired,
        FeedPhase::AheadOfLog => pb::ShardPhase::Ahead,
    }
}

fn leases(held: &[ShardLease]) -> Vec<pb::ShardLease> {
    let held = held.iter().map(|lease| pb::ShardLease {
        shard: lease.shard.into(),
        generation: signed(lease.generation),
        closing: lease.is_closing,
    });
    held.collect()
}

/// What is no UUID breaks a rule.
fn member(given: &str) -> Option<MemberId> {
    given.parse().ok()
}

/// Held within its range by a rule.
fn shard(given: i32) -> u16 {
    u16::try_from(given).unwrap_or(u16::MAX)
}
