//! A client in raw frames.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::PATIENCE;
use crate::setting::shop_request;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame (RFC 9113, 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a short payload")
        .to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// SETTINGS with one of them.
pub(crate) fn settings(name: u16, value: u32) -> Vec<u8> {
    let payload = [name.to_be_bytes().to_vec(), value.to_be_bytes().to_vec()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

/// The headers of a call, compressed by HPACK's static table alone.
pub(crate) fn request(path: &str) -> Vec<u8> {
    let short = |text: &str| u8::try_from(text.len()).expect("a short text");
    // POST, http, then :path, :authority and content-type by their names' indexes, te in full; none is kept.
    let mut block = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x04][..], path),
        (&[0x01], "localhost"),
        (&[0x0f, 0x10], "application/grpc"),
        (&[0x00, 2, b't', b'e'], "trailers"),
    ] {
        block.extend(name);
        block.push(short(value));
        block.extend(value.as_bytes());
    }
    block
}

/// A header that isn't in HPACK's table.
pub(crate) fn header(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0];
    for text in [name, value] {
        block.push(u8::try_from(text.len()).expect("a short text"));
        block.extend(text.as_bytes());
    }
    block
}

/// A message that asks for a shop with an id of so many bytes.
pub(crate) fn shop_message(bytes: usize) -> Vec<u8> {
    let message = shop_request(&"x".repeat(bytes)).encode_to_vec();
    let length = u32::try_from(message.len()).expect("a short message");
    [&[0][..], &length.to_be_bytes(), &message].concat()
}

/// One connection, and what comes back on it.
pub(crate) struct Attacker {
    write: OwnedWriteHalf,
    /// The code of a GOAWAY, if one came before the end.
    read: JoinHandle<Option<u32>>,
    answered: Arc<Notify>,
    unread: Option<OwnedReadHalf>,
}

impl Attacker {
    /// A connection that begins as it should.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut attacker = Self::of(stream);
        attacker.begin().await;
        attacker
    }

    /// The same, but it never reads.
    pub(crate) async fn unread(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let stream = socket.connect(address).await.expect("a connection");
        let (read, write) = stream.into_split();
        let mut attacker = Self {
            write,
            read: tokio::spawn(async { None }),
            answered: Arc::default(),
            unread: Some(read),
        };
        attacker.begin().await;
        attacker
    }

    /// A connection on which nothing was sent.
    pub(crate) fn of(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        let answered = Arc::new(Notify::new());
        Self {
            write,
            read: tokio::spawn(follow(read, Arc::clone(&answered))),
            answered,
            unread: None,
        }
    }

    async fn begin(&mut self) {
        let preface = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(SETTINGS, 0, 0, &[]),
        ]
        .concat();
        self.send(&preface).await.expect("sent");
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        tokio::time::timeout(PATIENCE, self.write.write_all(bytes))
            .await
            .expect("what isn't taken is cut off in time")
    }

    /// Asks for a shop with an id of so many bytes; the answer has it too.
    pub(crate) async fn ask_shop(&mut self, stream: u32, bytes: usize) -> io::Result<()> {
        self.ask_raw(stream, &shop_message(bytes)).await
    }

    /// Asks with these bytes.
    pub(crate) async fn ask_raw(&mut self, stream: u32, body: &[u8]) -> io::Result<()> {
        self.ask_with(stream, &request("/souk.shop.v1.ShopService/GetShop"), body)
            .await
    }

    /// Asks with these headers and bytes.
    pub(crate) async fn ask_with(&mut self, stream: u32, headers: &[u8], body: &[u8]) -> io::Result<()> {
        let mut bytes = frame(HEADERS, END_HEADERS, stream, headers);
        for part in body.chunks(16 * 1024) {
            bytes.extend(frame(DATA, 0, stream, part));
        }
        bytes.extend(frame(DATA, END_STREAM, stream, &[]));
        self.send(&bytes).await
    }

    /// Waits for the headers of an answer; `None` when the connection ended before.
    pub(crate) async fn answered(&mut self) -> Option<()> {
        let answered = Arc::clone(&self.answered);
        tokio::time::timeout(PATIENCE, async {
            tokio::select! {
                () = answered.notified() => Some(()),
                _ = &mut self.read => None,
            }
        })
        .await
        .expect("one of them in time")
    }

    /// Waits until the server ends the connection; the code of its GOAWAY, if it arrived.
    pub(crate) async fn end(mut self) -> Option<u32> {
        // Bytes that nobody takes any more tell of an end as well as those that don't come.
        let cut = async {
            while self.unread.is_some() && self.send(&frame(PING, 1, 0, &[0; 8])).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, cut)
            .await
            .expect("the connection is ended in time");
        let read = tokio::time::timeout(PATIENCE, self.read).await;
        read.expect("the connection is ended in time").expect("no panic")
    }

    /// Ends the connection.
    pub(crate) async fn hang_up(self) {
        self.read.abort();
    }
}

/// Reads to the end, and remembers the last GOAWAY.
async fn follow(mut read: OwnedReadHalf, answered: Arc<Notify>) -> Option<u32> {
    let mut code = None;
    loop {
        let mut header = [0; 9];
        if read.read_exact(&mut header).await.is_err() {
            return code;
        }
        let [a, b, c, kind, ..] = header;
        let length = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        if read.read_exact(&mut payload).await.is_err() {
            return code;
        }
        match kind {
            GOAWAY => {
                code = payload
                    .get(4..8)
                    .and_then(|code| Some(u32::from_be_bytes(code.try_into().ok()?)))
            }
            HEADERS => answered.notify_one(),
            _ => {}
        }
    }
}
