//! Admission control: runs the process's own check ([`Admit`]) of each call at its place among the layers.
//!
//! Where callers have a rate limit, calls that are refused have it, too, by their address: they take nothing from the buckets of known
//! callers.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use http::Request;
use tonic::Status;
use tonic::body::Body;
use tower::Layer;

use super::rate::RateLayer;
use super::{Answering, AnyService, Inner, ResponseFuture, refuse};
use crate::callers::CallerKey;
use crate::connection_info::{ConnectionInfo, Standing};
use crate::health;

/// Decides who is let in.
pub trait Admit: fmt::Debug + Send + Sync + 'static {
    /// Answers the call by itself, or runs what comes next, in whatever scope it needs.
    fn call(&self, request: Request<Body>, next: Next<'_>) -> ResponseFuture;
}

/// What a call that is let in comes to.
pub struct Next<'a>(&'a AnyService);

impl Next<'_> {
    /// Lets the call in.
    pub fn run(self, request: Request<Body>) -> ResponseFuture {
        if let Some(info) = request.extensions().get::<Arc<ConnectionInfo>>() {
            info.activity.let_in(if health::is_path(request.uri().path()) {
                Standing::Probe
            } else {
                Standing::Caller
            });
        }
        self.0.answer(request)
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

/// Lets in whom the first lets in, everybody when there is none; the others may come as often as the rate says.
#[derive(Clone, Debug)]
pub struct AdmissionLayer(pub Option<Arc<dyn Admit>>, pub RateLayer);

impl<S: Inner> Layer<S> for AdmissionLayer {
    type Service = Admission;

    fn layer(&self, inner: S) -> Admission {
        Admission(self.clone(), AnyService::layered(inner))
    }
}

/// See [`AdmissionLayer`].
pub struct Admission(AdmissionLayer, AnyService);

impl Inner for Admission {
    fn call(&self, request: Request<Body>) -> impl Answering {
        let Self(AdmissionLayer(admit, rate), inner) = self;
        let next = Next(inner);
        let Some(admit) = admit else {
            return next.run(request).map(|Ok(answer)| answer).left_future();
        };
        let origin = CallerKey::origin(request.extensions());
        let answer = admit.call(request, next).map(move |Ok(response)| {
            if response.extensions().get::<TurnedAway>().is_some()
                && let Err(status) = rate.count_stranger(origin)
            {
                return refuse(status);
            }
            response
        });
        answer.right_future()
    }
}

#[cfg(test)]
mod tests;
