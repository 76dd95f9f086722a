//! Who is let in: a check of the process's own around each call.
//!
//! This layer only gives it its place in the order of the layers; what it checks is its maker's. Without one, everybody
//! is let in.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service, ServiceExt as _};

use super::{AnyService, Inner, ResponseFuture, refuse, take_ready};

/// Decides who is let in.
pub trait Admit: fmt::Debug + Send + Sync + 'static {
    /// Answers the call by itself, or runs what comes next, in whatever scope it needs.
    fn call(&self, request: Request<Body>, next: Next) -> ResponseFuture;
}

/// What a call that is let in comes to.
pub struct Next(AnyService);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

impl Next {
    /// Lets the call in.
    pub fn run(self, request: Request<Body>) -> ResponseFuture {
        Box::pin(self.0.oneshot(request))
    }

    /// Turns the call away.
    pub fn refuse(status: Status) -> ResponseFuture {
        Box::pin(std::future::ready(Ok(refuse(status))))
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct AdmissionLayer(Option<Arc<dyn Admit>>);

impl AdmissionLayer {
    /// Lets in whom `admit` lets in; everybody when there is none.
    pub fn new(admit: Option<Arc<dyn Admit>>) -> Self {
        Self(admit)
    }
}

impl<S: Inner + Sync> Layer<S> for AdmissionLayer {
    type Service = Admission;

    fn layer(&self, inner: S) -> Admission {
        Admission {
            inner: AnyService::new(inner),
            admit: self.0.clone(),
        }
    }
}

/// See [`AdmissionLayer`].
#[derive(Clone)]
pub struct Admission {
    inner: AnyService,
    admit: Option<Arc<dyn Admit>>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("admit", &self.admit)
            .finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Admission {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let mut inner = take_ready(&mut self.inner);
        match &self.admit {
            Some(admit) => admit.call(request, Next(inner)),
            None => inner.call(request),
        }
    }
}
