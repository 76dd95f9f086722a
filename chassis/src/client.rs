//! The way to another process (or to a stack in this one): traced, measured, inheriting the deadline of the call it serves.

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{HeaderName, HeaderValue, Request, Uri};
use tonic::body::Body;
use tower::{Layer as _, service_fn};

use crate::config::ClientConfig;
use crate::layers::deadline::{self, Deadline};
use crate::layers::metrics::MetricsLayer;
use crate::layers::trace::TraceLayer;
use crate::layers::{Answering, AnyService, Inner, TowerService, refuse, refused, tower_service};
use crate::methods::Methods;
use crate::telemetry::instrument::meter;

mod bodies;
mod channel;
mod connection;
mod error;
mod lazy_connection;

pub use channel::Channel;
pub use error::{CallError, ClientError};

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
        let channel = Channel::new(backend, uri, config)?;
        Ok(Self::over(channel, uri, methods, false))
    }

    /// Calls to a `service` in this process, with `name` as its address in spans.
    pub fn local(service: impl TowerService, name: &str, methods: Methods) -> Self {
        let address = Uri::try_from(name).unwrap_or_else(|_| Uri::from_static("local"));
        Self::over(AnyService::tower(service), &address, methods, true)
    }

    /// The same with a header on each call, for example credentials.
    #[must_use]
    pub fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        let service = service_fn(move |mut request: Request<Body>| {
            request.headers_mut().insert(name.clone(), value.clone());
            self.service.answer(request)
        });
        Self {
            service: AnyService::tower(service),
        }
    }

    fn over(service: impl Inner, peer: &Uri, methods: Methods, is_local: bool) -> Self {
        let service = MetricsLayer::client(methods.clone(), peer, &meter()).layer(service);
        // Outside the metrics, like on a server; inside the deadline, so that its span has the header as sent.
        let service = TraceLayer::client(methods, peer, is_local).layer(service);
        Self {
            service: AnyService::layered(Inherit(service)),
        }
    }
}

tower_service!(Client);

/// Hands on the time that is left: of the call that is forwarded, or of the call that this task serves.
struct Inherit<S>(S);

impl<S: Inner> Inner for Inherit<S> {
    fn call(&self, mut request: Request<Body>) -> impl Answering {
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
            let time = deadline::format(time);
            request.headers_mut().insert(deadline::GRPC_TIMEOUT, time);
        }
        Either::Left(self.0.call(request))
    }
}

/// An extension of responses that were made here because the backend gave none. What they say about coming back is a
/// guess, not the backend's word.
#[derive(Clone, Copy, Debug)]
pub struct NoAnswer;

impl Inner for Channel {
    fn call(&self, request: Request<Body>) -> impl Answering {
        self.exchange(request).map(|answered| match answered {
            Ok(response) => response,
            Err(CallError::Request(status) | CallError::TimedOut(status)) => refuse(status),
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
