//! Consumer groups: what their calls tell and refuse, and members that share a table.

mod limits;
mod members;

use std::time::Duration;

use futures_util::future::{Either, select};
use souk_api::testing::{Running, reopen};
use souk_chassis::server::Stack;
use souk_proto::table::v1::consumer_group_service_client::ConsumerGroupServiceClient;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, BeginTransactionRequest, Checkpoint, CommitCheckpointRequest,
    CommitTransactionRequest, ConsumerGroup, ConsumerGroupSource, CreateConsumerGroupRequest,
    DeleteConsumerGroupRequest, DeleteTableRequest, GetConsumerGroupRequest, GetConsumerGroupResponse,
    GetRowRequest, JoinConsumerGroupRequest, JoinConsumerGroupResponse, LeaveConsumerGroupRequest,
    ListConsumerGroupsRequest, ReadShardRequest, ReadShardResponse, RowPut, RowWrite, SendHeartbeatRequest,
    ShardLease, ShardPhase, ShardRecordKind,
};
use souk_table_svc::TableServices;
use tonic::{Code, Status};

use super::{Client, TestResult, columns, create, int, notes, open, put, refusal, text};

type Groups = ConsumerGroupServiceClient<Stack>;

fn groups(running: &Running<TableServices>) -> Groups {
    ConsumerGroupServiceClient::new(running.stack.clone())
}

fn group(source: ConsumerGroupSource, shards: i32) -> CreateConsumerGroupRequest {
    CreateConsumerGroupRequest {
        table: "notes".to_owned(),
        group: Some(ConsumerGroup {
            name: "copy".to_owned(),
            source: source.into(),
            shards,
            hold: None,
        }),
        ..CreateConsumerGroupRequest::default()
    }
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// A member of a group of `notes`.
#[derive(Clone, Debug)]
struct Member {
    id: String,
    leases: Vec<ShardLease>,
}

impl Member {
    async fn join(groups: &mut Groups) -> Result<Self, Status> {
        let joined = groups
            .join_consumer_group(JoinConsumerGroupRequest {
                table: "notes".to_owned(),
                group: "copy".to_owned(),
                client: "a test".to_owned(),
                session_timeout: None,
            })
            .await?;
        let JoinConsumerGroupResponse {
            member_id,
            leases,
            session_timeout,
            heartbeat_interval,
        } = joined.into_inner();
        assert_eq!((session_timeout, heartbeat_interval), (seconds(30), seconds(10)));
        Ok(Self {
            id: member_id,
            leases,
        })
    }

    async fn beat(&mut self, groups: &mut Groups) -> Result<(), Status> {
        let is_closing = |lease: &&ShardLease| lease.closing;
        let beat = SendHeartbeatRequest {
            table: "notes".to_owned(),
            group: "copy".to_owned(),
            member_id: self.id.clone(),
            released: self.leases.iter().filter(is_closing).copied().collect(),
        };
        self.leases = groups.send_heartbeat(beat).await?.into_inner().leases;
        Ok(())
    }

    fn read(&self, lease: &ShardLease, after: &str) -> ReadShardRequest {
        ReadShardRequest {
            table: "notes".to_owned(),
            group: "copy".to_owned(),
            member_id: self.id.clone(),
            shard: lease.shard,
            generation: lease.generation,
            after: after.to_owned(),
            ..ReadShardRequest::default()
        }
    }

    fn checkpoint(&self, lease: &ShardLease, token: &str) -> Checkpoint {
        Checkpoint {
            table: "notes".to_owned(),
            group: "copy".to_owned(),
            member_id: self.id.clone(),
            shard: lease.shard,
            generation: lease.generation,
            token: token.to_owned(),
        }
    }

    async fn commit(&self, groups: &mut Groups, lease: &ShardLease, token: &str) -> Result<(), Status> {
        let checkpoint = Some(self.checkpoint(lease, token));
        groups
            .commit_checkpoint(CommitCheckpointRequest { checkpoint })
            .await?;
        Ok(())
    }
}

async fn read(groups: &mut Groups, request: ReadShardRequest) -> Result<ReadShardResponse, Status> {
    Ok(groups.read_shard(request).await?.into_inner())
}

async fn described(groups: &mut Groups) -> Result<GetConsumerGroupResponse, Status> {
    let request = GetConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "copy".to_owned(),
    };
    Ok(groups.get_consumer_group(request).await?.into_inner())
}

/// A service with notes, of which a group of one shard tells changes.
async fn told() -> Result<(Running<TableServices>, Client, Groups), Box<dyn std::error::Error>> {
    let (running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let mut groups = groups(&running);
    groups
        .create_consumer_group(group(ConsumerGroupSource::Changes, 1))
        .await?;
    Ok((running, client, groups))
}

fn word(number: i64) -> souk_proto::table::v1::PutRowRequest {
    put("ann", number, columns([("word", text("tea"))]))
}

fn keys(read: &ReadShardResponse) -> Vec<(ShardRecordKind, i64)> {
    let records = read.records.iter().map(|record| {
        let row = record.row.as_ref().expect("a row");
        let number = match row.key.get(1).and_then(|value| value.kind.as_ref()) {
            Some(souk_proto::r#type::v1::value::Kind::IntValue(number)) => *number,
            other => panic!("{other:?} is no number"),
        };
        (record.kind(), number)
    });
    records.collect()
}

#[tokio::test]
async fn a_group_tells_rows_and_then_changes_from_its_checkpoint_on() -> TestResult {
    let (running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    client.put_row(word(1)).await?;
    let mut groups = groups(&running);
    let created = groups
        .create_consumer_group(group(ConsumerGroupSource::RowsAndChanges, 1))
        .await?
        .into_inner();
    let created = created.group.expect("the group");
    assert_eq!(
        (created.name.as_str(), created.shards, created.hold),
        ("copy", 1, seconds(604_800))
    );

    let member = Member::join(&mut groups).await?;
    let lease = member.leases[0];
    let rows = read(&mut groups, member.read(&lease, "")).await?;
    assert_eq!(keys(&rows), [(ShardRecordKind::Row, 1)]);
    // What isn't committed comes again.
    assert_eq!(read(&mut groups, member.read(&lease, "")).await?, rows);
    client.put_row(word(2)).await?;
    let mut after = rows.token.clone();
    let changes = loop {
        let changes = read(&mut groups, member.read(&lease, &after)).await?;
        if !changes.records.is_empty() {
            break changes;
        }
        after.clone_from(&changes.token);
    };
    assert_eq!(keys(&changes), [(ShardRecordKind::Put, 2)]);
    assert_eq!(changes.phase(), ShardPhase::Changes);
    member.commit(&mut groups, &lease, &changes.token).await?;
    member.commit(&mut groups, &lease, &changes.token).await?;
    let stale = member.commit(&mut groups, &lease, &rows.token).await;
    assert_eq!(refused(stale), (Code::Aborted, "CHECKPOINT_STALE".to_owned()));
    let described = described(&mut groups).await?;
    let shard = &described.shards[0];
    assert_eq!(
        (shard.sequence, shard.member_id.as_str()),
        (changes.sequence, member.id.as_str())
    );
    assert_eq!(described.members[0].client, "a test");

    // It waits for what is to come.
    let mut waiting = member.read(&lease, "");
    waiting.wait = seconds(20);
    let mut reader = groups.clone();
    let waiting = tokio::spawn(async move { read(&mut reader, waiting).await });
    client.put_row(word(3)).await?;
    let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await??;
    assert_eq!(keys(&waited?), [(ShardRecordKind::Put, 3)]);
    Ok(())
}

fn refused(result: Result<(), Status>) -> (Code, String) {
    refusal(result.map(tonic::Response::new))
}

#[tokio::test]
async fn another_read_of_a_shard_ends_the_one_before() -> TestResult {
    let (_running, mut client, mut groups) = told().await?;
    let member = Member::join(&mut groups).await?;
    let mut waiting = member.read(&member.leases[0], "");
    waiting.wait = seconds(20);
    let start = || {
        let (mut groups, waiting) = (groups.clone(), waiting.clone());
        tokio::spawn(async move { read(&mut groups, waiting).await })
    };
    let (first, second) = (start(), start());
    let (ended, other) = match select(first, second).await {
        Either::Left(ended) | Either::Right(ended) => ended,
    };
    assert_eq!(
        refused(ended?.map(drop)),
        (Code::Aborted, "SHARD_BUSY".to_owned())
    );
    client.put_row(word(1)).await?;
    let told = tokio::time::timeout(Duration::from_secs(10), other).await??;
    assert_eq!(keys(&told?), [(ShardRecordKind::Put, 1)]);

    // It ends with its lease, too, long before its time.
    waiting.after = read(&mut groups, member.read(&member.leases[0], "")).await?.token;
    let last = {
        let (mut groups, waiting) = (groups.clone(), waiting.clone());
        tokio::spawn(async move { read(&mut groups, waiting).await })
    };
    tokio::task::yield_now().await;
    let leave = LeaveConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "copy".to_owned(),
        member_id: member.id.clone(),
    };
    groups.leave_consumer_group(leave).await?;
    let gone = tokio::time::timeout(Duration::from_secs(10), last).await??;
    assert_eq!(
        refused(gone.map(drop)),
        (Code::NotFound, "MEMBER_NOT_FOUND".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn what_is_no_name_or_id_is_refused_without_being_told_again() -> TestResult {
    let (_running, _client, mut groups) = told().await?;
    let member = Member::join(&mut groups).await?;
    let long = "x".repeat(20_000);
    let mut of_group = member.read(&member.leases[0], "");
    of_group.group = "copy\n\u{1b}[31m".to_owned();
    let mut of_member = member.read(&member.leases[0], "");
    of_member.member_id.clone_from(&long);
    let of_token = member.read(&member.leases[0], &long);
    for request in [of_group, of_member, of_token] {
        let refused = groups.read_shard(request).await.expect_err("no name or id");
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().len() < 1_000, "{refused}");
        assert!(!refused.message().contains('\u{1b}'), "{refused}");
    }
    let unknown = GetConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "hidden".to_owned(),
    };
    let refused = groups.get_consumer_group(unknown).await.expect_err("no group");
    // What is quoted stays out of the log.
    assert!(refused.message().contains("\"hidden\""), "{refused}");
    let mut gone = member.clone();
    gone.id = "00000000-0000-4000-8000-000000000000".to_owned();
    let refused = gone.beat(&mut groups).await.expect_err("no member");
    assert!(!refused.message().contains("  "), "{refused}");
    Ok(())
}

#[tokio::test]
async fn members_share_the_shards_and_take_over_from_each_other() -> TestResult {
    let (running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let mut groups = groups(&running);
    groups
        .create_consumer_group(group(ConsumerGroupSource::Changes, 0))
        .await?;
    let mut ann = Member::join(&mut groups).await?;
    assert_eq!(ann.leases.len(), 8);
    let mut bob = Member::join(&mut groups).await?;
    assert!(bob.leases.is_empty(), "Ann has them until she releases some");
    ann.beat(&mut groups).await?;
    let closing = ann.leases.iter().filter(|lease| lease.closing);
    let closing: Vec<ShardLease> = closing.copied().collect();
    assert_eq!(closing.len(), 4);
    ann.beat(&mut groups).await?;
    bob.beat(&mut groups).await?;
    assert_eq!((ann.leases.len(), bob.leases.len()), (4, 4));
    let lost = read(&mut groups, ann.read(&closing[0], "")).await.map(drop);
    assert_eq!(refused(lost), (Code::Aborted, "SHARD_LOST".to_owned()));
    let of_bob = read(&mut groups, bob.read(&bob.leases[0], "")).await?;
    let late = ann.commit(&mut groups, &closing[0], &of_bob.token).await;
    assert_eq!(refused(late), (Code::Aborted, "SHARD_LOST".to_owned()));

    let leave = LeaveConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "copy".to_owned(),
        member_id: bob.id.clone(),
    };
    groups.leave_consumer_group(leave.clone()).await?;
    let gone = groups.leave_consumer_group(leave).await;
    assert_eq!(refusal(gone), (Code::NotFound, "MEMBER_NOT_FOUND".to_owned()));
    ann.beat(&mut groups).await?;
    assert_eq!(ann.leases.len(), 8);
    let gone = bob.beat(&mut groups).await;
    assert_eq!(refused(gone), (Code::NotFound, "MEMBER_NOT_FOUND".to_owned()));
    Ok(())
}

#[tokio::test]
async fn shards_have_the_same_numbers_after_a_restart() -> TestResult {
    let (running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let mut of_groups = groups(&running);
    of_groups
        .create_consumer_group(group(ConsumerGroupSource::Changes, 12))
        .await?;
    let member = Member::join(&mut of_groups).await?;
    let mut tokens = Vec::new();
    for lease in &member.leases {
        tokens.push(read(&mut of_groups, member.read(lease, "")).await?.token);
    }
    drop((client, of_groups));
    let running = reopen(running).await?;
    let mut of_groups = groups(&running);
    let member = Member::join(&mut of_groups).await?;
    assert_eq!(member.leases.len(), tokens.len());
    for (lease, token) in member.leases.iter().zip(&tokens) {
        read(&mut of_groups, member.read(lease, token)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_checkpoint_outlives_the_process_and_its_members_do_not() -> TestResult {
    let (running, mut client, mut of_groups) = told().await?;
    for number in 1..=2 {
        client.put_row(word(number)).await?;
    }
    let member = Member::join(&mut of_groups).await?;
    let lease = member.leases[0];
    let mut one = member.read(&lease, "");
    one.max_records = 1;
    let first = read(&mut of_groups, one).await?;
    member.commit(&mut of_groups, &lease, &first.token).await?;
    drop((client, of_groups));
    let running = reopen(running).await?;
    let mut of_groups = groups(&running);
    let gone = member.commit(&mut of_groups, &lease, &first.token).await;
    assert_eq!(refused(gone), (Code::NotFound, "MEMBER_NOT_FOUND".to_owned()));
    let again = Member::join(&mut of_groups).await?;
    let second = read(&mut of_groups, again.read(&again.leases[0], "")).await?;
    assert_eq!(keys(&second), [(ShardRecordKind::Put, 2)]);
    Ok(())
}

/// A write of a result beside a checkpoint.
fn result(number: i64, checkpoint: Option<Checkpoint>) -> BatchWriteRowsRequest {
    let put = RowPut {
        key: vec![text("result"), int(number)],
        ..RowPut::default()
    };
    BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes: vec![RowWrite {
            operation: Some(Operation::Put(put)),
            ..RowWrite::default()
        }],
        atomic: true,
        checkpoint,
        ..BatchWriteRowsRequest::default()
    }
}

async fn is_there(client: &mut Client, number: i64) -> bool {
    let request = GetRowRequest {
        table: "notes".to_owned(),
        key: vec![text("result"), int(number)],
        ..GetRowRequest::default()
    };
    client.get_row(request).await.is_ok()
}

#[tokio::test]
async fn a_result_is_written_with_its_checkpoint_or_not_at_all() -> TestResult {
    let (_running, mut client, mut groups) = told().await?;
    client.put_row(word(1)).await?;
    let member = Member::join(&mut groups).await?;
    let lease = member.leases[0];
    let token = read(&mut groups, member.read(&lease, "")).await?.token;
    let checkpoint = member.checkpoint(&lease, &token);
    client
        .batch_write_rows(result(1, Some(checkpoint.clone())))
        .await?;
    assert!(is_there(&mut client, 1).await);
    let again = client.batch_write_rows(result(2, Some(checkpoint.clone()))).await;
    assert_eq!(refusal(again), (Code::Aborted, "CHECKPOINT_STALE".to_owned()));
    let mut of_another = checkpoint.clone();
    of_another.generation += 1;
    let fenced = client.batch_write_rows(result(3, Some(of_another.clone()))).await;
    assert_eq!(refusal(fenced), (Code::Aborted, "SHARD_LOST".to_owned()));

    // Repeated by its request it is answered as the first time, also by one who has lost the shard since.
    let token = read(&mut groups, member.read(&lease, "")).await?.token;
    let mut write = result(6, Some(member.checkpoint(&lease, &token)));
    write.request_id = "6f1c7f0e-3c1a-4d5e-9b1a-0d5b7d1c2e3f".to_owned();
    let first = client.batch_write_rows(write.clone()).await?.into_inner();
    let released = SendHeartbeatRequest {
        table: "notes".to_owned(),
        group: "copy".to_owned(),
        member_id: member.id.clone(),
        released: vec![lease],
    };
    let leases = groups.send_heartbeat(released).await?.into_inner().leases;
    let again = client.batch_write_rows(write).await?.into_inner();
    assert_eq!(first.sequence, again.sequence);
    let lease = leases[0];
    let mut of_another = member.checkpoint(&lease, &token);
    of_another.generation += 1;

    // The result was a change, too.
    let token = read(&mut groups, member.read(&lease, "")).await?.token;
    let begin = BeginTransactionRequest {
        table: "notes".to_owned(),
        partition: Some(text("result")),
    };
    let transaction_id = client.begin_transaction(begin).await?.into_inner().transaction_id;
    let mut write = result(4, None);
    write.transaction_id.clone_from(&transaction_id);
    client.batch_write_rows(write).await?;
    let commit = |checkpoint| CommitTransactionRequest {
        table: "notes".to_owned(),
        transaction_id: transaction_id.clone(),
        checkpoint: Some(checkpoint),
    };
    let fenced = client.commit_transaction(commit(of_another)).await;
    assert_eq!(refusal(fenced), (Code::Aborted, "SHARD_LOST".to_owned()));
    let checkpoint = member.checkpoint(&lease, &token);
    client.commit_transaction(commit(checkpoint)).await?;
    assert!(is_there(&mut client, 4).await);
    assert!(!is_there(&mut client, 2).await && !is_there(&mut client, 3).await);
    let rest = read(&mut groups, member.read(&lease, "")).await?;
    assert_eq!(keys(&rest), [(ShardRecordKind::Put, 4)]);

    let mut alone = result(5, Some(member.checkpoint(&lease, &rest.token)));
    alone.atomic = false;
    let refused = client.batch_write_rows(alone).await;
    assert_eq!(
        refusal(refused),
        (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn groups_are_listed_deleted_and_bounded() -> TestResult {
    let (_running, mut client, mut groups) = told().await?;
    let named = |name: &str, shards| {
        let mut request = group(ConsumerGroupSource::Changes, shards);
        request.group.as_mut().expect("the group").name = name.to_owned();
        request
    };
    let again = groups.create_consumer_group(named("copy", 2)).await;
    assert_eq!(
        refusal(again),
        (Code::AlreadyExists, "CONSUMER_GROUP_EXISTS".to_owned())
    );
    for nth in 1..16 {
        groups
            .create_consumer_group(named(&format!("more_{nth:02}"), 1))
            .await?;
    }
    let full = groups.create_consumer_group(named("beyond", 1)).await;
    assert_eq!(
        refusal(full),
        (Code::InvalidArgument, "LIMIT_EXCEEDED".to_owned())
    );
    let again = groups.create_consumer_group(named("copy", 1)).await;
    assert_eq!(
        refusal(again),
        (Code::AlreadyExists, "CONSUMER_GROUP_EXISTS".to_owned())
    );
    let list = ListConsumerGroupsRequest {
        table: "notes".to_owned(),
    };
    let listed = groups
        .list_consumer_groups(list.clone())
        .await?
        .into_inner()
        .groups;
    assert_eq!((listed.len(), listed[0].name.as_str()), (16, "copy"));
    let delete = DeleteConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "copy".to_owned(),
    };
    let member = Member::join(&mut groups).await?;
    groups.delete_consumer_group(delete.clone()).await?;
    let gone = groups.delete_consumer_group(delete).await;
    assert_eq!(
        refusal(gone),
        (Code::NotFound, "CONSUMER_GROUP_NOT_FOUND".to_owned())
    );
    let gone = read(&mut groups, member.read(&member.leases[0], ""))
        .await
        .map(drop);
    assert_eq!(
        refused(gone),
        (Code::NotFound, "CONSUMER_GROUP_NOT_FOUND".to_owned())
    );
    groups.create_consumer_group(named("beyond", 1)).await?;

    let mut rows = group(ConsumerGroupSource::Rows, 1);
    rows.after_sequence = Some(0);
    let refused = groups.create_consumer_group(rows).await;
    assert_eq!(
        refusal(refused),
        (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned())
    );
    // Its groups go with a table, and aren't those of the next one of its name.
    let drop = DeleteTableRequest {
        table: "notes".to_owned(),
    };
    client.delete_table(drop).await?;
    create(&mut client, notes()).await?;
    let listed = groups.list_consumer_groups(list).await?.into_inner().groups;
    assert!(listed.is_empty(), "{listed:?}");
    Ok(())
}
