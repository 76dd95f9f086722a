//! A connection's bytes, watched on their way: floods are cut short, and whoever serves the connection learns when
//! something last happened.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Budget, DATA, HEADERS, Scan, is_overhead};
use crate::ends::Pulse;

/// GOAWAY with ENHANCE_YOUR_CALM (RFC 9113, 6.8): 28 bytes of payload, stream 0, whatever was begun may have been done.
const CALM_DOWN: &[u8] = b"\0\0\x1c\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\x0btoo_many_idle_frames";

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    pulse: Arc<Pulse>,
    inbound: Scan,
    outbound: Scan,
    budget: Budget,
    /// Whether anything was written.
    begun: bool,
}

impl<S> Guarded<S> {
    /// Watches `stream`, on which `preface` bytes come before the first frame. `overhead_max` frames that ask for nothing
    /// may come beyond those that go with answers.
    pub(super) fn new(stream: S, preface: usize, overhead_max: u32, pulse: Arc<Pulse>) -> Self {
        Self {
            stream,
            pulse,
            inbound: Scan::after(preface),
            outbound: Scan::after(0),
            budget: Budget::new(overhead_max),
            begun: false,
        }
    }

    /// Notes what was written.
    fn wrote<'a>(&mut self, written: &Poll<io::Result<usize>>, slices: impl Iterator<Item = &'a [u8]>) {
        let Poll::Ready(result) = written else {
            return self.pulse.note_blocked();
        };
        self.pulse.note_taken();
        self.begun = true;
        let mut left = *result.as_ref().unwrap_or(&0);
        let mut answers = 0;
        for slice in slices {
            let now = slice.get(..left.min(slice.len())).unwrap_or_default();
            left -= now.len();
            self.outbound.over(now, |kind, _| {
                answers += u32::from(matches!(kind, DATA | HEADERS))
            });
        }
        if answers > 0 {
            self.budget.answered(answers);
            self.pulse.note_work();
        }
    }
}

impl<S: AsyncWrite + Unpin> Guarded<S> {
    /// Tells the peer why, if it can be told at once.
    fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        if self.outbound.is_between() {
            // A peer that takes no bytes has only itself to ask.
            let _ = Pin::new(&mut self.stream).poll_write(cx, CALM_DOWN);
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let (mut overhead, mut work) = (0, false);
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.inbound.over(new, |kind, flags| {
            overhead += u32::from(is_overhead(kind, flags));
            work |= matches!(kind, DATA | HEADERS);
        });
        if work {
            self.pulse.note_work();
        }
        if overhead > 0 && !self.budget.spend(overhead) {
            self.say_goodbye(cx);
            return Poll::Ready(Err(io::Error::other(
                "the peer sent too many frames that ask for nothing",
            )));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
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
        // The HTTP/2 implementation asks before its first write which messages it shall copy behind their headers: those below
        // 256 bytes where it can write several slices, else those below 1 KiB. What isn't copied is written before the
        // trailers are even encoded: a second system call, a second packet, and a second wakeup of the client. So most
        // answers of one row are copied, and what is longer is written in slices all the same.
        self.begun && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn slices_are_written_after_the_first_bytes() {
        let (stream, _peer) = tokio::io::duplex(64);
        let mut guarded = Guarded::new(stream, 0, 1, Arc::new(Pulse::new()));
        assert!(!guarded.is_write_vectored());
        guarded.write_all(b"settings").await.expect("room for them");
        assert!(guarded.is_write_vectored());
    }
}
