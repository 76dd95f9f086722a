//! One connection of HTTP/2, as hyper speaks it. What comes and goes on it is moved by one task, which lets calls write together.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use super::bodies::Upload;
use crate::config::ClientConfig;
use crate::write_coalescing::WriteCoalescing;

/// Bytes of one answer that may be on the way. Enough for 500 MB a second over half a millisecond of network, and a caller that reads slowly
/// has no more than that kept here.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// Bytes of all answers that may be on the way: the most that HTTP/2 has. The answers of all callers share a connection: with less, the unread
/// answers of one would hold back those of all others. What is kept is bounded by the number of calls, each with its window.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// A connection that takes calls. The calls on it go on when it is dropped; it ends with the last of them.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Upload>,
    calls: TaskTracker,
}

impl Connection {
    /// Begins to speak HTTP/2 over `io`.
    ///
    /// # Errors
    /// When nothing can be sent. Whether the server speaks HTTP/2 is known later.
    pub(super) async fn open<T>(io: T, config: &ClientConfig) -> hyper::Result<Self>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let calls = TaskTracker::new();
        let tasks = Tasks {
            calls: calls.clone(),
            begun: Arc::default(),
        };
        let (sender, connection) = Builder::new(tasks)
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(config.keepalive_interval)
            .keep_alive_timeout(config.keepalive_timeout)
            .keep_alive_while_idle(true)
            // The calls of all callers share it, and what still comes for those that were given up is no error of its server.
            .max_local_error_reset_streams(None::<usize>)
            .handshake(TokioIo::new(io))
            .await?;
        tokio::spawn(async move {
            match connection.await {
                Ok(()) => tracing::debug!("a connection to a backend was closed"),
                Err(error) => tracing::debug!(%error, "a connection to a backend was lost"),
            }
        });
        Ok(Self { sender, calls })
    }

    /// Sends a call when the server allows one more stream, in the order that calls come.
    ///
    /// # Errors
    /// With the request where nothing of it was sent: the connection takes no more calls.
    pub(super) fn send(
        &self,
        request: Request<Upload>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Upload>>>> + use<> {
        // It counts until its answer begins.
        let under_way = self.calls.token();
        let answer = self.sender.clone().try_send_request(request);
        answer.inspect(move |_| drop(under_way))
    }
}

/// Spawns the tasks of a connection. The first is the one that moves its bytes.
#[derive(Clone, Debug)]
struct Tasks {
    calls: TaskTracker,
    begun: Arc<AtomicBool>,
}

impl<F> Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        if self.begun.swap(true, Ordering::Relaxed) {
            tokio::spawn(task);
            return;
        }
        let mut coalescing = WriteCoalescing::new(self.calls.clone());
        tokio::spawn(async move {
            let mut task = pin!(task);
            poll_fn(|cx| coalescing.poll(cx, task.as_mut())).await
        });
    }
}

#[cfg(test)]
mod tests;
