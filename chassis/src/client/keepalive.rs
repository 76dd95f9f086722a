//! Moves what comes and goes on a connection, until it ends or its server falls silent.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection::KeepAlive;
use crate::gather::Gather;

/// When something last came.
#[derive(Debug)]
pub(super) struct LastHeard {
    began: Instant,
    /// In milliseconds since then.
    last: AtomicU64,
}

impl LastHeard {
    fn note(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn at(&self) -> Instant {
        self.began + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

/// A connection that is listened to.
#[derive(Debug)]
pub(super) struct Heard<T> {
    io: T,
    last: Arc<LastHeard>,
}

impl<T> Heard<T> {
    pub(super) fn new(io: T) -> (Self, Arc<LastHeard>) {
        let last = Arc::new(LastHeard {
            began: Instant::now(),
            last: AtomicU64::new(0),
        });
        let heard = Self {
            io,
            last: Arc::clone(&last),
        };
        (heard, last)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Heard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.last.note();
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Heard<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Moves what comes and goes on `connection` to its end. Dropped, its calls learn that it is lost.
pub(super) async fn drive<T>(
    mut connection: h2::client::Connection<Heard<T>, Bytes>,
    heard: Arc<LastHeard>,
    keepalive: KeepAlive,
    mut gather: Gather,
) where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let silent = silence(connection.ping_pong(), heard, keepalive);
    tokio::select! {
        biased;
        ended = poll_fn(|cx| gather.poll(cx, Pin::new(&mut connection))) => match ended {
            Ok(()) => tracing::debug!("a connection to a backend was closed"),
            Err(error) => tracing::debug!(%error, "a connection to a backend was lost"),
        },
        () = silent => tracing::debug!(?keepalive, "a connection to a backend is given up: no answer to a ping"),
    }
}

/// Returns when a ping has had no answer.
async fn silence(pings: Option<PingPong>, heard: Arc<LastHeard>, keepalive: KeepAlive) {
    let Some(mut pings) = pings else {
        // It is there when asked for the first time.
        return std::future::pending().await;
    };
    loop {
        let due = heard.at() + keepalive.interval;
        if Instant::now() < due {
            tokio::time::sleep_until(due).await;
            continue;
        }
        match tokio::time::timeout(keepalive.timeout, pings.ping(Ping::opaque())).await {
            // The answer was heard.
            Ok(Ok(_)) => heard.note(),
            // The connection has ended, and knows it.
            Ok(Err(_)) => return std::future::pending().await,
            Err(_) => return,
        }
    }
}
