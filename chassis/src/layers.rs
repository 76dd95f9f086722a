//! One layer a file; [`crate::server`] puts them in order and says why in that order.
//!
//! All of them take and give the same types, [`Request`] and [`Response`] over [`Body`], and never fail: what goes
//! wrong is a response with a gRPC status. So a stack of them has one type, on a listener and in process alike.

use std::convert::Infallible;
use std::pin::Pin;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::Service;
use tower::util::BoxCloneSyncService;

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

/// A service of any kind under one type.
pub(crate) type AnyService = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

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

/// The service that was made ready, leaving an unready clone in its place (the tower rule: a clone isn't ready).
pub(crate) fn take_ready<S: Clone>(service: &mut S) -> S {
    let clone = service.clone();
    std::mem::replace(service, clone)
}

/// Is this a call to the health service? It must pass where others are turned away.
pub(crate) fn is_health(path: &str) -> bool {
    path.strip_prefix('/')
        .and_then(|path| path.strip_prefix(crate::health::SERVICE_NAME))
        .is_some_and(|rest| rest.starts_with('/'))
}
