//! Tunnels, called as the official clients call them: connect, heartbeats with the state of each channel, checkpoints with sequence numbers.

mod starts;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::messages as rows_pb;
use souk_tablestore::messages::tunnel::{self as pb, ActionType, ChannelStatus, TunnelType};

use crate::client::{Client, cell, cells, deletion, ignore, key, plain, rows};
use crate::server::Server;

const PEOPLE: i64 = 40;

async fn put(client: &mut Client, person: i64, number: i64) {
    let id = format!("person {person}");
    client
        .put(
            "notes",
            key([("id", id.as_str().into())]),
            vec![cell("n", number)],
        )
        .await
        .expect("put");
}

fn creating(kind: TunnelType, config: Option<pb::StreamTunnelConfig>) -> pb::CreateTunnelRequest {
    pb::CreateTunnelRequest {
        tunnel: pb::Tunnel {
            table_name: "notes".to_owned(),
            tunnel_name: "copy".to_owned(),
            tunnel_type: kind.into(),
            stream_tunnel_config: config,
            stream_record_options: None,
        },
    }
}

async fn create_with(
    client: &mut Client,
    kind: TunnelType,
    config: Option<pb::StreamTunnelConfig>,
) -> String {
    let request = creating(kind, config);
    let created: pb::CreateTunnelResponse = client.call("tunnel/create", &request).await.expect("a tunnel");
    created.tunnel_id
}

async fn create(client: &mut Client, kind: TunnelType) -> String {
    create_with(client, kind, None).await
}

/// A client of a tunnel, and its channels.
struct Worker {
    tunnel: String,
    id: String,
    channels: BTreeMap<String, pb::Channel>,
    tokens: BTreeMap<String, String>,
    sequences: BTreeMap<String, i64>,
}

impl Worker {
    async fn connect(client: &mut Client, tunnel: &str) -> Self {
        let request = pb::ConnectRequest {
            tunnel_id: tunnel.to_owned(),
            client_config: Some(pb::ClientConfig {
                timeout: Some(30),
                client_tag: Some("a test".to_owned()),
            }),
        };
        let connected: pb::ConnectResponse = client.call("tunnel/connect", &request).await.expect("a client");
        Self {
            tunnel: tunnel.to_owned(),
            id: connected.client_id,
            channels: BTreeMap::new(),
            tokens: BTreeMap::new(),
            sequences: BTreeMap::new(),
        }
    }

    /// Tells the state of its channels, and takes what they are to be: channels that close are closed at once.
    async fn beat(&mut self, client: &mut Client) {
        let request = pb::HeartbeatRequest {
            tunnel_id: self.tunnel.clone(),
            client_id: self.id.clone(),
            channels: self.channels.values().cloned().collect(),
        };
        let told: pb::HeartbeatResponse = client.call("tunnel/heartbeat", &request).await.expect("channels");
        let before = std::mem::take(&mut self.channels);
        for mut channel in told.channels {
            let id = channel.channel_id.clone();
            if let Some(before) = before.get(&id) {
                assert!(channel.version >= before.version, "{channel:?} after {before:?}");
            }
            if channel.status() == ChannelStatus::Closing {
                channel.version += 1;
                channel.set_status(ChannelStatus::Close);
            }
            self.channels.insert(id, channel);
        }
        let there = &self.channels;
        self.tokens.retain(|id, _| there.contains_key(id));
        self.sequences.retain(|id, _| there.contains_key(id));
    }

    fn open(&self) -> Vec<String> {
        let open = self.channels.values();
        let open = open.filter(|channel| channel.status() == ChannelStatus::Open);
        open.map(|channel| channel.channel_id.clone()).collect()
    }

    /// Reads on in a channel, until there is no more for now; whether it has ended.
    async fn read(
        &mut self,
        client: &mut Client,
        channel: &str,
        told: &mut Vec<(ActionType, String, Vec<String>)>,
    ) -> bool {
        if !self.tokens.contains_key(channel) {
            let request = pb::GetCheckpointRequest {
                tunnel_id: self.tunnel.clone(),
                client_id: self.id.clone(),
                channel_id: channel.to_owned(),
            };
            let at: pb::GetCheckpointResponse = client
                .call("tunnel/getcheckpoint", &request)
                .await
                .expect("a checkpoint");
            // Clients look into it.
            let token = BASE64.decode(&at.checkpoint).expect("base64");
            let token = pb::Token::decode(Bytes::from(token)).expect("a token");
            let content = pb::TokenContent::decode(token.content).expect("its content");
            assert!(token.version == 1 && content.iterator.is_some());
            self.tokens.insert(channel.to_owned(), at.checkpoint);
            self.sequences.insert(channel.to_owned(), at.sequence_number + 1);
        }
        loop {
            let request = pb::ReadRecordsRequest {
                tunnel_id: self.tunnel.clone(),
                client_id: self.id.clone(),
                channel_id: channel.to_owned(),
                token: self.tokens[channel].clone(),
            };
            let page: pb::ReadRecordsResponse = client
                .call("tunnel/readrecords", &request)
                .await
                .expect("records");
            for record in &page.records {
                let row = rows(&record.record).pop().expect("a row");
                let names = cells(&row).into_iter().map(|(name, _)| name.to_owned());
                told.push((
                    record.action_type(),
                    format!("{:?}", row.key[0].value),
                    names.collect(),
                ));
            }
            self.tokens.insert(channel.to_owned(), page.next_token.clone());
            if page.next_token == "finished" {
                return true;
            }
            if page.may_more_record != Some(true) {
                return false;
            }
        }
    }

    fn checkpoint(&self, channel: &str) -> pb::CheckpointRequest {
        pb::CheckpointRequest {
            tunnel_id: self.tunnel.clone(),
            client_id: self.id.clone(),
            channel_id: channel.to_owned(),
            checkpoint: self.tokens[channel].clone(),
            sequence_number: self.sequences[channel],
        }
    }

    async fn commit(&mut self, client: &mut Client, channel: &str) {
        let request = self.checkpoint(channel);
        let _: pb::CheckpointResponse = client
            .call("tunnel/checkpoint", &request)
            .await
            .expect("committed");
        *self.sequences.get_mut(channel).expect("a channel") += 1;
    }
}

#[tokio::test]
async fn a_tunnel_is_created_described_and_deleted() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let id = create(&mut client, TunnelType::BaseAndStream).await;
    let list = pb::ListTunnelRequest {
        table_name: Some("notes".to_owned()),
    };
    let listed: pb::ListTunnelResponse = client.call("tunnel/list", &list).await.expect("tunnels");
    let [tunnel] = &listed.tunnels[..] else {
        panic!("{listed:?}");
    };
    assert_eq!(
        (
            tunnel.tunnel_id.as_str(),
            tunnel.tunnel_type.as_str(),
            tunnel.stage.as_str()
        ),
        (id.as_str(), "BaseAndStream", "ProcessBaseData")
    );
    assert_eq!(
        (tunnel.table_name.as_str(), tunnel.instance_name.as_str()),
        ("notes", "demo")
    );
    let describe = pb::DescribeTunnelRequest {
        table_name: "notes".to_owned(),
        tunnel_name: "copy".to_owned(),
        tunnel_id: None,
    };
    let told: pb::DescribeTunnelResponse = client.call("tunnel/describe", &describe).await.expect("a tunnel");
    assert_eq!(told.channels.len(), 8);
    assert_eq!(told.channels[0].channel_status.as_deref(), Some("CLOSE"));

    let again = creating(TunnelType::Stream, None);
    let refused = client.refused("tunnel/create", &again).await;
    refused.is(409, "OTSTunnelExist", "The tunnel already exists.");
    let delete = pb::DeleteTunnelRequest {
        table_name: "notes".to_owned(),
        tunnel_name: "copy".to_owned(),
        tunnel_id: None,
    };
    // To another instance it isn't there.
    let connect = pb::ConnectRequest {
        tunnel_id: id.clone(),
        client_config: None,
    };
    let mut stranger = server.client("stranger");
    let refused = stranger.refused("tunnel/connect", &connect).await;
    refused.is(404, "OTSObjectNotExist", "Requested tunnel does not exist.");
    let _: pb::DeleteTunnelResponse = client.call("tunnel/delete", &delete).await.expect("deleted");
    let refused = client.refused("tunnel/delete", &delete).await;
    refused.is(404, "OTSObjectNotExist", "Requested tunnel does not exist.");
    // Another one of its name isn't it.
    let other = create(&mut client, TunnelType::Stream).await;
    assert_ne!(id, other);
    let refused = client.refused("tunnel/connect", &connect).await;
    refused.is(404, "OTSObjectNotExist", "Requested tunnel does not exist.");
}

#[tokio::test]
async fn clients_share_the_channels_and_go_on_from_checkpoints() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    for person in 0..PEOPLE {
        put(&mut client, person, 1).await;
    }
    let tunnel = create(&mut client, TunnelType::BaseAndStream).await;
    let mut ann = Worker::connect(&mut client, &tunnel).await;
    ann.beat(&mut client).await;
    assert_eq!(ann.open().len(), 8);
    let mut told = Vec::new();
    for channel in ann.open() {
        assert!(!ann.read(&mut client, &channel, &mut told).await);
        ann.commit(&mut client, &channel).await;
    }
    assert_eq!(told.len(), usize::try_from(PEOPLE).expect("a number"));
    assert!(
        told.iter()
            .all(|(action, _, names)| *action == ActionType::PutRow && names == &["n"])
    );

    // Half of them go to Bob, and Ann's late checkpoints of those are refused.
    let late: BTreeMap<String, pb::CheckpointRequest> = ann
        .open()
        .into_iter()
        .map(|channel| (channel.clone(), ann.checkpoint(&channel)))
        .collect();
    let mut bob = Worker::connect(&mut client, &tunnel).await;
    bob.beat(&mut client).await;
    assert!(bob.open().is_empty());
    ann.beat(&mut client).await;
    ann.beat(&mut client).await;
    bob.beat(&mut client).await;
    assert_eq!((ann.open().len(), bob.open().len()), (4, 4));
    let refused = client.refused("tunnel/checkpoint", &late[&bob.open()[0]]).await;
    refused.is(
        400,
        "OTSSequenceNumberNotMatch",
        "The sequence number of the checkpoint doesn't match.",
    );
    put(&mut client, 1, 2).await;
    let delete = rows_pb::DeleteRowRequest {
        table_name: "notes".to_owned(),
        primary_key: deletion(key([("id", "person 2".into())])),
        condition: ignore(),
        ..rows_pb::DeleteRowRequest::default()
    };
    let _: rows_pb::DeleteRowResponse = client.call("DeleteRow", &delete).await.expect("deleted");
    let mut told = Vec::new();
    for worker in [&mut ann, &mut bob] {
        for channel in worker.open() {
            worker.read(&mut client, &channel, &mut told).await;
            worker.commit(&mut client, &channel).await;
        }
    }
    told.sort_by_key(|(_, id, _)| id.clone());
    let actions: Vec<_> = told
        .iter()
        .map(|(action, id, _)| (*action, id.as_str()))
        .collect();
    assert_eq!(
        actions,
        [
            (ActionType::PutRow, "String(\"person 1\")"),
            (ActionType::DeleteRow, "String(\"person 2\")")
        ]
    );

    // Bob goes, and Ann has all of them again.
    let shutdown = pb::ShutdownRequest {
        tunnel_id: tunnel.clone(),
        client_id: bob.id.clone(),
    };
    let _: pb::ShutdownResponse = client.call("tunnel/shutdown", &shutdown).await.expect("gone");
    let beat = pb::HeartbeatRequest {
        tunnel_id: tunnel.clone(),
        client_id: bob.id.clone(),
        channels: Vec::new(),
    };
    let refused = client.refused("tunnel/heartbeat", &beat).await;
    refused.is(410, "OTSResourceGone", "The heartbeat of the client timed out.");
    ann.beat(&mut client).await;
    assert_eq!(ann.open().len(), 8);
    let mut told = Vec::new();
    for channel in ann.open() {
        ann.read(&mut client, &channel, &mut told).await;
    }
    assert_eq!(told, [], "what was committed comes never again");
}

#[tokio::test]
async fn whoever_lost_a_channel_reads_it_from_its_checkpoint_on() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let tunnel = create(&mut client, TunnelType::Stream).await;
    let mut ann = Worker::connect(&mut client, &tunnel).await;
    ann.beat(&mut client).await;
    let channel = ann.open().remove(0);
    ann.read(&mut client, &channel, &mut Vec::new()).await;
    let read = |worker: &Worker, token: &str| pb::ReadRecordsRequest {
        tunnel_id: tunnel.clone(),
        client_id: worker.id.clone(),
        channel_id: channel.clone(),
        token: token.to_owned(),
    };
    let late = read(&ann, &ann.tokens[&channel]);
    let get = pb::GetCheckpointRequest {
        tunnel_id: tunnel.clone(),
        client_id: ann.id.clone(),
        channel_id: channel.clone(),
    };
    let at: pb::GetCheckpointResponse = client
        .call("tunnel/getcheckpoint", &get)
        .await
        .expect("a checkpoint");
    let mut first = ann.checkpoint(&channel);
    first.checkpoint = at.checkpoint;
    let _: pb::CheckpointResponse = client
        .call("tunnel/checkpoint", &first)
        .await
        .expect("it is there");
    // Closed, all of them are hers again by other leases.
    for channel in ann.channels.values_mut() {
        channel.set_status(ChannelStatus::Close);
    }
    ann.beat(&mut client).await;
    assert_eq!(ann.open().len(), 8);
    let mismatch = "The sequence number of the checkpoint doesn't match.";
    let refused = client.refused("tunnel/readrecords", &late).await;
    refused.is(400, "OTSSequenceNumberNotMatch", mismatch);
    let refused = client.refused("tunnel/checkpoint", &first).await;
    refused.is(400, "OTSSequenceNumberNotMatch", mismatch);

    let many = pb::HeartbeatRequest {
        tunnel_id: tunnel.clone(),
        client_id: ann.id.clone(),
        channels: vec![ann.channels[&channel].clone(); 65],
    };
    let refused = client.refused("tunnel/heartbeat", &many).await;
    refused.is(400, "OTSParameterInvalid", "A tunnel has 64 channels at most.");
    // An id of another tunnel of the name is none of it.
    let other = pb::HeartbeatRequest {
        tunnel_id: format!("{tunnel}0"),
        channels: Vec::new(),
        ..many
    };
    let refused = client.refused("tunnel/heartbeat", &other).await;
    refused.is(404, "OTSObjectNotExist", "Requested tunnel does not exist.");
}

#[tokio::test]
async fn a_tunnel_with_changes_has_no_end() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let tunnel = create(&mut client, TunnelType::BaseAndStream).await;
    let mut worker = Worker::connect(&mut client, &tunnel).await;
    worker.beat(&mut client).await;
    let channel = worker.open().remove(0);
    assert!(!worker.read(&mut client, &channel, &mut Vec::new()).await);
    let mut ended = worker.checkpoint(&channel);
    ended.checkpoint = "finished".to_owned();
    let refused = client.refused("tunnel/checkpoint", &ended).await;
    refused.is(
        400,
        "OTSParameterInvalid",
        "token of the shard is of no end: changes are told.",
    );
}

#[tokio::test]
async fn a_tunnel_of_rows_ends() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    for person in 0..PEOPLE {
        put(&mut client, person, 1).await;
    }
    let tunnel = create(&mut client, TunnelType::BaseData).await;
    let mut worker = Worker::connect(&mut client, &tunnel).await;
    worker.beat(&mut client).await;
    let mut told = Vec::new();
    for channel in worker.open() {
        while !worker.read(&mut client, &channel, &mut told).await {}
        worker.commit(&mut client, &channel).await;
        let channel = worker.channels.get_mut(&channel).expect("a channel");
        channel.version += 1;
        channel.set_status(ChannelStatus::Terminated);
    }
    assert_eq!(told.len(), usize::try_from(PEOPLE).expect("a number"));
    worker.beat(&mut client).await;
    assert_eq!(worker.open(), [""; 0]);
    let describe = pb::DescribeTunnelRequest {
        table_name: "notes".to_owned(),
        tunnel_name: "copy".to_owned(),
        tunnel_id: None,
    };
    let described: pb::DescribeTunnelResponse =
        client.call("tunnel/describe", &describe).await.expect("a tunnel");
    let ended = described
        .channels
        .iter()
        .map(|channel| channel.channel_status.as_deref());
    assert!(
        ended.into_iter().all(|status| status == Some("TERMINATED")),
        "{described:?}"
    );
    // Whoever comes next is told nothing.
    let mut next = Worker::connect(&mut client, &tunnel).await;
    let shutdown = pb::ShutdownRequest {
        tunnel_id: tunnel.clone(),
        client_id: worker.id.clone(),
    };
    let _: pb::ShutdownResponse = client.call("tunnel/shutdown", &shutdown).await.expect("gone");
    next.beat(&mut client).await;
    let mut again = Vec::new();
    for channel in next.open() {
        assert!(next.read(&mut client, &channel, &mut again).await);
    }
    assert_eq!(again, []);
}
