//! The accept loop and the connections it made.
//!
//! hyper is driven directly, not through `tonic::transport::Server`: that one applies `grpc-timeout` itself, with the
//! wrong code and before our layer could, and has no limit on connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::transport::server::TcpConnectInfo;
use tower::ServiceExt as _;

use super::Stack;
use crate::config::ServerConfig;

/// What every HTTP/2 client sends first (RFC 9113, 3.4).
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Time for a new connection to send its preface; a client that doesn't holds a place for nothing.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between looks at a preface that came in parts.
const PREFACE_PAUSE: Duration = Duration::from_millis(20);

/// Pause after an error of accept that won't go away by itself, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for a client without a call to hear that the connection ends; one that doesn't answer is hung up on.
const GOODBYE: Duration = Duration::from_secs(3);

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Calls that weren't finished in time and were cut off.
    pub calls_cut_off: usize,
}

/// Serves `stack` on `listener` until `stop`, then drains: NOT_SERVING, no new connections, no new calls, and at most
/// `calls_deadline` for the calls under way, streams among them. What is left then is cut off.
pub async fn serve(
    listener: TcpListener,
    stack: Stack,
    config: &ServerConfig,
    stop: impl Future<Output = ()> + Send,
    calls_deadline: Duration,
) -> Served {
    let connections = Connections::new(stack.clone(), config);
    {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = connections.accept(&listener) => {}
            }
        }
    }
    let deadline = Instant::now() + calls_deadline;
    stack.drain();
    // IMPORTANT: after the gate. A client whose connection is refused must not find another one with open calls.
    drop(listener);
    connections.finish(deadline, &stack).await
}

/// The open connections.
struct Connections {
    stack: Stack,
    http2: http2::Builder<TokioExecutor>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Ends connections after their calls.
    goaway: CancellationToken,
    /// Ends them now.
    abort: CancellationToken,
}

impl Connections {
    fn new(stack: Stack, config: &ServerConfig) -> Self {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.http2.streams_max)
            .max_pending_accept_reset_streams(config.http2.pending_reset_streams_max)
            .max_local_error_reset_streams(config.http2.local_error_reset_streams_max)
            .max_header_list_size(config.http2.header_list_bytes_max)
            .initial_stream_window_size(config.http2.stream_window_bytes)
            .initial_connection_window_size(config.http2.connection_window_bytes)
            .keep_alive_interval(config.keepalive_interval)
            .keep_alive_timeout(config.keepalive_timeout);
        Self {
            stack,
            http2: builder,
            places: Arc::new(Semaphore::new(config.connections_max.min(Semaphore::MAX_PERMITS))),
            tasks: TaskTracker::new(),
            goaway: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    /// Waits for a place and a connection, and starts serving it.
    async fn accept(&self, listener: &TcpListener) {
        // The semaphore is never closed; were it, no connection would be taken any more.
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, remote)) => {
                let connection = self.connection(stream, remote);
                self.tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted for now");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Serves one connection to its end.
    fn connection(&self, stream: TcpStream, remote: SocketAddr) -> impl Future<Output = ()> + use<> {
        let info = TcpConnectInfo {
            local_addr: stream.local_addr().ok(),
            remote_addr: Some(remote),
        };
        let (stack, http2) = (self.stack.clone(), self.http2.clone());
        let (goaway, abort) = (self.goaway.clone(), self.abort.clone());
        let serve = async move {
            // Small answers must not wait for the next one (Nagle's algorithm).
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY can't be set");
            }
            let preface = tokio::time::timeout(PREFACE_TIMEOUT, await_preface(&stream));
            let preface = tokio::select! {
                preface = preface => preface,
                () = goaway.cancelled() => return,
            };
            if !matches!(preface, Ok(Ok(true))) {
                tracing::debug!(%remote, "connection closed: it doesn't speak HTTP/2 (with prior knowledge)");
                return;
            }
            let service = service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(info.clone());
                let stack = stack.clone();
                async move { stack.oneshot(request.map(Body::new)).await as Result<_, Infallible> }
            });
            let mut connection = std::pin::pin!(http2.serve_connection(TokioIo::new(stream), service));
            let ended = tokio::select! {
                ended = &mut connection => ended,
                () = goaway.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%remote, %error, "connection failed");
            }
        };
        async move {
            abort.run_until_cancelled(serve).await;
        }
    }

    /// Ends all connections: after their calls until `deadline`, then at once.
    async fn finish(self, deadline: Instant, stack: &Stack) -> Served {
        self.tasks.close();
        self.goaway.cancel();
        let unused = async {
            stack.gate().drained().await;
            tokio::time::sleep(GOODBYE).await;
        };
        let calls_cut_off = tokio::select! {
            () = self.tasks.wait() => 0,
            () = unused => 0,
            () = tokio::time::sleep_until(deadline) => stack.gate().in_flight(),
        };
        self.abort.cancel();
        self.tasks.wait().await;
        Served { calls_cut_off }
    }
}

/// Does the connection begin as HTTP/2 does? Waits until that is known.
async fn await_preface(stream: &TcpStream) -> io::Result<bool> {
    let mut seen = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut seen).await?;
        if count == 0 || seen.get(..count) != PREFACE.get(..count) {
            return Ok(false);
        }
        if count == PREFACE.len() {
            return Ok(true);
        }
        tokio::time::sleep(PREFACE_PAUSE).await;
    }
}

/// Errors of accept that concern one connection only.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
