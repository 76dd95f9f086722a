//! Calls to one process over HTTP/2.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{HeaderValue, TE, USER_AGENT};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{Extensions, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use super::bodies::{RequestBody, ResponseBody};
use super::error::{CallError, ClientError, unavailable};
use super::lazy_connection::LazyConnections;
use crate::config::ClientConfig;
use crate::connection_headers::leave_connection;
use crate::layers::deadline;
use crate::status::{GRPC_STATUS, StatusBuilder};

/// Most attempts to send a call: a connection may be closed before the call is sent on it.
const SEND_ATTEMPTS_MAX: usize = 3;

/// The `user-agent` of calls without one.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("souk/", env!("CARGO_PKG_VERSION")));

/// The `te` that gRPC requires.
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// A bare channel to one process over HTTP/2, without tracing and without the deadline of the call that is served. It connects at the
/// first call, and reconnects when the connection was lost or its server sent GOAWAY; calls that were sent stay on the old one. A call
/// without response headers ends with DEADLINE_EXCEEDED after its `grpc-timeout`. Clones share the connections, one for each
/// [worker](crate::config::ServerConfig::workers); generated clients take it as their channel.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Peer>);

#[derive(Debug)]
struct Peer {
    connections: LazyConnections,
    scheme: Scheme,
    authority: Authority,
    backend: Arc<str>,
}

impl Channel {
    /// Calls to the process at `uri`, named `backend` in errors; with TLS when the address is `https`.
    ///
    /// # Errors
    /// When `uri` isn't `http://host:port` or `https://host:port`, or the files of `config.tls` can't be used.
    pub fn new(backend: &str, uri: &Uri, config: &ClientConfig) -> Result<Self, ClientError> {
        let connections = LazyConnections::new(uri, config)?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(ClientError::Address(uri.to_string()));
        };
        Ok(Self(Arc::new(Peer {
            connections,
            scheme: scheme.clone(),
            authority: authority.clone(),
            backend: backend.into(),
        })))
    }

    /// Sends a call, and waits for its response headers until its `grpc-timeout`.
    pub(super) async fn exchange(&self, request: Request<Body>) -> Result<Response<Body>, CallError> {
        let peer = &*self.0;
        match deadline::parse(request.headers()).map_err(CallError::Request)? {
            None => peer.send(request).await,
            Some(time) => tokio::time::timeout(time, peer.send(request))
                .await
                .unwrap_or_else(|_| Err(peer.timed_out())),
        }
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, CallError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        // Each call waits for the connection and for stream capacity itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let channel = self.clone();
        Box::pin(async move { channel.exchange(request).await })
    }
}

impl Peer {
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, CallError> {
        let (head, body) = request.into_parts();
        let (body, cancel) = RequestBody::new(body);
        let head = self.head(head).map_err(CallError::Request)?;
        let mut request = Request::from_parts(head, body);

        let lazy = self.connections.own();
        let mut attempts = 0;
        loop {
            let connection = lazy.connection().await;
            let connection = connection.map_err(|error| self.unreachable(error))?;
            let mut error = match connection.send(request).await {
                Ok(answer)
                    if answer.status() != StatusCode::OK && !answer.headers().contains_key(GRPC_STATUS) =>
                {
                    return Ok(self.without_grpc(answer.status()).into_http());
                }
                Ok(answer) if answer.body().is_end_stream() => return Ok(answer.map(|_| Body::empty())),
                Ok(answer) => {
                    let body = |body| Body::new(ResponseBody::new(body, Arc::clone(&self.backend), cancel));
                    return Ok(answer.map(body));
                }
                Err(error) => error,
            };
            let unsent = error.take_message();
            let error = error.into_error();
            if let Some(status) = cancel.error() {
                return Err(CallError::Request(status));
            }
            if unsent.is_some() || error.is_closed() {
                lazy.lost(&connection);
            }
            attempts += 1;
            request = unsent
                .filter(|_| attempts < SEND_ATTEMPTS_MAX)
                .ok_or_else(|| self.unreachable(error))?;
        }
    }

    /// The status of a response that isn't gRPC's, from a proxy or from HTTP/2 itself. Only transient ones are UNAVAILABLE, which ejects the
    /// endpoint: callers can provoke others at will, such as 431 by large headers.
    fn without_grpc(&self, status: StatusCode) -> Status {
        let how = format!("answered with HTTP status {}", status.as_u16());
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => unavailable(&self.backend, &how).build(),
            _ => StatusBuilder::internal(format!("backend {} {how}", self.backend)).build(),
        }
    }

    /// The head of the request to this process, from that of a request over any HTTP version.
    fn head(&self, mut head: Parts) -> Result<Parts, Status> {
        let mut uri = head.uri.into_parts();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = Some(self.authority.clone());
        head.uri = Uri::from_parts(uri).map_err(|error| {
            StatusBuilder::internal_from("a call has no path; this is a defect of Souk", error)
        })?;
        leave_connection(&mut head.headers, head.version);
        head.headers.insert(TE, TRAILERS);
        head.headers.entry(USER_AGENT).or_insert(AGENT);
        head.version = Version::HTTP_2;
        // Those of the incoming request: they may hold much memory until the call ends.
        head.extensions = Extensions::new();
        Ok(head)
    }

    fn unreachable(&self, error: impl Error + Send + Sync + 'static) -> CallError {
        let status = unavailable(&self.backend, "can't be reached").source(error);
        CallError::NoAnswer(status.build())
    }

    fn timed_out(&self) -> CallError {
        let backend = &*self.backend;
        let message = format!("backend {backend} didn't answer in time; ask for less or give it more time");
        let status = StatusBuilder::deadline_exceeded("DEADLINE_EXCEEDED", message);
        CallError::TimedOut(status.metadata("backend", backend).build())
    }
}

#[cfg(test)]
mod tests;
