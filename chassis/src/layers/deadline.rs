//! Every call ends in time, with DEADLINE_EXCEEDED.
//!
//! Until the response headers a call has the smaller of its `grpc-timeout` (or the server's default) and the server's maximum. Then the
//! server's limits no longer apply, since a stream may live for days; the client's `grpc-timeout` does, until the trailers.
//! (`tonic::transport::Server::timeout` isn't used: it answers CANCELLED.)

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

use super::body::{CutOff, followed};
use super::{Answering, Around, Inner, refuse, refused};
use crate::status::{GRPC_STATUS, StatusBuilder};

/// The header with the time a caller gives.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Units of [`GRPC_TIMEOUT`], finest first, in nanoseconds.
const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// Largest number in front of a unit: the protocol allows eight digits.
const TIMEOUT_NUMBER_MAX: u128 = 99_999_999;

/// When the work on a call must be done. A handler finds it in the extensions of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The moment until which the response must have begun.
    pub at: Instant,
    /// When the client's own time is over, streams included; `None` when it named none.
    pub(super) asked: Option<Instant>,
}

tokio::task_local! {
    /// The deadline of the call that this task works on.
    static CURRENT: Deadline;
}

impl Deadline {
    /// The time left until the response must have begun; zero when it is over.
    pub fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// What is left of the time the client named, streams included; `None` when it named none.
    pub fn asked_remaining(self) -> Option<Duration> {
        self.asked
            .map(|asked| asked.saturating_duration_since(Instant::now()))
    }

    /// The deadline of the call that this task serves; `None` outside a call, and in tasks it spawned.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|deadline| *deadline).ok()
    }

    /// The time of the call that `request` forwards, or that this task serves.
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        let forwarded = request.extensions().get::<Self>().copied();
        forwarded.or_else(Self::current)
    }
}

/// The time a caller gives in its headers.
///
/// # Errors
/// INVALID_ARGUMENT when the header isn't what the protocol says.
pub fn parse(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else {
        return Ok(None);
    };
    let parsed = value.as_bytes().split_last().and_then(|(unit, digits)| {
        let (_, factor) = UNITS.iter().find(|(name, _)| name == unit)?;
        let whole = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        let number: u64 = whole.then(|| std::str::from_utf8(digits).ok()?.parse().ok())??;
        // Five hundred years are as good as eleven thousand, and can be added to a point in time.
        Some(Duration::from_nanos(number.saturating_mul(*factor)))
    });
    parsed.map(Some).ok_or_else(|| {
        let message = "grpc-timeout must be 1 to 8 digits and a unit of H, M, S, m, u, n";
        StatusBuilder::invalid_argument("GRPC_TIMEOUT_INVALID", message).build()
    })
}

/// A header value for `time`, in the finest unit that fits eight digits, rounded down. Connections don't remember it: hardly any comes
/// again.
pub fn format(time: Duration) -> HeaderValue {
    let nanos = time.as_nanos();
    let fits = |(_, factor): &&(u8, u64)| nanos / u128::from(*factor) <= TIMEOUT_NUMBER_MAX;
    let fitting = UNITS.iter().find(fits);
    let text = match fitting {
        Some((unit, factor)) => format!("{}{}", nanos / u128::from(*factor), char::from(*unit)),
        None => format!("{TIMEOUT_NUMBER_MAX}H"),
    };
    let mut value = HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0n"));
    value.set_sensitive(true);
    value
}

/// An extension of a request whose answer is read whole before any of it goes to the caller: the time that the call is given counts until
/// the trailers, as if the caller had named it.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredWhole;

/// Ends calls in time. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct DeadlineLayer {
    default: Duration,
    max: Duration,
}

impl DeadlineLayer {
    /// `default` is for calls that name no time, `max` for all; both count until the response headers.
    pub fn new(default: Duration, max: Duration) -> Self {
        Self { default, max }
    }

    /// When the answer to a call with these headers must have begun that begins now.
    pub fn ends(self, headers: &HeaderMap) -> Instant {
        Instant::now() + self.time(headers).1
    }

    /// The time that a call with these headers asks for, and the one it is given.
    fn time(self, headers: &HeaderMap) -> (Option<Duration>, Duration) {
        // What is malformed is refused further in.
        let asked = parse(headers).unwrap_or(None);
        (asked, asked.unwrap_or(self.default).min(self.max))
    }
}

impl Around for DeadlineLayer {
    fn call(&self, inner: &impl Inner, mut request: Request<Body>) -> impl Answering {
        let (asked, given) = self.time(request.headers());
        let whole = request.extensions_mut().remove::<AnsweredWhole>();
        let started = Instant::now();
        let limited_by = if asked == Some(given) {
            "grpc-timeout"
        } else {
            "server"
        };
        let asked = whole.map(|_| given).or(asked);
        let deadline = Deadline {
            at: started + given,
            asked: asked.map(|asked| started + asked),
        };
        request.extensions_mut().insert(deadline);
        let call = CURRENT.sync_scope(deadline, || inner.call(request));
        let call = tokio::time::timeout_at(deadline.at, CURRENT.scope(deadline, call));
        call.map(move |answered| {
            let Ok(response) = answered else {
                return refuse(exceeded(given, limited_by));
            };
            let asked = asked.filter(|_| !response.headers().contains_key(GRPC_STATUS));
            let late = asked.map(|asked| {
                CutOff::new(move || async move {
                    tokio::time::sleep_until(started + asked).await;
                    exceeded(asked, limited_by)
                })
            });
            followed(response, late)
        })
    }
}

/// Refuses calls with a malformed `grpc-timeout`, after admission and rate limits, which apply to these calls, too.
#[derive(Clone, Copy, Debug)]
pub struct MalformedTimeoutLayer;

impl Around for MalformedTimeoutLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        match parse(request.headers()) {
            Ok(_) => Either::Left(inner.call(request)),
            Err(status) => Either::Right(refused(status)),
        }
    }
}

fn exceeded(given: Duration, limited_by: &'static str) -> Status {
    let millis = given.as_millis();
    let message = format!(
        "the call took longer than its {millis} ms (limited by the {limited_by}); ask for less or give it more time"
    );
    StatusBuilder::deadline_exceeded("DEADLINE_EXCEEDED", message)
        .metadata("timeout_ms", millis)
        .metadata("limited_by", limited_by)
        .build()
}

#[cfg(test)]
mod tests;
