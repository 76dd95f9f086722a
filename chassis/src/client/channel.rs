//! Calls to one process over HTTP/2, each by the task that makes it.
//!
//! A call takes its turn on the connection, sends its head and, where that is there already, its whole body, and waits for the answer,
//! all in its own future: besides the task that moves the bytes of the connection no other has to wake up. Only a body that is
//! still sent when the answer begins gets a task of its own.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use http::header::{HeaderMap, HeaderValue, TE, USER_AGENT};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use super::answer::Answer;
use super::connection::KeepAlive;
use super::dial::Dial;
use super::ended::Ended;
use super::line::Lines;
use super::upload::{Pieces, Upload};
use super::{ClientConfig, ClientError, RETRY_AFTER};
use crate::connection_headers::leave_connection;
use crate::layers::deadline;
use crate::status::StatusBuilder;

/// Connections that a call may find to be over before it is sent.
const CONNECTIONS_OVER_MAX: usize = 3;

/// What a call without a name for its client is sent by.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("souk/", env!("CARGO_PKG_VERSION")));

/// The one thing that `te` may say in HTTP/2, and that gRPC wants it to.
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server gave none, as far as is known.
    #[error("no answer")]
    NoAnswer(#[source] Status),
    /// The request broke off: its sender has failed, not the server.
    #[error("the request broke off")]
    Request(#[source] Status),
}

/// The way to one process, with nothing around it: untraced, and without the deadline of the call that is served. It connects at the first
/// call, and again whenever the connection was lost or its server asked for another one; calls that were sent end where they are. A call ends
/// after the time in its `grpc-timeout` at the latest, if no answer has begun. Clones share the connection, of which each
/// [worker](crate::config::ServerConfig::workers) has its own; generated clients take it as their channel.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Peer>);

/// Who is called.
#[derive(Debug)]
struct Peer {
    lines: Lines,
    scheme: Scheme,
    authority: Authority,
    /// As errors name it.
    backend: Arc<str>,
}

impl Channel {
    /// Calls to the process at `uri`, named `backend` in errors; with TLS when the address is `https`.
    ///
    /// # Errors
    /// When `uri` isn't `http://host:port` or `https://host:port`, or the files of `config.tls` can't be used.
    pub fn new(backend: &str, uri: &Uri, config: &ClientConfig) -> Result<Self, ClientError> {
        let dial = Dial::new(uri, config)?;
        let parts = uri.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(ClientError::Address { uri: uri.to_string() });
        };
        let keepalive = KeepAlive {
            interval: config.keepalive_interval,
            timeout: config.keepalive_timeout,
        };
        Ok(Self(Arc::new(Peer {
            lines: Lines::new(dial, config.connect_timeout, keepalive),
            scheme,
            authority,
            backend: backend.into(),
        })))
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, CallError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        // Each call waits for its own turn.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let channel = self.clone();
        Box::pin(async move { channel.exchange(request).await })
    }
}

impl Channel {
    /// A call, to be ended in its time.
    pub(super) async fn exchange(&self, request: Request<Body>) -> Result<Response<Body>, CallError> {
        let peer = &*self.0;
        match deadline::parse(request.headers()).map_err(CallError::Request)? {
            None => peer.exchange(request).await,
            Some(time) => tokio::time::timeout(time, peer.exchange(request))
                .await
                .unwrap_or_else(|_| Err(peer.late())),
        }
    }
}

impl Peer {
    async fn exchange(&self, request: Request<Body>) -> Result<Response<Body>, CallError> {
        let (head, body) = request.into_parts();
        let mut pieces = Pieces::of(body);
        let first = match poll_fn(|cx| Poll::Ready(pieces.poll_next(cx))).await {
            Poll::Pending => None,
            Poll::Ready(None) => Some((Bytes::new(), true)),
            Poll::Ready(Some(Ok(piece))) => Some(piece),
            Poll::Ready(Some(Err(status))) => return Err(CallError::Request(status)),
        };
        let head = self.head(head).map_err(CallError::Request)?;

        let line = self.lines.own();
        let mut over = 0;
        let (mut answer, stream, ended, _under_way) = loop {
            let connection = line.connection().await;
            let connection = connection.map_err(|error| self.unreachable(error))?;
            let mut turn = match connection.turn().await {
                Ok(turn) => turn,
                Err(error) => {
                    line.lost(&connection);
                    over += 1;
                    if over == CONNECTIONS_OVER_MAX {
                        return Err(self.unreachable(error));
                    }
                    continue;
                }
            };
            let is_empty = matches!(&first, Some((piece, true)) if piece.is_empty());
            let (answer, mut stream) = turn
                .send(head, is_empty)
                .map_err(|error| self.unreachable(error))?;
            if let Some((piece, last)) = &first
                && !is_empty
            {
                // Should it fail, the connection was lost just now, and the answer tells.
                let _ = stream.send_data(piece.clone(), *last);
            }
            let under_way = connection.begin();
            turn.pass().await;
            break (answer, stream, connection.ended(), under_way);
        };

        let whole = matches!(&first, Some((_, true)));
        let mut upload = (!whole).then(|| Upload::new(pieces, stream));
        let answered = poll_fn(|cx| {
            if let Some(sending) = &mut upload
                && let Poll::Ready(sent) = Pin::new(sending).poll(cx)
            {
                upload = None;
                if let Err(status) = sent {
                    return Poll::Ready(Err(CallError::Request(status)));
                }
            }
            Pin::new(&mut answer)
                .poll(cx)
                .map_err(|error| self.unreachable(error))
        });
        let response = answered.await?;
        Ok(response.map(|stream| self.body(stream, ended, upload)))
    }

    /// The body of an answer; with what is still to be sent of the request.
    fn body(&self, stream: RecvStream, ended: Ended, upload: Option<Upload>) -> Body {
        if stream.is_end_stream() {
            if upload.is_none() {
                ended.keep(stream);
            }
            return Body::empty();
        }
        // Whoever reads the answer slowly, or not at all, mustn't keep the request from being sent.
        let upload = upload.map(|upload| AbortOnDropHandle::new(tokio::spawn(upload)));
        Body::new(Answer::new(stream, ended, Arc::clone(&self.backend), upload))
    }

    /// The head of a request as it is sent.
    fn head(&self, from: Parts) -> Result<Request<()>, Status> {
        let mut uri = from.uri.into_parts();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = Some(self.authority.clone());
        let uri = Uri::from_parts(uri).map_err(|error| {
            let status = StatusBuilder::internal("a call has no path; this is a defect of Souk");
            status.source(error).build()
        })?;
        let mut head = Request::new(());
        *head.method_mut() = from.method;
        *head.uri_mut() = uri;
        *head.version_mut() = Version::HTTP_2;
        *head.headers_mut() = from.headers;
        fit(head.headers_mut(), from.version);
        Ok(head)
    }

    fn unreachable(&self, error: impl Error + Send + Sync + 'static) -> CallError {
        let status = unavailable(&self.backend, "can't be reached").source(error);
        CallError::NoAnswer(status.build())
    }

    fn late(&self) -> CallError {
        let backend = &*self.backend;
        let message = format!("backend {backend} didn't answer in time; ask for less or give it more time");
        let status = StatusBuilder::deadline_exceeded("DEADLINE_EXCEEDED", message);
        CallError::NoAnswer(status.metadata("backend", backend).build())
    }
}

/// Makes headers those of a gRPC request over HTTP/2, by whichever version they came.
fn fit(headers: &mut HeaderMap, version: Version) {
    leave_connection(headers, version);
    headers.insert(TE, TRAILERS);
    if !headers.contains_key(USER_AGENT) {
        headers.insert(USER_AGENT, AGENT);
    }
}

/// UNAVAILABLE: what a backend did `how`.
pub(super) fn unavailable(backend: &str, how: &str) -> StatusBuilder {
    let message = format!("backend {backend} {how}; retry with backoff");
    let status = StatusBuilder::unavailable("BACKEND_UNAVAILABLE", message);
    status.metadata("backend", backend).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests;
