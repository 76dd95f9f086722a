//! Concurrency limit with a bounded queue: calls beyond both are shed at once, with a retry delay.
//!
//! A place is held until the response headers, that is for the work of a unary call. Streams have a count of their own, and so have unary
//! calls until their answers are sent; both are taken before the call: what has been done is answered. Of everything a caller has
//! its share at most. Questions for health have a number of their own, by where they come from: a busy server is not a dead one.
//!
//! A caller is who was proven to call. Others are told apart by their address where clients come themselves, at a front door; there
//! those on this machine have no share: behind a proxy on it all come from there, and whoever works on it has other ways.

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
use crate::callers::pool::{Columns, Full, Pool, Taken};
use crate::connection_info::ConnectionInfo;
use crate::health;
use crate::methods::Methods;
use crate::telemetry::instrument::whole;
use crate::telemetry::instruments::{CALLS_WAITING, CALLS_WORKING, CONCURRENCY_LIMIT};

mod places;

use places::{Place, Places};

/// How much is done at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrencyLimits {
    /// Calls at work.
    pub calls_max: usize,
    /// Calls that wait for a place to work.
    pub queue_max: usize,
    /// Calls whose answers are streams, to the end of those.
    pub streams_max: usize,
    /// Other calls, to the end of their answers; as many as may work and wait, and more.
    pub answers_max: usize,
    /// Whether those who proved no name are told apart by where they come from.
    pub by_origin: bool,
}

/// Limits how much is done at a time. Clones, and all services they made, share the limits.
#[derive(Clone, Debug)]
pub struct ConcurrencyLayer {
    places: Arc<Places>,
    queue: Arc<Pool>,
    streams: Limited,
    answers: Limited,
    questions: Limited,
    by_origin: bool,
    methods: Methods,
    sheds: Sheds,
}

/// A pool, and what is said when there is none left.
#[derive(Clone, Debug)]
struct Limited {
    pool: Arc<Pool>,
    words: LimitWords,
}

/// The reason when all are taken, that when the caller has its share, and what there is a number of.
type LimitWords = [&'static str; 3];

const CALLS: LimitWords = ["CONCURRENCY_LIMIT", "CALLER_CONCURRENCY_LIMIT", "calls at a time"];

const STREAMS: LimitWords = ["STREAM_LIMIT", "CALLER_STREAM_LIMIT", "open streams"];

const ANSWERS: LimitWords = [
    "RESPONSE_LIMIT",
    "CALLER_RESPONSE_LIMIT",
    "calls until their answers are taken",
];

const QUESTIONS: LimitWords = [
    "HEALTH_LIMIT",
    "CALLER_HEALTH_LIMIT",
    "questions for health at a time",
];

impl ConcurrencyLayer {
    /// Within `limits`; `methods` says which calls are streams, and what is shed is counted in `sheds`.
    pub fn new(limits: ConcurrencyLimits, methods: Methods, sheds: Sheds) -> Self {
        let questions = Pool::with_each(health::QUESTIONS_MAX, health::QUESTIONS_PER_ADDRESS_MAX);
        let limited = |pool, words| Limited { pool, words };
        Self {
            places: Places::new(limits.calls_max),
            queue: Pool::new(limits.queue_max),
            streams: limited(Pool::new(limits.streams_max), STREAMS),
            answers: limited(Pool::new(limits.answers_max), ANSWERS),
            questions: limited(questions, QUESTIONS),
            by_origin: limits.by_origin,
            methods,
            sheds,
        }
    }

    /// Shows on `meter` how many work and wait, and how many may work.
    #[must_use]
    pub fn observed(self, meter: &Meter) -> Self {
        let places = Arc::clone(&self.places);
        let calls_max = self.places.max();
        CALLS_WORKING.observe(meter, move |now| {
            let free = places.free().available_permits();
            now.observe(whole(calls_max.saturating_sub(free)), &[]);
        });
        let queue = Arc::clone(&self.queue);
        CALLS_WAITING.observe(meter, move |now| now.observe(whole(queue.taken()), &[]));
        CONCURRENCY_LIMIT.observe(meter, move |now| now.observe(whole(calls_max), &[]));
        self
    }

    /// Whose share a call is of; `None` has none.
    fn caller(&self, extensions: &Extensions) -> Option<Columns> {
        let key = CallerKey::proven(extensions).or_else(|| {
            let origin = self.by_origin.then(|| CallerKey::origin(extensions)).flatten();
            origin.filter(|origin| !origin.is_of_this_machine())
        });
        key.as_ref().map(Columns::of)
    }

    fn take(&self, of: &Limited, caller: Option<Columns>) -> Result<Taken, Status> {
        let taken = of.pool.take(caller);
        taken.map_err(|full| self.shed(full, of.words, of.pool.max()))
    }

    fn shed(&self, full: Full, words: LimitWords, max: usize) -> Status {
        let [all, share, what] = words;
        self.sheds.count(match full {
            Full::All => all,
            Full::Share => share,
        });
        let at_limit = format!("the server is at its limit of {max} {what}; retry with backoff");
        let shared = format!(
            "the caller has its share of the server's {max} {what}; retry with backoff, or do less at a time"
        );
        full.refusal((all, &at_limit, max), (share, &shared, max))
    }

    /// A place to work, after waiting if there is room to wait; the deadline layer outside bounds the time.
    async fn wait_for_place(&self, caller: Option<Columns>) -> Result<Place, Status> {
        let shed = |full| self.shed(full, CALLS, self.places.max());
        let waiting = self.queue.take(caller).map_err(shed)?;
        let place = self.places.take(caller).await;
        drop(waiting);
        place.ok_or_else(|| shed(Full::All))
    }
}

put_around!(ConcurrencyLayer);

impl Around for ConcurrencyLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        let (path, extensions) = (request.uri().path(), request.extensions());
        let is_question = health::is_asked(path);
        let (of, caller) = match is_question {
            true => (
                &self.questions,
                CallerKey::probes(extensions).as_ref().map(Columns::of),
            ),
            false if self.methods.streams(path) => (&self.streams, self.caller(extensions)),
            false => (&self.answers, self.caller(extensions)),
        };
        // What has been done is answered: until then it is held.
        let taken = match self.take(of, caller) {
            Ok(taken) => taken,
            Err(status) => return Either::Right(refused(status).left_future()),
        };
        let info = extensions.get::<Arc<ConnectionInfo>>().filter(|_| is_question);
        let held = (taken, info.map(|info| info.activity.question()));
        let place = match is_question {
            true => None,
            false => match self.places.try_take(caller) {
                Some(place) => Some(place),
                // Few calls wait: these have a box.
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
