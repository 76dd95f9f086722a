//! The way to another process (or to a stack in this one): traced, measured, inheriting the deadline of the call it serves.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use opentelemetry::metrics::Meter;
use serde::{Deserialize, Serialize};
use tonic::body::Body;
use tower::{Layer as _, Service, ServiceExt as _};

use crate::config::{ClientTlsConfig, Problems, duration};
use crate::layers::deadline::{self, Deadline};
use crate::layers::metrics::MetricsLayer;
use crate::layers::trace::TraceLayer;
use crate::layers::{
    AnswerBody, AnyService, Inner, ResponseFuture, TowerService, infallible, refuse, refused,
};
use crate::methods::Methods;
use crate::tls::TlsError;

mod bodies;
mod channel;
mod connection;
pub(crate) mod dial;
mod line;
#[cfg(test)]
mod stage;

pub use channel::{CallError, Channel};

/// When to come back to a backend that couldn't be reached.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Most connections to one process.
const CONNECTIONS_MAX: usize = 64;

/// Settings of the connections to other processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// Connections to each process, of each worker of the server that calls; more than one where a server allows fewer streams on each than calls are made at once.
    pub connections: usize,
    /// Time for a connection to be made.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// Silence on a connection after which it is pinged, also while idle.
    #[serde(with = "duration")]
    pub keepalive_interval: Duration,
    /// Time for the answer to a ping before the connection is given up.
    #[serde(with = "duration")]
    pub keepalive_timeout: Duration,
    /// How long what was sent may stay unacknowledged by the other machine before the connection is given up for a new one
    /// (TCP_USER_TIMEOUT, on Linux). The pauses of TCP itself grow to minutes while nothing passes.
    #[serde(with = "duration")]
    pub unacknowledged_max: Duration,
    /// Certificates for `https://` addresses.
    pub tls: ClientTlsConfig,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            connect_timeout: Duration::from_secs(2),
            keepalive_interval: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(20),
            unacknowledged_max: Duration::from_secs(3),
            tls: ClientTlsConfig::default(),
        }
    }
}

impl ClientConfig {
    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        let settings = [
            ("connect_timeout", self.connect_timeout),
            ("keepalive_interval", self.keepalive_interval),
            ("keepalive_timeout", self.keepalive_timeout),
            ("unacknowledged_max", self.unacknowledged_max),
        ];
        for (name, _) in settings.iter().filter(|(_, value)| value.is_zero()) {
            problems.push(&format!("{path}.{name}"), "must be more than zero");
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            let message = format!("must be 1 to {CONNECTIONS_MAX}");
            problems.push(&format!("{path}.connections"), message);
        }
        self.tls.check(&format!("{path}.tls"), problems);
    }
}

/// Why no channel can be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address.
    #[error("no channel can be made to {uri}; it must be http://host:port or https://host:port")]
    Address {
        /// As it was given.
        uri: String,
    },
    /// An address with TLS, and nobody to believe its server by.
    #[error(
        "no channel can be made to {uri}: client.tls.ca must name the authorities that its certificate is checked by"
    )]
    Authority {
        /// As it was given.
        uri: String,
    },
    /// The files of `client.tls`.
    #[error("the files of client.tls can't be used")]
    Tls(#[source] Box<TlsError>),
}

/// The way to the process at `uri`, which errors name by its address; see [`Channel`].
///
/// # Errors
/// When `uri` isn't `http://host:port` or `https://host:port`, or the files of `config.tls` can't be used.
pub fn channel(uri: &Uri, config: &ClientConfig) -> Result<Channel, ClientError> {
    let backend = uri.authority().map_or("", |authority| authority.as_str());
    Channel::new(backend, uri, config)
}

/// A client's way to a backend. It never fails as a service: what goes wrong is a response with a status, complete with
/// `ErrorInfo`. Generated clients take it as their channel.
#[derive(Clone, Debug)]
pub struct Client {
    service: AnyService,
}

impl Client {
    /// Calls to the process at `uri`, named `backend` in errors. It connects at the first call, and again whenever the
    /// connection was lost.
    ///
    /// # Errors
    /// Those of [`Channel::new`].
    pub fn remote(
        backend: &str,
        uri: &Uri,
        config: &ClientConfig,
        methods: Methods,
    ) -> Result<Self, ClientError> {
        let upstream = Upstream(Channel::new(backend, uri, config)?);
        Ok(Self::over(upstream, uri, methods))
    }

    /// Calls to a `service` in this process, with `name` as its address in spans.
    pub fn local(service: impl TowerService, name: &str, methods: Methods) -> Self {
        let address = Uri::try_from(name).unwrap_or_else(|_| Uri::from_static("local"));
        Self::over(AnyService::tower(service), &address, methods)
    }

    /// The same with a header on each call, for example credentials.
    #[must_use]
    pub fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        let service = self.service.map_request(move |mut request: Request<Body>| {
            request.headers_mut().insert(name.clone(), value.clone());
            request
        });
        Self {
            service: AnyService::tower(service),
        }
    }

    /// The answer, of a client that is shared.
    pub fn answer(&self, request: Request<Body>) -> impl Future<Output = Response<Body>> + Send + use<> {
        self.service.answer(request).map(infallible)
    }

    fn over(service: impl Inner, peer: &Uri, methods: Methods) -> Self {
        let meter: Meter = opentelemetry::global::meter(crate::server::METER);
        let service = MetricsLayer::client(methods.clone(), peer, &meter).layer(service);
        // Outside the metrics, like on a server; inside the deadline, so that its span has the header as sent.
        let service = TraceLayer::client(methods, peer).layer(service);
        Self {
            service: AnyService::layered(Inherit(service)),
        }
    }
}

impl Service<Request<Body>> for Client {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        self.service.answer(request)
    }
}

/// Hands on the time that is left: of the call that is forwarded, or of the call that this task serves.
struct Inherit<S>(S);

impl<S: Inner> Inner for Inherit<S> {
    fn call(&self, mut request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        let asked = match deadline::parse(request.headers()) {
            Ok(asked) => asked,
            Err(status) => return Either::Right(refused(status)),
        };
        let left = match request.extensions().get::<Deadline>() {
            // A forwarded call: its stream may outlive the server's limits, so only the client's own time counts.
            Some(forwarded) => forwarded.asked_remaining(),
            None => {
                Deadline::current().map(|current| current.asked_remaining().unwrap_or(current.remaining()))
            }
        };
        if let Some(time) = asked.into_iter().chain(left).min() {
            request
                .headers_mut()
                .insert(deadline::GRPC_TIMEOUT, deadline::format(time));
        }
        Either::Left(self.0.call(request))
    }
}

/// An extension of responses that were made here because the backend gave none. What they say about coming back is a
/// guess, not the backend's word.
#[derive(Clone, Copy, Debug)]
pub struct NoAnswer;

/// The channel, its errors turned into responses.
struct Upstream(Channel);

impl Inner for Upstream {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        self.0.exchange(request).map(|answered| match answered {
            Ok(response) => response,
            Err(CallError::Request(status) | CallError::Late(status)) => refuse(status),
            Err(CallError::NoAnswer(status)) => {
                let mut response = refuse(status);
                response.extensions_mut().insert(NoAnswer);
                response
            }
        })
    }
}

#[cfg(test)]
mod tests;
