//! Concurrency limit with a bounded queue: calls beyond both are shed at once, with a retry delay.
//!
//! A place is held until the response headers, that is for the work of a unary call. Streams, and unary calls until their responses are
//! sent, have pools of their own, which are taken from before the call, so that finished work is never shed. A caller has at most its
//! share of each. Health calls have a pool of their own, by address: a busy server is not a dead one.
//!
//! A caller is an authenticated name. Others are keyed by their address at a front door; loopback addresses have no share there, since
//! behind a local proxy all calls come from one.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{Extensions, Request};
use opentelemetry::metrics::Meter;
use tonic::Status;
use tonic::body::Body;

use super::body::hold_until_dropped;
use super::shed::Sheds;
use super::{Answering, Around, Inner, refuse, refused};
use crate::callers::CallerKey;
use crate::callers::pool::{Columns, Full, Pool, Taken, refusal};
use crate::connection_info::ConnectionInfo;
use crate::health;
use crate::methods::Methods;
use crate::telemetry::instrument::whole;
use crate::telemetry::instruments::{CALLS_WAITING, CALLS_WORKING, CONCURRENCY_LIMIT};

mod places;

use places::{Place, Places};

/// Limits of calls in flight.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrencyLimits {
    /// Calls that work, until their response headers.
    pub calls_max: usize,
    /// Calls that wait to work.
    pub queue_max: usize,
    /// Calls with streaming responses, until these end.
    pub streams_max: usize,
    /// Unary calls until their responses are sent; more than may work and wait.
    pub answers_max: usize,
    /// Whether callers without an authenticated name are keyed by their address.
    pub by_origin: bool,
}

/// Limits calls in flight. Clones, and all services that they made, share the limits.
#[derive(Clone, Debug)]
pub struct ConcurrencyLayer {
    places: Arc<Places>,
    queue: Arc<Pool>,
    streams: Limited,
    answers: Limited,
    health_calls: Limited,
    by_origin: bool,
    methods: Methods,
    sheds: Sheds,
}

/// A pool and the words of its refusals.
#[derive(Clone, Debug)]
struct Limited {
    pool: Arc<Pool>,
    words: LimitWords,
}

/// The reasons when all are taken and when the caller has its share, and what is limited.
type LimitWords = [&'static str; 3];

const CALLS: LimitWords = ["CONCURRENCY_LIMIT", "CALLER_CONCURRENCY_LIMIT", "calls at a time"];

const STREAMS: LimitWords = ["STREAM_LIMIT", "CALLER_STREAM_LIMIT", "open streams"];

const ANSWERS: LimitWords = [
    "RESPONSE_LIMIT",
    "CALLER_RESPONSE_LIMIT",
    "calls until their answers are taken",
];

const HEALTH_CALLS: LimitWords = [
    "HEALTH_LIMIT",
    "CALLER_HEALTH_LIMIT",
    "questions for health at a time",
];

impl ConcurrencyLayer {
    /// The limits; `methods` tells streaming RPCs, `sheds` counts shed calls.
    pub fn new(limits: ConcurrencyLimits, methods: Methods, sheds: Sheds) -> Self {
        let health_calls = Pool::with_each(health::CALLS_MAX, health::CALLS_PER_ADDRESS_MAX);
        let limited = |pool, words| Limited { pool, words };
        Self {
            places: Places::new(limits.calls_max),
            queue: Pool::new(limits.queue_max),
            streams: limited(Pool::new(limits.streams_max), STREAMS),
            answers: limited(Pool::new(limits.answers_max), ANSWERS),
            health_calls: limited(health_calls, HEALTH_CALLS),
            by_origin: limits.by_origin,
            methods,
            sheds,
        }
    }

    /// Observes on `meter` how many calls work and wait, and how many may work.
    #[must_use]
    pub fn observed(self, meter: &Meter) -> Self {
        let places = Arc::clone(&self.places);
        let calls_max = self.places.max;
        CALLS_WORKING.observe(meter, move |now| {
            let free = places.free.available_permits();
            now.observe(whole(calls_max.saturating_sub(free)), &[]);
        });
        let queue = Arc::clone(&self.queue);
        CALLS_WAITING.observe(meter, move |now| now.observe(whole(queue.taken()), &[]));
        CONCURRENCY_LIMIT.observe(meter, move |now| now.observe(whole(calls_max), &[]));
        self
    }

    /// The caller whose share a call takes from; `None` for calls without one.
    fn caller(&self, extensions: &Extensions) -> Option<Columns> {
        let key = CallerKey::proven(extensions).or_else(|| {
            let origin = self.by_origin.then(|| CallerKey::origin(extensions)).flatten();
            origin.filter(|key| !matches!(key, CallerKey::Address(address) if address.is_loopback()))
        });
        key.as_ref().map(Columns::of)
    }

    fn take(&self, of: &Limited, caller: Option<Columns>) -> Result<Taken, Status> {
        let taken = of.pool.take(caller);
        taken.map_err(|full| self.shed(full, of.words, of.pool.max))
    }

    fn shed(&self, full: Full, words: LimitWords, max: usize) -> Status {
        let [all, share, what] = words;
        let reason = if full == Full::All { all } else { share };
        let message = match full {
            Full::All => format!("the server is at its limit of {max} {what}; retry with backoff"),
            Full::Share => format!(
                "the caller has its share of the server's {max} {what}; retry with backoff, or do less at a time"
            ),
        };
        self.sheds.count(reason);
        refusal(reason, message, max)
    }

    /// Waits in the queue, if it has room, for a place to work. The deadline layer outside bounds the time.
    async fn wait_for_place(&self, caller: Option<Columns>) -> Result<Place, Status> {
        let shed = |full| self.shed(full, CALLS, self.places.max);
        let waiting = self.queue.take(caller).map_err(shed)?;
        let place = self.places.take(caller).await;
        drop(waiting);
        place.ok_or_else(|| shed(Full::All))
    }
}

impl Around for ConcurrencyLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        let (path, extensions) = (request.uri().path(), request.extensions());
        let is_health = health::is_path(path);
        let probe = || CallerKey::probes(extensions).as_ref().map(Columns::of);
        let (of, caller) = match is_health {
            true => (&self.health_calls, probe()),
            false if self.methods.of(path).streams => (&self.streams, self.caller(extensions)),
            false => (&self.answers, self.caller(extensions)),
        };
        let taken = match self.take(of, caller) {
            Ok(taken) => taken,
            Err(status) => return Either::Right(refused(status).left_future()),
        };
        let info = extensions.get::<Arc<ConnectionInfo>>().filter(|_| is_health);
        let held = (taken, info.map(|info| info.activity.health_calls.token()));
        let place = match is_health {
            true => None,
            false => match self.places.try_take(caller) {
                Some(place) => Some(place),
                // Boxed, to keep the future of the calls that don't wait small.
                None => {
                    let waits = Box::pin(async move {
                        let place = match self.wait_for_place(caller).await {
                            Ok(place) => place,
                            Err(status) => return refuse(status),
                        };
                        let response = inner.call(request).await;
                        drop(place);
                        hold_until_dropped(response, Some(held))
                    });
                    return Either::Right(waits.right_future());
                }
            },
        };
        Either::Left(inner.call(request).map(|response| {
            drop(place);
            hold_until_dropped(response, Some(held))
        }))
    }
}

#[cfg(test)]
mod tests;
