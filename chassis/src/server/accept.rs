//! The accept loop and the connections it made.
//!
//! hyper is driven directly, not through `tonic::transport::Server`: that one applies `grpc-timeout` itself, with the
//! wrong code and before our layer could, and has no limit on connections.

use std::future::poll_fn;
use std::io::ErrorKind::{self, ConnectionAborted, ConnectionRefused, ConnectionReset};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;

use super::body_timeout::Begins;
use super::crowd::{Crowd, Member};
use super::lifetime::{Due, Lifetime};
use super::lingering::{HTTP1_BYTES_MAX, HTTP2_BYTES_MAX, LingeringBody};
use super::stall::{Parts, Streams};
use super::watched::{PREFACE, Watched, peek};
use super::{Listener, Stack};
use crate::config::ServerConfig;
use crate::connection_info::ConnectionInfo;
use crate::layers::body::FollowedBody;
use crate::status::StatusBuilder;
use crate::telemetry::instrument::{meter, whole};
use crate::telemetry::instruments::CONNECTIONS;
use crate::tls::{Acceptor, TlsPeer};
use crate::workers::Workers;
use crate::write_coalescing::WriteCoalescing;

/// Errors of accept that concern one connection only.
const OF_ONE_CONNECTION: [ErrorKind; 3] = [ConnectionAborted, ConnectionReset, ConnectionRefused];

/// Pause after an error of accept that won't go away by itself, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the headers of a request of HTTP/1.1, from the end of the one before: an idle connection ends then, too.
const HTTP1_HEADERS_TIMEOUT: Duration = Duration::from_secs(10);

/// Least bytes that hyper reads the headers of HTTP/1.1 into.
const HTTP1_BUFFER_BYTES_MIN: usize = 8 * 1024;

/// Time for clients without calls to close their connections after GOAWAY, before these are cut.
const GOODBYE: Duration = Duration::from_secs(3);

/// Time for connections to end that were told to end at once.
const ABORT_MAX: Duration = Duration::from_millis(500);

/// How serving ended. Tasks that calls have spawned on worker threads run until this is dropped: keep it until what they use is closed.
#[derive(Debug)]
pub struct Served {
    /// Calls that weren't finished in time and were cut off.
    pub calls_cut_off: usize,
    _workers: Workers,
}

/// Serves `stack` on `listener` until `stop`, then drains: NOT_SERVING, no new connections, no new calls, and at most
/// `calls_deadline` for the calls under way, streams among them. What is left then is cut off.
pub async fn serve(
    listener: Listener,
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

/// What all connections have in common.
struct Shared {
    stack: Stack,
    http2: http2::Builder<Streams>,
    http1: http1::Builder,
    config: ServerConfig,
    /// Ends connections after their calls.
    goaway: CancellationToken,
    abort: CancellationToken,
}

struct Connections {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    workers: Workers,
    crowd: Crowd,
    tasks: TaskTracker,
}

impl Connections {
    fn new(stack: Stack, config: &ServerConfig) -> Self {
        let tasks = TaskTracker::new();
        let counted = tasks.clone();
        CONNECTIONS.observe(&meter(), move |now| now.observe(whole(counted.len()), &[]));
        let shared = Shared {
            stack,
            http2: http2_builder(config),
            http1: http1_builder(config),
            config: config.clone(),
            goaway: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
            places: Arc::new(Semaphore::new(config.connections_max.min(Semaphore::MAX_PERMITS))),
            workers: Workers::start(config.workers).unwrap_or_else(|error| {
                let count = config.workers;
                tracing::warn!(%error, count, "no threads for connections alone; all share those of the runtime");
                Workers::default()
            }),
            crowd: Crowd::new(
                config.connections_per_address_max,
                config.openings_max,
                config.opening_timeout,
            ),
            tasks,
        }
    }

    /// Waits for a place for one more connection. If there is none, the oldest stranger is evicted.
    async fn place(&self, newcomer: &Member) -> OwnedSemaphorePermit {
        if self.places.available_permits() == 0 {
            self.crowd.make_room(newcomer);
        }
        match Arc::clone(&self.places).acquire_owned().await {
            Ok(place) => place,
            // The semaphore is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a connection and a place, and starts serving it.
    async fn accept(&self, listener: &Listener) {
        match listener.tcp.accept().await {
            Ok((stream, remote)) => {
                let info = ConnectionInfo::new(stream.local_addr().ok(), remote);
                // The address's limit comes first: a connection that it refuses evicts no other.
                let Some(member) = self.crowd.enter(remote.ip(), &info.activity) else {
                    tracing::debug!(%remote, "connection closed: its address has too many");
                    return;
                };
                let place = self.place(&member).await;
                let connection = AcceptedConnection {
                    shared: Arc::clone(&self.shared),
                    member,
                    info,
                    // From now: waiting for a place doesn't count.
                    opening_deadline: Instant::now() + self.shared.config.opening_timeout,
                };
                let (tls, abort) = (listener.tls.clone(), self.shared.abort.clone());
                // Deregistered from this thread's runtime, to be registered with the worker's.
                let stream = stream.into_std();
                self.workers.spawn(&self.tasks, async move {
                    match stream.and_then(TcpStream::from_std) {
                        Ok(stream) => {
                            // Boxed, here and below: each enclosing future would reserve the size of the inner one again.
                            abort
                                .run_until_cancelled(Box::pin(connection.run(stream, tls)))
                                .await;
                        }
                        Err(error) => tracing::warn!(%error, %remote, "a connection can't be served"),
                    }
                    drop(place);
                });
            }
            Err(error) if OF_ONE_CONNECTION.contains(&error.kind()) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted for now");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Ends all connections: after their calls until `deadline`, then at once.
    async fn finish(self, deadline: Instant, stack: &Stack) -> Served {
        self.tasks.close();
        self.shared.goaway.cancel();
        let idle = async {
            stack.gate.drained().await;
            tokio::time::sleep(GOODBYE).await;
        };
        let calls_cut_off = tokio::select! {
            () = self.tasks.wait() => 0,
            () = idle => 0,
            () = tokio::time::sleep_until(deadline) => stack.gate.in_flight(),
        };
        self.shared.abort.cancel();
        // Bounded: tasks on a blocked thread, as in a read of a hung disk, never end.
        let _ = tokio::time::timeout(ABORT_MAX, self.tasks.wait()).await;
        Served {
            calls_cut_off,
            _workers: self.workers,
        }
    }
}

struct AcceptedConnection {
    shared: Arc<Shared>,
    member: Member,
    info: Arc<ConnectionInfo>,
    opening_deadline: Instant,
}

impl AcceptedConnection {
    fn remote(&self) -> SocketAddr {
        self.info.remote.socket
    }

    /// Serves the connection to its end; with TLS if there is `tls`.
    async fn run(self, stream: TcpStream, tls: Option<Acceptor>) {
        // Small answers must not wait for the next one (Nagle's algorithm).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY can't be set");
        }
        let Some(tls) = tls else {
            return Box::pin(self.serve_http(stream, None)).await;
        };
        let handshake = tls.accept(stream, self.shared.stack.http1);
        match self.within_opening(handshake).await {
            Some(Ok((stream, peer))) => Box::pin(self.serve_http(stream, Some(peer))).await,
            Some(Err(error)) => tracing::debug!(remote = %self.remote(), %error, "TLS handshake failed"),
            None => {}
        }
    }

    /// Runs a `step` of the handshake; `None` when its deadline passes, or the connection is evicted or drained before.
    async fn within_opening<T>(&self, step: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = step => Some(done),
            () = tokio::time::sleep_until(self.opening_deadline) => {
                tracing::debug!(remote = %self.remote(), "connection closed: it took too long to begin");
                None
            }
            () = self.member.evicted.cancelled() => {
                tracing::debug!(remote = %self.remote(), "connection closed: there are too many, and it is the oldest without a call");
                None
            }
            () = self.shared.goaway.cancelled() => None,
        }
    }

    /// Serves HTTP/2, or HTTP/1.1 if the stack takes it; the connection preface says which.
    async fn serve_http<S>(self, mut stream: S, peer: Option<TlsPeer>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Some(peeked) = self.within_opening(peek(&mut stream)).await else {
            return;
        };
        let (shared, info) = (&self.shared, Arc::clone(&self.info));
        let peeked = peeked.unwrap_or_default();
        let speaks_http2 = peeked == PREFACE[..];
        if peeked.is_empty() || !speaks_http2 && !shared.stack.http1 {
            tracing::debug!(remote = %self.remote(), "connection closed: it doesn't speak HTTP/2 (with prior knowledge)");
            return;
        }
        self.member.has_begun();
        let (lingering_max, overhead_max) = match speaks_http2 {
            true => (HTTP2_BYTES_MAX, Some(shared.config.http2.overhead_frames_max)),
            false => (HTTP1_BYTES_MAX, None),
        };
        let calls = TaskTracker::new();
        let coalescing = WriteCoalescing::new(calls.clone());
        let activity = Arc::clone(&info.activity);
        let lifetime = Lifetime::new(Arc::clone(&activity), &shared.config.connection, fastrand::f64());
        let (stack, body_timeout) = (shared.stack.clone(), shared.config.body_timeout);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(Arc::clone(&info));
            if let Some(peer) = &peer {
                extensions.insert(peer.clone());
            }
            let answer = stack.answer(request.map(|body| {
                let begins = Begins::within(body_timeout);
                let body = FollowedBody::new(body.map_err(broken_off), Some(begins));
                Body::new(LingeringBody::new(body, lingering_max))
            }));
            // It counts as under way until its answer begins.
            let under_way = calls.token();
            answer.map(move |answered| {
                drop(under_way);
                answered.map(|response| response.map(Parts::new))
            })
        });
        let stream = TokioIo::new(Watched::new(stream, peeked, overhead_max, activity));
        if speaks_http2 {
            let mut connection = Box::pin(shared.http2.serve_connection(stream, service));
            self.drive(connection.as_mut(), lifetime, coalescing).await;
        } else {
            let mut connection = Box::pin(shared.http1.serve_connection(stream, service));
            self.drive(connection.as_mut(), lifetime, coalescing).await;
        }
    }

    /// Drives `connection` until it ends, or is cut.
    async fn drive<C: GracefulConnection<Error = hyper::Error>>(
        self,
        mut connection: Pin<&mut C>,
        mut lifetime: Lifetime,
        mut coalescing: WriteCoalescing,
    ) {
        let remote = self.remote();
        let mut leaving = false;
        let ended = loop {
            tokio::select! {
                ended = poll_fn(|cx| coalescing.poll(cx, connection.as_mut())) => break ended,
                () = self.shared.goaway.cancelled(), if !leaving => {
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.member.evicted.cancelled() => {
                    tracing::debug!(%remote, "connection cut: there are too many, and it is the oldest without a call");
                    return;
                }
                due = lifetime.due() => match due {
                    Due::Leave(reason) => {
                        tracing::debug!(%remote, ?reason, "connection is asked to end");
                        connection.as_mut().graceful_shutdown();
                    }
                    Due::Cut(reason) => {
                        tracing::info!(%remote, reason, "connection cut");
                        return;
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%remote, %error, "connection failed");
        }
    }
}

fn http2_builder(config: &ServerConfig) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(Streams {
        stall_max: config.connection.answer_stall_max,
    });
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.http2.streams_max)
        .max_pending_accept_reset_streams(config.http2.pending_reset_streams_max)
        .max_local_error_reset_streams(config.http2.local_error_reset_streams_max)
        .max_frame_size(config.http2.frame_bytes_max)
        .max_send_buf_size(config.http2.send_buffer_bytes)
        .header_table_size(config.http2.header_table_bytes)
        .max_header_list_size(config.http2.header_list_bytes_max)
        .initial_stream_window_size(config.http2.stream_window_bytes)
        .initial_connection_window_size(config.http2.connection_window_bytes)
        .keep_alive_interval(config.keepalive_interval)
        .keep_alive_timeout(config.keepalive_timeout);
    builder
}

/// The limits of HTTP/1.1: one request at a time, its headers in time and as small as those of HTTP/2.
fn http1_builder(config: &ServerConfig) -> http1::Builder {
    let header_bytes = usize::try_from(config.http2.header_list_bytes_max).unwrap_or(usize::MAX);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP1_HEADERS_TIMEOUT)
        .max_buf_size(header_bytes.max(HTTP1_BUFFER_BYTES_MIN));
    builder
}

/// CANCELLED: the caller reset the stream, or the connection ended. Not a fault of the server's.
fn broken_off(error: hyper::Error) -> Status {
    let words = "the caller went away before the whole request was there";
    let status = StatusBuilder::new(tonic::Code::Cancelled, "CANCELLED", words);
    status.source(error).build()
}
