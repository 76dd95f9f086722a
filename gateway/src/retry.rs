//! Retries safe calls (`idempotency_level = NO_SIDE_EFFECTS`) that a backend refused or didn't answer.
//!
//! Only UNAVAILABLE is retried, the one code that allows it (AIP-194), and only before the first byte of a response, after the backend's
//! `grpc-retry-pushback-ms` or else with exponential backoff and jitter. What a process refuses of one resource alone, such as an index
//! that is being built, is asked of another process at once, and not waited for. A retry budget as in gRFC A6 stops retries while most
//! calls fail, so that they don't keep an overloaded backend down. Each attempt has a CLIENT span, and `grpc-previous-rpc-attempts`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use opentelemetry::metrics::Meter;
use serde::{Deserialize, Serialize};
use souk_chassis::client::NoAnswer;
use souk_chassis::config::{Problems, duration};
use souk_chassis::layers::deadline::Deadline;
use souk_chassis::methods::Methods;
use souk_chassis::status::{RETRY_PUSHBACK, code_in, is_refusal};
use tonic::Code;
use tonic::body::Body;

use crate::balance::Balance;
use crate::metrics::{RETRIES, RETRIES_REFUSED, Tally};

/// Says how often a call was sent before (gRFC A6).
const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";

/// What a full budget holds, in thousandths: a failure costs a whole one.
const BUDGET_MAX: i64 = 1_000_000;

/// What an answer gives back, in thousandths.
const PER_ANSWER: i64 = 100;

/// What a failure costs, in thousandths.
const PER_FAILURE: i64 = 1_000;

/// How safe calls are repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// How often a call is sent at most; with 1 none is repeated.
    pub attempts_max: u32,
    /// Pause before the second attempt, when the backend names none; it doubles with each.
    #[serde(with = "duration")]
    pub backoff_min: Duration,
    /// Longest such pause.
    #[serde(with = "duration")]
    pub backoff_max: Duration,
    /// All pauses of a call together; it is answered as it is when the next would be beyond.
    #[serde(with = "duration")]
    pub wait_max: Duration,
    /// Largest request that is kept to be sent again, in bytes.
    pub body_bytes_max: usize,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            attempts_max: 6,
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(1),
            wait_max: Duration::from_secs(3),
            body_bytes_max: 64 * 1024,
        }
    }
}

impl RetryConfig {
    /// No call is repeated.
    pub fn none() -> Self {
        Self {
            attempts_max: 1,
            ..Self::default()
        }
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if self.attempts_max == 0 {
            problems.push_in(path, "attempts_max", "must be at least 1, which repeats nothing");
        }
        if self.backoff_min.is_zero() || self.backoff_min > self.backoff_max {
            let message = "must be more than zero and at most backoff_max";
            problems.push_in(path, "backoff_min", message);
        }
    }
}

/// A way to a backend that repeats. Clones share the budget.
#[derive(Clone)]
pub(crate) struct Retry {
    backend: Balance,
    methods: Methods,
    config: Arc<RetryConfig>,
    budget: Arc<RetryBudget>,
    retries: Tally,
    refused: Tally,
}

impl Retry {
    /// Repeats the calls to `backend` that `methods` has as safe. Counts on `meter`, as those of the backend `name`, the calls that are sent
    /// again, and those that the budget keeps from it.
    pub(crate) fn new(
        backend: Balance,
        methods: Methods,
        config: RetryConfig,
        name: &Arc<str>,
        meter: &Meter,
    ) -> Self {
        Self {
            backend,
            methods,
            config: Arc::new(config),
            budget: Arc::new(RetryBudget(AtomicI64::new(BUDGET_MAX))),
            retries: Tally::new(&RETRIES, name, meter),
            refused: Tally::new(&RETRIES_REFUSED, name, meter),
        }
    }

    /// Are the calls at this request path repeated?
    pub(crate) fn repeats(&self, path: &str) -> bool {
        self.config.attempts_max > 1 && self.methods.of(path).repeatable
    }

    /// The answer to one attempt.
    pub(crate) async fn once(&self, request: Request<Body>) -> Response<Body> {
        self.backend.call(request, None).await.0
    }

    /// The answer, or the last refusal.
    pub(crate) async fn call(&self, request: Request<Body>) -> Response<Body> {
        if !self.repeats(request.uri().path()) {
            return self.once(request).await;
        }
        let (parts, body) = request.into_parts();
        let kept = match keep(body, self.config.body_bytes_max).await {
            Ok(bytes) => bytes,
            Err(body) => return self.once(Request::from_parts(parts, body)).await,
        };
        let (mut attempts, mut waited, mut before) = (0_u32, Duration::ZERO, None);
        loop {
            let body = Full::new(kept.clone()).map_err(|never| match never {});
            let mut request = Request::from_parts(parts.clone(), Body::new(body));
            if attempts > 0 {
                // Those of the caller count, too.
                let told = parts.headers.get(PREVIOUS_ATTEMPTS);
                let told = told.and_then(|told| told.to_str().ok()?.parse().ok());
                let previous = told.unwrap_or(0_u32).saturating_add(attempts);
                request.headers_mut().insert(PREVIOUS_ATTEMPTS, previous.into());
            }
            let (response, index) = self.backend.call(request, before).await;
            before = Some(index);
            attempts += 1;
            // In headers: an answer that has begun isn't repeated.
            if code_in(response.headers()) != Some(Code::Unavailable) {
                self.budget.answered();
                return response;
            }
            let Some(pause) = self.pause(&response, attempts) else {
                return response;
            };
            waited += pause;
            let deadline = parts.extensions.get::<Deadline>();
            let is_late = deadline.is_some_and(|deadline| deadline.remaining() <= pause);
            if waited > self.config.wait_max || is_late {
                return response;
            }
            self.retries.count();
            tracing::debug!(attempts, ?pause, path = %parts.uri.path(), "a safe call is sent again");
            tokio::time::sleep(pause).await;
        }
    }

    /// The pause before the next attempt; `None` when there is to be none.
    fn pause(&self, response: &Response<Body>, attempts: u32) -> Option<Duration> {
        let answered = response.extensions().get::<NoAnswer>().is_none();
        let refused = is_refusal(response.headers());
        // Nobody has worked on what nobody answered, and a process that refuses one resource works: neither costs anything.
        let affordable = !answered || !refused || self.budget.failed();
        if !affordable {
            self.refused.count();
        }
        if attempts >= self.config.attempts_max || !affordable {
            return None;
        }
        // Another process may answer at once; the one that was asked has spoken for itself alone.
        if attempts == 1 && self.backend.has_others() {
            return Some(Duration::ZERO);
        }
        match response.headers().get(RETRY_PUSHBACK).filter(|_| answered) {
            _ if !refused => None,
            // Anything but a time says: don't (gRFC A6).
            Some(pushback) => pushback.to_str().ok()?.parse().ok().map(Duration::from_millis),
            None => {
                let doubled = self
                    .config
                    .backoff_min
                    .saturating_mul(1 << attempts.saturating_sub(1).min(16));
                let jitter = 0.8 + 0.4 * fastrand::f64();
                Some(doubled.min(self.config.backoff_max).mul_f64(jitter))
            }
        }
    }
}

/// How many failures may be repeated: full at first, fuller by answers, and nothing is repeated from its lower half.
#[derive(Debug)]
struct RetryBudget(AtomicI64);

impl RetryBudget {
    fn answered(&self) {
        // Full is how it is almost always: no write then.
        if self.0.load(Ordering::Relaxed) < BUDGET_MAX {
            let more = |left: i64| Some((left + PER_ANSWER).min(BUDGET_MAX));
            let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Takes for a failure; may it be repeated?
    fn failed(&self) -> bool {
        let less = |left: i64| Some((left - PER_FAILURE).max(0));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        before.unwrap_or_else(|now| now) - PER_FAILURE > BUDGET_MAX / 2
    }
}

/// Buffers `body`, to be sent again. One of more than `bytes_max`, or with an error, stays a stream. Frames are copied: each of a byte
/// alone would hold the buffer that it was read into.
async fn keep(mut body: Body, bytes_max: usize) -> Result<Bytes, Body> {
    let mut kept = BytesMut::new();
    let broken = loop {
        match body.frame().await {
            None => return Ok(kept.freeze()),
            Some(Err(status)) => break Some(Err(status)),
            // Requests of gRPC have no trailers.
            Some(Ok(frame)) => kept.extend_from_slice(&frame.into_data().unwrap_or_default()),
        }
        if kept.len() > bytes_max {
            break None;
        }
    };
    let kept = stream::iter([Ok(Frame::data(kept.freeze()))]);
    let rest = stream::iter(broken).chain(BodyStream::new(body));
    Err(Body::new(StreamBody::new(kept.chain(rest))))
}

#[cfg(test)]
mod tests;
