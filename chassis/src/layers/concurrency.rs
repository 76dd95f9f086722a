//! So many calls at a time, so many waiting, and no more: what is beyond is shed at once, with the time to come back.
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
use http::{Extensions, Request, Response};
use opentelemetry::metrics::Meter;
use tonic::Status;
use tonic::body::Body;

use super::hold::hold_until_dropped;
use super::shed::Sheds;
use super::{AnswerBody, Around, Inner, refuse, refused};
use crate::callers::CallerKey;
use crate::callers::pool::{Columns, Full, Pool, Taken};
use crate::ends::Ends;
use crate::health;
use crate::methods::Methods;
use crate::status::{RETRY_AFTER, StatusBuilder};
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
    streams: Kind,
    answers: Kind,
    questions: Kind,
    by_origin: bool,
    methods: Methods,
    sheds: Sheds,
}

/// What there is a number of, and what is said when it is taken.
#[derive(Clone, Debug)]
struct Kind {
    pool: Arc<Pool>,
    words: Words,
}

#[derive(Clone, Copy, Debug)]
struct Words {
    /// The reason when all are taken.
    all: &'static str,
    /// The reason when the caller has its share.
    share: &'static str,
    what: &'static str,
}

const CALLS: Words = Words {
    all: "CONCURRENCY_LIMIT",
    share: "CALLER_CONCURRENCY_LIMIT",
    what: "calls at a time",
};

const STREAMS: Words = Words {
    all: "STREAM_LIMIT",
    share: "CALLER_STREAM_LIMIT",
    what: "open streams",
};

const ANSWERS: Words = Words {
    all: "RESPONSE_LIMIT",
    share: "CALLER_RESPONSE_LIMIT",
    what: "calls until their answers are taken",
};

const QUESTIONS: Words = Words {
    all: "HEALTH_LIMIT",
    share: "CALLER_HEALTH_LIMIT",
    what: "questions for health at a time",
};

impl ConcurrencyLayer {
    /// Within `limits`; `methods` says which calls are streams, and what is shed is counted in `sheds`.
    pub fn new(limits: ConcurrencyLimits, methods: Methods, sheds: Sheds) -> Self {
        let kind = |max, words| Kind {
            pool: Pool::new(max),
            words,
        };
        Self {
            places: Places::new(limits.calls_max),
            queue: Pool::new(limits.queue_max),
            streams: kind(limits.streams_max, STREAMS),
            answers: kind(limits.answers_max, ANSWERS),
            questions: Kind {
                pool: Pool::with_each(health::QUESTIONS_MAX, health::QUESTIONS_PER_ADDRESS_MAX),
                words: QUESTIONS,
            },
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

    /// What the call is from its beginning until its answer is taken.
    fn take(&self, path: &str, caller: Option<Columns>) -> Result<Taken, Status> {
        let kind = if self.methods.streams(path) {
            &self.streams
        } else {
            &self.answers
        };
        self.take_of(kind, caller)
    }

    fn take_of(&self, kind: &Kind, caller: Option<Columns>) -> Result<Taken, Status> {
        let taken = kind.pool.take(caller);
        taken.map_err(|full| self.shed(full, kind.words, kind.pool.max()))
    }

    fn shed(&self, full: Full, words: Words, max: usize) -> Status {
        let Words { all, share, what } = words;
        let (reason, message) = match full {
            Full::All => (
                all,
                format!("the server is at its limit of {max} {what}; retry with backoff"),
            ),
            Full::Share => (
                share,
                format!(
                    "the caller has its share of the server's {max} {what}; retry with backoff, or do less at a time"
                ),
            ),
        };
        self.sheds.count(reason);
        StatusBuilder::resource_exhausted(reason, message)
            .metadata("limit", max)
            .retry_after(RETRY_AFTER)
            .build()
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
    fn call(
        &self,
        inner: &impl Inner,
        request: Request<Body>,
    ) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        let layer = self;
        let path = request.uri().path();
        if health::is_asked(path) {
            let asker = CallerKey::probes(request.extensions());
            let taken = match layer.take_of(&layer.questions, asker.as_ref().map(Columns::of)) {
                Ok(taken) => taken,
                Err(status) => return Either::Right(refused(status).left_future()),
            };
            let ends = request.extensions().get::<Arc<Ends>>();
            let held = (taken, ends.map(|ends| ends.pulse.question()));
            let answer = inner.call(request);
            return Either::Left(
                answer
                    .map(|response| hold_until_dropped(response, Some(held)))
                    .left_future(),
            );
        }
        let caller = layer.caller(request.extensions());
        let taken = match layer.take(path, caller) {
            Ok(taken) => taken,
            Err(status) => return Either::Right(refused(status).left_future()),
        };
        let Some(place) = layer.places.try_take(caller) else {
            // Few calls wait: these have a box.
            let waits = Box::pin(async move {
                let place = match layer.wait_for_place(caller).await {
                    Ok(place) => place,
                    Err(status) => return refuse(status),
                };
                let response = inner.call(request).await;
                drop(place);
                hold_until_dropped(response, Some((taken, None)))
            });
            return Either::Right(waits.right_future());
        };
        let answer = inner.call(request).map(|response| {
            drop(place);
            hold_until_dropped(response, Some((taken, None)))
        });
        Either::Left(answer.right_future())
    }
}

#[cfg(test)]
mod tests;
