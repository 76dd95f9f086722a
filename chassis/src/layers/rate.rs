//! Token buckets for calls: one for all, one for each caller.
//!
//! A call over a limit is refused at once with RESOURCE_EXHAUSTED and the time to come back, before anything is done for
//! it. A bucket is one number, the time when it will be full again (GCRA, ITU-T I.371), so that a full one needs no room:
//! callers that have been quiet are forgotten, and nothing is lost by it. Health checks pass.
//!
//! The layer stands behind [`admission`](super::admission), so that calls are counted for who makes them. Those who aren't
//! let in never come here: admission counts them by their address, in buckets of the same size (`strangers`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::Either;
use http::{Extensions, Request, Response};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tower::Layer;

use super::shed::Sheds;
use super::{AnswerBody, Inner, is_health, refused};
use crate::config::RateConfig;
use crate::ends::Ends;
use crate::status::StatusBuilder;
use crate::tls::TlsPeer;

mod callers;

use callers::{CallerKey, Callers};

/// Who a call is counted for. Whoever finds out who calls puts it into the extensions of the request; without it the name
/// in the client's certificate counts, and without that its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(pub Arc<str>);

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
        if let (Some(bucket), Some(key)) = (self.caller, key(extensions)) {
            let taken = self.callers.take(&key, now, |full| bucket.take(full, now));
            taken.map_err(|wait| self.shed("CALLER_RATE_LIMIT", "its caller may make", bucket, wait))?;
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

/// The bucket of whoever comes from somewhere without being let in.
#[derive(Debug)]
pub(crate) struct Strangers {
    buckets: Arc<Buckets>,
    bucket: Bucket,
    key: CallerKey,
}

impl Strangers {
    /// Refuses the call when too many before it weren't let in.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to come back.
    pub(crate) fn look(&self) -> Result<(), Status> {
        let now = self.buckets.now();
        let looked = self
            .buckets
            .callers
            .take(&self.key, now, |full| self.bucket.take(full, now).map(|_| full));
        looked.map_err(|wait| {
            let whose = "those who aren't let in may make";
            self.buckets.shed("CALLER_RATE_LIMIT", whose, self.bucket, wait)
        })
    }

    /// Counts a call that wasn't let in.
    pub(crate) fn count(&self) {
        let now = self.buckets.now();
        // Over the limit there is nothing to take any more.
        let _ = self
            .buckets
            .callers
            .take(&self.key, now, |full| self.bucket.take(full, now));
    }
}

impl RateLayer {
    /// The bucket of a call's address, for those who aren't let in. `None` without a limit, and inside of this process.
    pub(crate) fn strangers(&self, extensions: &Extensions) -> Option<Strangers> {
        Some(Strangers {
            bucket: self.0.caller?,
            key: origin(extensions)?,
            buckets: Arc::clone(&self.0),
        })
    }
}

/// Who the call is counted for; nobody, when it comes from this process.
fn key(extensions: &Extensions) -> Option<CallerKey> {
    match extensions.get::<Caller>() {
        Some(caller) => Some(CallerKey::Name(Arc::clone(&caller.0))),
        None => origin(extensions),
    }
}

/// Where the call comes from, by a certificate or an address.
fn origin(extensions: &Extensions) -> Option<CallerKey> {
    if let Some(name) = extensions.get::<TlsPeer>().and_then(|peer| peer.name.clone()) {
        return Some(CallerKey::Name(name));
    }
    let ends = extensions.get::<Ends>()?;
    Some(CallerKey::address(ends.remote().socket.ip()))
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
        if !is_health(request.uri().path())
            && let Err(status) = self.layer.0.take(request.extensions())
        {
            return Either::Right(refused(status));
        }
        Either::Left(self.inner.call(request))
    }
}

#[cfg(test)]
mod tests;
