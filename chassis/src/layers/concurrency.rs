//! So many calls at a time, so many waiting, and no more: what is beyond is shed at once, with the time to come back.
//!
//! A place is held until the response headers, that is for the work of a unary call. Streams that are open after their
//! headers have a count of their own, so that watchers can't starve the calls. Health checks pass: a busy server is
//! not a dead one.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response};
use opentelemetry::metrics::Meter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::outcome::hold_until_end;
use super::shed::Sheds;
use super::{Inner, ResponseFuture, is_health, refuse};
use crate::methods::Methods;
use crate::status::StatusBuilder;
use crate::telemetry::instrument::whole;
use crate::telemetry::instruments::{CALLS_WAITING, CALLS_WORKING, CONCURRENCY_LIMIT};

mod adaptive;

use adaptive::Adaptive;

/// When a shed client should come back.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Limits how much is done at a time. Clones, and all services they made, share the limits.
#[derive(Clone, Debug)]
pub struct ConcurrencyLayer {
    calls: Arc<Semaphore>,
    calls_max: usize,
    queue: Arc<AtomicUsize>,
    queue_max: usize,
    bodies: Arc<Semaphore>,
    bodies_max: usize,
    sheds: Sheds,
    adaptive: Option<Arc<Adaptive>>,
}

impl ConcurrencyLayer {
    /// `calls_max` at work, `queue_max` waiting for that, `bodies_max` responses being sent, among them open streams.
    /// What is shed is counted in `sheds`.
    pub fn new(calls_max: usize, queue_max: usize, bodies_max: usize, sheds: Sheds) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(calls_max.min(Semaphore::MAX_PERMITS))),
            calls_max,
            queue: Arc::new(AtomicUsize::new(0)),
            queue_max,
            bodies: Arc::new(Semaphore::new(bodies_max.min(Semaphore::MAX_PERMITS))),
            bodies_max,
            sheds,
            adaptive: None,
        }
    }

    /// Lets the calls at work be fewer, down to `calls_min`, while those of `methods` take longer than usual; 0 doesn't.
    #[must_use]
    pub fn adapting(mut self, calls_min: usize, methods: &Methods) -> Self {
        self.adaptive = (calls_min > 0).then(|| {
            let places = Arc::clone(&self.calls);
            Arc::new(Adaptive::new(calls_min, self.calls_max, places, methods))
        });
        self
    }

    /// Shows on `meter` how many work and wait, and how many may work.
    #[must_use]
    pub fn observed(self, meter: &Meter) -> Self {
        let layer = self.clone();
        CALLS_WORKING.observe(meter, move |now| {
            let held = layer.adaptive.as_ref().map_or(0, |adaptive| adaptive.held());
            let free = layer.calls.available_permits() + held;
            now.observe(whole(layer.calls_max.saturating_sub(free)), &[]);
        });
        let queue = Arc::clone(&self.queue);
        CALLS_WAITING.observe(meter, move |now| {
            now.observe(whole(queue.load(Ordering::Relaxed)), &[]);
        });
        let (adaptive, calls_max) = (self.adaptive.clone(), self.calls_max);
        CONCURRENCY_LIMIT.observe(meter, move |now| {
            let limit = adaptive.as_ref().map_or(calls_max, |adaptive| adaptive.limit());
            now.observe(whole(limit), &[]);
        });
        self
    }

    /// Takes the place back, and counts the answer until its end.
    fn ended(&self, working: Working, response: Response<Body>) -> Response<Body> {
        match (&self.adaptive, working.timed) {
            (Some(adaptive), Some((path, began))) => {
                let path = path.as_ref().map_or("", PathAndQuery::path);
                adaptive.ended(path, began.elapsed(), working.place);
            }
            _ => drop(working.place),
        }
        match Arc::clone(&self.bodies).try_acquire_owned() {
            Ok(permit) => hold_until_end(response, permit),
            Err(_) => refuse(self.shed("RESPONSE_LIMIT", "responses being sent", self.bodies_max)),
        }
    }

    fn shed(&self, reason: &'static str, what: &str, limit: usize) -> Status {
        self.sheds.count(reason);
        let message = format!("the server is at its limit of {limit} {what}; retry with backoff");
        StatusBuilder::resource_exhausted(reason, message)
            .metadata("limit", limit)
            .retry_after(RETRY_AFTER)
            .build()
    }

    /// A place to work, after waiting if there is room to wait; the deadline layer outside bounds the time.
    async fn wait_for_place(&self) -> Result<OwnedSemaphorePermit, Status> {
        let waiting = Waiting::enter(&self.queue, self.queue_max)
            .ok_or_else(|| self.shed("CONCURRENCY_LIMIT", "calls at a time", self.calls_max))?;
        let permit = Arc::clone(&self.calls).acquire_owned().await;
        drop(waiting);
        // The semaphore is never closed; were it, there would be no place.
        permit.map_err(|_| self.shed("CONCURRENCY_LIMIT", "calls at a time", self.calls_max))
    }
}

/// A call that has a place, until its answer begins.
struct Working {
    place: OwnedSemaphorePermit,
    /// Its path and its beginning, where the limit goes by how long calls take.
    timed: Option<(Option<PathAndQuery>, Instant)>,
}

impl Working {
    fn begin(layer: &ConcurrencyLayer, request: &Request<Body>, place: OwnedSemaphorePermit) -> Self {
        let timed = layer.adaptive.is_some();
        Self {
            place,
            timed: timed.then(|| (request.uri().path_and_query().cloned(), Instant::now())),
        }
    }
}

/// A place in the queue, given back when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(queue: &'a AtomicUsize, queue_max: usize) -> Option<Self> {
        let entered = queue.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < queue_max).then_some(waiting + 1)
        });
        entered.ok().map(|_| Self(queue))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S> Layer<S> for ConcurrencyLayer {
    type Service = Concurrency<S>;

    fn layer(&self, inner: S) -> Concurrency<S> {
        Concurrency {
            inner,
            layer: self.clone(),
        }
    }
}

/// See [`ConcurrencyLayer`].
#[derive(Clone, Debug)]
pub struct Concurrency<S> {
    inner: S,
    layer: ConcurrencyLayer,
}

impl<S: Inner> Service<Request<Body>> for Concurrency<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        if is_health(request.uri().path()) {
            return Box::pin(self.inner.call(request));
        }
        let layer = self.layer.clone();
        if let Ok(place) = Arc::clone(&layer.calls).try_acquire_owned() {
            let working = Working::begin(&layer, &request, place);
            let answer = self.inner.call(request);
            return Box::pin(async move { Ok(layer.ended(working, answer.await?)) });
        }
        let mut inner = self.inner.clone();
        Box::pin(async move {
            let place = match layer.wait_for_place().await {
                Ok(place) => place,
                Err(status) => return Ok(refuse(status)),
            };
            let working = Working::begin(&layer, &request, place);
            let response = inner.call(request).await?;
            Ok(layer.ended(working, response))
        })
    }
}

#[cfg(test)]
mod tests;
