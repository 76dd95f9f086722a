//! Five members that are killed, frozen and started at random over a busy table, of a group that commits what it was told and of one
//! that writes what it makes of it with its checkpoints.
//!
//! `SOUK_LONG=1` lets them for ten minutes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fastrand::Rng;
use souk_chassis::status;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, Checkpoint, CommitCheckpointRequest, ConsumerGroup, ConsumerGroupSource,
    CreateConsumerGroupRequest, JoinConsumerGroupRequest, KeyType, LeaveConsumerGroupRequest,
    RangeRowsRequest, ReadShardRequest, RowPut, RowUpdate, RowWrite, SendHeartbeatRequest, ShardLease,
    ShardRecord, Table,
};
use souk_proto::r#type::v1::Value;
use souk_proto::r#type::v1::value::Kind;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tonic::Status;

use super::Groups;
use crate::{Client, TestResult, columns, create, int, key_column, open, text};

const EVENTS: &str = "events";
const COUNTS: &str = "counts";
const MEMBERS: usize = 5;
const WRITERS: usize = 3;
const PLACES: usize = 30;
const SHARDS: i32 = 7;
const TIMEOUT: Duration = Duration::from_secs(1);

/// How long all of it goes on.
fn length() -> Duration {
    let is_long = std::env::var_os("SOUK_LONG").is_some();
    Duration::from_secs(if is_long { 600 } else { 60 })
}

/// What was told of the events of each place, which are numbered from 1.
#[derive(Debug, Default)]
struct Ledger {
    /// The last event that was told.
    told: BTreeMap<String, i64>,
    /// The last that is known to be committed.
    committed: BTreeMap<String, i64>,
    again: usize,
    fenced: usize,
    counts: BTreeMap<&'static str, usize>,
}

impl Ledger {
    fn note(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Takes what a read told, which began when `floor` was committed, and follows `before` within its lease.
    fn take(
        &mut self,
        events: &[(String, i64)],
        floor: &BTreeMap<String, i64>,
        before: &mut BTreeMap<String, i64>,
    ) {
        for (place, number) in events {
            let last = self.told.entry(place.clone()).or_default();
            let floor = floor.get(place).copied().unwrap_or_default();
            assert!(
                *number > floor,
                "{place} {number} again, before the checkpoint at {floor}"
            );
            assert!(
                *number <= *last + 1,
                "{place} {number} after {last}: some were left out"
            );
            if let Some(before) = before.get(place) {
                assert_eq!(*number, before + 1, "{place} out of order");
            }
            if *number <= *last {
                self.again += 1;
            }
            *last = (*last).max(*number);
            before.insert(place.clone(), *number);
        }
    }

    fn commit(&mut self, events: &[(String, i64)]) {
        for (place, number) in events {
            let committed = self.committed.entry(place.clone()).or_default();
            *committed = (*committed).max(*number);
        }
    }
}

/// A group and what its members do.
#[derive(Clone)]
struct Group {
    name: &'static str,
    /// Whether they count events, and commit with the counts.
    counts: bool,
    client: Client,
    groups: Groups,
    ledger: Arc<Mutex<Ledger>>,
    ending: Arc<AtomicBool>,
}

/// A shard as a member has it, and what it was told of it.
struct Held {
    lease: ShardLease,
    before: BTreeMap<String, i64>,
    after: String,
    /// What isn't committed.
    open: Vec<(String, i64)>,
    /// Whether there was nothing more.
    caught_up: bool,
}

fn event(record: &ShardRecord) -> (String, i64) {
    let row = record.row.as_ref().expect("a row");
    match (row.key[0].kind.clone(), row.columns["number"].kind.clone()) {
        (Some(Kind::StringValue(place)), Some(Kind::IntValue(number))) => (place, number),
        other => panic!("{other:?} is no event"),
    }
}

impl Group {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nobody panicked with it")
    }

    async fn create(
        name: &'static str,
        counts: bool,
        client: &Client,
        groups: &Groups,
    ) -> Result<Self, Status> {
        let request = CreateConsumerGroupRequest {
            table: EVENTS.to_owned(),
            group: Some(ConsumerGroup {
                name: name.to_owned(),
                source: ConsumerGroupSource::Changes.into(),
                shards: SHARDS,
                hold: None,
            }),
            ..CreateConsumerGroupRequest::default()
        };
        groups.clone().create_consumer_group(request).await?;
        Ok(Self {
            name,
            counts,
            client: client.clone(),
            groups: groups.clone(),
            ledger: Arc::default(),
            ending: Arc::default(),
        })
    }

    /// A member, until it leaves, is taken for dead or killed; or, if all is ending, until it has every shard and has committed everything: then it
    /// gives `true`.
    async fn member(mut self, mut random: Rng) -> Result<bool, Status> {
        let join = JoinConsumerGroupRequest {
            table: EVENTS.to_owned(),
            group: self.name.to_owned(),
            client: String::new(),
            session_timeout: Some(prost_types::Duration {
                seconds: TIMEOUT.as_secs().cast_signed(),
                nanos: 0,
            }),
        };
        let joined = self.groups.join_consumer_group(join).await?.into_inner();
        let member = joined.member_id;
        let mut held: BTreeMap<i32, Held> = BTreeMap::new();
        hold(&mut held, joined.leases);
        let (mut beat, mut released) = (Instant::now(), Vec::new());
        let mut freeze = next_freeze(&mut random);
        loop {
            if beat.elapsed() >= TIMEOUT / 4 {
                let closing = held
                    .values()
                    .filter(|held| held.lease.closing && held.open.is_empty());
                released.extend(closing.map(|held| held.lease));
                let sent = self.groups.send_heartbeat(SendHeartbeatRequest {
                    table: EVENTS.to_owned(),
                    group: self.name.to_owned(),
                    member_id: member.clone(),
                    released: std::mem::take(&mut released),
                });
                match sent.await {
                    Ok(answer) => hold(&mut held, answer.into_inner().leases),
                    Err(status) => {
                        assert_eq!(
                            status::reason(&status).as_deref(),
                            Some("MEMBER_NOT_FOUND"),
                            "{status}"
                        );
                        self.ledger().note("members taken for dead");
                        return Ok(false);
                    }
                }
                beat = Instant::now();
            }
            let mut quiet = true;
            let mut lost = Vec::new();
            for (shard, held) in &mut held {
                if held.lease.closing && held.open.is_empty() {
                    continue;
                }
                match self.work(&member, held, &mut freeze, &mut random).await? {
                    Some(progress) => quiet &= !progress,
                    None => lost.push(*shard),
                }
            }
            lost.iter().for_each(|shard| drop(held.remove(shard)));
            if random.u16(..500) == 0 {
                self.ledger().note("members that left");
                let left = self.groups.leave_consumer_group(LeaveConsumerGroupRequest {
                    table: EVENTS.to_owned(),
                    group: self.name.to_owned(),
                    member_id: member,
                });
                return match left.await {
                    Ok(_) => Ok(false),
                    Err(status) => self.fenced(&status).map(|_| false),
                };
            }
            if quiet {
                let is_done = |held: &Held| held.open.is_empty() && held.caught_up;
                let has_all = held.len() == usize::try_from(SHARDS).expect("a number");
                if self.ending.load(Ordering::Acquire) && has_all && held.values().all(is_done) {
                    return Ok(true);
                }
                sleep(Duration::from_millis(random.u64(1..20))).await;
            }
        }
    }

    /// Reads on in a shard and commits, some of the time; whether there was something. `None` when it is lost.
    async fn work(
        &mut self,
        member: &str,
        held: &mut Held,
        freeze: &mut Instant,
        random: &mut Rng,
    ) -> Result<Option<bool>, Status> {
        let floor = self.ledger().committed.clone();
        let read = self.groups.read_shard(ReadShardRequest {
            table: EVENTS.to_owned(),
            group: self.name.to_owned(),
            member_id: member.to_owned(),
            shard: held.lease.shard,
            generation: held.lease.generation,
            after: held.after.clone(),
            max_records: random.i32(1..60),
            wait: None,
        });
        let answer = match read.await {
            Ok(answer) => answer.into_inner(),
            Err(status) => return self.fenced(&status),
        };
        let events: Vec<_> = answer.records.iter().map(event).collect();
        self.ledger().take(&events, &floor, &mut held.before);
        let progress = !events.is_empty();
        held.open.extend(events);
        held.after.clone_from(&answer.token);
        held.caught_up = answer.caught_up;
        if Instant::now() >= *freeze {
            self.ledger().note("freezes");
            sleep(TIMEOUT.mul_f64(random.f64() * 2.5)).await;
            *freeze = next_freeze(random);
        }
        if progress && random.u8(..4) == 0 && !held.lease.closing {
            return Ok(Some(true));
        }
        let checkpoint = Checkpoint {
            table: EVENTS.to_owned(),
            group: self.name.to_owned(),
            member_id: member.to_owned(),
            shard: held.lease.shard,
            generation: held.lease.generation,
            token: answer.token,
        };
        let committed = if self.counts && !held.open.is_empty() {
            let write = counted(&held.open, checkpoint);
            self.client.batch_write_rows(write).await.map(drop)
        } else {
            let checkpoint = Some(checkpoint);
            let commit = CommitCheckpointRequest { checkpoint };
            self.groups.commit_checkpoint(commit).await.map(drop)
        };
        match committed {
            Ok(()) => {
                self.ledger().commit(&held.open);
                held.open.clear();
                Ok(Some(progress))
            }
            Err(status) => self.fenced(&status),
        }
    }

    /// Takes a refusal for what it may be.
    fn fenced(&self, status: &Status) -> Result<Option<bool>, Status> {
        match status::reason(status).as_deref() {
            Some("SHARD_LOST" | "MEMBER_NOT_FOUND") => {
                self.ledger().fenced += 1;
                Ok(None)
            }
            _ => Err(status.clone()),
        }
    }
}

/// When a member freezes next, between what it reads and its commit.
fn next_freeze(random: &mut Rng) -> Instant {
    Instant::now() + TIMEOUT.mul_f64(1.0 + random.f64() * 5.0)
}

/// What a member has from now on: of a shard that it had before by the same lease it goes on where it was.
fn hold(held: &mut BTreeMap<i32, Held>, leases: Vec<ShardLease>) {
    let mut before = std::mem::take(held);
    for lease in leases {
        let same = before.remove(&lease.shard);
        let same = same.filter(|held| held.lease.generation == lease.generation);
        let next = match same {
            Some(same) => Held { lease, ..same },
            None => Held {
                lease,
                before: BTreeMap::new(),
                after: String::new(),
                open: Vec::new(),
                caught_up: false,
            },
        };
        held.insert(lease.shard, next);
    }
}

/// Adds events to the counts of their places, with a checkpoint.
fn counted(events: &[(String, i64)], checkpoint: Checkpoint) -> BatchWriteRowsRequest {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for (place, _) in events {
        *counts.entry(place).or_default() += 1;
    }
    let writes = counts.into_iter().map(|(place, count)| RowWrite {
        operation: Some(Operation::Update(RowUpdate {
            key: vec![text(place)],
            increment: [("count".to_owned(), count)].into(),
            ..RowUpdate::default()
        })),
        ..RowWrite::default()
    });
    BatchWriteRowsRequest {
        table: COUNTS.to_owned(),
        writes: writes.collect(),
        atomic: true,
        checkpoint: Some(checkpoint),
        ..BatchWriteRowsRequest::default()
    }
}

/// Writes events of places of its own until the end; how many of each.
async fn write(mut client: Client, writer: usize, until: Instant, mut random: Rng) -> BTreeMap<String, i64> {
    let mut written = BTreeMap::new();
    while Instant::now() < until {
        let mut writes = BTreeMap::new();
        for _ in 0..random.usize(1..6) {
            let place = format!("place {}", random.usize(..PLACES) / WRITERS * WRITERS + writer);
            writes.entry(place).or_insert(0);
        }
        let writes = writes.into_keys().map(|place| {
            let number = written.entry(place.clone()).or_insert(0);
            *number += 1;
            RowWrite {
                operation: Some(Operation::Put(RowPut {
                    key: vec![text(&place), int(*number % 3)],
                    columns: columns([("number", int(*number))]),
                    ..RowPut::default()
                })),
                ..RowWrite::default()
            }
        });
        let batch = BatchWriteRowsRequest {
            table: EVENTS.to_owned(),
            writes: writes.collect(),
            atomic: true,
            ..BatchWriteRowsRequest::default()
        };
        client.batch_write_rows(batch).await.expect("a write");
        sleep(Duration::from_millis(random.u64(..10))).await;
    }
    written
}

/// Starts a member.
fn start(group: &Group, random: &mut Rng) -> JoinHandle<Result<bool, Status>> {
    tokio::spawn(group.clone().member(random.fork()))
}

/// Kills and starts members until the end, and then has all that is left told.
async fn disturb(group: Group, until: Instant, mut random: Rng) -> Group {
    let mut members: Vec<Option<JoinHandle<_>>> =
        (0..MEMBERS).map(|_| Some(start(&group, &mut random))).collect();
    while Instant::now() < until {
        sleep(Duration::from_millis(random.u64(..1_200))).await;
        let nth = random.usize(..MEMBERS);
        match members[nth].take() {
            Some(member) if member.is_finished() => {
                member.await.expect("no panic").expect("no other refusal");
            }
            Some(member) if random.bool() => {
                group.ledger().note("kills");
                member.abort();
                if let Err(error) = member.await {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
            Some(member) => members[nth] = Some(member),
            None => {
                group.ledger().note("starts");
                members[nth] = Some(start(&group, &mut random));
            }
        }
    }
    for member in members.into_iter().flatten() {
        member.abort();
        match member.await {
            Ok(ended) => _ = ended.expect("no other refusal"),
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
    }
    group
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_that_are_killed_frozen_and_started_at_random_are_told_everything() -> TestResult {
    let mut random = souk_seeds::random();
    let (running, mut client) = open().await?;
    for (name, key) in [
        (
            EVENTS,
            vec![
                key_column("place", KeyType::String),
                key_column("slot", KeyType::Integer),
            ],
        ),
        (COUNTS, vec![key_column("place", KeyType::String)]),
    ] {
        let table = Table {
            name: name.to_owned(),
            key,
            ..Table::default()
        };
        create(&mut client, table).await?;
    }
    let groups = super::groups(&running);
    let least = Group::create("least", false, &client, &groups).await?;
    let once = Group::create("once", true, &client, &groups).await?;
    let until = Instant::now() + length();
    let writers: Vec<_> = (0..WRITERS)
        .map(|nth| tokio::spawn(write(client.clone(), nth, until, random.fork())))
        .collect();
    let disturbed = [least, once].map(|group| tokio::spawn(disturb(group, until, random.fork())));
    let mut written = BTreeMap::new();
    for writer in writers {
        written.extend(writer.await?);
    }
    for disturbed in disturbed {
        let group = disturbed.await?;
        // Those who were killed are taken for dead; one that isn't disturbed gets the rest.
        let rest = Duration::from_secs(60);
        group.ending.store(true, Ordering::Release);
        let all = async {
            while !group.clone().member(random.fork()).await? {}
            Ok::<_, Status>(())
        };
        let in_time = tokio::time::timeout(rest, all).await;
        in_time.map_err(|_| format!("{} isn't done", group.name))??;
        let ledger = group.ledger();
        println!(
            "{}: {} events, {} told again, {} refusals, {:?}",
            group.name,
            written.values().sum::<i64>(),
            ledger.again,
            ledger.fenced,
            ledger.counts
        );
        assert_eq!(ledger.told, written);
        assert!(ledger.again > 0 && ledger.fenced > 0, "nothing was disturbed");
    }
    let range = RangeRowsRequest {
        table: COUNTS.to_owned(),
        ..RangeRowsRequest::default()
    };
    let rows = client.range_rows(range).await?.into_inner().rows;
    let counts = rows
        .into_iter()
        .map(|row| match (&row.key[0], &row.columns["count"]) {
            (
                Value {
                    kind: Some(Kind::StringValue(place)),
                },
                Value {
                    kind: Some(Kind::IntValue(count)),
                },
            ) => (place.clone(), *count),
            other => panic!("{other:?} is no count"),
        });
    assert_eq!(
        counts.collect::<BTreeMap<_, _>>(),
        written,
        "each was counted once"
    );
    Ok(())
}
