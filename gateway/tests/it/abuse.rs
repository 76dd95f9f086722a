//! Clients that mean harm, in raw frames, against the gateway as a process: each is ended or borne, while others are
//! answered and no memory is lost to it.
//!
//! Short by default; `SOUK_LONG=1` sends twenty times as much.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::abuse::attacker::{
    Attacker, CONTINUATION, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, frame, request, settings,
};
use crate::abuse::victim::Victim;
use crate::setting::{connect, shop_request};

mod attacker;
mod crowding;
mod elsewhere;
mod victim;

/// GOAWAY codes (RFC 9113, 7).
const PROTOCOL_ERROR: u32 = 1;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// How often what is done `short` times in the short form is done in this run.
fn rounds(short: u32) -> u32 {
    if is_long() { short * 20 } else { short }
}

fn is_long() -> bool {
    std::env::var_os("SOUK_LONG").is_some()
}

/// Rounds on one connection, far beyond what is borne.
const ROUNDS: u32 = 20_000;

/// Sends what `round` makes of each number until it is cut off, again and again; the last GOAWAY's code, if one arrived.
async fn flood(address: SocketAddr, round: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut code = None;
    for _ in 0..rounds(50) {
        let mut attacker = Attacker::open(address).await;
        for batch in 0..ROUNDS / 100 {
            let bytes: Vec<u8> = (batch * 100..batch * 100 + 100).flat_map(&round).collect();
            if attacker.send(&bytes).await.is_err() {
                break;
            }
        }
        code = attacker.end().await;
        assert!(
            matches!(
                code,
                None | Some(PROTOCOL_ERROR | COMPRESSION_ERROR | ENHANCE_YOUR_CALM)
            ),
            "{code:?}"
        );
    }
    code
}

/// Floods end with a word or without: a socket that is closed with bytes unread may lose the word on the way.
fn assert_calmed(code: Option<u32>) {
    assert!(matches!(code, None | Some(ENHANCE_YOUR_CALM)), "{code:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_are_cut_short_while_others_are_answered() {
    let victim = Victim::start(&[]).await;
    let header = request("/souk.shop.v1.ShopService/GetShop");
    victim
        .bears("rapid reset", async {
            let code = flood(victim.address, |number| {
                let stream = 2 * number + 1;
                let mut bytes = frame(HEADERS, 0x4, stream, &header);
                bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
                bytes
            });
            assert_calmed(code.await);
        })
        .await;
    victim
        .bears("pings", async {
            assert_calmed(flood(victim.address, |_| frame(PING, 0, 0, &[7; 8])).await);
        })
        .await;
    victim
        .bears("settings", async {
            assert_calmed(flood(victim.address, |_| frame(SETTINGS, 0, 0, &[])).await);
        })
        .await;
    victim
        .bears("priorities", async {
            let code = flood(victim.address, |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 9]));
            assert_calmed(code.await);
        })
        .await;
    victim
        .bears("continuations", async {
            let code = flood(victim.address, |number| match number {
                0 => frame(HEADERS, 0, 1, &header),
                // A header that isn't finished, and is never to be.
                _ => frame(CONTINUATION, 0, 1, &[0; 64]),
            });
            code.await;
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_grow_when_unpacked_are_refused() {
    let victim = Victim::start(&[]).await;
    victim
        .bears("an HPACK bomb", async {
            let mut attacker = Attacker::open(victim.address).await;
            // One entry of 3,900 bytes for the table, then references to it of one byte each.
            let mut seed = request("/souk.shop.v1.ShopService/GetShop");
            seed.extend([0x40, 1, b'x', 0x7f]);
            seed.extend([0xbd, 0x1d]); // 3,900 − 127 as HPACK's integer
            seed.extend([b'a'; 3_900]);
            let bomb = vec![0xbe; 15_000];
            let mut sent = attacker.send(&frame(HEADERS, 0x5, 1, &seed)).await;
            for number in 1..rounds(50) {
                if sent.is_err() {
                    break;
                }
                sent = attacker.send(&frame(HEADERS, 0x5, 2 * number + 1, &bomb)).await;
            }
            attacker.hang_up().await;
        })
        .await;
    victim.end().await;
}

/// A connection that sends nothing is ended by the other side.
async fn ended(mut stream: TcpStream) {
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    // Whether it is closed or reset.
    let _ = end.expect("the connection is ended in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connections_make_room() {
    let victim = Victim::start(&["server.openings_max=64", "server.opening_timeout=60s"]).await;
    victim
        .bears("half-open connections", async {
            let mut open = Vec::new();
            for _ in 0..rounds(400) {
                open.push(TcpStream::connect(victim.address).await.expect("a connection"));
            }
            let newest = open.split_off(open.len() - 64);
            for stream in open {
                ended(stream).await;
            }
            assert!(victim.descriptors() < 250, "{} descriptors", victim.descriptors());
            drop(newest);
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_begin_slowly_are_ended() {
    let settings = [
        "server.opening_timeout=500ms",
        "server.connection.first_call_timeout=500ms",
    ];
    let victim = Victim::start(&settings).await;
    victim
        .bears("a half-open connection", async {
            ended(TcpStream::connect(victim.address).await.expect("a connection")).await;
        })
        .await;
    victim
        .bears("a preface that never ends", async {
            let stream = TcpStream::connect(victim.address).await.expect("a connection");
            let mut attacker = Attacker::of(stream);
            attacker.send(b"PRI * HTTP").await.expect("sent");
            attacker.end().await;
        })
        .await;
    victim
        .bears("a connection without a call", async {
            // It is told that it isn't wanted, not just cut.
            assert_eq!(Attacker::open(victim.address).await.end().await, Some(0));
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_no_bytes_is_cut_off() {
    let victim = Victim::start(&["server.connection.write_stall_max=500ms"]).await;
    victim
        .bears("a client that never reads", async {
            let mut attacker = Attacker::unread(victim.address).await;
            // All windows as wide as can be, and then answers that nobody takes.
            attacker
                .send(
                    &[
                        settings(4, 0x7fff_ffff),
                        frame(8, 0, 0, &0x7fff_0000_u32.to_be_bytes()),
                    ]
                    .concat(),
                )
                .await
                .expect("sent");
            let sent: io::Result<()> = async {
                for number in 0..rounds(400) {
                    attacker.ask_shop(2 * number + 1, 30_000).await?;
                    if number % 50 == 49 {
                        // Requests are paced as a client that reads would: only the answers are too many.
                        victim.answers(20).await;
                    }
                }
                Ok(())
            }
            .await;
            // Cut off while it still asks, or later.
            drop(sent);
            attacker.end().await;
        })
        .await;
    victim
        .bears("a client whose windows are shut", async {
            let mut attacker = Attacker::open(victim.address).await;
            attacker.send(&settings(4, 0)).await.expect("sent");
            for number in 0..200 {
                attacker.ask_shop(2 * number + 1, 100).await.expect("sent");
            }
            victim.answers(100).await;
            attacker.hang_up().await;
        })
        .await;
    victim.end().await;
}

/// Who comes when there is no room waits until others have gone; nobody who is in notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descriptors_run_out_and_come_back() {
    const DESCRIPTORS: u32 = 256;
    /// Connections that nobody accepts: fewer than the least backlog that a system gives, so that all are made.
    const WAITING: u32 = 64;
    let victim = Victim::limited(DESCRIPTORS).await;
    let most = usize::try_from(DESCRIPTORS).expect("a number");
    victim
        .bears("more connections than descriptors", async {
            let mut open = Vec::new();
            for _ in 0..rounds(1) {
                for _ in 0..DESCRIPTORS + WAITING {
                    open.push(Attacker::open(victim.address).await);
                }
                // All are taken: accept has nothing more to give, and goes on trying.
                while victim.descriptors() < most {
                    victim.answers(1).await;
                }
                victim.answers(200).await;
                for attacker in open.drain(..) {
                    attacker.hang_up().await;
                }
                while victim.descriptors() >= most / 2 {
                    victim.answers(1).await;
                }
            }
        })
        .await;
    let mut shops = ShopServiceClient::new(connect(victim.address));
    let asked = tokio::time::timeout(PATIENCE, shops.get_shop(shop_request("h1")));
    asked.await.expect("room again").expect("a shop");
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_no_bytes_of_http1_is_cut_off() {
    let victim = Victim::start(&["server.connection.write_stall_max=500ms"]).await;
    victim
        .bears("a client of HTTP/1.1 that never reads", async {
            let id = "x".repeat(4_000);
            let request = format!("GET /v1/shops/{id} HTTP/1.1\r\nhost: localhost\r\n\r\n");
            for _ in 0..rounds(1) {
                let socket = TcpSocket::new_v4().expect("a socket");
                socket.set_recv_buffer_size(4096).expect("a small buffer");
                let mut stream = socket.connect(victim.address).await.expect("a connection");
                // The answer has the id, too: more and more bytes that nobody takes.
                let flood = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
                tokio::time::timeout(PATIENCE, flood)
                    .await
                    .expect("it is cut off in time");
            }
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_http1_end_by_age_and_no_call_with_them() {
    let victim = Victim::start(&["server.connection.age_max=500ms"]).await;
    let stream = TcpStream::connect(victim.address).await.expect("a connection");
    let mut stream = BufReader::new(stream);
    let (mut calls, mut last) = (0, false);
    let asked = async {
        while !last {
            let request = b"GET /v1/shops/h1 HTTP/1.1\r\nhost: localhost\r\n\r\n";
            if stream.get_mut().write_all(request).await.is_err() {
                break;
            }
            let (mut line, mut length) = (String::new(), 0);
            // Between two calls it may be gone: that is an end in order, too.
            if !matches!(stream.read_line(&mut line).await, Ok(bytes) if bytes > 0) {
                break;
            }
            assert!(line.starts_with("HTTP/1.1 200"), "{line}");
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).await.expect("a header");
                let header = line.to_ascii_lowercase();
                last |= header.starts_with("connection: close");
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.expect("the whole answer");
            calls += 1;
        }
        // Nothing comes after what was called the last.
        let mut more = Vec::new();
        let _ = stream.read_to_end(&mut more).await;
        assert!(more.is_empty(), "{more:?}");
    };
    tokio::time::timeout(PATIENCE, asked)
        .await
        .expect("it ends by age");
    assert!(calls > 0, "calls were answered before");
    victim.end().await;
}

/// A client that does nothing wrong, again and again: what is left of each would add up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_and_go_leave_nothing() {
    let victim = Victim::start(&[]).await;
    let before = victim.descriptors();
    victim
        .bears("connections that come and go", async {
            for number in 0..rounds(2_500) {
                let mut attacker = Attacker::open(victim.address).await;
                if number % 2 == 0 {
                    attacker.ask_shop(1, 100).await.expect("sent");
                    attacker.answered().await.expect("an answer, not a cut");
                }
                attacker.hang_up().await;
            }
            while victim.descriptors() > before + 10 {
                victim.answers(1).await;
            }
        })
        .await;
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_none_are_refused_with_words() {
    let victim = Victim::start(&[]).await;
    let cases: [(&str, Vec<u8>); 4] = [
        ("4 GiB by its prefix", vec![0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
        ("bytes that are no message", vec![0, 0, 0, 0, 3, 0xff, 0xff, 0xff]),
        ("another type of field", vec![0, 0, 0, 0, 2, 0x08, 7]),
        ("an unknown compression flag", vec![7, 0, 0, 0, 1, 0]),
    ];
    for (what, message) in cases {
        victim
            .bears(what, async {
                let mut attacker = Attacker::open(victim.address).await;
                attacker.ask_raw(1, &message).await.expect("sent");
                attacker.answered().await.expect("an answer, not a cut");
                attacker.hang_up().await;
            })
            .await;
    }
    victim.end().await;
}

/// A body of JSON that takes a hundred times its bytes once it is read, in one request of HTTP/1.1.
fn json_of_objects() -> Vec<u8> {
    let objects = r#"{"bool":{}},"#.repeat(345_000);
    let body = format!(r#"{{"search":{{"query":{{"bool":{{"must":[{objects}{{}}]}}}}}}}}"#);
    let head = format!(
        "POST /v1/shops:search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_takes_a_hundred_times_its_bytes_is_refused_before_it_is_read() {
    let victim = Victim::start(&[]).await;
    let request = json_of_objects();
    victim
        .bears("JSON of objects", async {
            for _ in 0..rounds(5) {
                let mut stream = TcpStream::connect(victim.address).await.expect("a connection");
                stream.write_all(&request).await.expect("sent");
                let mut line = String::new();
                let mut answer = BufReader::new(stream);
                let read = tokio::time::timeout(PATIENCE, answer.read_line(&mut line)).await;
                read.expect("an answer in time").expect("an answer");
                assert!(line.starts_with("HTTP/1.1 429"), "{line}");
            }
        })
        .await;
    victim.end().await;
}

/// Time for a thing that has to come.
const PATIENCE: Duration = Duration::from_secs(30);
