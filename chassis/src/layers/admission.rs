//! Who is let in: a check of the process's own around each call.
//!
//! This layer only gives it its place in the order of the layers; what it checks is its maker's. Without one, everybody
//! is let in. Where callers have a rate, whoever isn't let in has it, too, by its address: credentials can't be tried
//! faster than that.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::rate::RateLayer;
use super::{AnyService, Inner, ResponseFuture, is_health, refuse};

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
        self.0.0.call(request)
    }

    /// Turns the call away.
    pub fn refuse(status: Status) -> ResponseFuture {
        let mut response = refuse(status);
        response.extensions_mut().insert(TurnedAway);
        Box::pin(std::future::ready(Ok(response)))
    }
}

/// On the answer to a call that wasn't let in.
#[derive(Clone, Copy, Debug)]
struct TurnedAway;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct AdmissionLayer {
    admit: Option<Arc<dyn Admit>>,
    rate: RateLayer,
}

impl AdmissionLayer {
    /// Lets in whom `admit` lets in, everybody when there is none; the others may come as often as `rate` says.
    pub fn new(admit: Option<Arc<dyn Admit>>, rate: RateLayer) -> Self {
        Self { admit, rate }
    }
}

impl<S: Inner + Sync> Layer<S> for AdmissionLayer {
    type Service = Admission;

    fn layer(&self, inner: S) -> Admission {
        Admission {
            inner: AnyService::new(inner),
            layer: self.clone(),
        }
    }
}

/// See [`AdmissionLayer`].
#[derive(Clone)]
pub struct Admission {
    inner: AnyService,
    layer: AdmissionLayer,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("admit", &self.layer.admit)
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
        let Some(admit) = &self.layer.admit else {
            return self.inner.call(request);
        };
        let inner = self.inner.clone();
        let strangers = self.layer.rate.strangers(request.extensions());
        let Some(strangers) = strangers.filter(|_| !is_health(request.uri().path())) else {
            return admit.call(request, Next(inner));
        };
        if let Err(status) = strangers.look() {
            return Box::pin(std::future::ready(Ok(refuse(status))));
        }
        let answer = admit.call(request, Next(inner));
        Box::pin(async move {
            let response = answer.await?;
            if response.extensions().get::<TurnedAway>().is_some() {
                strangers.count();
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests;
