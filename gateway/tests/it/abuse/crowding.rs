//! Clients that take what is there for all: streams, places, memory, connections. Whoever else calls is answered all the same.

use std::io::Write as _;
use std::net::SocketAddr;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use prost::Message as _;
use souk_proto::shop::v1::ExportShopsRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic_health::pb::HealthCheckRequest;

use super::attacker::{Attacker, DATA, HEADERS, RST_STREAM, frame, header, request, settings, shop_message};
use super::victim::{Victim, with_key};
use super::{PATIENCE, rounds};
use crate::backends::{ENDLESS, NEVER};
use crate::setting::{connect, shop_request};

/// Asks for so many streams that say nothing; those that were opened.
async fn open_streams(
    address: SocketAddr,
    key: &str,
    most: usize,
) -> Vec<tonic::Streaming<souk_proto::shop::v1::ExportShopsResponse>> {
    let channels: Vec<_> = (0..most.div_ceil(200)).map(|_| connect(address)).collect();
    let open = (0..most).map(|number| {
        let mut shops = ShopServiceClient::new(channels[number % channels.len()].clone());
        async move {
            let mut request = tonic::Request::new(ExportShopsRequest {
                snapshot_token: ENDLESS.to_owned(),
                ..ExportShopsRequest::default()
            });
            with_key(&mut request, key);
            shops.export_shops(request).await
        }
    });
    let opened = join_all(open).await.into_iter();
    opened
        .filter_map(|opened| Some(opened.ok()?.into_inner()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_streams_of_one_caller_stop_nobody() {
    // Of 8 × 16 streams at a time.
    let victim = Victim::guarded(&["server.concurrency_max=16"]).await;
    victim
        .bears("idle streams", async {
            for _ in 0..rounds(1) {
                let open = open_streams(victim.address, victim.key(), 200).await;
                assert!((1..=64).contains(&open.len()), "{} are open", open.len());
                victim.answers(100).await;
            }
        })
        .await;
    victim.end().await;
}

/// A connection to a backend carries the calls of all callers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_streams_of_one_caller_take_no_backend_away() {
    let victim = Victim::guarded(&[]).await;
    victim
        .bears("idle streams at a backend", async {
            let open = open_streams(victim.address, victim.key(), 1_000).await;
            assert_eq!(open.len(), 1_000, "far from its share");
            victim.answers(100).await;
        })
        .await;
    victim.end().await;
}

/// And it carries their cancelled calls, the headers of which are handed on without a message where a call isn't repeated, and bodies that
/// say nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_caller_sends_in_vain_takes_no_backend_away() {
    /// At a time, and on one connection, fewer than it may cancel.
    const CALLS: u32 = 200;
    const ROUNDS: u32 = 8;
    // One thread, and so one connection to the backend.
    let victim = Victim::guarded(&["server.workers=1"]).await;
    let mut watch = victim.watch().await;
    victim.at_backend(|calls| calls == 1).await;
    let path = "/souk.shop.v1.ShopService/CreateShop";
    let headers = [request(path), header("x-api-key", victim.key())].concat();
    for _ in 0..3 {
        let mut attacker = Attacker::open(victim.address).await;
        for round in 0..ROUNDS {
            let streams = (round * CALLS..(round + 1) * CALLS).map(|number| 2 * number + 1);
            let begun: Vec<u8> = streams
                .clone()
                .flat_map(|stream| frame(HEADERS, 4, stream, &headers))
                .collect();
            attacker.send(&begun).await.expect("sent");
            victim.at_backend(|calls| calls > 200).await;
            let cancelled = streams.flat_map(|stream| frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
            attacker.send(&cancelled.collect::<Vec<_>>()).await.expect("sent");
            victim.at_backend(|calls| calls <= 1).await;
        }
        attacker.hang_up().await;
    }
    for _ in 0..3 {
        // Two callers' connections may have so many empty frames, one of all callers no more.
        let mut attacker = Attacker::open(victim.address).await;
        let nothing = frame(DATA, 0, 1, &[]).repeat(90);
        let asked = [
            frame(HEADERS, 4, 1, &headers),
            nothing,
            frame(DATA, 1, 1, &[0; 5]),
        ]
        .concat();
        attacker.send(&asked).await.expect("sent");
        attacker.answered().await.expect("an answer, not a cut");
        attacker.hang_up().await;
    }
    victim.answers(100).await;
    victim.at_backend(|calls| calls == 1).await;
    let more = watch.message().now_or_never();
    assert!(more.is_none(), "it goes on saying nothing: {more:?}");
    drop(watch);
    victim.end().await;
}

/// Asks with the key of a caller for so many shops with ids of so many bytes, which their answers have, too, and takes none.
async fn ask_and_take_nothing(victim: &Victim, shops: u32, bytes: usize) -> Attacker {
    let mut attacker = Attacker::open(victim.address).await;
    // Of the windows of its streams.
    attacker.send(&settings(4, 0)).await.expect("sent");
    let path = "/souk.shop.v1.ShopService/GetShop";
    let headers = [request(path), header("x-api-key", victim.key())].concat();
    let message = shop_message(bytes);
    for number in 0..shops {
        let asked = attacker.ask_with(2 * number + 1, &headers, &message).await;
        asked.expect("sent");
        attacker.answered().await.expect("headers, not a cut");
    }
    attacker
}

/// A connection to a backend carries the answers of all callers, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_answers_of_one_caller_take_no_backend_away() {
    let victim = Victim::guarded(&[]).await;
    victim
        .bears("unread answers of a backend", async {
            let mut attackers = Vec::new();
            for _ in 0..rounds(2) {
                attackers.push(ask_and_take_nothing(&victim, 200, 60_000).await);
            }
            victim.answers(100).await;
            for attacker in attackers {
                attacker.hang_up().await;
            }
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_takes_are_given_up_and_their_share_comes_back() {
    // Of 8 × 4 + 4 answers at a time, half of which a caller may have.
    let victim = Victim::guarded(&[
        "server.concurrency_max=4",
        "server.queue_max=4",
        "server.connection.answer_stall_max=2s",
    ])
    .await;
    victim
        .bears("answers that nobody takes", async {
            let attacker = ask_and_take_nothing(&victim, 30, 2_000).await;
            let mut shops = ShopServiceClient::new(connect(victim.address));
            let mut ask = async || {
                let mut request = tonic::Request::new(shop_request("h1"));
                with_key(&mut request, victim.key());
                shops.get_shop(request).await
            };
            let its_share_is_taken = async { while ask().await.is_ok() {} };
            tokio::time::timeout(PATIENCE, its_share_is_taken)
                .await
                .expect("answers that wait are counted");
            let it_comes_back = async { while ask().await.is_err() {} };
            tokio::time::timeout(PATIENCE, it_comes_back)
                .await
                .expect("they are given up in time");
            attacker.hang_up().await;
        })
        .await;
    victim.end().await;
}

/// Who reads a request to its end would unpack them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_behind_the_one_of_a_call_are_refused() {
    let victim = Victim::guarded(&[]).await;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&vec![0; 1_000]).expect("in memory");
    let packed = packed.finish().expect("in memory");
    let length = u32::try_from(packed.len()).expect("a short message");
    let small = [&[1][..], &length.to_be_bytes(), &packed].concat();
    let encoded = header("grpc-encoding", "gzip");
    let of_a_stranger = [request("/grpc.health.v1.Health/Check"), encoded].concat();
    let path = "/souk.shop.v1.ShopService/GetShop";
    let of_a_caller = [request(path), header("x-api-key", victim.key())].concat();
    for (what, headers, message) in [
        ("small messages of a question for health", of_a_stranger, small),
        ("messages behind a caller's", of_a_caller, shop_message(10)),
    ] {
        victim
            .bears(what, async {
                for _ in 0..rounds(5) {
                    let mut attacker = Attacker::open(victim.address).await;
                    // No more than the window of a stream takes at first.
                    let body = message.repeat(60_000 / message.len());
                    attacker.ask_with(1, &headers, &body).await.expect("sent");
                    attacker.answered().await.expect("a refusal, not a cut");
                    attacker.hang_up().await;
                }
            })
            .await;
    }
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_caller_that_take_all_their_time_stop_nobody() {
    let victim = Victim::guarded(&["server.concurrency_max=8", "server.queue_max=8"]).await;
    victim
        .bears("calls that wait", async {
            let channel = connect(victim.address);
            let waiting: Vec<_> = (0..rounds(40))
                .map(|_| {
                    let mut shops = ShopServiceClient::new(channel.clone());
                    let mut request = tonic::Request::new(shop_request(NEVER));
                    request.set_timeout(std::time::Duration::from_secs(120));
                    with_key(&mut request, victim.key());
                    tokio::spawn(async move { shops.get_shop(request).await })
                })
                .collect();
            victim.answers(100).await;
            let refused = waiting.iter().filter(|call| call.is_finished()).count();
            assert!(refused > 0, "most of them are too many");
            waiting.iter().for_each(tokio::task::JoinHandle::abort);
        })
        .await;
    victim
        .bears("calls without a body", async {
            let mut attacker = Attacker::open(victim.address).await;
            let path = "/souk.shop.v1.ShopService/GetShop";
            let headers = [request(path), header("x-api-key", victim.key())].concat();
            for number in 0..40 {
                let bytes = frame(HEADERS, 0x4, 2 * number + 1, &headers);
                attacker.send(&bytes).await.expect("sent");
            }
            attacker.answered().await.expect("a refusal, not a cut");
            victim.answers(100).await;
            attacker.hang_up().await;
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_names_of_watched_services_take_no_memory() {
    let victim = Victim::guarded(&[]).await;
    let message = HealthCheckRequest {
        service: "x".repeat((4 << 20) - 64),
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&message.encode_to_vec()).expect("in memory");
    let packed = packed.finish().expect("in memory");
    let length = u32::try_from(packed.len()).expect("a short message");
    let body = [&[1][..], &length.to_be_bytes(), &packed].concat();
    let headers = [
        request("/grpc.health.v1.Health/Watch"),
        header("grpc-encoding", "gzip"),
    ]
    .concat();
    victim
        .bears("watches of long names", async {
            let mut open = Vec::new();
            for _ in 0..rounds(1) {
                let mut attacker = Attacker::open(victim.address).await;
                for number in 0..64 {
                    attacker
                        .ask_with(2 * number + 1, &headers, &body)
                        .await
                        .expect("sent");
                    attacker.answered().await.expect("an answer, not a cut");
                }
                open.push(attacker);
                victim.answers(20).await;
            }
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_strangers_make_room_for_callers() {
    let victim = Victim::guarded(&["server.connections_max=40"]).await;
    victim
        .bears("connections of strangers", async {
            let mut open = Vec::new();
            for _ in 0..rounds(80) {
                let mut stranger = Attacker::open(victim.address).await;
                // It may have had to go already.
                let _ = stranger.ask_shop(1, 10).await;
                open.push(stranger);
            }
            for _ in 0..3 {
                victim.answers_on(connect(victim.address), 1).await;
            }
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_call_is_no_work() {
    let victim = Victim::guarded(&["server.connection.first_call_timeout=500ms"]).await;
    victim
        .bears("a connection with a refused call", async {
            let mut stranger = Attacker::open(victim.address).await;
            stranger.ask_shop(1, 10).await.expect("sent");
            stranger.answered().await.expect("a refusal, not a cut");
            assert_eq!(stranger.end().await, Some(0), "it is told that it isn't wanted");
        })
        .await;
    victim.end().await;
}
