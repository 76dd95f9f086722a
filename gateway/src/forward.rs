//! Chooses the backend of a call by the service in its path.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use souk_chassis::layers::{AnswerBody, Inner};
use souk_chassis::methods::service_of;
use tokio_util::sync::DropGuard;
use tonic::body::Body;

use crate::ask::{Ask, unserved};
use crate::retry::Retry;
use crate::stream_drain::StreamDrain;

/// Where the calls of a service go.
pub(crate) enum Destination {
    /// To the backend that serves it.
    Backend(Retry),
    /// To all backends, one after the other.
    Shared(Ask),
}

pub(crate) struct Forward {
    /// By the full name of the service.
    pub(crate) routes: BTreeMap<String, Destination>,
    pub(crate) stream_drain: Arc<StreamDrain>,
    /// Ends the monitors with it.
    pub(crate) _monitors: DropGuard,
}

impl Inner for Forward {
    async fn call(&self, request: Request<Body>) -> Response<impl AnswerBody + Default> {
        let Some(way) = self.routes.get(service_of(request.uri().path())) else {
            // The stack in front sends only routed services here.
            return unserved().into_http();
        };
        let response = match way {
            Destination::Backend(backend) => backend.call(request).await,
            Destination::Shared(backends) => backends.call(request).await,
        };
        response.map(|body| self.stream_drain.to(body))
    }
}
