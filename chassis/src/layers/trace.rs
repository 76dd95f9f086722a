//! A span for each call, from its first byte to its trailers, and one log line for each call that failed.
//!
//! Names and attributes follow the RPC conventions of OpenTelemetry (semantic-conventions `docs/rpc`, release
//! candidate): the span is named by `rpc.method`, an RPC that doesn't exist is `_OTHER` with its name in
//! `rpc.method_original`. A server span is an error only for the six codes that are the server's fault; a client span
//! is one for every code but OK.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};

use http::{Request, Response, Uri};
use opentelemetry::Context;
use opentelemetry::trace::{SpanKind, TraceContextExt};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tonic::Code;
use tonic::body::Body;
use tonic::transport::server::TcpConnectInfo;
use tower::{Layer, Service};
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::deadline::Deadline;
use super::outcome::{Observer, Outcome, Watch};
use super::{Inner, ResponseFuture};
use crate::methods::Methods;
use crate::propagate;
use crate::telemetry::{Role, TracePlace, sampling};
use crate::tls::TlsPeer;

/// `rpc.method` of what no descriptor knows.
pub const METHOD_OTHER: &str = "_OTHER";

/// Longest `rpc.method_original`, in bytes.
const ORIGINAL_BYTES_MAX: usize = 128;

/// Which end of the call this is.
#[derive(Clone, Debug)]
enum Side {
    /// We answer: takes the caller's context from the headers.
    Server,
    /// We ask: gives our context in the headers.
    Client(Arc<Peer>),
}

/// Where a client's calls go.
#[derive(Clone, Debug)]
struct Peer {
    host: String,
    port: Option<u16>,
}

/// Traces calls. See the [module](self).
#[derive(Clone, Debug)]
pub struct TraceLayer {
    side: Side,
    methods: Methods,
    /// Of the service whose layer this is; its spans, and those below, are the role's.
    role: Option<Role>,
}

impl TraceLayer {
    /// SERVER spans for the RPCs in `methods`, of the role in whose scope this is called.
    pub fn server(methods: Methods) -> Self {
        Self {
            side: Side::Server,
            methods,
            role: Role::current(),
        }
    }

    /// CLIENT spans for calls to `peer`. For a peer in this process, any URI that names it.
    pub fn client(methods: Methods, peer: &Uri) -> Self {
        let peer = Peer {
            host: peer.host().unwrap_or_default().to_owned(),
            port: peer.port_u16(),
        };
        Self {
            side: Side::Client(Arc::new(peer)),
            methods,
            role: None,
        }
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Trace<S> {
        Trace {
            inner,
            layer: self.clone(),
        }
    }
}

/// See [`TraceLayer`].
#[derive(Clone, Debug)]
pub struct Trace<S> {
    inner: S,
    layer: TraceLayer,
}

impl<S: Inner> Service<Request<Body>> for Trace<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> ResponseFuture {
        match &self.layer.side {
            Side::Server => self.serve(request),
            Side::Client(_) => {
                if let TracePlace::Unrecorded(context) = TracePlace::current() {
                    // The call it is made for isn't recorded: it hands on the same ids.
                    propagate::inject(&context, request.headers_mut());
                    return Box::pin(self.inner.call(request));
                }
                self.ask(request)
            }
        }
    }
}

impl<S: Inner> Trace<S> {
    fn serve(&mut self, request: Request<Body>) -> ResponseFuture {
        let place = self.layer.begin(&request);
        let watch = Watch::new(Call {
            place: place.clone(),
            server: true,
            entered: true,
            started: Instant::now(),
        });
        let answer = place.in_scope(|| self.inner.call(request));
        Box::pin(InItsPlace::new(place, watched(answer, watch)))
    }

    fn ask(&mut self, mut request: Request<Body>) -> ResponseFuture {
        // A client only passes the work on: within another span, whose trace it belongs to, nothing comes of entering its own.
        let entered = !Context::map_current(TraceContextExt::has_active_span);
        let place = TracePlace::Span(self.layer.ask(&mut request));
        let call = Call {
            place: place.clone(),
            server: false,
            entered,
            started: Instant::now(),
        };
        let watch = Watch::within(call, Deadline::of(&request));
        if !entered {
            return Box::pin(watched(self.inner.call(request), watch));
        }
        let answer = place.in_scope(|| self.inner.call(request));
        Box::pin(InItsPlace::new(place, watched(answer, watch)))
    }
}

/// The answer, whose end `watch` is told.
async fn watched(
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
    watch: Watch<Call>,
) -> Result<Response<Body>, Infallible> {
    let response = answer.await?;
    Ok(watch.follow(response))
}

impl TraceLayer {
    /// Where the work on a call belongs in the caller's trace.
    fn begin(&self, request: &Request<Body>) -> TracePlace {
        let parent = propagate::extract(request.headers());
        let parent = match self.role {
            Some(role) => parent.with_value(role),
            None => parent,
        };
        let method = self.method(request);
        if let Some(context) = sampling::unrecorded(&parent, method, &SpanKind::Server) {
            return TracePlace::Unrecorded(context);
        }
        let span = span(method, "server", request);
        if let Some(connection) = request.extensions().get::<TcpConnectInfo>() {
            record_address(&span, ["server.address", "server.port"], connection.local_addr);
            record_address(
                &span,
                ["network.peer.address", "network.peer.port"],
                connection.remote_addr,
            );
        }
        if let Some(peer) = request.extensions().get::<TlsPeer>() {
            span.record("tls.protocol.version", peer.version);
            if let Some(name) = &peer.name {
                span.record("souk.peer.name", &**name);
            }
        }
        // Fails only where no OpenTelemetry layer listens, and then there is no parent to set.
        let _ = span.set_parent(parent);
        // Begins it, under the id that its sampler has seen.
        let _ = span.context();
        TracePlace::Span(span)
    }

    /// The span of a call to another process, which is told of it.
    fn ask(&self, request: &mut Request<Body>) -> Span {
        let span = span(self.method(request), "client", request);
        if let Side::Client(peer) = &self.side {
            span.record("server.address", peer.host.as_str());
            if let Some(port) = peer.port {
                span.record("server.port", port);
            }
        }
        propagate::inject(&span.context(), request.headers_mut());
        span
    }

    fn method<'a>(&'a self, request: &Request<Body>) -> &'a str {
        self.methods.known(request.uri().path()).unwrap_or(METHOD_OTHER)
    }
}

/// A span of a call, of `kind`.
fn span(method: &str, kind: &'static str, request: &Request<Body>) -> Span {
    let span = tracing::info_span!(
        "rpc",
        otel.name = method,
        otel.kind = kind,
        otel.status_code = Empty,
        rpc.system.name = "grpc",
        rpc.method = method,
        rpc.method_original = Empty,
        rpc.status_code = Empty,
        "error.type" = Empty,
        server.address = Empty,
        server.port = Empty,
        network.peer.address = Empty,
        network.peer.port = Empty,
        tls.protocol.version = Empty,
        souk.peer.name = Empty,
    );
    if method == METHOD_OTHER {
        let original = request.uri().path().trim_start_matches('/');
        span.record(
            "rpc.method_original",
            &original[..original.floor_char_boundary(ORIGINAL_BYTES_MAX)],
        );
    }
    span
}

fn record_address(span: &Span, [address, port]: [&str; 2], socket: Option<SocketAddr>) {
    if let Some(socket) = socket {
        span.record(address, tracing::field::display(socket.ip()));
        span.record(port, socket.port());
    }
}

pin_project! {
    /// Work in its place. Unlike in `Instrumented`, it is dropped as it ends, and doesn't enter once more for that.
    struct InItsPlace<F: Future> {
        #[pin]
        work: Option<F>,
        place: TracePlace,
    }

    impl<F: Future> PinnedDrop for InItsPlace<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.work.is_some() {
                let _entered = this.place.enter();
                this.work.set(None);
            }
        }
    }
}

impl<F: Future> InItsPlace<F> {
    fn new(place: TracePlace, work: F) -> Self {
        Self {
            work: Some(work),
            place,
        }
    }
}

impl<F: Future> Future for InItsPlace<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let _entered = this.place.enter();
        let Some(work) = this.work.as_mut().as_pin_mut() else {
            // It has ended; nobody polls it again.
            return Poll::Pending;
        };
        let output = ready!(work.poll(cx));
        this.work.set(None);
        Poll::Ready(output)
    }
}

/// A call under way.
struct Call {
    place: TracePlace,
    server: bool,
    entered: bool,
    started: Instant,
}

impl Observer for Call {
    fn ended(self, outcome: Outcome) {
        let name = code_name(outcome.code);
        if let TracePlace::Span(span) = &self.place {
            span.record("rpc.status_code", name);
            if outcome.code != Code::Ok && (!self.server || is_server_fault(outcome.code)) {
                span.record("otel.status_code", "ERROR");
                span.record("error.type", name);
            }
        }
        if outcome.code == Code::Ok {
            return;
        }
        // The client's end of a call has its own log line where it is served, or where its error is answered.
        if self.server {
            self.place.in_scope(|| log(&outcome, self.started));
        }
    }

    fn place(&self) -> Option<&TracePlace> {
        self.entered.then_some(&self.place)
    }
}

/// The one log line of a failed call.
fn log(outcome: &Outcome, started: Instant) {
    let code = code_name(outcome.code);
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = outcome.status.as_ref();
    let reason = outcome.reason().unwrap_or_default();
    let cause = status.map(|status| chain(status)).unwrap_or_default();
    let message = match outcome.code {
        Code::InvalidArgument => Cow::Owned(unquoted(&outcome.message)),
        _ => Cow::Borrowed(outcome.message.as_str()),
    };
    let message = message.as_ref();
    if is_server_fault(outcome.code) {
        tracing::error!(code, reason, cause, elapsed_ms, error = message, "call failed");
    } else if outcome.code == Code::Cancelled {
        // Callers leave streams: that is how those end.
        tracing::debug!(code, reason, cause, elapsed_ms, error = message, "call cancelled");
    } else {
        tracing::info!(code, reason, cause, elapsed_ms, error = message, "call refused");
    }
}

/// The message of a refusal without what its caller sent: that is quoted there as `{:?}` writes it, for the caller to see, and may be
/// anybody's name. Names of fields stay.
fn unquoted(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut chars = message.chars();
    while let Some(char) = chars.next() {
        kept.push(char);
        if char == '"' {
            let mut escaped = false;
            let ends = |inner: char| {
                let ends = inner == '"' && !escaped;
                escaped = inner == '\\' && !escaped;
                ends
            };
            // Without an end, as in a message that was cut, all the rest goes.
            let _ = chars.by_ref().position(ends);
            kept.push_str("…\"");
        }
    }
    kept
}

/// The causes of an error, outermost first.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The six codes that are the server's fault.
pub fn is_server_fault(code: Code) -> bool {
    match code {
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => true,
        Code::Ok
        | Code::Cancelled
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unauthenticated => false,
    }
}

/// The code as the conventions write it.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests;
