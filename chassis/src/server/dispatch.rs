//! Below all layers: to the mounted services, or on to a forwarder, with the message limits of each.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tower::{Layer as _, Service};

use super::mounted::{Mounted, service_name};
use crate::layers::messages::{Messages, MessagesLayer};
use crate::layers::{AnyService, ResponseFuture};

/// Chooses by the name of the service in the path.
#[derive(Clone)]
pub(super) struct Dispatch {
    mounted: Messages<Mounted>,
    forwarded: Arc<BTreeSet<String>>,
    forwarder: Option<Messages<AnyService>>,
}

impl Dispatch {
    pub(super) fn new(
        mounted: Mounted,
        forwarded: Vec<String>,
        forwarder: Option<AnyService>,
        message_bytes_max: usize,
    ) -> Self {
        Self {
            mounted: MessagesLayer::server(message_bytes_max).layer(mounted),
            forwarded: Arc::new(forwarded.into_iter().collect()),
            forwarder: forwarder.map(|to| MessagesLayer::pass_through(message_bytes_max).layer(to)),
        }
    }
}

impl Service<Request<Body>> for Dispatch {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Both are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        match &self.forwarder {
            Some(forwarder) if self.forwarded.contains(service_name(request.uri().path())) => {
                forwarder.clone().call(request)
            }
            _ => self.mounted.clone().call(request),
        }
    }
}
