//! Token buckets for calls: one for all, one for each caller.
//!
//! A call over a limit is refused at once with RESOURCE_EXHAUSTED and the time to come back, before anything is done for
//! it. A bucket is one number, the time when it will be full again (GCRA, ITU-T I.371), so that a full one needs no room:
//! callers that have been quiet are forgotten, and nothing is lost by it.
//!
//! The layer stands behind [`admission`](super::admission), so that calls are counted for who makes them. Those who aren't
//! let in never come here: admission counts them by their address, in buckets of the same size. Health checks, which nobody has to prove
//! a name for, have such buckets of their own: neither the calls nor the strangers of an address make a server look dead to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::Either;
use http::{Extensions, Request, Response};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tower::Layer;

use super::caller::CallerKey;
use super::shed::Sheds;
use super::{AnswerBody, Inner, refused};
use crate::config::RateConfig;
use crate::health;
use crate::status::StatusBuilder;

mod callers;

use callers::Callers;

/// How fast a bucket fills, and how much it holds, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Time that a call takes from it.
    each: u64,
    /// Time that may be taken at once.
    depth: u64,
}

impl Bucket {
    /// `None` without a limit.
    fn new(per_second: u32, burst: u32) -> Option<Self> {
        let each = 1_000_000_000_u64.checked_div(u64::from(per_second))?;
        let burst = if burst == 0 { per_second } else { burst };
        Some(Self {
            each,
            depth: each.saturating_mul(u64::from(burst)),
        })
    }

    /// Takes a call from a bucket that is full again at `full`; when it is full after that, or how long to wait.
    fn take(self, full: u64, now: u64) -> Result<u64, Duration> {
        let after = full.max(now) + self.each;
        match after.checked_sub(now.saturating_add(self.depth)) {
            None | Some(0) => Ok(after),
            Some(wait) => Err(Duration::from_nanos(wait)),
        }
    }
}

/// Limits the rate of calls. Clones, and all services they made, share the buckets.
#[derive(Clone, Debug)]
pub struct RateLayer(Arc<Buckets>);

#[derive(Debug)]
struct Buckets {
    began: Instant,
    all: Option<Bucket>,
    all_full: AtomicU64,
    caller: Option<Bucket>,
    callers: Callers,
    sheds: Sheds,
}

impl RateLayer {
    /// The limits of `config`; refusals are counted in `sheds`.
    pub fn new(config: &RateConfig, sheds: Sheds) -> Self {
        Self(Arc::new(Buckets {
            began: Instant::now(),
            all: Bucket::new(config.calls_per_second, config.burst),
            all_full: AtomicU64::new(0),
            caller: Bucket::new(config.caller_calls_per_second, config.caller_burst),
            callers: Callers::default(),
            sheds,
        }))
    }
}

impl Buckets {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX / 2)
    }

    /// Takes a call from the caller's bucket and from that of all.
    fn take(&self, extensions: &Extensions) -> Result<(), Status> {
        if self.all.is_none() && self.caller.is_none() {
            return Ok(());
        }
        let now = self.now();
        // The caller's first: who is over its own limit takes nothing from the others.
        if self.caller.is_some() {
            self.take_own(CallerKey::of(extensions).as_ref(), now, "its caller may make")?;
        }
        if let Some(bucket) = self.all {
            let mut wait = Duration::ZERO;
            let taken = self
                .all_full
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full| {
                    bucket.take(full, now).map_err(|time| wait = time).ok()
                });
            taken.map_err(|_| self.shed("RATE_LIMIT", "the server takes", bucket, wait))?;
        }
        Ok(())
    }

    /// Takes a call from the bucket of `key`, if anybody is to be counted; `whose` rate it is stands in the refusal.
    fn take_own(&self, key: Option<&CallerKey>, now: u64, whose: &str) -> Result<(), Status> {
        let (Some(bucket), Some(key)) = (self.caller, key) else {
            return Ok(());
        };
        let taken = self.callers.take(key, now, |full| bucket.take(full, now));
        taken.map_err(|wait| self.shed("CALLER_RATE_LIMIT", whose, bucket, wait))
    }

    /// Takes a question for health from the bucket of those who ask from where it comes.
    fn take_probe(&self, extensions: &Extensions) -> Result<(), Status> {
        if self.caller.is_none() {
            return Ok(());
        }
        let whose = "those who ask for health from one address may make";
        self.take_own(CallerKey::probes(extensions).as_ref(), self.now(), whose)
    }

    /// Takes what a front answers by itself from the bucket of those who come from there. Nothing from that of all: strangers would
    /// empty it for those who are known.
    fn take_visit(&self, extensions: &Extensions) -> Result<(), Status> {
        if self.caller.is_none() {
            return Ok(());
        }
        let whose = "those whom the front door answers by itself at one address may make";
        self.take_own(CallerKey::visitors(extensions).as_ref(), self.now(), whose)
    }

    fn shed(&self, reason: &'static str, whose: &str, bucket: Bucket, wait: Duration) -> Status {
        self.sheds.count(reason);
        let rate = 1_000_000_000 / bucket.each.max(1);
        let message = format!("the call is above the {rate} calls a second that {whose}; come back later");
        StatusBuilder::resource_exhausted(reason, message)
            .metadata("calls_per_second", rate)
            // In milliseconds on the wire: a call that comes back early would be refused again.
            .retry_after(wait.max(Duration::from_millis(1)))
            .build()
    }
}

impl RateLayer {
    /// Has each caller a rate?
    pub(crate) fn limits_callers(&self) -> bool {
        self.0.caller.is_some()
    }

    /// Counts a call that wasn't let in for where it comes from.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to come back, when too many before it weren't.
    pub(crate) fn count_stranger(&self, origin: Option<&CallerKey>) -> Result<(), Status> {
        self.0
            .take_own(origin, self.0.now(), "those who aren't let in may make")
    }
}

impl RateLayer {
    /// The rate of what a front answers by itself.
    pub(crate) fn of_own_answers(self) -> OwnAnswersRateLayer {
        OwnAnswersRateLayer(self)
    }
}

/// See [`RateLayer::of_own_answers`].
#[derive(Clone, Debug)]
pub(crate) struct OwnAnswersRateLayer(RateLayer);

impl<S> Layer<S> for OwnAnswersRateLayer {
    type Service = OwnAnswersRate<S>;

    fn layer(&self, inner: S) -> OwnAnswersRate<S> {
        OwnAnswersRate {
            inner,
            layer: self.0.clone(),
        }
    }
}

/// See [`RateLayer::of_own_answers`].
#[derive(Debug)]
pub(crate) struct OwnAnswersRate<S> {
    inner: S,
    layer: RateLayer,
}

impl<S: Inner> Inner for OwnAnswersRate<S> {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        match self.layer.0.take_visit(request.extensions()) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(status) => Either::Right(refused(status)),
        }
    }
}

impl<S> Layer<S> for RateLayer {
    type Service = Rate<S>;

    fn layer(&self, inner: S) -> Rate<S> {
        Rate {
            inner,
            layer: self.clone(),
        }
    }
}

/// See [`RateLayer`].
#[derive(Debug)]
pub struct Rate<S> {
    inner: S,
    layer: RateLayer,
}

impl<S: Inner> Inner for Rate<S> {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        let buckets = &self.layer.0;
        let taken = if health::is_asked(request.uri().path()) {
            buckets.take_probe(request.extensions())
        } else {
            buckets.take(request.extensions())
        };
        match taken {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(status) => Either::Right(refused(status)),
        }
    }
}

#[cfg(test)]
mod tests;
