//! Chooses the backend of a call by the service in its path.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use souk_chassis::layers::ResponseFuture;
use souk_chassis::status::StatusBuilder;
use tokio_util::sync::DropGuard;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use crate::farewell::Farewell;
use crate::retry::Retry;

/// The ways to the backends. Clones share them.
#[derive(Clone)]
pub(crate) struct Forward {
    /// By the full name of the service.
    routes: Arc<BTreeMap<String, Arc<Retry>>>,
    farewell: Farewell,
    /// Ends the monitors with the last clone.
    _monitors: Arc<DropGuard>,
}

impl Forward {
    pub(crate) fn new(routes: BTreeMap<String, Retry>, farewell: Farewell, monitors: DropGuard) -> Self {
        Self {
            routes: Arc::new(
                routes
                    .into_iter()
                    .map(|(name, way)| (name, Arc::new(way)))
                    .collect(),
            ),
            farewell,
            _monitors: Arc::new(monitors),
        }
    }
}

impl Service<Request<Body>> for Forward {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits for the backend it goes to.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let path = request.uri().path();
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let way = service.and_then(|(service, _)| self.routes.get(service)).cloned();
        let farewell = self.farewell.clone();
        Box::pin(async move {
            let Some(way) = way else {
                // The stack in front sends only routed services here.
                return Ok(Status::from(unrouted()).into_http());
            };
            let response = way.call(request).await;
            Ok(response.map(|body| farewell.to(body)))
        })
    }
}

fn unrouted() -> StatusBuilder {
    StatusBuilder::unimplemented("SERVICE_UNKNOWN", "the gateway has no backend for this service")
}
