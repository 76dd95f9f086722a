//! The generated servers of a process, by the names of their services.
//!
//! tonic's own routes are those of axum: patterns of paths, what they matched kept in each request, and every body boxed
//! twice more. A gRPC path is a name and a method.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use rustc_hash::FxHashMap;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

use crate::layers::{AnyService, Inner, ResponseFuture, refuse};

/// Services by their full names. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Mounted(Arc<FxHashMap<&'static str, AnyService>>);

impl Mounted {
    /// With a generated server; the last one of a name counts.
    #[must_use]
    pub(crate) fn with<S: Inner + NamedService + Sync>(mut self, service: S) -> Self {
        Arc::make_mut(&mut self.0).insert(S::NAME, AnyService::new(service));
        self
    }
}

/// The service's name in `/souk.order.v1.OrderService/GetOrder`.
pub(super) fn service_name(path: &str) -> &str {
    let name = path.strip_prefix('/').unwrap_or(path);
    name.split_once('/').map_or(name, |(service, _)| service)
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Service<Request<Body>> for Mounted {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits for its own.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        match self.0.get(service_name(request.uri().path())) {
            Some(service) => service.clone().call(request),
            // The layer above says which services there are.
            None => Box::pin(std::future::ready(Ok(refuse(Status::unimplemented(""))))),
        }
    }
}
