//! Watches the bytes of a connection: ends it when it is flooded with control frames, and notes its activity for its timers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{DATA, FrameScan, HEADERS, OverheadBudget, is_overhead};
use crate::connection_info::ConnectionActivity;

/// GOAWAY with ENHANCE_YOUR_CALM (RFC 9113, 6.8): 28 bytes of payload, stream 0, whatever was begun may have been done.
const CALM_DOWN: &[u8] = b"\0\0\x1c\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\x0btoo_many_idle_frames";

/// What every HTTP/2 client sends first (RFC 9113, 3.4).
pub(super) const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Peeks at the connection preface: the whole one of HTTP/2, the first bytes of another protocol, or nothing where the stream ends before
/// that is known. [`Watched`] replays the bytes to the protocol handler.
pub(super) async fn peek(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    use tokio::io::AsyncReadExt as _;
    let mut seen = [0; PREFACE.len()];
    let mut count = 0;
    while let Some(rest) = seen.get_mut(count..).filter(|rest| !rest.is_empty()) {
        let read = stream.read(rest).await?;
        count += read;
        let so_far = seen.get(..count).unwrap_or_default();
        if read == 0 {
            return Ok(Bytes::new());
        }
        if !PREFACE.starts_with(so_far) {
            return Ok(Bytes::copy_from_slice(so_far));
        }
    }
    Ok(Bytes::from_static(&PREFACE))
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    /// The peeked bytes, to be replayed before the stream's.
    peeked: Bytes,
    activity: Arc<ConnectionActivity>,
    /// `None` for HTTP/1.1, where one request is answered before the next is read: all bytes are work, and there is nothing to flood with.
    guard: Option<FloodGuard>,
}

#[derive(Debug)]
struct FloodGuard {
    inbound: FrameScan,
    outbound: FrameScan,
    budget: OverheadBudget,
    /// Whether anything was written to the peer yet.
    has_written: bool,
}

impl<S> Watched<S> {
    /// A connection that begins with the `peeked` bytes. Of HTTP/2 these are its preface, and the peer may send `overhead_max` frames of overhead
    /// beyond those that its responses and the time allow; of HTTP/1.1 there is no such limit.
    pub(super) fn new(
        stream: S,
        peeked: Bytes,
        overhead_max: Option<u32>,
        activity: Arc<ConnectionActivity>,
    ) -> Self {
        let guard = overhead_max.map(|overhead_max| FloodGuard {
            inbound: FrameScan::after(peeked.len()),
            outbound: FrameScan::after(0),
            budget: OverheadBudget::new(overhead_max),
            has_written: false,
        });
        Self {
            stream,
            peeked,
            activity,
            guard,
        }
    }

    fn wrote<'a>(&mut self, written: &Poll<io::Result<usize>>, slices: impl Iterator<Item = &'a [u8]>) {
        let Poll::Ready(result) = written else {
            return self.activity.note_blocked();
        };
        self.activity.note_taken();
        let Some(guard) = &mut self.guard else {
            return self.activity.note_work();
        };
        guard.has_written = true;
        let mut left = *result.as_ref().unwrap_or(&0);
        let mut answers = 0;
        for slice in slices {
            let now = slice.get(..left.min(slice.len())).unwrap_or_default();
            left -= now.len();
            guard.outbound.over(now, |kind, _| {
                answers += u32::from(matches!(kind, DATA | HEADERS))
            });
        }
        if answers > 0 {
            guard.budget.answered(answers);
            self.activity.note_work();
        }
    }

    /// Notes what was read; false when its overhead is beyond the budget.
    fn read(&mut self, bytes: &[u8]) -> bool {
        let (mut overhead, mut work) = (0, !bytes.is_empty() && self.guard.is_none());
        if let Some(guard) = &mut self.guard {
            guard.inbound.over(bytes, |kind, flags| {
                overhead += u32::from(is_overhead(kind, flags));
                work |= matches!(kind, DATA | HEADERS);
            });
        }
        if work {
            self.activity.note_work();
        }
        let guard = self.guard.as_mut().filter(|_| overhead > 0);
        guard.is_none_or(|guard| guard.budget.spend(overhead))
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    /// Sends a GOAWAY with the reason, if it can be written at once between two frames.
    fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        let guard = self.guard.as_ref();
        if guard.is_some_and(|guard| guard.outbound.is_between()) {
            // A peer that takes no bytes isn't waited for.
            let _ = Pin::new(&mut self.stream).poll_write(cx, CALM_DOWN);
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.peeked.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        } else {
            let length = self.peeked.len().min(buffer.remaining());
            buffer.put_slice(&self.peeked.split_to(length));
        }
        if self.read(buffer.filled().get(before..).unwrap_or_default()) {
            return Poll::Ready(Ok(()));
        }
        self.say_goodbye(cx);
        let message = "the peer sent too many frames that ask for nothing";
        Poll::Ready(Err(io::Error::other(message)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(&written, std::iter::once(bytes));
        written
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(&written, slices.iter().map(|slice| &**slice));
        written
    }

    fn is_write_vectored(&self) -> bool {
        // h2 asks once, before its first write, to choose the messages that it copies behind their headers: below 256 bytes with
        // vectored writes, else below 1 KiB. A message that isn't copied is written before its trailers are encoded: a second system
        // call, packet and wakeup of the client. So most responses of one row are copied; longer ones are still written vectored.
        self.guard.as_ref().is_none_or(|guard| guard.has_written) && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn slices_are_written_after_the_first_bytes() {
        let (stream, _peer) = tokio::io::duplex(64);
        let mut watched = Watched::new(stream, Bytes::new(), Some(1), Arc::new(ConnectionActivity::new()));
        assert!(!watched.is_write_vectored());
        watched.write_all(b"settings").await.expect("room for them");
        assert!(watched.is_write_vectored());
    }
}
