//! The generated servers of a process, by the names of their services.
//!
//! tonic's own routes are those of axum: patterns of paths, what they matched kept in each request, and every body boxed
//! twice more. A gRPC path is a name and a method.

use std::fmt;

use futures_util::future::Either;
use http::{Request, Response};
use rustc_hash::FxHashMap;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;

use crate::layers::{AnswerBody, AnyService, Inner, TowerService, refused};
use crate::methods::service_of;

#[derive(Default)]
pub(super) struct Mounted(FxHashMap<&'static str, AnyService>);

impl Mounted {
    /// With a generated server; the last one of a name counts.
    #[must_use]
    pub(super) fn with<S: TowerService + NamedService>(mut self, service: S) -> Self {
        self.0.insert(S::NAME, AnyService::tower(service));
        self
    }
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Inner for Mounted {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        match self.0.get(service_of(request.uri().path())) {
            Some(service) => Either::Left(Inner::call(service, request)),
            // The layer above says which services there are.
            None => Either::Right(refused(Status::unimplemented(""))),
        }
    }
}
