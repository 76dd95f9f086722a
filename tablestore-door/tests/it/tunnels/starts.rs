//! Where tunnels begin, what no tunnel is, and what is left of one after a restart, or after too long.

use std::sync::Arc;
use std::time::Duration;

use souk_engine::storage::limits::{FEED_START_MARGIN, MAX_FEED_HOLD, MIN_RETENTION};
use souk_engine::storage::{DatabaseOptions, ManualClock};
use souk_tablestore::messages::tunnel::{self as pb, StartOffsetFlag, StreamColumnType, TunnelType};

use super::{Worker, create, create_with, creating, put};
use crate::client::{Client, plain};
use crate::server::Server;

const INVALID: &str = "OTSParameterInvalid";
const BEGIN_MILLIS: u64 = 1_700_000_000_000;

/// A server with a clock that is moved, and a table.
async fn dated() -> (Arc<ManualClock>, Server, Client) {
    let clock = Arc::new(ManualClock::new(BEGIN_MILLIS.cast_signed() * 1_000_000));
    let server = Server::start_with(DatabaseOptions {
        clock: clock.clone(),
        retention: MIN_RETENTION,
        ..DatabaseOptions::default()
    })
    .await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    (clock, server, client)
}

fn at(millis: u64) -> pb::StreamTunnelConfig {
    pb::StreamTunnelConfig {
        start_offset: Some(millis),
        ..pb::StreamTunnelConfig::default()
    }
}

fn from(flag: StartOffsetFlag) -> pb::StreamTunnelConfig {
    pb::StreamTunnelConfig {
        flag: Some(flag.into()),
        ..pb::StreamTunnelConfig::default()
    }
}

/// The keys of all that a new client is told.
async fn told(client: &mut Client, tunnel: &str) -> Vec<String> {
    let mut worker = Worker::connect(client, tunnel).await;
    worker.beat(client).await;
    let mut told = Vec::new();
    for channel in worker.open() {
        worker.read(client, &channel, &mut told).await;
    }
    let mut keys: Vec<_> = told.into_iter().map(|(_, key, _)| key).collect();
    keys.sort();
    keys
}

fn people(numbers: &[i64]) -> Vec<String> {
    let key = |number| format!("String(\"person {number}\")");
    numbers.iter().map(key).collect()
}

#[tokio::test]
async fn a_tunnel_begins_at_a_time_within_the_retention() {
    let (clock, server, mut client) = dated().await;
    put(&mut client, 1, 1).await;
    clock.advance(Duration::from_secs(10));
    put(&mut client, 2, 1).await;
    let now = BEGIN_MILLIS + 10_000;
    let reach = MIN_RETENTION - FEED_START_MARGIN;
    let oldest = now - u64::try_from(reach.as_millis()).expect("a time");
    let delete = pb::DeleteTunnelRequest {
        table_name: "notes".to_owned(),
        tunnel_name: "copy".to_owned(),
        tunnel_id: None,
    };
    for (config, expected) in [
        (from(StartOffsetFlag::Earliest), people(&[1, 2])),
        (from(StartOffsetFlag::Latest), people(&[])),
        (at(oldest), people(&[1, 2])),
        (at(BEGIN_MILLIS), people(&[1, 2])),
        (at(BEGIN_MILLIS + 5_000), people(&[2])),
        (at(now), people(&[2])),
    ] {
        let tunnel = create_with(&mut client, TunnelType::Stream, Some(config)).await;
        assert_eq!(told(&mut client, &tunnel).await, expected, "{config:?}");
        let _: pb::DeleteTunnelResponse = client.call("tunnel/delete", &delete).await.expect("deleted");
    }
    for millis in [oldest - 1, now + 1] {
        let request = creating(TunnelType::Stream, Some(at(millis)));
        let nanos = |millis: u64| millis * 1_000_000;
        let text = format!(
            "start at {} ns is not from {} ns (retention less FEED_START_MARGIN) to now, {} ns.",
            nanos(millis),
            nanos(oldest),
            nanos(now)
        );
        client
            .refused("tunnel/create", &request)
            .await
            .is(400, INVALID, &text);
    }
    server.end().await;
}

#[tokio::test]
async fn what_no_tunnel_is_is_refused() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let ended = pb::StreamTunnelConfig {
        end_offset: Some(BEGIN_MILLIS),
        ..pb::StreamTunnelConfig::default()
    };
    let mut of_before = creating(TunnelType::Stream, None);
    of_before.tunnel.stream_record_options = Some(pb::StreamRecordOptions {
        old_columns_to_get: Some(pb::StreamColumn {
            r#type: StreamColumnType::AllColumns.into(),
            column_name: Vec::new(),
        }),
        ..pb::StreamRecordOptions::default()
    });
    let mut of_no_type = creating(TunnelType::Stream, None);
    of_no_type.tunnel.tunnel_type = 7;
    let named = |name: &str| {
        let mut named = creating(TunnelType::Stream, None);
        named.tunnel.tunnel_name = name.to_owned();
        named
    };
    let name = "Invalid tunnel name: a letter or _, then letters, digits and _, at most 200.";
    let of_both = "Unsupported: changes from before the rows of a tunnel.";
    for (request, text) in [
        (
            creating(TunnelType::Stream, Some(ended)),
            "Unsupported: the end of a tunnel.",
        ),
        (
            creating(TunnelType::BaseAndStream, Some(at(BEGIN_MILLIS))),
            of_both,
        ),
        (
            creating(TunnelType::BaseAndStream, Some(from(StartOffsetFlag::Earliest))),
            of_both,
        ),
        (of_before, "Unsupported: rows as they were before a change."),
        (of_no_type, "Invalid tunnel type."),
        (named("a-b"), name),
        (named(&"x".repeat(201)), name),
    ] {
        client
            .refused("tunnel/create", &request)
            .await
            .is(400, INVALID, text);
    }
    // Where there are no changes, their start means nothing, as the original says.
    let of_rows = creating(TunnelType::BaseData, Some(at(BEGIN_MILLIS)));
    let _: pb::CreateTunnelResponse = client.call("tunnel/create", &of_rows).await.expect("a tunnel");
    let longest = named(&"x".repeat(200));
    let _: pb::CreateTunnelResponse = client.call("tunnel/create", &longest).await.expect("a tunnel");
    // Who may not is told so as everywhere else.
    let mut reader = server.client("reader");
    let refused = reader.refused("tunnel/create", &named("other")).await;
    let text = "The user has no privilege to access the instance.";
    refused.is(403, "OTSAuthFailed", text);
    server.end().await;
}

#[tokio::test]
async fn clients_connect_again_after_a_restart_and_go_on_from_checkpoints() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    put(&mut client, 1, 1).await;
    let tunnel = create(&mut client, TunnelType::BaseAndStream).await;
    let mut before = Worker::connect(&mut client, &tunnel).await;
    before.beat(&mut client).await;
    let mut records = Vec::new();
    for channel in before.open() {
        before.read(&mut client, &channel, &mut records).await;
        before.commit(&mut client, &channel).await;
    }
    assert_eq!(records.len(), 1);

    drop(client);
    let server = server.reopen().await;
    let mut client = server.client("demo");
    let beat = pb::HeartbeatRequest {
        tunnel_id: tunnel.clone(),
        client_id: before.id.clone(),
        channels: Vec::new(),
    };
    let refused = client.refused("tunnel/heartbeat", &beat).await;
    refused.is(410, "OTSResourceGone", "The heartbeat of the client timed out.");
    put(&mut client, 2, 1).await;
    assert_eq!(told(&mut client, &tunnel).await, people(&[2]));
    server.end().await;
}

#[tokio::test]
async fn a_tunnel_that_nobody_reads_expires() {
    let (clock, server, mut client) = dated().await;
    let tunnel = create(&mut client, TunnelType::Stream).await;
    put(&mut client, 1, 1).await;
    let mut worker = Worker::connect(&mut client, &tunnel).await;
    worker.beat(&mut client).await;
    clock.advance(MAX_FEED_HOLD + 2 * MIN_RETENTION);
    server.engine.database().maintain().await.expect("maintenance");
    let channel_id = worker.open().remove(0);
    let get = pb::GetCheckpointRequest {
        tunnel_id: tunnel.clone(),
        client_id: worker.id.clone(),
        channel_id: channel_id.clone(),
    };
    let at: pb::GetCheckpointResponse = client
        .call("tunnel/getcheckpoint", &get)
        .await
        .expect("a checkpoint");
    let read = pb::ReadRecordsRequest {
        tunnel_id: tunnel,
        client_id: worker.id,
        channel_id,
        token: at.checkpoint,
    };
    let refused = client.refused("tunnel/readrecords", &read).await;
    refused.is(400, "OTSTunnelExpired", "The tunnel has expired.");
    let describe = pb::DescribeTunnelRequest {
        table_name: "notes".to_owned(),
        tunnel_name: "copy".to_owned(),
        tunnel_id: None,
    };
    let described: pb::DescribeTunnelResponse =
        client.call("tunnel/describe", &describe).await.expect("a tunnel");
    assert_eq!(described.tunnel.expired, Some(true));
    server.end().await;
}

#[tokio::test]
async fn a_key_has_so_many_clients_of_a_tunnel() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let tunnel = create(&mut client, TunnelType::Stream).await;
    // Half of all, since no key has more than are free.
    for _ in 0..souk_engine::consumer_groups::MEMBERS_MAX / 2 {
        Worker::connect(&mut client, &tunnel).await;
    }
    let connect = pb::ConnectRequest {
        tunnel_id: tunnel.clone(),
        client_config: None,
    };
    let refused = client.refused("tunnel/connect", &connect).await;
    refused.is(
        503,
        "OTSTunnelServerUnavailable",
        "The tunnel server is not available.",
    );
    Worker::connect(&mut server.client("other"), &tunnel).await;
    server.end().await;
}
