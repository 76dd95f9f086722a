//! Rate limits: a token bucket for all calls and one for each caller, by the GCRA of the crate `governor`.
//!
//! A call over a limit is refused at once with RESOURCE_EXHAUSTED and a retry delay. Calls are keyed by their authenticated caller, so the
//! layer stands behind [`admission`](super::admission), which counts those that it refuses by their address. Health calls have buckets of
//! their own for each address: other calls from there don't make a server look dead to it.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed, StateStore};
use governor::{NotUntil, Quota, RateLimiter};
use http::{Extensions, Request};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

use super::shed::Sheds;
use super::{Answering, Around, Inner, refused};
use crate::callers::CallerKey;
use crate::callers::pool::{Columns, ROWS};
use crate::config::RateConfig;
use crate::health;
use crate::status::StatusBuilder;

/// Buckets of a row, all rows in 2 MiB: beside 10,000 callers at their limits, one in 2,500 shares all of its buckets with them.
const COLUMNS: usize = 65_536;

/// Time since the limits were made, by the runtime's clock.
#[derive(Clone, Debug)]
struct SinceStart(Instant);

impl Clock for SinceStart {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The buckets of all callers in fixed memory, a count-min sketch. A call takes from its caller's bucket in each row, and exceeds the limit
/// if it does in all of them.
#[derive(Debug)]
struct CallerBuckets([Box<[InMemoryState]>; ROWS]);

impl CallerBuckets {
    fn new() -> Self {
        let row = || (0..COLUMNS).map(|_| InMemoryState::default()).collect();
        Self(std::array::from_fn(|_| row()))
    }
}

impl StateStore for CallerBuckets {
    type Key = CallerKey;

    fn measure_and_replace<T, F, E>(&self, key: &CallerKey, take: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let [first, others @ ..] = &self.0;
        let [column, columns @ ..] = Columns::of(key).among(COLUMNS);
        let taken = first[column].measure_and_replace(&NotKeyed::NonKey, &take);
        let others = others.iter().zip(columns);
        others.fold(taken, |taken, (row, column)| {
            let here = row[column].measure_and_replace(&NotKeyed::NonKey, &take);
            taken.or(here)
        })
    }
}

type Limiter<S> = RateLimiter<<S as StateStore>::Key, S, SinceStart, NoOpMiddleware<Duration>>;

fn limiter<S: StateStore>(per_second: u32, burst: u32, state: fn() -> S) -> Option<Limiter<S>> {
    let rate = NonZero::new(per_second)?;
    let quota = Quota::per_second(rate).allow_burst(NonZero::new(burst).unwrap_or(rate));
    Some(RateLimiter::new(quota, state(), SinceStart(Instant::now())))
}

/// Limits the rate of calls. Clones, and all services they made, share the buckets.
#[derive(Clone, Debug)]
pub struct RateLayer {
    limits: Arc<RateLimits>,
    /// Whether calls are what a front answers by itself.
    own_answers: bool,
}

#[derive(Debug)]
struct RateLimits {
    all: Option<Limiter<InMemoryState>>,
    callers: Option<Limiter<CallerBuckets>>,
    sheds: Sheds,
}

impl RateLimits {
    /// Takes a call from the bucket of `caller`, if anybody is to be counted; `whose` rate it is stands in the refusal.
    fn take_own(&self, caller: Option<CallerKey>, whose: &str) -> Result<(), Status> {
        let (Some(callers), Some(caller)) = (&self.callers, caller) else {
            return Ok(());
        };
        let taken = callers.check_key(&caller);
        taken.map_err(|over| self.shed("CALLER_RATE_LIMIT", whose, &over, callers.clock()))
    }

    fn shed(&self, reason: &'static str, whose: &str, over: &NotUntil<Duration>, now: &SinceStart) -> Status {
        self.sheds.count(reason);
        let each = over.quota().replenish_interval();
        let rate = Duration::from_secs(1).as_nanos() / each.as_nanos().max(1);
        let message = format!("the call is above the {rate} calls a second that {whose}; come back later");
        StatusBuilder::resource_exhausted(reason, message)
            .metadata("calls_per_second", rate)
            // In milliseconds on the wire: a call that comes back early would be refused again.
            .retry_after(over.wait_time_from(now.now()).max(Duration::from_millis(1)))
            .build()
    }
}

impl RateLayer {
    /// The limits of `config`; refusals are counted in `sheds`.
    pub fn new(config: &RateConfig, sheds: Sheds) -> Self {
        let each = config.caller_calls_per_second;
        let limits = RateLimits {
            all: limiter(config.calls_per_second, config.burst, InMemoryState::default),
            callers: limiter(each, config.caller_burst, CallerBuckets::new),
            sheds,
        };
        Self {
            limits: Arc::new(limits),
            own_answers: false,
        }
    }

    pub(crate) fn of_own_answers(self) -> Self {
        Self {
            own_answers: true,
            ..self
        }
    }

    /// Takes from the bucket of `origin` for a call that wasn't admitted.
    pub(crate) fn count_stranger(&self, origin: Option<CallerKey>) -> Result<(), Status> {
        self.limits.take_own(origin, "those who aren't let in may make")
    }

    fn take(&self, path: &str, extensions: &Extensions) -> Result<(), Status> {
        let limits = &self.limits;
        if self.own_answers {
            // Nothing from the bucket of all: strangers would empty it for those who are known.
            let whose = "those whom the front door answers by itself at one address may make";
            return limits.take_own(CallerKey::visitors(extensions), whose);
        }
        if health::is_path(path) {
            let whose = "those who ask for health from one address may make";
            return limits.take_own(CallerKey::probes(extensions), whose);
        }
        // The caller's first: who is over its own limit takes nothing from the others.
        limits.take_own(CallerKey::from_extensions(extensions), "its caller may make")?;
        let Some(all) = &limits.all else {
            return Ok(());
        };
        let taken = all.check();
        taken.map_err(|over| limits.shed("RATE_LIMIT", "the server takes", &over, all.clock()))
    }
}

impl Around for RateLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        match self.take(request.uri().path(), request.extensions()) {
            Ok(()) => Either::Left(inner.call(request)),
            Err(status) => Either::Right(refused(status)),
        }
    }
}

#[cfg(test)]
mod tests;
