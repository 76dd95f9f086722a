//! Below all layers: to the mounted services, or on to a forwarder, with the message limits of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{Request, Response};
use tonic::body::Body;
use tower::Layer as _;

use super::mounted::Mounted;
use crate::health;
use crate::layers::messages::{Layouts, MessagesLayer};
use crate::layers::{AnswerBody, AnyService, Inner, Layered};
use crate::methods::{Methods, service_of};
use crate::reflection::{self, Reflection};

/// Chooses by the name of the service in the path.
pub(super) struct Dispatch {
    mounted: Layered<MessagesLayer, Mounted>,
    /// Whoever may call is heard, so in few words.
    health: Layered<MessagesLayer, AnyService>,
    reflection: Reflection<Layered<MessagesLayer, Mounted>>,
    forwarded: BTreeSet<String>,
    forwarder: Option<Layered<MessagesLayer, AnyService>>,
}

impl Dispatch {
    /// `forwarded` are the services that calls are handed on for, and to whom.
    pub(super) fn new(
        mounted: Mounted,
        health: AnyService,
        reflection: Mounted,
        (forwarded, forwarder): (Vec<String>, Option<AnyService>),
        message_bytes_max: usize,
        methods: &Methods,
        layouts: &Arc<Layouts>,
    ) -> Self {
        let unpacks = |bytes_max| MessagesLayer::server(bytes_max, methods.clone(), Arc::clone(layouts));
        let passes = MessagesLayer::pass_through(message_bytes_max, methods.clone());
        Self {
            health: unpacks(health::MESSAGE_BYTES_MAX).layer(health),
            reflection: Reflection::new(unpacks(reflection::MESSAGE_BYTES_MAX).layer(reflection)),
            mounted: unpacks(message_bytes_max).layer(mounted),
            forwarded: forwarded.into_iter().collect(),
            forwarder: forwarder.map(|to| passes.layer(to)),
        }
    }
}

impl Inner for Dispatch {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        let path = request.uri().path();
        if health::is_asked(path) {
            return Either::Left(self.health.call(request).map(boxed).left_future());
        }
        if reflection::is_asked(path) {
            return Either::Right(self.reflection.call(request).map(boxed).left_future());
        }
        match &self.forwarder {
            Some(forwarder) if self.forwarded.contains(service_of(path)) => {
                Either::Left(forwarder.call(request).map(boxed).right_future())
            }
            _ => Either::Right(self.mounted.call(request).map(boxed).right_future()),
        }
    }
}

/// Both ways under one type: what the layer of messages gives has its box already.
fn boxed(response: Response<impl AnswerBody>) -> Response<Body> {
    response.map(Body::new)
}
