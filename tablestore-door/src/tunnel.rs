//! Tunnels: consumer groups as clients know them. A tunnel is a consumer group of its name, its channels are the group's shards, its clients the
//! members.
//!
//! What clients give back is made so that those who were taken for dead are refused: the version of a channel and the sequence number of a
//! checkpoint hold the generation of the lease by which the client has the shard.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use prost::Message as _;
use souk_engine::consumer_groups::{
    GroupDescription, GroupOptions, HeldShard, MemberId, SESSION_TIMEOUT_MAX, SHARDS_OF_GROUP_MAX,
    ShardCheckpoint, ShardDescription, ShardLease, ShardRecords,
};
use souk_engine::storage::limits::MAX_FEED_RECORDS;
use souk_engine::storage::{
    ChangeKind, Error as StoreError, FeedPhase, FeedRecord, FeedSource, FeedStart, RecordKind, TableSchema,
};
use souk_engine::{EngineError, TableHandle};
use souk_tablestore::messages::tunnel::{self as pb, ChannelStatus, StartOffsetFlag, TunnelType};
use souk_tablestore::{Answer, ErrorCode, Reason, SequenceInfo, ServiceError, decode, name};

use crate::context::{Answered, Context};
use crate::error::{invalid, refused, unsupported};
use crate::stream;

/// The token behind the last record of a channel that has an end.
const FINISHED: &str = "finished";
/// Stands in a token for the place of the checkpoint, wherever that is.
const CHECKPOINT: &str = "checkpoint";
/// The format of tokens, as clients read them.
const TOKEN_VERSION: i64 = 1;
/// Longest name of a tunnel, bytes: it is a part of the names of its feeds.
const NAME_BYTES_MAX: usize = 200;
/// Longest name by which a client calls itself, characters.
const TAG_CHARS_MAX: usize = 64;
/// Bits of a channel's version below the generation: one for closing, and room for what the client adds when it closes.
const VERSION_BITS: u32 = 2;
/// Bits of a sequence number below the generation, in which the client counts the checkpoints of its lease.
const SEQUENCE_BITS: u32 = 32;

/// A tunnel.
struct Tunnel {
    /// What clients call its table.
    table_name: String,
    name: String,
    table: TableHandle,
}

impl Tunnel {
    /// The tunnel of a valid name, whether it exists or not, of a table that does.
    fn new(context: &Context, table_name: &str, tunnel: &str) -> Result<Self, ServiceError> {
        if !name::is_name(tunnel) || tunnel.len() > NAME_BYTES_MAX {
            return Err(invalid(format!(
                "Invalid tunnel name: a letter or _, then letters, digits and _, at most {NAME_BYTES_MAX}."
            )));
        }
        Ok(Self {
            table_name: table_name.to_owned(),
            name: tunnel.to_owned(),
            table: context.table(table_name)?,
        })
    }

    /// The tunnel of an id: another one of its name isn't it.
    fn find(context: &Context, id: &str) -> Result<Self, ServiceError> {
        let mut parts = id.split(':');
        let (Some(table), Some(tunnel), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(no_tunnel());
        };
        let tunnel = Self::new(context, table, tunnel).map_err(|_| no_tunnel())?;
        match tunnel.id(tunnel.created()?) == id {
            true => Ok(tunnel),
            false => Err(no_tunnel()),
        }
    }

    /// What clients name it by, by the time when it was created.
    fn id(&self, created: i64) -> String {
        format!("{}:{}:{created:x}", self.table_name, self.name)
    }

    fn created(&self) -> Result<i64, ServiceError> {
        self.table
            .consumer_group_created(&self.name)
            .map_err(tunnel_error)
    }

    async fn described(&self) -> Result<GroupDescription, ServiceError> {
        self.table.consumer_group(&self.name).await.map_err(tunnel_error)
    }

    fn info(&self, context: &Context, group: &GroupDescription) -> Result<pb::TunnelInfo, ServiceError> {
        let feed = group.shards.first().map(|shard| &shard.feed);
        let kind = feed.map_or("", |feed| match (feed.base, feed.changes) {
            (true, true) => "BaseAndStream",
            (true, false) => "BaseData",
            (false, _) => "Stream",
        });
        let is_at_rows = |shard: &ShardDescription| matches!(shard.feed.phase, FeedPhase::Base { .. });
        let is_lost = |shard: &ShardDescription| {
            matches!(
                shard.feed.phase,
                FeedPhase::Expired { .. } | FeedPhase::AheadOfLog
            )
        };
        let stage = match group.shards.iter().any(is_at_rows) || kind == "BaseData" {
            true => "ProcessBaseData",
            false => "ProcessStream",
        };
        Ok(pb::TunnelInfo {
            tunnel_id: self.id(created(group)),
            tunnel_type: kind.to_owned(),
            table_name: self.table_name.clone(),
            instance_name: context.instance_name(),
            stream_id: stream::name_of(context, &self.table_name)?,
            stage: stage.to_owned(),
            expired: Some(group.shards.iter().any(is_lost)),
            tunnel_name: Some(self.name.clone()),
            public: Some(true),
            stream_tunnel_config: None,
            create_time: Some(created(group)),
            stream_record_options: None,
        })
    }

    /// A channel, as a client has it now.
    fn held(&self, client: &str, channel: &str) -> Result<HeldShard, ServiceError> {
        let member = member(client)?;
        let shard = channel.parse().map_err(|_| no_channel())?;
        self.table
            .held_shard(&self.name, member, shard)
            .map_err(tunnel_error)
    }

    async fn read(&self, held: &HeldShard, after: &str) -> Result<ShardRecords, ServiceError> {
        let read = self
            .table
            .read_shard(held, after, MAX_FEED_RECORDS, Duration::ZERO);
        read.await.map_err(tunnel_error)
    }
}

fn created(group: &GroupDescription) -> i64 {
    group.shards.first().map_or(0, |shard| shard.feed.created)
}

/// A place in a channel.
enum Place {
    /// Behind the last record.
    Finished,
    /// At the checkpoint, for the lease of a generation.
    Checkpoint(u64),
    /// Behind some records, which were read by the lease of a generation.
    Behind(u64, String),
}

impl Place {
    /// The token of the place. Clients look into it to know whether it is of a stream, which they read less often when there is little.
    fn token(&self) -> String {
        let place = match self {
            Self::Finished => return FINISHED.to_owned(),
            Self::Checkpoint(generation) => format!("{generation}:{CHECKPOINT}"),
            Self::Behind(generation, token) => format!("{generation}:{token}"),
        };
        let content = pb::TokenContent {
            primary_key: None,
            iterator: Some(place),
            timestamp: None,
        };
        let token = pb::Token {
            version: TOKEN_VERSION,
            content: content.encode_to_vec().into(),
        };
        BASE64.encode(token.encode_to_vec())
    }

    fn parse(token: &str) -> Result<Self, ServiceError> {
        if token == FINISHED {
            return Ok(Self::Finished);
        }
        let read = || {
            let token = pb::Token::decode(Bytes::from(BASE64.decode(token).ok()?)).ok()?;
            let iterator = pb::TokenContent::decode(token.content).ok()?.iterator?;
            let (generation, place) = iterator.split_once(':')?;
            let generation = generation.parse().ok()?;
            Some(match place {
                CHECKPOINT => Self::Checkpoint(generation),
                _ => Self::Behind(generation, place.to_owned()),
            })
        };
        read().ok_or_else(|| invalid("Invalid token."))
    }
}

/// Creates a tunnel.
pub(crate) async fn create(context: &Context, body: Bytes) -> Answered {
    let request: pb::CreateTunnelRequest = decode(body).map_err(Reason::from)?;
    let given = request.tunnel;
    let tunnel = Tunnel::new(context, &given.table_name, &given.tunnel_name)?;
    let config = given.stream_tunnel_config.unwrap_or_default();
    if config.end_offset.is_some() {
        return Err(unsupported("the end of a tunnel"));
    }
    let options = given.stream_record_options.as_ref();
    if options.is_some_and(|options| options.old_columns_to_get.is_some()) {
        return Err(unsupported("rows as they were before a change"));
    }
    let start = match (config.start_offset, config.flag()) {
        (Some(millis), _) => {
            let millis = i64::try_from(millis).unwrap_or(i64::MAX);
            FeedStart::Time(millis.saturating_mul(1_000_000))
        }
        (None, StartOffsetFlag::Earliest) => FeedStart::Oldest,
        (None, StartOffsetFlag::Latest) => FeedStart::Newest,
    };
    let source = match (TunnelType::try_from(given.tunnel_type), start) {
        // Which has no changes, so that a start of them means nothing.
        (Ok(TunnelType::BaseData), _) => FeedSource::Base,
        (Ok(TunnelType::Stream), start) => FeedSource::Changes(start),
        (Ok(TunnelType::BaseAndStream), FeedStart::Newest) => FeedSource::BaseAndChanges,
        (Ok(TunnelType::BaseAndStream), _) => {
            return Err(unsupported("changes from before the rows of a tunnel"));
        }
        (Err(_), _) => return Err(invalid("Invalid tunnel type.")),
    };
    let created = tunnel
        .table
        .create_consumer_group(&tunnel.name, GroupOptions::new(source));
    created.await.map_err(tunnel_error)?;
    Ok(Answer::ok(&pb::CreateTunnelResponse {
        tunnel_id: tunnel.id(tunnel.created()?),
    }))
}

/// Deletes a tunnel.
pub(crate) async fn delete(context: &Context, body: Bytes) -> Answered {
    let request: pb::DeleteTunnelRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::new(context, &request.table_name, &request.tunnel_name)?;
    let deleted = tunnel.table.delete_consumer_group(&tunnel.name).await;
    deleted.map_err(tunnel_error)?;
    Ok(Answer::ok(&pb::DeleteTunnelResponse {}))
}

/// Lists the tunnels of a table, or of all.
pub(crate) async fn list(context: &Context, body: Bytes) -> Answered {
    let request: pb::ListTunnelRequest = decode(body).map_err(Reason::from)?;
    let named = request.table_name.filter(|name| !name.is_empty());
    let is_of_all = named.is_none();
    let tables = match named {
        Some(name) => vec![name],
        None => context.tables().into_iter().map(|(name, _)| name).collect(),
    };
    let mut tunnels = Vec::new();
    for table_name in tables {
        let table = match context.table(&table_name) {
            Ok(table) => table,
            // It was dropped a moment ago.
            Err(_) if is_of_all => continue,
            Err(error) => return Err(error),
        };
        for group in table.consumer_groups().await.map_err(tunnel_error)? {
            let tunnel = Tunnel {
                table_name: table_name.clone(),
                name: group.name.clone(),
                table: table.clone(),
            };
            tunnels.push(tunnel.info(context, &group)?);
        }
    }
    Ok(Answer::ok(&pb::ListTunnelResponse { tunnels }))
}

/// Describes a tunnel and its channels.
pub(crate) async fn describe(context: &Context, body: Bytes) -> Answered {
    let request: pb::DescribeTunnelRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::new(context, &request.table_name, &request.tunnel_name)?;
    let group = tunnel.described().await?;
    let now = context.engine().now();
    let channels = group.shards.iter().enumerate();
    let channels: Vec<_> = channels
        .map(|(shard, description)| channel_info(shard, description, now))
        .collect();
    Ok(Answer::ok(&pb::DescribeTunnelResponse {
        tunnel: tunnel.info(context, &group)?,
        tunnel_rpo: channels.iter().filter_map(|channel| channel.channel_rpo).min(),
        channels,
    }))
}

/// Describes a channel as it is `now`.
fn channel_info(shard: usize, description: &ShardDescription, now: i64) -> pb::ChannelInfo {
    let ShardDescription { feed, holder } = description;
    let is_finished = feed.phase == FeedPhase::Finished;
    let status = match holder {
        _ if is_finished => ChannelStatus::Terminated,
        Some((_, lease)) if lease.is_closing => ChannelStatus::Closing,
        Some(_) => ChannelStatus::Open,
        None => ChannelStatus::Close,
    };
    let is_of_rows = is_finished || matches!(feed.phase, FeedPhase::Base { .. });
    let lag = i64::try_from(feed.lag.as_nanos()).unwrap_or(i64::MAX);
    pb::ChannelInfo {
        channel_id: shard.to_string(),
        channel_type: Some(if is_of_rows { "BaseData" } else { "Stream" }.to_owned()),
        channel_status: Some(status_name(status).to_owned()),
        client_id: holder.as_ref().map(|(member, _)| member.to_string()),
        // Recovery point: all changes up to this time are read and committed.
        channel_rpo: Some(now.saturating_sub(lag)),
        channel_count: None,
    }
}

fn status_name(status: ChannelStatus) -> &'static str {
    match status {
        ChannelStatus::Open => "OPEN",
        ChannelStatus::Closing => "CLOSING",
        ChannelStatus::Close => "CLOSE",
        ChannelStatus::Terminated => "TERMINATED",
    }
}

/// Adds a client to a tunnel.
pub(crate) async fn connect(context: &Context, body: Bytes) -> Answered {
    let request: pb::ConnectRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::find(context, &request.tunnel_id)?;
    let config = request.client_config.unwrap_or_default();
    let timeout = config.timeout.and_then(|seconds| u64::try_from(seconds).ok());
    let timeout = timeout.map_or(SESSION_TIMEOUT_MAX, Duration::from_secs);
    let tag = config.client_tag.unwrap_or_default();
    // It is shown to those who describe the consumer group.
    let tag = tag.chars().filter(|char| !char.is_control());
    let tag = tag.take(TAG_CHARS_MAX).collect();
    let joined = tunnel.table.join_consumer_group(&tunnel.name, tag, timeout);
    let (member, _) = joined.map_err(tunnel_error)?;
    Ok(Answer::ok(&pb::ConnectResponse {
        client_id: member.to_string(),
    }))
}

/// Renews a client's session and leases, and answers which channels it is to have open or to close.
pub(crate) fn heartbeat(context: &Context, body: Bytes) -> Answered {
    let request: pb::HeartbeatRequest = decode(body).map_err(Reason::from)?;
    if request.channels.len() > usize::from(SHARDS_OF_GROUP_MAX) {
        return Err(invalid(format!(
            "A tunnel has {SHARDS_OF_GROUP_MAX} channels at most."
        )));
    }
    let tunnel = Tunnel::find(context, &request.tunnel_id)?;
    let member = member(&request.client_id)?;
    let those = |status: ChannelStatus| {
        let channels = request.channels.iter();
        channels.filter(move |channel| channel.status() == status)
    };
    let released: Vec<_> = those(ChannelStatus::Close).filter_map(lease_of).collect();
    let ended = those(ChannelStatus::Terminated);
    let ended = ended.filter_map(|channel| Some((lease_of(channel)?, channel.version)));
    let ended: BTreeMap<_, _> = ended.collect();
    let leases = tunnel.table.heartbeat(&tunnel.name, member, &released);
    let leases = leases.map_err(tunnel_error)?;
    let channels = leases.iter().map(|lease| {
        let mut channel = channel(lease);
        if let Some(version) = ended.get(&(lease.shard, lease.generation)) {
            channel.version = *version;
            channel.set_status(ChannelStatus::Terminated);
        }
        channel
    });
    Ok(Answer::ok(&pb::HeartbeatResponse {
        channels: channels.collect(),
    }))
}

/// A channel that a client is to have open, or to close.
fn channel(lease: &ShardLease) -> pb::Channel {
    let status = match lease.is_closing {
        true => ChannelStatus::Closing,
        false => ChannelStatus::Open,
    };
    let version = lease.generation << VERSION_BITS | u64::from(lease.is_closing);
    pb::Channel {
        channel_id: lease.shard.to_string(),
        version: i64::try_from(version).unwrap_or(i64::MAX),
        status: status.into(),
        detail: None,
    }
}

/// The shard of a channel, and the generation by which its client has it.
fn lease_of(channel: &pb::Channel) -> Option<(u16, u64)> {
    let shard = channel.channel_id.parse().ok()?;
    let version = u64::try_from(channel.version).ok()?;
    Some((shard, version >> VERSION_BITS))
}

/// Removes a client from a tunnel.
pub(crate) fn shutdown(context: &Context, body: Bytes) -> Answered {
    let request: pb::ShutdownRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::find(context, &request.tunnel_id)?;
    let member = member(&request.client_id)?;
    let left = tunnel.table.leave_consumer_group(&tunnel.name, member);
    left.map_err(tunnel_error)?;
    Ok(Answer::ok(&pb::ShutdownResponse {}))
}

/// Where a client goes on in a channel.
pub(crate) fn get_checkpoint(context: &Context, body: Bytes) -> Answered {
    let request: pb::GetCheckpointRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::find(context, &request.tunnel_id)?;
    let held = tunnel.held(&request.client_id, &request.channel_id)?;
    let sequence_number = held.generation << SEQUENCE_BITS;
    Ok(Answer::ok(&pb::GetCheckpointResponse {
        checkpoint: Place::Checkpoint(held.generation).token(),
        sequence_number: i64::try_from(sequence_number).unwrap_or(i64::MAX),
    }))
}

/// Reads records of a channel.
pub(crate) async fn records(context: &Context, body: Bytes) -> Answered {
    let request: pb::ReadRecordsRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::find(context, &request.tunnel_id)?;
    let held = tunnel.held(&request.client_id, &request.channel_id)?;
    let (generation, after) = match Place::parse(&request.token)? {
        Place::Finished => {
            return Ok(Answer::ok(&pb::ReadRecordsResponse {
                records: Vec::new(),
                next_token: FINISHED.to_owned(),
                may_more_record: Some(false),
            }));
        }
        Place::Checkpoint(generation) => (generation, String::new()),
        Place::Behind(generation, token) => (generation, token),
    };
    // The checkpoint may have moved since that lease.
    if generation != held.generation {
        return Err(Reason::CheckpointMismatch.into());
    }
    let batch = tunnel.read(&held, &after).await?;
    let schema = tunnel.table.definition().schema.clone();
    let next = match batch.phase {
        FeedPhase::Finished => Place::Finished,
        _ => Place::Behind(held.generation, batch.token),
    };
    Ok(Answer::ok(&pb::ReadRecordsResponse {
        records: encode_records(&schema, &batch.records),
        next_token: next.token(),
        may_more_record: Some(!batch.caught_up),
    }))
}

/// Records as clients read them. An update is a put of the whole row, since the log has rows as they are after it.
fn encode_records(schema: &TableSchema, records: &[FeedRecord]) -> Vec<pb::Record> {
    let mut encoded = Vec::with_capacity(records.len());
    for record in records {
        let action = match record.kind {
            RecordKind::Base | RecordKind::Change(ChangeKind::Put | ChangeKind::Update) => {
                pb::ActionType::PutRow
            }
            RecordKind::Change(ChangeKind::Delete) => pb::ActionType::DeleteRow,
        };
        let sequence = SequenceInfo {
            epoch: 0,
            timestamp: record.time / 1000,
            row_index: u32::try_from(record.index).unwrap_or(u32::MAX),
        };
        let sequence = Some(sequence).filter(|_| record.kind != RecordKind::Base);
        encoded.push(pb::Record {
            action_type: action.into(),
            record: stream::encoded(schema, &record.key, record.row.as_ref(), sequence),
            origin_record: None,
            latest_record: None,
        });
    }
    encoded
}

/// Commits how far a client is in a channel.
pub(crate) async fn checkpoint(context: &Context, body: Bytes) -> Answered {
    let request: pb::CheckpointRequest = decode(body).map_err(Reason::from)?;
    let tunnel = Tunnel::find(context, &request.tunnel_id)?;
    let sequence_number = u64::try_from(request.sequence_number).unwrap_or_default();
    let held = HeldShard {
        group: tunnel.name.clone(),
        member: member(&request.client_id)?,
        shard: request.channel_id.parse().map_err(|_| no_channel())?,
        generation: sequence_number >> SEQUENCE_BITS,
    };
    let token = match Place::parse(&request.checkpoint)? {
        // Committed already, which only the client that has the channel is told.
        Place::Checkpoint(_) => {
            let present = tunnel.held(&request.client_id, &request.channel_id)?;
            if present.generation != held.generation {
                return Err(Reason::CheckpointMismatch.into());
            }
            None
        }
        Place::Behind(_, token) => Some(token),
        // A client has this token once it has read the last record.
        Place::Finished => Some(tunnel.table.end_of_shard(&held).map_err(tunnel_error)?),
    };
    if let Some(token) = token {
        let checkpoint = ShardCheckpoint {
            table: tunnel.table.name().to_owned(),
            held,
            token,
        };
        let committed = tunnel.table.commit_checkpoint(&checkpoint).await;
        committed.map_err(tunnel_error)?;
    }
    Ok(Answer::ok(&pb::CheckpointResponse {}))
}

fn member(client: &str) -> Result<MemberId, ServiceError> {
    // What isn't an id of ours is no client's.
    client.parse().map_err(|_| Reason::TunnelClientGone.into())
}

fn no_tunnel() -> ServiceError {
    ServiceError::new(ErrorCode::ObjectNotExist, "Requested tunnel does not exist.")
}

fn no_channel() -> ServiceError {
    invalid("Requested channel does not exist.")
}

/// What a client is told of an error about a tunnel.
fn tunnel_error(error: EngineError) -> ServiceError {
    match error {
        EngineError::ConsumerGroupExists { .. } => Reason::TunnelExists.into(),
        EngineError::ConsumerGroupNotFound { .. } => no_tunnel(),
        EngineError::MemberNotFound { .. } => Reason::TunnelClientGone.into(),
        EngineError::ShardLost { .. } | EngineError::Storage(StoreError::FeedTokenStale { .. }) => {
            Reason::CheckpointMismatch.into()
        }
        EngineError::TooManyMembers { .. }
        | EngineError::TooManyWatches { .. }
        | EngineError::ShardBusy { .. }
        | EngineError::Closing => Reason::TunnelServerUnavailable.into(),
        EngineError::Storage(StoreError::ChangesTrimmed { .. } | StoreError::FeedAheadOfLog { .. }) => {
            Reason::TunnelExpired.into()
        }
        error => refused(error),
    }
}
