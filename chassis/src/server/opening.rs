//! The beginning of a connection: TLS and the HTTP/2 preface, within a time, and not for too many at once.
//!
//! A connection that never gets through its beginning costs its client nothing. So there is room for a few of them, and
//! who comes when the room is full takes the place of the oldest: honest clients are through in a few round trips.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// What every HTTP/2 client sends first (RFC 9113, 3.4).
pub(super) const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The connections that are being opened. Clones share the room.
#[derive(Clone, Debug)]
pub(super) struct Openings {
    max: usize,
    room: Arc<Mutex<Room>>,
}

#[derive(Debug, Default)]
struct Room {
    next: u64,
    /// By age, oldest first.
    open: BTreeMap<u64, CancellationToken>,
}

impl Openings {
    /// Room for `max`; at least for one.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            room: Arc::default(),
        }
    }

    /// A place for one more, and the oldest loses its own if there is none.
    pub(super) fn enter(&self) -> Opening {
        let pushed_out = CancellationToken::new();
        let mut room = self.room.lock();
        while room.open.len() >= self.max {
            if let Some((_, oldest)) = room.open.pop_first() {
                oldest.cancel();
            }
        }
        let id = room.next;
        room.next += 1;
        room.open.insert(id, pushed_out.clone());
        Opening {
            id,
            pushed_out,
            room: Arc::clone(&self.room),
        }
    }
}

/// A place among the [`Openings`], given back when dropped.
#[derive(Debug)]
pub(super) struct Opening {
    id: u64,
    pushed_out: CancellationToken,
    room: Arc<Mutex<Room>>,
}

impl Opening {
    /// Completes when a newer one took the place.
    pub(super) async fn pushed_out(&self) {
        self.pushed_out.cancelled().await;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.room.lock().open.remove(&self.id);
    }
}

/// Reads as much of `stream` as says how it begins. The stream has it again for whoever serves it.
pub(super) async fn begin<S: AsyncRead + Unpin>(mut stream: S) -> io::Result<Beginning<S>> {
    let mut seen = [0; PREFACE.len()];
    let mut count = 0;
    while count < PREFACE.len() {
        let Some(rest) = seen.get_mut(count..) else { break };
        let read = stream.read(rest).await?;
        count += read;
        let so_far = seen.get(..count).unwrap_or_default();
        if read == 0 {
            return Ok(Beginning::Nothing);
        }
        if Some(so_far) != PREFACE.get(..count) {
            let again = Bytes::copy_from_slice(so_far);
            return Ok(Beginning::Other(Begun { again, stream }));
        }
    }
    let again = Bytes::from_static(&PREFACE);
    Ok(Beginning::Http2(Begun { again, stream }))
}

/// How a connection begins.
#[derive(Debug)]
pub(super) enum Beginning<S> {
    /// With the preface.
    Http2(Begun<S>),
    /// With something else.
    Other(Begun<S>),
    /// It ended before that was known.
    Nothing,
}

/// A connection whose first bytes are read once more.
#[derive(Debug)]
pub(super) struct Begun<S> {
    /// Those that are still to come again.
    again: Bytes,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.again.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let length = self.again.len().min(buffer.remaining());
        buffer.put_slice(&self.again.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
