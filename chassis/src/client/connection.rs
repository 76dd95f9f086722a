//! One connection of HTTP/2, and the turn that calls take on it.
//!
//! Each call sends its own head, when the server allows one more stream: whoever has the turn waits for that, the others wait for
//! the turn, in their order and as long as they care to. What then comes and goes on the connection is moved by one task.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, MutexGuard};

use super::ended::Ended;
use super::keepalive::{self, Heard};
use crate::gather::{Calls, Gather, UnderWay};

/// What a server may send on one stream before it is read, in bytes.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// What it may send on all streams together, in bytes.
const CONNECTION_WINDOW: u32 = 5 * 1024 * 1024;

/// Largest frame that is taken, in bytes.
const FRAME_BYTES_MAX: u32 = 16 * 1024;

/// Largest head, or trailers, of an answer, in bytes, as HTTP/2 counts them.
const HEADERS_BYTES_MAX: u32 = 16 * 1024;

/// What a stream takes to be sent before it is, in bytes.
const SEND_BYTES_MAX: usize = 1024 * 1024;

/// Streams that are opened before the server has said how many it allows.
const STREAMS_AT_FIRST: usize = 100;

/// When a connection is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    /// Silence after which the server is pinged.
    pub(super) interval: Duration,
    /// Time for its answer.
    pub(super) timeout: Duration,
}

/// A connection that takes calls. The calls on it go on when it is dropped; it ends with the last of them.
#[derive(Debug)]
pub(super) struct Connection {
    /// Only one at a time: who waits for a stream to be opened must be the only one who does.
    sender: Mutex<SendRequest<Bytes>>,
    calls: Calls,
    ended: Ended,
}

impl Connection {
    /// Begins to speak HTTP/2 over `io`.
    ///
    /// # Errors
    /// When nothing can be sent. Whether the server speaks HTTP/2 is known later.
    pub(super) async fn open<T>(io: T, keepalive: KeepAlive) -> Result<Self, h2::Error>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (io, heard) = Heard::new(io);
        let (sender, connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME_BYTES_MAX)
            .max_header_list_size(HEADERS_BYTES_MAX)
            .max_send_buffer_size(SEND_BYTES_MAX)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .enable_push(false)
            .handshake(io)
            .await?;
        let calls = Calls::default();
        let gather = Gather::new(calls.clone());
        tokio::spawn(keepalive::drive(connection, heard, keepalive, gather));
        Ok(Self {
            sender: Mutex::new(sender),
            calls,
            ended: Ended::default(),
        })
    }

    /// Waits until one more call may be sent.
    ///
    /// # Errors
    /// When the connection takes no more calls: it is lost, or its server says so, or its streams are used up. Nothing was sent.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, h2::Error> {
        let mut sender = self.sender.lock().await;
        poll_fn(|cx| sender.poll_ready(cx)).await?;
        let ended = &self.ended;
        Ok(Turn { sender, ended })
    }

    /// Where the streams of its answers go when they have ended.
    pub(super) fn ended(&self) -> Ended {
        self.ended.clone()
    }

    /// Counts a call that is sent on it, until its answer begins.
    pub(super) fn begin(&self) -> UnderWay {
        self.calls.begin()
    }
}

/// The right to send one call.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    sender: MutexGuard<'a, SendRequest<Bytes>>,
    ended: &'a Ended,
}

impl Turn<'_> {
    /// Sends the head of a request; with `end` that is all of it.
    ///
    /// # Errors
    /// When the connection was lost just now, or a header can't be sent.
    pub(super) fn send(
        &mut self,
        head: Request<()>,
        end: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let sent = self.sender.send_request(head, end);
        self.ended.clear();
        sent
    }

    /// Gives the turn to the next, once the stream of what was sent is open: until then nobody else may wait for anything on it.
    pub(super) async fn pass(mut self) {
        // That the connection was lost is what the call itself will find.
        let _ = poll_fn(|cx| self.sender.poll_ready(cx)).await;
    }
}

#[cfg(test)]
mod tests;
