//! One layer a file; [`crate::server`] puts them in order and says why in that order.
//!
//! All of them take and give the same types, [`Request`] and [`Response`] over [`Body`], and never fail: what goes
//! wrong is a response with a gRPC status. So a stack of them has one type, on a listener and in process alike.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tower::util::ServiceExt as _;

pub mod admission;
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

/// What a layer's call returns.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A service of any kind under one type. Clones are the same one: each call clones what is inside once, and not what is
/// inside of that for each layer.
#[derive(Clone)]
pub(crate) struct AnyService(Arc<dyn Callable>);

/// A service that answers behind a shared reference.
trait Callable: Send + Sync {
    fn call(&self, request: Request<Body>) -> ResponseFuture;
}

struct Cloned<S>(S);

impl<S: Inner + Sync> Callable for Cloned<S> {
    fn call(&self, request: Request<Body>) -> ResponseFuture {
        Box::pin(self.0.clone().oneshot(request))
    }
}

impl AnyService {
    pub(crate) fn new(service: impl Inner + Sync) -> Self {
        Self(Arc::new(Cloned(service)))
    }
}

impl fmt::Debug for AnyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyService")
    }
}

impl Service<Request<Body>> for AnyService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits for what is inside.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        self.0.call(request)
    }
}

/// A service a layer can wrap: gRPC over HTTP, infallible, cloned for each call.
pub trait Inner:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S> Inner for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// A response that is only an error.
pub(crate) fn refuse(status: impl Into<Status>) -> Response<Body> {
    status.into().into_http()
}

/// Is this a call to the health service? It must pass where others are turned away.
pub(crate) fn is_health(path: &str) -> bool {
    path.strip_prefix('/')
        .and_then(|path| path.strip_prefix(crate::health::SERVICE_NAME))
        .is_some_and(|rest| rest.starts_with('/'))
}
