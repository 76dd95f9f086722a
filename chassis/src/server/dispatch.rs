//! Below all layers: to the mounted services, or on to a forwarder, with the message limits of each.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::service::Routes;
use tower::{Layer as _, Service};

use crate::layers::messages::{Messages, MessagesLayer};
use crate::layers::{AnyService, ResponseFuture};

/// Chooses by the name of the service in the path.
#[derive(Clone)]
pub(super) struct Dispatch {
    mounted: Messages<Routes>,
    forwarded: Arc<BTreeSet<String>>,
    forwarder: Option<Messages<AnyService>>,
}

impl Dispatch {
    pub(super) fn new(
        mounted: Routes,
        forwarded: Vec<String>,
        forwarder: Option<AnyService>,
        message_bytes_max: usize,
    ) -> Self {
        Self {
            mounted: MessagesLayer::server(message_bytes_max).layer(mounted.prepare()),
            forwarded: Arc::new(forwarded.into_iter().collect()),
            forwarder: forwarder.map(|to| MessagesLayer::pass_through(message_bytes_max).layer(to)),
        }
    }
}

/// The service's name in `/souk.order.v1.OrderService/GetOrder`.
fn service_name(path: &str) -> &str {
    let name = path.strip_prefix('/').unwrap_or(path);
    name.split_once('/').map_or(name, |(service, _)| service)
}

impl Service<Request<Body>> for Dispatch {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Which of the two is asked isn't known yet: each call waits for its own. A forwarder is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        match &self.forwarder {
            Some(forwarder) if self.forwarded.contains(service_name(request.uri().path())) => {
                forwarder.clone().call(request)
            }
            _ => Box::pin(tower::ServiceExt::oneshot(self.mounted.clone(), request)),
        }
    }
}
