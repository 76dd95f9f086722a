//! One layer a file; [`crate::server`] puts them in order and says why in that order.
//!
//! All take [`Request`]s over [`Body`] and never fail: errors are responses with a gRPC status. Each wraps the future and the body of its
//! inner service in a type of its own, so that all layers are one future and one body in memory, each boxed once (`AnyService`).

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{Ready, ready};
use http::{Request, Response, Uri};
use http_body::Frame;
use opentelemetry::KeyValue;
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tower::util::ServiceExt as _;

/// Has layers put around services in their places of a `ServiceBuilder`.
macro_rules! put_around {
    ($($layer:ty),+) => {$(
        impl<S> tower::Layer<S> for $layer {
            type Service = Layered<Self, S>;

            fn layer(&self, inner: S) -> Self::Service {
                let layer = self.clone();
                Layered { layer, inner }
            }
        }
    )+};
}

/// Makes a type that has a `service: AnyService` a tower service, which answers without being cloned, too.
macro_rules! tower_service {
    ($name:ty) => {
        impl $name {
            /// The answer, of one that is shared.
            pub fn answer(&self, call: http::Request<tonic::body::Body>) -> $crate::layers::ResponseFuture {
                self.service.answer(call)
            }
        }

        impl tower::Service<http::Request<tonic::body::Body>> for $name {
            type Response = http::Response<tonic::body::Body>;
            type Error = std::convert::Infallible;
            type Future = $crate::layers::ResponseFuture;

            fn poll_ready(
                &mut self,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Result<(), Self::Error>> {
                // Each call waits by itself.
                std::task::Poll::Ready(Ok(()))
            }

            fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
                self.answer(request)
            }
        }
    };
}

pub(crate) use tower_service;

pub mod admission;
pub mod body;
pub mod catch_panic;
pub mod concurrency;
pub mod deadline;
pub mod drain;
pub mod error_info;
pub mod messages;
pub mod metrics;
pub mod outcome;
pub mod rate;
pub mod shed;
pub mod trace;

#[cfg(test)]
pub(crate) mod testing;

/// What the poll of a body gives.
pub type PollFrame<E = Status> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// What a layer's call returns.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A service of any kind under one type. Clones are the same one.
#[derive(Clone)]
pub(crate) struct AnyService(Arc<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>);

impl AnyService {
    /// Layers, and what is below them. A call clones the pointer to them, and nothing of what is in there.
    pub(crate) fn layered(service: impl Inner) -> Self {
        let layers = Arc::new(service);
        Self(Arc::new(move |request| {
            let layers = Arc::clone(&layers);
            Box::pin(async move { Ok(layers.call(request).await.map(Body::new)) })
        }))
    }

    /// A service from elsewhere, which has to be cloned for each call.
    pub(crate) fn tower(service: impl TowerService) -> Self {
        Self(Arc::new(move |request| {
            Box::pin(service.clone().oneshot(request))
        }))
    }

    pub(crate) fn answer(&self, request: Request<Body>) -> ResponseFuture {
        (self.0)(request)
    }
}

impl fmt::Debug for AnyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyService")
    }
}

impl Inner for AnyService {
    fn call(&self, request: Request<Body>) -> impl Answering {
        self.answer(request).map(|Ok(answer)| answer)
    }
}

/// What a layer wraps, and is itself: an infallible service behind a shared reference.
///
/// Layers transform the future and the body by combinators, without boxes; an `async` block around such a future would hold it twice.
pub trait Inner: Send + Sync + 'static {
    /// Answers.
    fn call(&self, request: Request<Body>) -> impl Answering;
}

/// A layer: what it does around what is inside of it.
pub trait Around: Clone + Send + Sync + 'static {
    /// Answers, by `inner` or by itself.
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering;
}

/// A layer and what is inside.
#[derive(Debug)]
pub struct Layered<L, S> {
    layer: L,
    inner: S,
}

impl<L: Around, S: Inner> Inner for Layered<L, S> {
    fn call(&self, request: Request<Body>) -> impl Answering {
        self.layer.call(&self.inner, request)
    }
}

put_around! {
    trace::TraceLayer, metrics::MetricsLayer, drain::DrainGate, catch_panic::CatchPanicLayer, deadline::DeadlineLayer,
    rate::RateLayer, deadline::MalformedTimeoutLayer, concurrency::ConcurrencyLayer, error_info::ErrorInfoLayer,
    messages::MessagesLayer
}

/// A body that layers see.
pub trait AnswerBody: http_body::Body<Data = Bytes, Error = Status> + Send + Unpin + 'static {}

impl<B: http_body::Body<Data = Bytes, Error = Status> + Send + Unpin + 'static> AnswerBody for B {}

/// What a layer's call comes to: a response.
pub trait Answering: Future<Output = Response<<Self as Answering>::Body>> + Send {
    /// Its body. By default it is empty: that of a refusal.
    type Body: AnswerBody + Default;
}

impl<F: Future<Output = Response<B>> + Send, B: AnswerBody + Default> Answering for F {
    type Body = B;
}

/// A service from elsewhere, such as a generated one: gRPC over HTTP, infallible, cloned for each call.
pub trait TowerService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> TowerService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Where calls go, as attributes of spans and metrics.
pub(crate) fn peer_attributes(peer: &Uri) -> Vec<KeyValue> {
    let host: Arc<str> = peer.host().unwrap_or_default().into();
    let port = peer.port_u16().map(i64::from);
    let port = port.map(|port| KeyValue::new("server.port", port));
    std::iter::once(KeyValue::new("server.address", host))
        .chain(port)
        .collect()
}

pub(crate) fn refuse<B: Default>(status: impl Into<Status>) -> Response<B> {
    status.into().into_http()
}

pub(crate) fn refused<B: Default>(status: impl Into<Status>) -> Ready<Response<B>> {
    ready(refuse(status))
}
