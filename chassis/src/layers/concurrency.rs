//! So many calls at a time, so many waiting, and no more: what is beyond is shed at once, with the time to come back.
//!
//! A place is held until the response headers, that is for the work of a unary call. Streams that are open after their
//! headers have a count of their own, so that watchers can't starve the calls. Health checks pass: a busy server is
//! not a dead one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::uri::PathAndQuery;
use http::{Request, Response};
use opentelemetry::metrics::Meter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tower::Layer;

use super::hold::{HeldBody, hold_until_end};
use super::shed::Sheds;
use super::{AnswerBody, Inner, is_health, refuse};
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
    fn ended<B: AnswerBody>(&self, working: Working, response: Response<B>) -> Response<Counted<B>> {
        match (&self.adaptive, working.timed) {
            (Some(adaptive), Some((path, began))) => {
                let path = path.as_ref().map_or("", PathAndQuery::path);
                adaptive.ended(path, began.elapsed(), working.place);
            }
            _ => drop(working.place),
        }
        match Arc::clone(&self.bodies).try_acquire_owned() {
            Ok(permit) => hold_until_end(response, Some(permit)),
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

/// The body of an answer that counts until its end.
type Counted<B> = HeldBody<B, OwnedSemaphorePermit>;

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
#[derive(Debug)]
pub struct Concurrency<S> {
    inner: S,
    layer: ConcurrencyLayer,
}

impl<S: Inner> Inner for Concurrency<S> {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        let layer = &self.layer;
        let counted = !is_health(request.uri().path());
        let place = counted.then(|| Arc::clone(&layer.calls).try_acquire_owned());
        let working = match place {
            None => None,
            Some(Ok(place)) => Some(Working::begin(layer, &request, place)),
            // Few calls wait: these have a box.
            Some(Err(_)) => {
                return Either::Right(Box::pin(async move {
                    let place = match layer.wait_for_place().await {
                        Ok(place) => place,
                        Err(status) => return refuse(status),
                    };
                    let working = Working::begin(layer, &request, place);
                    let response = self.inner.call(request).await;
                    layer.ended(working, response)
                }));
            }
        };
        Either::Left(self.inner.call(request).map(|response| match working {
            Some(working) => layer.ended(working, response),
            None => hold_until_end(response, None),
        }))
    }
}

#[cfg(test)]
mod tests;
