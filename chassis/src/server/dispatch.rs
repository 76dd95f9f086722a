//! Below all layers: to the mounted services, or on to a forwarder, with the message limits of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{Request, Response};
use rustc_hash::FxHashMap;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Layer as _;

use crate::callers::pool::Pool;
use crate::health;
use crate::layers::messages::{Layouts, MessagesLayer};
use crate::layers::{AnswerBody, Answering, AnyService, Inner, Layered, TowerService, refused};
use crate::methods::{Methods, service_of};
use crate::reflection::{self, Reflection};

/// The generated servers of a process, by the names of their services.
///
/// tonic's own routes are those of axum: patterns of paths, what they matched kept in each request, and every body boxed
/// twice more. A gRPC path is a name and a method.
#[derive(Debug, Default)]
pub(super) struct Mounted(FxHashMap<&'static str, AnyService>);

impl Mounted {
    /// With a generated server; the last one of a name counts.
    #[must_use]
    pub(super) fn with<S: TowerService + NamedService>(mut self, service: S) -> Self {
        self.0.insert(S::NAME, AnyService::tower(service));
        self
    }
}

impl Inner for Mounted {
    fn call(&self, request: Request<Body>) -> impl Answering {
        match self.0.get(service_of(request.uri().path())) {
            Some(service) => Either::Left(Inner::call(service, request)),
            // The layer above says which services there are.
            None => Either::Right(refused(Status::unimplemented(""))),
        }
    }
}

/// Chooses by the name of the service in the path.
pub(super) struct Dispatch {
    mounted: Layered<MessagesLayer, Mounted>,
    /// Whoever may call is heard, so in few words.
    health: Layered<MessagesLayer, AnyService>,
    reflection: Reflection<Layered<MessagesLayer, Mounted>>,
    forwarded: Option<(BTreeSet<String>, Layered<MessagesLayer, AnyService>)>,
}

impl Dispatch {
    /// `forwarded` are the services that calls are handed on for, and to whom.
    pub(super) fn new(
        mounted: Mounted,
        health: AnyService,
        reflection: Mounted,
        forwarded: Option<(Vec<String>, AnyService)>,
        message_bytes_max: usize,
        methods: &Methods,
        layouts: &Arc<Layouts>,
    ) -> Self {
        let limited = |bytes_max, layouts| MessagesLayer::new(bytes_max, methods.clone(), layouts);
        let unpacks = |bytes_max| limited(bytes_max, Some(Arc::clone(layouts)));
        let passes = limited(message_bytes_max, None);
        Self {
            health: unpacks(health::MESSAGE_BYTES_MAX).layer(health),
            reflection: Reflection {
                services: unpacks(reflection::MESSAGE_BYTES_MAX).layer(reflection),
                streams: Pool::with_each(reflection::STREAMS_MAX, reflection::STREAMS_PER_CALLER_MAX),
            },
            mounted: unpacks(message_bytes_max).layer(mounted),
            forwarded: forwarded.map(|(names, to)| (names.into_iter().collect(), passes.layer(to))),
        }
    }
}

impl Inner for Dispatch {
    fn call(&self, request: Request<Body>) -> impl Answering {
        let path = request.uri().path();
        if health::is_asked(path) {
            return Either::Left(self.health.call(request).map(boxed).left_future());
        }
        if reflection::is_asked(path) {
            return Either::Right(self.reflection.call(request).map(boxed).left_future());
        }
        match &self.forwarded {
            Some((names, forwarder)) if names.contains(service_of(path)) => {
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
